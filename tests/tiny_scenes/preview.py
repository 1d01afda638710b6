"""Fits the linear map from latents to small pictures that previews of a run are made with.

    python preview.py --model ../../graphs/models/diffusers/tiny-scenes

Draws pictures that no training has seen, encodes them, and finds the 16 x 3 factors and the
constant that come nearest to the pictures reduced 8 times (least squares over all positions).
Writes them into MODEL/vae/config.json as "preview_factors": a list of (red, green, blue) for each
channel of the scaled latents, then the constant; colours from 0 to 1.
"""

import argparse
import json

import torch
import torch.nn.functional as F

from autoencoder import TEST_SEED, to_floats
from render import Rendering


def latents_and_pictures(folder, count):
    """Scaled latents (n, 16) and colours (n, 3) of all positions of `count` pictures."""
    from diffusers import AutoencoderKL
    vae = AutoencoderKL.from_pretrained(f"{folder}/vae", torch_dtype=torch.float32).eval()
    pictures = Rendering(count, TEST_SEED, 1, 2).wait()[0]
    x = to_floats(torch.from_numpy(pictures))
    parts = []
    for k in range(0, count, 8):
        with torch.no_grad():
            parts.append(vae.encode(x[k:k + 8]).latent_dist.mode())
    latents = (torch.cat(parts) - vae.config.shift_factor) * vae.config.scaling_factor
    small = F.avg_pool2d(x, 8) / 2 + 0.5
    return latents.permute(0, 2, 3, 1).reshape(-1, 16), small.permute(0, 2, 3, 1).reshape(-1, 3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--pictures", type=int, default=64)
    args = parser.parse_args()
    latents, colours = latents_and_pictures(args.model, args.pictures)
    rows = torch.cat([latents, torch.ones(len(latents), 1)], 1).double()
    half = len(rows) // 2
    factors = torch.linalg.lstsq(rows[:half], colours[:half].double()).solution
    error = (rows[half:] @ factors).clamp(0, 1) - colours[half:]
    spread = colours[half:] - colours[half:].mean(0)
    print("root of the mean squared error on the other half", error.square().mean().sqrt().item(),
          "of", spread.square().mean().sqrt().item())
    path = f"{args.model}/vae/config.json"
    with open(path) as file:
        config = json.load(file)
    config["preview_factors"] = [[round(v, 4) for v in row] for row in factors.tolist()]
    text = json.dumps(config, indent=2)
    with open(path, "w") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main()
