"""Writes what diffusers makes with a tiny autoencoder and a tiny transformer of Wan 2.2's 5B.

    make_wan22_goldens.py [OUT]        (default: wan22/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {"vae": {name of the tensor in the publisher's file: [shape, diffusers' name]}, "flow", "expert":
                            {name: shape}}
    expected.safetensors    "FRAMES.frames" (F, H, W, 3) are from 0 to 1, "FRAMES.mean" is what the encoder makes of them, in
                            the units of the diffusion model; "FRAMES.decoded" (F, H, W, 3) what the decoder makes of
                            "FRAMES.latent", in the autoencoder's units, from 0 to 1.
                            "start" are two pictures of 20 x 28, resized from their middle to 32 x 64; "begun" is the latent, in those units, of
                            nine frames that begins with the first of them, "begun.latent" what "flow" draws of it in 3 steps
                            of Euler's method with guidance 3, of the texts "in.one.cross_attn" and "in.two.cross_attn" and
                            the noise of seed 7, each frame of the latent at the level that its mask leaves; "free.latent"
                            what it draws of nothing; "uneven.latent" of the same latent where "uneven" (1, 3, 2, 4) says how much of each
                            cell is drawn anew.
                            "whole.CLIP.x" is an input of "flow", "whole.CLIP.out" an output with a row for each step; "begun.CLIP" likewise,
                            where each frame is at a part of the level, its "frame_noise"; "expert.CLIP" of "expert", one of 14B's models
                            of pictures, which reads a latent beside x and no vision model
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKLWan, WanTransformer3DModel
from safetensors.torch import save_file

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import seeded_weights
from make_qwen21_picture_goldens import vae_name
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS, GRID = 48, (3, 2, 4)
# Of each channel. Source: the published config, as ComfyUI's latent format has it.
MEANS = [
    -0.2289, -0.0052, -0.1323, -0.2339, -0.2799, 0.0174, 0.1838, 0.1557, -0.1382, 0.0542, 0.2813, 0.0891,
    0.157, -0.0098, 0.0375, -0.1825, -0.2246, -0.1207, -0.0698, 0.5109, 0.2665, -0.2108, -0.2158, 0.2502,
    -0.2055, -0.0322, 0.1109, 0.1567, -0.0729, 0.0899, -0.2799, -0.123, -0.0313, -0.1649, 0.0117, 0.0723,
    -0.2839, -0.2083, -0.052, 0.3748, 0.0152, 0.1957, 0.1433, -0.2944, 0.3573, -0.0548, -0.1681, -0.0667
]
DEVIATIONS = [
    0.4765, 1.0364, 0.4514, 1.1677, 0.5313, 0.499, 0.4818, 0.5013, 0.8158, 1.0344, 0.5894, 1.0901, 0.6885,
    0.6165, 0.8454, 0.4978, 0.5759, 0.3523, 0.7135, 0.6804, 0.5833, 1.4146, 0.8986, 0.5659, 0.7069, 0.5338,
    0.4889, 0.4917, 0.4069, 0.4999, 0.6866, 0.4093, 0.5709, 0.6065, 0.6415, 0.4944, 0.5726, 1.2042, 0.5458,
    1.6887, 0.3971, 1.06, 0.3943, 0.5537, 0.5444, 0.4089, 0.7468, 0.7744
]
means, deviations = (torch.tensor(numbers).view(1, -1, 1, 1, 1) for numbers in (MEANS, DEVIATIONS))
expected, shapes = {}, {}


def make_vae():
    model = AutoencoderKLWan(
        base_dim=4,
        decoder_base_dim=6,
        z_dim=CHANNELS,
        dim_mult=[1, 2, 4, 4],
        num_res_blocks=2,
        temperal_downsample=[False, True, True],
        is_residual=True,
        in_channels=12,
        out_channels=12,
        patch_size=2,
        scale_factor_spatial=16,
        latents_mean=MEANS,
        latents_std=DEVIATIONS,
    )
    seeded_weights.load(model, vae_name)
    shapes["vae"] = {vae_name(name): [list(tensor.shape), name] for name, tensor in model.state_dict().items()}
    assert len(shapes["vae"]) == len(model.state_dict())
    return model


def make_clips(model):
    for frames in (1, 5, 9):
        pictures = torch.rand(frames, 32, 48, 3, generator=torch.Generator().manual_seed(frames))
        latent = wan.randn(100 + frames, 1, CHANNELS, 1 + (frames - 1) // 4, 2, 3)
        expected[f"{frames}.frames"], expected[f"{frames}.latent"] = pictures, latent
        mean = model.encode(2 * pictures.permute(3, 0, 1, 2)[None] - 1).latent_dist.mean
        expected[f"{frames}.mean"] = (mean - means) / deviations
        expected[f"{frames}.decoded"] = model.decode(latent).sample[0].permute(1, 2, 3, 0) * 0.5 + 0.5


def make_transformer(kind="flow", in_channels=CHANNELS, channels=CHANNELS):
    model = WanTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=128,
        in_channels=in_channels,
        out_channels=channels,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=2,
        rope_max_seq_len=32,
    )
    shapes[kind] = seeded_weights.load(model, wan.original)
    wan.own_processor(model)
    return model


def forward(model, clip, given, concat=None, noise=None):
    """noise (T): what each frame has of the level."""
    x = given["x"]
    whole = x if concat is None else torch.cat([x, concat.expand(len(x), -1, -1, -1, -1)], 1)
    height, width = x.shape[3:]
    # Odd sides are completed by the first row and column.
    even = F.pad(whole.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular").unflatten(1, whole.shape[1:3])
    rows = []
    for level in wan.LEVELS:
        times = (1000 * level).expand(len(x))
        if noise is not None:
            tokens = even.shape[3] * even.shape[4] // 4
            times = (1000 * level * noise).repeat_interleave(tokens)[None].expand(len(x), -1)
        made = model(even, times, given["context"].expand(len(x), -1, -1), return_dict=False)[0]
        rows.append(made[..., :height, :width])
    given = given | {"timestep": 1000 * wan.LEVELS, "out": torch.stack(rows)}
    given |= {name: tensor for name, tensor in (("concat", concat), ("frame_noise", noise)) if tensor is not None}
    expected.update({f"{clip}.{name}": tensor for name, tensor in given.items()})


def make_forwards(model):
    def given(seed, channels, *sizes):
        return {"x": wan.randn(seed, *sizes[:1], channels, *sizes[1:]), "context": wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT)}

    for clip, seed, sizes in (("short", 110, (2, 1, 4, 6)), ("odd", 120, (1, 3, 5, 7))):
        forward(model, f"whole.{clip}", given(seed, CHANNELS, *sizes))
    forward(model, "begun.long", given(130, CHANNELS, 1, 3, 6, 4), noise=torch.tensor([0.0, 1, 1]))
    forward(model, "begun.odd", given(140, CHANNELS, 1, 4, 5, 3), noise=torch.tensor([0.0, 0.25, 0.875, 1]))
    shown, channels = 4 + wan.CHANNELS, wan.CHANNELS
    expert = make_transformer("expert", channels + shown, channels)
    for clip, seed, sizes in (("long", 150, (2, 3, 4, 6)), ("odd", 160, (1, 2, 7, 5))):
        forward(expert, f"expert.{clip}", given(seed, channels, *sizes), wan.randn(seed + 2, 1, shown, *sizes[1:]))


def draw(model, latent=None, mask=None):
    """latent in the model's units; mask (1, 1, T, h, w): 1 where all is drawn anew."""
    x = wan.randn(7, 1, CHANNELS, *GRID)
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    share = torch.ones(1, 1, *GRID) if mask is None else mask
    kept = torch.zeros_like(x) if latent is None else latent
    tokens = GRID[1] * GRID[2] // 4
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        seen = x * share + kept * (1 - share)
        # Each token has its own timestep: that of its frame.
        times = (1000 * here * share.mean((1, 3, 4))).repeat_interleave(tokens, 1)
        yes, no = (model(seen, times, text, return_dict=False)[0] for text in texts)
        clean = (seen - here * (no + 3 * (yes - no))) * share + kept * (1 - share)
        x = x + (x - clean) / here * (there - here)
    return x


