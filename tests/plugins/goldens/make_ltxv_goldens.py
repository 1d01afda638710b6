"""Writes what diffusers makes with tiny models of LTX-Video.

    make_ltxv_goldens.py [OUT]       (default: ltxv/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "four" has four heads, "three" three,
                            "flow" and "placed" 32; "{0-1}" stands for each of these numbers
    expected.safetensors    "MODEL.CLIP.x" is an input, "MODEL.CLIP.out" an output with a row for each step, of the clips
                            "short" and "long", "odd", which has odd sides, and "causal", whose first frame is a single picture, and "guided",
                            of whose frames each has a part of the noise of its own;
                            "flow.latent" is the end of 3 steps of Euler's method with guidance 3 by "flow", of the texts
                            "in.one.cross_attn" and "in.two.cross_attn" and the noise of seed 7, at 24 pictures a second;
                            "windows.latent" is that of five frames, of which it sees three at a time, and one before them,
                            and "retained.latent" of three of which the first is that of the video

diffusers is given texts with padding behind them, and a mask that hides it.
"""

import json
import math
import os
import sys

import torch
from diffusers import LTXVideoTransformer3DModel
from safetensors.torch import save_file

import seeded_weights
from name_patterns import compressed

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samplers"))
import window_reference  # noqa: E402

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.55, 0.125])
TEXT, TOKENS, PADDING, CHANNELS = 40, 9, 7, 16
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of LTXVideoTransformer3DModel."""
    for here, there in (("proj_in.", "patchify_proj."), ("time_embed.", "adaln_single.")):
        if name.startswith(here):
            return there + name[len(here) :]
    return name.replace(".norm_q.", ".q_norm.").replace(".norm_k.", ".k_norm.")


def transformer(heads, head, **more):
    return LTXVideoTransformer3DModel(
        num_attention_heads=heads, attention_head_dim=head, cross_attention_dim=heads * head, num_layers=2, caption_channels=TEXT, **more
    )


def make(kind):
    channels = 128 if kind == "flow" else CHANNELS
    model = transformer(*{"four": (4, 16), "three": (3, 16), "flow": (32, 8), "placed": (32, 8)}[kind], in_channels=channels, out_channels=channels)
    shapes[kind] = seeded_weights.load(model, original)
    return model


def coordinates(frames, height, width, rate, causal):
    """Seconds, rows and columns of all tokens, (1, 3, L)."""
    time = 8.0 * torch.arange(frames)
    if causal:
        time = (time - 7).clamp(min=0)
    grid = torch.meshgrid(time * (1.0 / rate), 32.0 * torch.arange(height), 32.0 * torch.arange(width), indexing="ij")
    return torch.stack(grid).flatten(1)[None]


def velocity(model, x, level, context, rate, causal=False, frame_noise=None, coords=None):
    batch, channels, frames, height, width = x.shape
    padded = torch.cat([context, randn(1, len(context), PADDING, TEXT)], 1).expand(batch, -1, -1)
    mask = torch.cat([torch.ones(batch, context.shape[1]), torch.zeros(batch, PADDING)], 1)
    levels = (1000 * level).expand(batch)
    if frame_noise is not None:
        levels = (levels[:, None] * frame_noise).repeat_interleave(height * width, 1)
    if causal:
        coords = coordinates(frames, height, width, rate, True)
    out = model(
        x.flatten(2).transpose(1, 2),
        padded,
        levels,
        mask,
        frames,
        height,
        width,
        rope_interpolation_scale=(8 / rate, 32, 32),
        video_coords=coords.expand(batch, -1, -1) if coords is not None else None,
        return_dict=False,
    )[0]
    return out.transpose(1, 2).reshape(x.shape).contiguous()


def make_clip(model, kind, clip, seed, frames, height, width, rate, batch=1, causal=False, frame_noise=None):
    at = f"{kind}.{clip}."
    x = randn(seed, batch, CHANNELS, frames, height, width)
    inputs = {"x": x, "timestep": LEVELS, "context": randn(seed + 1, 1, TOKENS, TEXT), "frame_time": torch.tensor([1.0 / rate])}
    if frame_noise is not None:
        inputs["frame_noise"] = frame_noise
    for name, tensor in inputs.items():
        expected[at + name] = tensor.clone()
    out = [velocity(model, x, level, inputs["context"], rate, causal, frame_noise) for level in LEVELS]
    expected[at + "out"] = torch.stack(out)


def scheduled(steps, tokens, terminal=0.1):
    """LTXVScheduler's levels."""
    mu = 0.95 + (2.05 - 0.95) * (tokens - 1024) / (4096 - 1024)
    levels = [math.exp(mu) / (math.exp(mu) + 1 / t - 1) for t in (1 - i / steps for i in range(steps))]
    stretch = (1 - levels[-1]) / (1 - terminal)
    return [1 - (1 - level) / stretch for level in levels] + [0.0]


def draw(x, predict):
    """predict: of a latent, a level and a text."""
    sigmas = scheduled(3, x[0, 0].numel())
    for here, there in zip(sigmas, sigmas[1:]):
        yes, no = (predict(x, torch.tensor(here), expected[f"in.{text}.cross_attn"]) for text in ("one", "two"))
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_flow(model):
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = randn(92, 1, TOKENS, TEXT), randn(93, 1, TOKENS - 4, TEXT)
    expected["flow.latent"] = draw(randn(7, 1, 128, 3, 3, 4), lambda *given: velocity(model, *given, 24))
    frames, length, overlap = 5, 3, 1
    windows = window_reference.windows_at("standard_static", frames, length, overlap, 1, False, 0)
    parts = window_reference.shares(windows, "pyramid", frames, overlap)
    for name, retained in (("windows", ()), ("retained", (0,))):

        def seen(x, level, text):
            return window_reference.predict(lambda _, part: velocity(model, part, level, text, 24), x, 2, windows, parts, retained)

        expected[f"{name}.latent"] = draw(randn(7, 1, 128, frames, 2, 3), seen)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltxv")
    os.makedirs(out, exist_ok=True)
    for kind, seed in (("four", 10), ("three", 40)):
        model = make(kind)
        make_clip(model, kind, "short", seed, 1, 4, 6, 25, batch=2)
        make_clip(model, kind, "long", seed + 5, 3, 6, 4, 25)
        make_clip(model, kind, "odd", seed + 9, 2, 5, 7, 30)
        make_clip(model, kind, "guided", seed + 19, 3, 3, 4, 25, batch=2, frame_noise=torch.tensor([0.0, 1.0, 0.5]))
        make_clip(model, kind, "causal", seed + 14, 4, 3, 5, 24, causal=True)
    make_flow(make("flow"))
    make("placed")
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(listed) for kind, listed in shapes.items()}, file, indent=1)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
