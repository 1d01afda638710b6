"""Writes scale_goldens.safetensors beside this file: pictures and latents in other sizes.

    make_scale_goldens.py        (needs torch, numpy, Pillow)

torch.nn.functional.interpolate for every method but lanczos, which is Pillow's on bytes; centre crops
and the mask of ImagePadForOutpaint are written out here. "in.*" are the inputs; the names of the
others say node, method, width, height and crop, or the factor.
"""

import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
METHODS = ("nearest-exact", "bilinear", "area", "bicubic")
goldens = {}


def centre(x, width, height):
    """The middle of (B, C, h, w) in the aspect of width x height."""
    h, w = x.shape[2:]
    x0 = y0 = 0
    if w / h > width / height:
        x0 = round((w - w * ((width / height) / (w / h))) / 2)
    elif w / h < width / height:
        y0 = round((h - h * ((w / h) / (width / height))) / 2)
    return x[:, :, y0 : h - y0, x0 : w - x0]


def resize(x, method, width, height, crop="disabled"):
    if crop == "center":
        x = centre(x, width, height)
    if method != "lanczos":
        return F.interpolate(x, size=(height, width), mode=method)
    rows = []
    for item in x.permute(0, 2, 3, 1).numpy():
        picture = Image.fromarray(np.clip(255.0 * item, 0, 255).astype(np.uint8))
        picture = picture.resize((width, height), Image.LANCZOS)
        rows.append(torch.from_numpy(np.array(picture).astype(np.float32) / 255.0))
    return torch.stack(rows).permute(0, 3, 1, 2)


def pictures():
    image = torch.rand(2, 7, 10, 3, generator=torch.Generator().manual_seed(1)) * 1.1 - 0.05
    goldens["in.image"] = image
    x = image.permute(0, 3, 1, 2)

    def keep(name, y):
        goldens[name] = y.permute(0, 2, 3, 1)

    for method in METHODS + ("lanczos",):
        keep(f"image.{method}.5x13.disabled", resize(x, method, 5, 13))
        keep(f"image.{method}.17x9.center", resize(x, method, 17, 9, "center"))
        keep(f"image.{method}.4x6.center", resize(x, method, 4, 6, "center"))
        for factor in (0.45, 1.5):
            keep(
                f"image.{method}.by {factor}",
                resize(x, method, round(10 * factor), round(7 * factor)),
            )
    keep("image.bicubic.0x15.disabled", resize(x, "bicubic", round(10 * 15 / 7), 15))
    small = torch.rand(1, 5, 3, 3, generator=torch.Generator().manual_seed(2))
    goldens["in.small"] = small
    second = resize(small.permute(0, 3, 1, 2), "bilinear", 10, 7, "center").permute(0, 2, 3, 1)
    goldens["batch"] = torch.cat([image, second])


def padded(name, image, left, top, right, bottom, feathering):
    """(d / feathering away from the nearest padded side: the square of what is left of 1.)"""
    _, h, w, _ = image.shape
    out = torch.full((image.shape[0], h + top + bottom, w + left + right, 3), 0.5)
    out[:, top : top + h, left : left + w] = image
    mask = torch.ones(h + top + bottom, w + left + right)
    mask[top : top + h, left : left + w] = 0
    if 0 < feathering and 2 * feathering < min(h, w):
        for i in range(h):
            for j in range(w):
                sides = [(top, i), (bottom, h - i), (left, j), (right, w - j)]
                d = min((distance for padding, distance in sides if padding), default=math.inf)
                if d < feathering:
                    mask[top + i, left + j] = ((feathering - d) / feathering) ** 2
    goldens[f"padded.{name}"], goldens[f"mask.{name}"] = out, mask[None]


def latents():
    latent = torch.randn(2, 4, 6, 5, generator=torch.Generator().manual_seed(3))
    goldens["in.latent"] = latent
    for method in METHODS:
        goldens[f"latent.{method}.80x72.disabled"] = resize(latent, method, 10, 9)
        goldens[f"latent.{method}.104x64.center"] = resize(latent, method, 13, 8, "center")
        goldens[f"latent.{method}.by 1.5"] = resize(latent, method, 8, 9)  # 7.5 rounds to even
    # A side of 0 follows from the other, both are at least 64 pixels.
    goldens["latent.area.0x96.disabled"] = resize(latent, "area", 80 // 8, 12)
    goldens["latent.area.16x0.disabled"] = resize(latent, "area", 8, round(6 * 64 / 5) // 8)


if __name__ == "__main__":
    pictures()
    padded("all", goldens["in.image"], 8, 16, 8, 8, 3)
    padded("two", goldens["in.image"], 0, 8, 16, 0, 2)
    padded("hard", goldens["in.image"], 8, 0, 0, 0, 4)
    latents()
    save_file(
        {name: tensor.float().contiguous() for name, tensor in goldens.items()},
        os.path.join(HERE, "scale_goldens.safetensors"),
    )
    for name in sorted(goldens):
        print(name, tuple(goldens[name].shape))