def make_videos(vae, model):
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    expected["start"] = torch.rand(2, 20, 28, 3, generator=torch.Generator().manual_seed(25))
    cut = round((20 - 28 * 32 / 64) / 2)  # rows above and below
    picture = F.interpolate(expected["start"].movedim(-1, 1)[:, :, cut : 20 - cut], size=(32, 64), mode="bilinear")[:1]
    first = vae.encode(2 * picture.transpose(0, 1)[None] - 1).latent_dist.mean
    begun = means.expand(1, -1, *GRID).clone()
    begun[:, :, :1] = first
    begun = (begun - means) / deviations
    expected["begun"] = begun
    mask = torch.ones(1, 1, *GRID)
    mask[:, :, :1] = 0
    expected["begun.latent"] = draw(model, begun, mask)
    expected["free.latent"] = draw(model)
    uneven = torch.rand(1, *GRID, generator=torch.Generator().manual_seed(26))
    expected["uneven"] = uneven
    expected["uneven.latent"] = draw(model, begun, uneven[:, None])


def main(out):
    os.makedirs(out, exist_ok=True)
    vae = make_vae()
    make_clips(vae)
    model = make_transformer()
    make_forwards(model)
    make_videos(vae, model)
    for kind in ("flow", "expert"):
        shapes[kind] = compressed(shapes[kind])
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file, indent=1)
        file.write("\n")
    path = os.path.join(out, "expected.safetensors")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, path)
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan22"))
