"""Writes growing_goldens.safetensors beside this file: runs of SamplerLCMUpscale, written out in PyTorch.

    make_growing_goldens.py        (needs what make_goldens.py needs)

Each of the first steps makes the clean picture larger, then it is noised for the next level: x = D + sigma noise, in flows as
well. Noise comes from PyTorch's own generator, seeded for the initial noise. "grown.*": the latent at the end, "denoised.*": what
the model saw in the last step, of the conditionings of goldens.safetensors.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import make_goldens as reference

HERE = os.path.dirname(os.path.abspath(__file__))
SEED, CFG = 7, 3.0


def factors(total, steps, level_count):
    points = max(level_count // 2 + 1, 2) if steps < 0 else min(steps + 1, level_count + 1)
    return np.linspace(1.0, total, points)[1:]


def drawn(model, sigmas, shape, total, steps, method, latent=None):
    torch.manual_seed(SEED)
    noise = torch.randn(shape)
    x = sigmas[0] * noise + (1 - sigmas[0]) * (torch.zeros(shape) if latent is None else latent)
    sizes = factors(total, steps, len(sigmas))
    for i, (level, following) in enumerate(zip(sigmas[:-1], sigmas[1:])):
        seen = x = model(x, level)
        if i < len(sizes):
            size = (round(shape[-2] * sizes[i]), round(shape[-1] * sizes[i]))
            corners = {"align_corners": False} if method in ("bilinear", "bicubic") else {}
            x = F.interpolate(x, size=size, mode=method, **corners)
        if following > 0:
            x = x + following * torch.randn(x.shape)
    return x / (1 - sigmas[-1]), seen


def main():
    given = load_file(os.path.join(HERE, "goldens.safetensors"))
    one, two = ((given[f"in.{name}.cross_attn"], given[f"in.{name}.pooled_output"]) for name in ("one", "two"))
    model = reference.guided(reference.flux(False), [(one, 1.0)], [(two, 1.0)], CFG)
    levels = reference.table(1.0)
    raw = (given["in.latent"] - reference.FLUX_SHIFT) * reference.FLUX_SCALE
    cases = {
        "half": (reference.simple(levels, 2), (1, 4, 6, 8), 2.0, -1, "bicubic", None),
        "twice": (reference.simple(levels, 4), (1, 4, 6, 8), 3.0, 2, "nearest-exact", None),
        "smaller": (reference.simple(levels, 6)[-4:], (2, 4, 6, 8), 0.3, 1, "area", raw),
        "never": (reference.simple(levels, 3), (1, 4, 6, 8), 2.0, 0, "bilinear", None),
        "unfinished": (reference.simple(levels, 4)[:-1], (1, 4, 6, 8), 2.0, 1, "bilinear", None),
    }
    results = {}
    for name, case in cases.items():
        results[f"grown.{name}"], results[f"denoised.{name}"] = drawn(model, *case)
    save_file({name: value.contiguous() for name, value in results.items()}, os.path.join(HERE, "growing_goldens.safetensors"))


if __name__ == "__main__":
    main()
