"""Writes reference_goldens.safetensors beside this file: runs over the tiny random FLUX model that is shown pictures beside the
one that it draws, computed with PyTorch.

    make_reference_goldens.py        (needs what make_goldens.py needs)

Where the pictures lie is ComfyUI's rule, written down here once more. "in.*" are inputs, in the autoencoder's units.
"""
import os

import torch
import torch.nn.functional as F
from diffusers import FluxPipeline
from safetensors.torch import load_file, save_file

from make_goldens import FLUX_SCALE, FLUX_SHIFT, flux, run, simple, table
from make_random_models import randn

HERE = os.path.dirname(os.path.abspath(__file__))
given = load_file(os.path.join(HERE, "goldens.safetensors"))
cond = given["in.one.cross_attn"], given["in.one.pooled_output"]
shape = (1, 4, 6, 8)
model = flux(False)
first, second, two = randn(60, 1, 4, 7, 5), randn(61, 1, 4, 6, 8), randn(62, 2, 4, 4, 4)
goldens = {"in.first": first, "in.second": second, "in.two": two}


def even(planes):
    """A side that lacks a row or a column has its first one there."""
    return F.pad(planes, (0, planes.shape[-1] % 2, 0, planes.shape[-2] % 2), mode="circular")


def packed(planes):
    planes = even(planes)
    return FluxPipeline._pack_latents(planes, *planes.shape)


def places(sizes, method, height, width):
    """(index, row, column) of the first token of each, from sizes in cells."""
    found, taken_h, taken_w = [], 0, 0
    for number, (h, w) in enumerate(sizes):
        index, down, right = 1, 0, 0
        if method == "index":
            index = number + 1
        elif method == "offset":
            if h + taken_h > w + taken_w:
                right = taken_w
            else:
                down = taken_h
            taken_h, taken_w = max(taken_h, h + down), max(taken_w, w + right)
        else:
            index, down, right = 0, height + taken_h, width + taken_w
            taken_h, taken_w = taken_h + h, taken_w + w
        found.append((index, (down + 1) // 2, (right + 1) // 2))
    return found


def grid(index, row, column, rows, columns):
    ids = torch.zeros(rows, columns, 3)
    ids[..., 0] = index
    ids[..., 1] = torch.arange(rows)[:, None] + row
    ids[..., 2] = torch.arange(columns)[None] + column
    return ids.reshape(-1, 3)


def denoised(pictures, method):
    shown = [(picture - FLUX_SHIFT) * FLUX_SCALE for picture in pictures]

    def seen(x, sigma):
        batch, channels, height, width = x.shape
        ids, tokens = [grid(0, 0, 0, height // 2, width // 2)], [packed(x)]
        for picture, place in zip(shown, places([p.shape[-2:] for p in shown], method, height, width)):
            tokens.append(packed(picture).expand(batch, -1, -1))
            ids.append(grid(*place, *(side // 2 for side in even(picture).shape[-2:])))
        context, pooled = (t.expand(batch, *t.shape[1:]) for t in cond)
        v = model(hidden_states=torch.cat(tokens, 1), timestep=torch.tensor([sigma], dtype=torch.float32).expand(batch),
                  guidance=None, pooled_projections=pooled, encoder_hidden_states=context,
                  txt_ids=torch.zeros(context.shape[1], 3), img_ids=torch.cat(ids), return_dict=False)[0]
        own = v[:, : height // 2 * (width // 2)]
        return x - sigma * FluxPipeline._unpack_latents(own, height * 8, width * 8, 8)
    return seen


if __name__ == "__main__":
    levels = simple(table(1.0), 3)
    goldens["one"] = run("euler", levels, shape, 7, denoised([first], "offset"))
    for method in ("offset", "index", "uxo"):
        goldens[method] = run("euler", levels, shape, 7, denoised([first, second, first], method))
    goldens["batch"] = run("euler", levels, (2, *shape[1:]), 7, denoised([two, second], "offset"))
    save_file({name: value.clone().contiguous() for name, value in goldens.items()},
              os.path.join(HERE, "reference_goldens.safetensors"))
