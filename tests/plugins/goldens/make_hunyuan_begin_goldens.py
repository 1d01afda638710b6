"""Writes what diffusers makes of videos that begin with a picture, with tiny models of HunyuanVideo 1.0.

    make_hunyuan_begin_goldens.py [OUT]        (default: hunyuan_begin/ beside this file)

The model that has the picture as its first frame is told guidance at that frame, too, as ComfyUI does and diffusers does not.
Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in ComfyUI's files: shape}}: "concat" reads a latent and a mask beside the
                            point, "replace" has the picture as its first frame, and is told guidance
    expected.safetensors    "MODEL.CLIP.x" and so on are inputs, "MODEL.CLIP.out" an output with a row for each step, of the clips
                            "short", "odd" and "one", of one frame;
                            "in.one.cross_attn" and ".pooled_output" are a text, "picture" (1, H, W, 3) is from 0 to 1, "begin" what
                            hunyuan_first's autoencoder makes of it; "concat.latent" and "replace.latent" are the ends of 3 steps of
                            Euler's method with an embedded guidance of 6 and a shift of 7, in the model's units, of the noise of seed 7
"""

import os
import sys

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKLHunyuanVideo, HunyuanVideoTransformer3DModel

import make_hunyuan_first_goldens as first
import make_hunyuan_goldens
import make_wan_goldens as wan
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([900.0, 125.0])
WIDTH, POOLED, TOKENS, CHANNELS = 40, 24, 9, 16
KINDS = {"concat": "latent_concat", "replace": "token_replace"}


def guide_all(model):
    """ComfyUI adds what the guidance is to the first frame's level, too; diffusers does not."""
    embed = model.time_text_embed
    plain = embed.forward

    def forward(timestep, pooled, guidance=None):
        told, first_frame = plain(timestep, pooled, guidance)
        if first_frame is not None and guidance is not None:
            first_frame = first_frame + embed.guidance_embedder(embed.time_proj(guidance).to(pooled.dtype))
        return told, first_frame

    embed.forward = forward
    return model


def make_model(kind):
    model = make_hunyuan_goldens.load(
        HunyuanVideoTransformer3DModel(
            in_channels=2 * CHANNELS + 1 if kind == "concat" else CHANNELS,
            out_channels=CHANNELS,
            num_attention_heads=3,
            attention_head_dim=16,
            num_layers=2,
            num_single_layers=2,
            num_refiner_layers=2,
            mlp_ratio=2.0,
            text_embed_dim=WIDTH,
            pooled_projection_dim=POOLED,
            guidance_embeds=kind == "replace",
            rope_axes_dim=(4, 6, 6),
            image_condition_type=KINDS[kind],
        ),
        kind,
    )
    return guide_all(model)


def velocity(model, x, level, text, pooled, beside=None):
    """Odd sides are completed by the first row and column."""
    whole = x if beside is None else torch.cat([x, beside.expand(len(x), -1, -1, -1, -1)], 1)
    height, width = x.shape[3:]
    flat = F.pad(whole.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular").unflatten(1, whole.shape[1:3])
    guidance = torch.tensor([6000.0]) if model.config.guidance_embeds else None
    rows = len(x)
    made = model(
        flat,
        torch.full((rows,), float(level)),
        text.expand(rows, -1, -1),
        torch.ones(rows, text.shape[1]),
        pooled.expand(rows, -1),
        None if guidance is None else guidance.expand(rows),
        return_dict=False,
    )[0]
    return made[..., :height, :width]


def make_clip(kind, model, expected, clip, seed, frames, height, width, batch=1):
    at = f"{kind}.{clip}."
    x = wan.randn(seed, batch, CHANNELS, frames, height, width)
    text, pooled = wan.randn(seed + 1, 1, TOKENS, WIDTH), wan.randn(seed + 2, 1, POOLED)
    expected |= {at + "x": x, at + "timestep": LEVELS, at + "context": text, at + "y": pooled}
    beside = None
    if kind == "concat":
        beside = wan.randn(seed + 3, 1, CHANNELS + 1, frames, height, width)
        expected[at + "concat"] = beside
    else:
        expected[at + "first_timestep"] = torch.zeros(1)
    expected[at + "out"] = torch.stack([velocity(model, x, level, text, pooled, beside) for level in LEVELS])


def draw(kind, model, expected, begin, frames):
    x = wan.randn(7, 1, CHANNELS, frames, *begin.shape[3:])
    text, pooled = expected["in.one.cross_attn"], expected["in.one.pooled_output"]
    beside = None
    if kind == "concat":
        beside = torch.zeros(1, CHANNELS + 1, frames, *begin.shape[3:])
        beside[:, :CHANNELS, :1], beside[:, CHANNELS, :1] = begin, 1
    levels = [first.SHIFT * t / (1 + (first.SHIFT - 1) * t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / first.STEPS))] for i in range(first.STEPS)] + [0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        if kind == "replace":
            x[:, :, :1] = begin
        x = x + (there - here) * velocity(model, x, 1000 * here, text, pooled, beside)
    if kind == "replace":
        x[:, :, :1] = begin
    expected[f"{kind}.latent"] = x


def main(out):
    expected = {}
    models = {kind: make_model(kind) for kind in KINDS}
    for kind, model in models.items():
        make_clip(kind, model, expected, "short", 10, 3, 6, 8, batch=2)
        make_clip(kind, model, expected, "odd", 20, 2, 5, 7)
        make_clip(kind, model, expected, "one", 30, 1, 4, 6)
    expected["in.one.cross_attn"], expected["in.one.pooled_output"] = wan.randn(92, 1, TOKENS, WIDTH), wan.randn(93, 1, POOLED)
    picture = torch.rand(1, 9, 12, 3, generator=torch.Generator().manual_seed(21))
    expected["picture"] = picture
    vae = AutoencoderKLHunyuanVideo(latent_channels=CHANNELS, block_out_channels=(32, 32, 64, 64), layers_per_block=1)
    seeded_weights.load(vae, first.vae_name)
    pixels = F.interpolate(picture.movedim(-1, 1), size=first.SIDES, mode="bilinear")
    begin = vae._encode(2 * pixels.transpose(0, 1)[None] - 1).chunk(2, dim=1)[0]
    expected["begin"] = begin
    for kind, model in models.items():
        draw(kind, model, expected, begin * vae.config.scaling_factor, 3)
    wan.write(out, {kind: make_hunyuan_goldens.shapes[kind] for kind in KINDS}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "hunyuan_begin"))
