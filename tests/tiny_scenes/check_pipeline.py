"""Loads a model folder with the stock diffusers pipeline and compares its pictures with ours.

    python3 check_pipeline.py FOLDER [--prompts 4]

The pipeline has its own tokenizers, schedule and guidance; from the same noise it has to draw the
same pictures: at most 2 of 255 apart anywhere (rounding), or this script fails.
"""

import argparse
import sys

import numpy as np
import torch

import prompts
from evaluate import SEED, Painter, noise_of
from model import pack
from objects import SIZE
from parallel import start_device
from vocabulary import T5_LENGTH

MOST = 2  # of 255


def stock_pictures(folder, texts, seeds, device):
    from diffusers import FluxPipeline
    pipeline = FluxPipeline.from_pretrained(folder, torch_dtype=torch.float32).to(device)
    pipeline.set_progress_bar_config(disable=True)
    noise = torch.stack([noise_of(seed) for seed in seeds]).to(device)
    pictures = pipeline(prompt=texts, negative_prompt=[""] * len(texts), true_cfg_scale=3.0,
                        guidance_scale=0.0, num_inference_steps=28, height=SIZE, width=SIZE,
                        latents=pack(noise), max_sequence_length=T5_LENGTH,
                        output_type="pt").images
    return (pictures * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--prompts", type=int, default=4)
    args = parser.parse_args()
    device = start_device()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    everything = prompts.load()
    numbers = [i * len(everything) // args.prompts for i in range(args.prompts)]
    texts, seeds = [everything[i]["text"] for i in numbers], [SEED + i for i in numbers]
    ours = Painter.load(args.folder, device).draw(texts, seeds).astype(int)
    theirs = stock_pictures(args.folder, texts, seeds, device).astype(int)
    worst = np.abs(ours - theirs).max(axis=(1, 2, 3))
    for text, difference in zip(texts, worst):
        print(f"{difference} of 255 at most: {text}")
    if worst.max() > MOST:
        sys.exit(f"{args.folder}: the stock pipeline draws other pictures (up to {worst.max()} of "
                 f"255 apart, allowed {MOST}); compare tokenizers, schedule and guidance")
    print("the stock pipeline draws the same pictures")


if __name__ == "__main__":
    main()
