"""Writes what PyTorch makes of a picture by Marigold v2, Qwen-Image Edit that draws a depth, normals or an albedo in one step.

    make_marigold_goldens.py [OUT]        (default: marigold/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. The transformer and the
autoencoder are those of make_edit_goldens.py, the picture is its one.png. File:

    expected.safetensors    "conditioning" is a text, "latent" what is left of the picture's latent when the velocity at the
                            level 0.5 is taken from it, "depth", "normals" and "albedo" the pictures; "post.in" are numbers,
                            also below 0 and above 1, and "post.depth" and so on what is made of them
"""

import os
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import save_file

import make_edit_goldens as edit
import make_workflow_goldens as flows

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))


def processed(picture):
    """Of (B, H, W, 3), by name."""
    grey = picture.mean(-1, keepdim=True)
    least, most = (getattr(grey, name)(dim=(1, 2, 3), keepdim=True) for name in ("amin", "amax"))
    depth = (most - grey) / (most - least).clamp(min=1e-6)
    normals = torch.nn.functional.normalize(2 * picture - 1, dim=-1)
    curve = 1.055 * picture.clamp(min=0.0031308) ** (1 / 2.4) - 0.055
    return {
        "depth": depth.expand(-1, -1, -1, 3),
        "normals": (normals + 1) / 2,
        "albedo": torch.where(picture <= 0.0031308, 12.92 * picture, curve),
    }


def main(out):
    os.makedirs(out, exist_ok=True)
    pixels = numpy.asarray(Image.open(os.path.join(HERE, "edit", "one.png"))).astype(numpy.float32)
    picture = torch.from_numpy(pixels)[None] / 255
    vae, model = flows.make_vae(), edit.transformer()
    context = flows.randn(11, 1, 7, flows.WIDTH)
    latent = edit.latent_of(vae, picture)
    latent = latent - edit.velocity(model, latent, torch.tensor(0.5), context, [])
    drawn = flows.picture_of(vae, latent)
    drawn = drawn if drawn.shape[-1] == 3 else drawn.permute(0, 2, 3, 1)
    numbers = flows.randn(12, 2, 5, 7, 3) * 0.4 + 0.5
    numbers[0, 0, 0] = 0.5  # no direction
    expected = {"conditioning": context, "latent": latent, **processed(drawn), "post.in": numbers}
    expected |= {f"post.{name}": made for name, made in processed(numbers).items()}
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g} {tensor.std():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "marigold"))
