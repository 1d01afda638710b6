"""Writes what MoGe 1 and 2 of moge_reference.py make with small random weights, and what ComfyUI's nodes make of that.

    make_moge_goldens.py [OUT]        (default: moge/ beside this file)

Needs torch, transformers, scipy and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of
their tensors (seeded_weights.py) but image_mean and image_std, and a bias that is SEES, so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}, or of another seed {seed: [shape, name]}, "{0-7}" being layers:
                            "first", "second", and "normed", with group norms, SwiGLU and no normals
    expected.safetensors    "MODEL.R.C.*": inputs and outputs of models for R x C squares (plugins/detection/moge.h); "pictures"
                            (2, H, W, 3), of which "CASE.*" is what MoGeInference makes, and "CASE.render.OUTPUT" MoGeRender
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import moge_reference as moge
from name_patterns import compressed
from seeded_weights import seeded

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = 4
SEES = 0.5  # the bias of the first one's mask: of around half of the cells
expected, shapes = {}, {}


def seed_of(name):
    """Numbers of the head for normals are no norms'."""
    return name.replace("normal_head.", "direction_head.")


def model(name):
    if name == "first":
        made = moge.First(128, 6, TABLE, 48, [32, 16, 16], 8)
    elif name == "second":
        made = moge.Second(128, 4, TABLE, 48, [32, 24, 16, 8, 8], [0, 1, 2, 0, 0], [0, 1, 0, 1, 0], 32)
    else:
        made = moge.Second(64, 8, TABLE, 32, [64, 32, 16, 8, 8], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0], 32, normal=False, normed=True, gated=True)
    listed = {}
    moge.load(made, lambda told, shape: seeded(seed_of(told), shape), listed)
    if name == "first":
        made.head.output_block[1][2].bias[:] = SEES
    shapes[name] = {seed_of(told): shape if seed_of(told) == told else [shape, told] for told, shape in listed.items()}
    return made


def picture(count, height, width, seed):
    """Smooth, from 0 to 1."""
    coarse = torch.rand((count, 3, 5, 6), generator=torch.Generator().manual_seed(seed))
    return F.interpolate(coarse, (height, width), mode="bilinear", align_corners=False)


def cubic_taps(count):
    """ids and shares (4, count) of the table's lines."""
    if count == TABLE:
        lines = torch.arange(count, dtype=torch.int32)
        return lines.repeat(4, 1), torch.tensor([1.0, 0, 0, 0])[:, None].repeat(1, count)
    scale, a = torch.tensor(TABLE / (count + 0.1)), -0.75
    at = (torch.arange(count) + 0.5) * scale - 0.5
    first = at.floor()
    near = lambda t: ((a + 2) * t - (a + 3)) * t * t + 1
    far = lambda t: ((a * t - 5 * a) * t + 8 * a) * t - 4 * a
    t = at - first
    shares = torch.stack((far(t + 1), near(t), near(1 - t), far(2 - t)))
    ids = torch.stack([first + i for i in (-1, 0, 1, 2)]).clamp(0, TABLE - 1)
    return ids.int(), shares


def linear_taps(count, lines):
    at = ((torch.arange(count) + 0.5) * (lines / count) - 0.5).clamp_min(0)
    first = at.floor()
    ids = torch.stack((first, (first + 1).clamp_max(lines - 1)))
    return ids.int(), torch.stack((1 - at + first, at - first))


def put(at, names, tensors):
    for name, tensor in zip(names, tensors):
        expected[at + name] = tensor


def call(name, model, rows, columns, count):
    at = f"{name}.{rows}.{columns}."
    squares = picture(count, rows * moge.PATCH, columns * moge.PATCH, rows + columns)
    height, width = rows * moge.PATCH + 9, columns * moge.PATCH + 5
    aspect = width / height
    if name == "first":
        made = model.raw(squares, (height, width))
        put(at, ("final_row_ids", "final_row_shares"), linear_taps(height, 8 * rows))
        put(at, ("final_column_ids", "final_column_shares"), linear_taps(width, 8 * columns))
    else:
        made = model.raw(squares, aspect)
    expected[at + "picture"] = squares.permute(0, 2, 3, 1)
    put(at, ("row_ids", "row_shares"), cubic_taps(rows))
    put(at, ("column_ids", "column_shares"), cubic_taps(columns))
    diagonal = (1 + aspect**2) ** 0.5
    expected[at + "span"] = torch.tensor([aspect / diagonal, 1 / diagonal])
    for output, tensor in made.items():
        expected[at + output] = tensor[:, None] if output == "scale" else tensor.permute(0, 2, 3, 1)


RENDERS = ("depth", "depth_colored", "normal_opengl", "normal_directx", "mask")


def infer(case, model, pictures, renders=RENDERS, **how):
    found = moge.geometry(model, pictures, **how)
    for name, tensor in found.items():
        expected[f"{case}.{name}"] = tensor.to(torch.uint8) if tensor.dtype == torch.bool else tensor
    for output in renders:
        expected[f"{case}.render.{output}"] = moge.rendered(found, output)
    print(case, "seen", found["mask"].float().mean((1, 2)).tolist(), "lens", found["intrinsics"][:, 1, 1].tolist())


def main(out):
    models = {name: model(name) for name in ("first", "second", "normed")}
    for name in models:
        call(name, models[name], 3, 5, 2)
        call(name, models[name], 4, 4, 1)
    pictures = picture(2, 30, 40, 3).permute(0, 2, 3, 1).contiguous()
    expected["pictures"] = pictures
    infer("first", models["first"], pictures, renders=("depth", "normal_directx", "mask"), level=0)
    infer("second", models["second"], pictures, level=0)
    infer("told", models["second"], pictures, renders=(), level=1, fov=55.5, projects=False, masked=False)
    infer("normed", models["normed"], pictures, renders=("normal_opengl",), level=0)
    tall = pictures[:1, :, :13].contiguous()
    expected["tall"] = tall
    infer("tall_second", models["second"], tall, renders=("depth",), level=0)
    infer("tall_first", models["first"], tall, renders=("depth",), level=0)
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = []
        for name, tensors in shapes.items():
            rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(shape)}" for key, shape in compressed(tensors).items())
            texts.append(f' "{name}": {{\n{rows}\n }}')
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    for name, tensor in expected.items():
        print(f"{name:32} {tuple(tensor.shape)} {tensor.float().mean():.4g} {tensor.float().abs().max():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "moge"))
