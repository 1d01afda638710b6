"""Writes what PyTorch draws with a small Stable Zero123: a thing of a picture, seen from elsewhere.

    make_zero123_goldens.py [OUT]        (default: zero123/ beside this file)

Needs torch, diffusers, transformers, numpy, Pillow and safetensors from PyPI; runs on the CPU in float32. All weights
follow from the names of their tensors (seeded_weights.py); the UNet and the autoencoder are those of make_unet_goldens.py,
the tower that of make_unclip_goldens.py, the picture that of edit/. The matrix beside the UNet is "cc_projection". Files:

    expected.safetensors    "view.latent" is the end of a guided run for one view, "view.picture" its picture, and
                            "views.latent" the end of one for two views, both with the same noise; "seen_square.x" is an
                            input of the UNet with the matrix, "seen_square.out" an output with a row for each step, and
                            "seen_odd" likewise, with odd sides
"""

import math
import os
import sys

import torch
from safetensors.torch import save_file

import make_svd_goldens as svd
import make_unet_goldens as unets
import seeded_weights

torch.set_grad_enabled(False)
WIDTH = 64


def numbers(elevation, azimuth):
    angle = math.radians(azimuth)
    return torch.tensor([[[math.radians(-elevation), math.sin(angle), math.cos(angle), math.pi / 2]]])


class Zero123(torch.nn.Module):
    def __init__(self, unet):
        super().__init__()
        self.unet, self.cc_projection = unet, torch.nn.Linear(WIDTH + 4, WIDTH)
        for kind in ("weight", "bias"):
            tensor = getattr(self.cc_projection, kind)
            tensor.copy_(seeded_weights.seeded(f"cc_projection.{kind}", tuple(tensor.shape)))

    def forward(self, x, time, context, concat):
        whole = torch.cat([x, concat.expand(len(x), -1, -1, -1)], dim=1)
        return unets.predicted(self.unet, whole, time, self.cc_projection(context))


def forward(model, name, seed, *shape):
    told = {
        "x": unets.randn(seed, *shape),
        "context": unets.randn(seed + 1, shape[0], 1, WIDTH + 4),
        "concat": unets.randn(seed + 2, 1, *shape[1:]),
        "timestep": unets.TIMES,
    }
    rows = [model(told["x"], time, told["context"], told["concat"]) for time in unets.TIMES]
    unets.expected.update({f"{name}.{key}": tensor for key, tensor in (told | {"out": torch.stack(rows)}).items()})


def draw(model, seen, latent, views):
    matrix, model = model.cc_projection, model.unet
    told = torch.cat([torch.cat([seen, numbers(*view)], dim=-1) for view in views])
    positive, negative = (matrix(told), latent), (torch.zeros_like(seen), torch.zeros_like(latent))

    def clean(x, level, context, concat):
        whole = torch.cat([x / math.sqrt(level**2 + 1), concat.expand(len(x), -1, -1, -1)], dim=1)
        return x - unets.predicted(model, whole, torch.tensor(unets.time_of(level)), context) * level

    def guided(x, level):
        without = clean(x, level, *negative)
        return without + 3.0 * (clean(x, level, *positive) - without)

    levels = unets.normal(4)
    return unets.euler(guided, unets.noised(levels).expand(len(views), -1, -1, -1), levels)


def main(out):
    os.makedirs(out, exist_ok=True)
    vae, model = unets.make_vae(), Zero123(unets.make_unet("inpaint", in_channels=8))
    seen, latent = svd.shown(vae, os.path.dirname(os.path.abspath(__file__)))
    unets.expected.clear()
    forward(model, "seen_square", 21, 2, 4, 8, 8)
    forward(model, "seen_odd", 31, 1, 4, 5, 11)
    unets.keep("view", vae, draw(model, seen, latent, [(10.0, 40.0)]), unets.SD_SCALE)
    expected = unets.expected | {"views.latent": draw(model, seen, latent, [(10.0, 40.0), (15.0, 70.0)])}
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "zero123"))
