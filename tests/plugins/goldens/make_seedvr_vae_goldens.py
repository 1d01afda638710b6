"""Writes what PyTorch makes of videos with a tiny autoencoder of SeedVR2 (seedvr_vae.py).

    make_seedvr_vae_goldens.py [OUT]        (default: seedvr_vae/ beside this file)

Needs torch and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {"vae": {name of the tensor: shape}}
    expected.safetensors    "FRAMES.frames" (F, H, W, 3) are from 0 to 1, "FRAMES.mean" is what the encoder makes of them,
                            "FRAMES.decoded" (F, H, W, 3) from 0 to 1 what the decoder makes of "FRAMES.latent", both in
                            the autoencoder's units. "picture.z", "picture.image" are two pictures' latents and what
                            becomes of them, from -1 to 1; "picture_encoder.image", ".mean", ".logvar" the way back
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file

import seeded_weights
from seedvr_vae import Autoencoder

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 16
VAE = dict(latent=CHANNELS, widths=(32, 64, 96, 96), resnets=1)
ROWS, COLUMNS = 2, 3


def rand(seed, *shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "seedvr_vae")
    os.makedirs(out, exist_ok=True)
    model = Autoencoder(**VAE)
    shapes = {"vae": seeded_weights.load(model)}
    expected = {}
    for frames in (1, 5, 13):
        pictures = rand(frames, frames, 8 * ROWS, 8 * COLUMNS, 3)
        latent = randn(100 + frames, 1, CHANNELS, 1 + (frames - 1) // 4, ROWS, COLUMNS)
        expected[f"{frames}.frames"] = pictures
        expected[f"{frames}.mean"] = model.moments((2 * pictures - 1).permute(3, 0, 1, 2)[None])[0]
        expected[f"{frames}.latent"] = latent
        expected[f"{frames}.decoded"] = model.decoder(latent)[0].permute(1, 2, 3, 0) * 0.5 + 0.5
    z, image = randn(1, 2, CHANNELS, 3, 2), 2 * rand(2, 2, 16, 24, 3) - 1
    expected["picture.z"] = z
    expected["picture.image"] = model.decoder(z[:, :, None])[:, :, 0].permute(0, 2, 3, 1)
    expected["picture_encoder.image"] = image
    mean, logvar = model.moments(image.permute(0, 3, 1, 2)[:, :, None])
    expected["picture_encoder.mean"], expected["picture_encoder.logvar"] = mean[:, :, 0], logvar[:, :, 0]
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file, indent=1)
        file.write("\n")
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.std():.4g}")


if __name__ == "__main__":
    main()
