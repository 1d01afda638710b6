"""Writes what diffusers makes with tiny models of Wan VACE, and a video that ComfyUI's nodes would have it draw.

    make_wan_vace_goldens.py [OUT]        (default: wan_vace/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "vace" has contexts of 6 channels,
                            "flow" those of published models and heads of 128; "{0-3}" stands for each of these numbers
    expected.safetensors    "vace.CLIP.x" is an input, "vace.CLIP.out" an output with a row for each step, of the clips "short",
                            "long" and "odd", which has an odd side; "long" and "odd" have two contexts.
                            "pictures" and "masks" are what the nodes are given, of 20 x 28 and 10 x 14, resized from their
                            middle to 32 x 48; "in.one.cross_attn" and "in.two.cross_attn" are texts. "frames.followed" is
                            the context of the first five frames, drawn anew as the masks say, "frames.shown" that of a
                            reference picture, with "cells.followed" and "cells.shown", the masks. "followed.latent",
                            "shown.latent" and "chained.latent" are the ends of 3 steps of Euler's method with guidance 3 by
                            "flow" of the noise of seed 7: of the first context, of the second with a strength of 0.5, of
                            two with strengths of 1 and 0.75; "free.latent" is that of none.
"""

import os
import sys

import torch
import torch.nn.functional as F
from diffusers import WanVACETransformer3DModel

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
OWN, LATENTS, CELL = 6, 2 * wan.CHANNELS, 8
expected, shapes = {}, {}


def original(name):
    """The publisher's name of a tensor of WanVACETransformer3DModel."""
    if not name.startswith("vace_blocks."):
        return wan.original(name)
    return wan.original(name).replace(".proj_in.", ".before_proj.").replace(".proj_out.", ".after_proj.")


def make(kind):
    model = WanVACETransformer3DModel(
        num_attention_heads=2 if kind == "flow" else 3,
        attention_head_dim=128 if kind == "flow" else 16,
        in_channels=wan.CHANNELS,
        out_channels=wan.CHANNELS,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=2 if kind == "flow" else 5,
        rope_max_seq_len=32,
        # Every second one, of five the last is left out.
        vace_layers=[0] if kind == "flow" else [0, 2],
        vace_in_channels=LATENTS + CELL * CELL if kind == "flow" else OWN,
    )
    shapes[kind] = seeded_weights.load(model, original)
    wan.own_processor(model)
    for block in model.vace_blocks:
        block.attn2.set_processor(model.blocks[0].attn2.processor)
    return model


def hooked(model, hook, call):
    """What `call` gives while hook(number of the layer, its hint) stands in the place of each layer's hint."""
    hooks = [
        block.register_forward_hook(lambda _, __, made, k=k: (hook(k, made[0]), made[1])) for k, block in enumerate(model.vace_blocks)
    ]
    out = call()
    for one in hooks:
        one.remove()
    return out


