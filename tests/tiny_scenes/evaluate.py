"""Draws the held-back prompts with a model folder and counts what the checker says.

    python3 evaluate.py FOLDER [--out DIR] [--sets pairs,short] [--limit 20] [--wait]

(or with torchrun, on several devices; --wait lets it begin before the training has ended).

Prompt i of prompts.json is drawn from the noise of seed SEED + i, in 28 Euler steps with guidance 3
against the empty prompt. Writes DIR/evaluation.json and DIR/samples.png if --out is given.
"""

import argparse
import json
import os
import time

import numpy as np
import torch

import prompts
from autoencoder import CHANNELS
from checker import judge, lines, tally
from model import SIDE, Model, sample
from parallel import RANK, WORLD, gather, say, start_device
from vocabulary import Tokenizers

SEED = 5_000_000


class Painter:
    """A model with its tokenizers and autoencoder; draws prompts."""

    def __init__(self, model, tokenizers, vae):
        self.model, self.tokenizers, self.vae = model, tokenizers, vae
        self.device = next(model.parameters()).device

    @staticmethod
    def load(folder, device):
        from diffusers import AutoencoderKL
        vae = AutoencoderKL.from_pretrained(f"{folder}/vae", torch_dtype=torch.float32).to(device)
        return Painter(Model.load(folder).to(device).eval(), Tokenizers(folder), vae.eval())

    def ids(self, texts):
        return [torch.from_numpy(i).long().to(self.device) for i in self.tokenizers.encode(texts)]

    def draw(self, texts, seeds):
        """(n, 256, 256, 3) uint8 pictures of the texts, one noise seed each."""
        noise = torch.stack([noise_of(seed) for seed in seeds]).to(self.device)
        z = sample(self.model, self.ids(texts), self.ids([""]), noise)
        z = z / self.vae.config.scaling_factor + self.vae.config.shift_factor
        with torch.no_grad():
            x = torch.cat([self.vae.decode(part).sample.float() for part in z.split(25)])
        x = ((x.clamp(-1, 1) + 1) * 127.5).round().byte()
        return x.permute(0, 2, 3, 1).cpu().numpy()


def noise_of(seed):
    """(16, 32, 32) normal noise from the CPU's generator."""
    return torch.randn(CHANNELS, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))


def judged(painter, numbered, batch=50):
    """(prompt, verdicts) of (number, prompt) pairs."""
    result = []
    for first in range(0, len(numbered), batch):
        part = numbered[first:first + batch]
        pictures = painter.draw([p["text"] for _, p in part], [SEED + i for i, _ in part])
        result += [(p, judge(picture, p)) for (_, p), picture in zip(part, pictures)]
    return result


def sheet_prompts():
    """The prompts of the picture sheet, sheet.txt."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "sheet.txt")) as file:
        return file.read().splitlines()


def save_sheet(pictures, path, columns=4):
    from PIL import Image
    rows = [np.concatenate(list(pictures[i:i + columns]), 1)
            for i in range(0, len(pictures), columns)]
    Image.fromarray(np.concatenate(rows, 0)).save(path, optimize=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--out")
    parser.add_argument("--sets", default=",".join(prompts.SETS))
    parser.add_argument("--limit", type=int, default=10**6, help="prompts a set")
    parser.add_argument("--wait", action="store_true", help="for FOLDER/training.json")
    args = parser.parse_args()
    device = start_device()
    while args.wait and not os.path.exists(os.path.join(args.folder, "training.json")):
        time.sleep(0.5)
    painter = Painter.load(args.folder, device)
    # Full float32, so that the figures hold on any machine.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    numbered = list(enumerate(prompts.load()))
    chosen = [[(i, p) for i, p in numbered if p["set"] == name][:args.limit]
              for name in args.sets.split(",")]
    chosen = [pair for part in chosen for pair in part]
    result = gather(judged(painter, chosen[RANK::WORLD]))
    counts = tally(result)
    say("\n".join([args.folder, *lines(counts)]))
    if args.out and RANK == 0:
        os.makedirs(args.out, exist_ok=True)
        with open(os.path.join(args.out, "evaluation.json"), "w") as file:
            json.dump({"counts": counts, "wrong": [
                [p["set"], p["text"], v["objects"]] for p, v in result if not all(v["objects"])]},
                file, indent=1)
        texts = sheet_prompts()
        save_sheet(painter.draw(texts, range(1, len(texts) + 1)),
                   os.path.join(args.out, "samples.png"))


if __name__ == "__main__":
    main()
