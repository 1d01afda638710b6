#!/usr/bin/env python3
"""Writes what spandrel makes with small upscalers, and with one of them tile by tile as ComfyUI does.

    make_upscaler_goldens.py [OUT]        (default: upscalers/ beside this file)

Needs torch, spandrel, pillow and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of
their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}
    expected.safetensors    "NAME.image" is an input (1, H, W, 3), "NAME.out" what the model makes of it, not clamped;
                            "tiles.lattice", "tiles.crossing" are pixels of what wide.png becomes by "compact_x2", one of
                            40 and those around the crossing of its four tiles, one of 2; "odd.out" is what 7 x 5 pixels
                            become by "real_x2", which takes sides of multiples of 4
    wide.png, odd.png       pictures
"""
import json
import pathlib
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import save_file
from spandrel import ModelLoader

import seeded_weights

torch.set_grad_enabled(False)
WIDTH, GROWTH = 8, 32  # spandrel has no other growth
TILE, OVERLAP = 512, 32
expected, shapes = {}, {}


def conv(module, out, into):
    return {f"{module}.weight": [out, into, 3, 3], f"{module}.bias": [out]}


def esrgan(first, dense, trunk, ups, high, last, depth=2, into=3):
    found = conv(first, WIDTH, into)
    for block in range(depth):
        for i in (1, 2, 3):
            for c in range(1, 6):
                out = WIDTH if c == 5 else GROWTH
                found |= conv(dense.format(block=block, dense=i, conv=c), out, WIDTH + (c - 1) * GROWTH)
    for module in (trunk, *ups, high):
        found |= conv(module, WIDTH, WIDTH)
    return found | conv(last, 3, WIDTH)


def compact(scale, depth=3):
    found = {}
    for i in range(depth + 1):
        found |= conv(f"body.{2 * i}", WIDTH, WIDTH if i else 3)
        found[f"body.{2 * i + 1}.weight"] = [WIDTH]
    return found | conv(f"body.{2 * depth + 2}", 3 * scale * scale, WIDTH)


BODY = "body.{block}.rdb{dense}.conv{conv}"
MODELS = {
    "old_x4": esrgan("model.0", "model.1.sub.{block}.RDB{dense}.conv{conv}.0", "model.1.sub.2", ("model.3", "model.6"), "model.8", "model.10"),
    "trunk_x2": esrgan("conv_first", "RRDB_trunk.{block}.RDB{dense}.conv{conv}", "trunk_conv", ("upconv1",), "HRconv", "conv_last"),
    "real_x4": esrgan("conv_first", BODY, "conv_body", ("conv_up1", "conv_up2"), "conv_hr", "conv_last", depth=3),
    "real_x2": esrgan("conv_first", BODY, "conv_body", ("conv_up1", "conv_up2"), "conv_hr", "conv_last", into=12),
    "compact_x4": compact(4),
    "compact_x2": compact(2),
    "compact_x1": compact(1, depth=1),
}


def load(name):
    weights = {key: seeded_weights.seeded(key, tuple(shape)) for key, shape in MODELS[name].items()}
    model = ModelLoader().load_from_state_dict(weights)
    model.model.eval()
    return model


def tiled(picture, model):
    """(1, C, H, W): the sum of overlapping tiles, each faded towards its edges, over the sum of what they count."""
    scale = model.scale
    height, width = picture.shape[2:]
    total = torch.zeros(1, 3, height * scale, width * scale)
    counted = torch.zeros_like(total)
    step = TILE - OVERLAP
    fade = OVERLAP * scale
    for top in range(0, height - OVERLAP, step) if height > TILE else [0]:
        for left in range(0, width - OVERLAP, step) if width > TILE else [0]:
            made = model(picture[:, :, top : top + TILE, left : left + TILE])
            mask = torch.ones_like(made)
            for axis in (2, 3):
                size = made.shape[axis]
                if fade >= size:
                    continue
                for t in range(fade):
                    for at in (t, size - 1 - t):
                        mask.narrow(axis, at, 1).mul_((t + 1) / fade)
            rows = slice(top * scale, top * scale + made.shape[2])
            columns = slice(left * scale, left * scale + made.shape[3])
            total[:, :, rows, columns] += made * mask
            counted[:, :, rows, columns] += mask
    return (total / counted).clamp(0, 1)


def picture(height, width, path):
    y, x, c = numpy.mgrid[:height, :width, :3]
    pixels = ((x // 5 * 37 + y // 7 * 91 + c * 50) % 256).astype(numpy.uint8)
    Image.fromarray(pixels).save(path, optimize=True)
    return torch.from_numpy(pixels).float().div(255).permute(2, 0, 1)[None]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("upscalers"))
    folder.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(3)
    for name in MODELS:
        shapes[name] = MODELS[name]
        image = torch.rand(1, 3, 8, 12, generator=generator)
        expected[f"{name}.image"] = image.permute(0, 2, 3, 1).contiguous()
        expected[f"{name}.out"] = load(name).model(image).permute(0, 2, 3, 1).contiguous()
    wide = tiled(picture(520, 600, folder / "wide.png"), load("compact_x2")).permute(0, 2, 3, 1)
    expected["tiles.lattice"] = wide[:, ::40, ::40].contiguous()
    expected["tiles.crossing"] = wide[:, 940:1040:2, 940:1040:2].contiguous()
    print("inside 0 to 1:", ((wide > 0) & (wide < 1)).float().mean())
    expected["odd.out"] = load("real_x2")(picture(5, 7, folder / "odd.png")).permute(0, 2, 3, 1).contiguous()
    print("inside 0 to 1:", ((expected["odd.out"] > 0) & (expected["odd.out"] < 1)).float().mean())
    save_file(expected, folder / "expected.safetensors")
    (folder / "shapes.json").write_text(json.dumps(shapes, indent=1) + "\n")


main()