def even(video):
    """Odd sides are completed by the first row and column."""
    height, width = video.shape[3:]
    return F.pad(video.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular").unflatten(1, video.shape[1:3])


def velocity(model, x, level, context, contexts, strengths):
    """diffusers takes one context. Layers of VACE read the tokens of the latent before the first layer alone, so what each
    context makes is found by itself, and the sum is put in the place of one's, as ComfyUI adds it up."""
    items = len(x)

    def call(k):
        given = contexts[k].expand(items, -1, -1, -1, -1)
        text = context.expand(items, -1, -1)
        return model(even(x), (1000 * level).expand(items), text, None, even(given), return_dict=False)[0]

    sums = {}

    def add(strength):
        def hook(layer, hint):
            sums[layer] = sums.get(layer, 0) + strength * hint
            return hint

        return hook

    for k, strength in enumerate(strengths):
        hooked(model, add(strength), lambda: call(k))
    out = hooked(model, lambda layer, _: sums[layer], lambda: call(0))
    return out[..., : x.shape[3], : x.shape[4]]


def make_clip(model, clip, seed, frames, height, width, strengths, batch=1, rows=1):
    x = wan.randn(seed, batch, wan.CHANNELS, frames, height, width)
    vace = wan.randn(seed + 1, rows, len(strengths) * OWN, frames, height, width)
    inputs = {"x": x, "timestep": 1000 * wan.LEVELS, "context": wan.randn(seed + 2, 1, wan.TOKENS, wan.TEXT)}
    inputs |= {"vace": vace, "vace_strength": torch.tensor(strengths)}
    out = [velocity(model, x, level, inputs["context"], vace.split(OWN, 1), strengths) for level in wan.LEVELS]
    expected.update({f"vace.{clip}.{name}": tensor for name, tensor in inputs.items()})
    expected[f"vace.{clip}.out"] = torch.stack(out)


def resized(planes, height, width):
    """(B, C, H, W), cut to the shape in the middle, then bilinear without a filter."""
    cut = round((planes.shape[2] - planes.shape[3] * height / width) / 2)
    return F.interpolate(planes[:, :, cut : planes.shape[2] - cut], size=(height, width), mode="bilinear")


def make_context(vae, video, mask, length, reference=None):
    """Latents and masks of cells: (1, 32, T, 4, 6) in the autoencoder's units, (1, 64, T, 4, 6)."""
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean  # noqa: E731
    grey = torch.full((length, 3, 32, 48), 0.5)
    grey[: len(video)] = video
    whole = torch.ones(length, 1, 32, 48)
    whole[: len(mask)] = mask
    kept, drawn = ((grey - 0.5) * share + 0.5 for share in (1 - whole, whole))
    latents = torch.cat([encode(kept), encode(drawn)], 1)
    cells = whole.view(length, 4, CELL, 6, CELL).permute(2, 4, 0, 1, 3).reshape(CELL * CELL, length, 4, 6)
    cells = F.interpolate(cells[None], size=(latents.shape[2], 4, 6), mode="nearest-exact")
    if reference is not None:
        shown = torch.cat([encode(reference), umt5.MEANS.expand(1, -1, 1, 4, 6)], 1)
        latents = torch.cat([shown, latents], 2)
        cells = torch.cat([torch.zeros_like(cells[:, :, :1]), cells], 2)
    return latents, cells


def draw(model, contexts, strengths, frames=3):
    x = wan.randn(7, 1, wan.CHANNELS, frames, 4, 6)
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    given = [torch.cat([umt5.scaled(latents), cells], 1) for latents, cells in contexts]
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(model, x, torch.tensor(here), text, given, strengths) for text in texts)
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_videos():
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    expected["pictures"] = torch.rand(5, 20, 28, 3, generator=torch.Generator().manual_seed(15))
    expected["masks"] = torch.rand(3, 10, 14, generator=torch.Generator().manual_seed(16)).round()
    video = resized(expected["pictures"].movedim(-1, 1), 32, 48)
    mask = resized(expected["masks"][:, None], 32, 48)
    vae = make_workflow_goldens.make_vae()
    followed = make_context(vae, video, mask, 9)
    shown = make_context(vae, video[:0], mask[:0], 5, video[:1])
    for name, (latents, cells) in {"followed": followed, "shown": shown}.items():
        expected[f"frames.{name}"], expected[f"cells.{name}"] = latents, cells
    model = make("flow")
    free = make_context(vae, video[:0], mask[:0], 9)
    nothing = torch.zeros(1, LATENTS, 3, 4, 6), torch.ones(1, CELL * CELL, 3, 4, 6)
    expected["followed.latent"] = draw(model, [followed], [1.0])
    expected["shown.latent"] = draw(model, [shown], [0.5])
    expected["chained.latent"] = draw(model, [followed, free], [1.0, 0.75])
    expected["free.latent"] = draw(model, [nothing], [1.0])


def main(out):
    model = make("vace")
    make_clip(model, "short", 10, 1, 4, 6, [1.0], batch=2)
    make_clip(model, "long", 20, 3, 6, 4, [0.75, 1.5], batch=2)
    make_clip(model, "odd", 30, 2, 5, 7, [1.0, 0.5], batch=2, rows=2)
    make_videos()
    wan.write(out, shapes, expected)
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_vace"))
