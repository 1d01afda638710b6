"""Renders the pictures of the flow training and keeps their latents, captions and facts.

    torchrun --nproc_per_node=4 dataset.py --out DIR     wants DIR/vae and the tokenizers in DIR

Each process writes DIR/shard_<rank>.pt: `latents` (n, 16, 32, 32) bfloat16, scaled; `clip` and
`t5`, ids of the captions (n, captions, length) int16; `facts` (n, 8) and `named` (n, captions, 3)
int64.
The rendering can run beside the autoencoder's training: it waits for DIR/autoencoder.json.
"""

import argparse
import os
import time

import torch

from autoencoder import to_floats
from parallel import RANK, WORLD, say, start_device
from render import Rendering
from vocabulary import Tokenizers

FIRST_SEED = 10_000_000  # the autoencoder's pictures come before


def encode(folder, pictures, device):
    """Scaled latents of uint8 pictures, bfloat16, on the CPU."""
    from diffusers import AutoencoderKL
    vae = AutoencoderKL.from_pretrained(f"{folder}/vae", torch_dtype=torch.float32)
    vae.to(device, memory_format=torch.channels_last).eval()
    shift, scale, parts = vae.config.shift_factor, vae.config.scaling_factor, []
    for k in range(0, len(pictures), 128):
        x = to_floats(torch.from_numpy(pictures[k:k + 128]).to(device))
        with torch.no_grad(), torch.autocast(device.type, torch.bfloat16):
            mean = vae.encode(x.contiguous(memory_format=torch.channels_last)).latent_dist.mean
        parts.append(((mean.float() - shift) * scale).bfloat16())
    return torch.cat(parts).contiguous().cpu()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--pictures", type=int, default=200_000, help="over all processes")
    parser.add_argument("--captions", type=int, default=6, help="a picture")
    args = parser.parse_args()
    count = args.pictures // WORLD
    workers = max(1, (os.cpu_count() - 8) // WORLD)
    rendering = Rendering(count, FIRST_SEED + RANK * count, args.captions, workers)
    pictures, facts, captions, named = rendering.wait()
    say("rendered", count, "pictures a process")
    clip, t5 = Tokenizers(args.out).encode(captions)
    say("encoded", len(captions), "captions")
    while not os.path.exists(os.path.join(args.out, "autoencoder.json")):
        time.sleep(0.5)
    latents = encode(args.out, pictures, start_device())
    say("latents", tuple(latents.shape), "mean", latents.float().mean().item(),
        "std", latents.float().std().item())
    torch.save({"latents": latents, "facts": torch.from_numpy(facts),
                "clip": torch.from_numpy(clip).view(count, args.captions, -1),
                "t5": torch.from_numpy(t5).view(count, args.captions, -1),
                "named": torch.from_numpy(named).view(count, args.captions, -1)},
               os.path.join(args.out, f"shard_{RANK}.new"))
    os.replace(os.path.join(args.out, f"shard_{RANK}.new"),
               os.path.join(args.out, f"shard_{RANK}.pt"))
    say("saved")


if __name__ == "__main__":
    main()
