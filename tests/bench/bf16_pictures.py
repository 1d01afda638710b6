"""How close bf16 comes to float32 on a CPU device: ten pictures, ours beside PyTorch's.

    bf16_pictures.py build/heddle [--models DIR] [--prompts 0,1,...] [--threads N]

Draws the prompts of tests/plugins/goldens/make_stage_goldens.py with `--compute cpu=bf16` and prints,
for each, the PSNR in decibels against PyTorch's float32 picture: of ours in bf16, of PyTorch's own in
bf16, and of ours in f32. Goals: bf16 at least 38 dB and at most 3 dB below PyTorch's own; a row that
misses one says so, and the exit code is 1. Pictures are compared as they are saved, in 8 bits, cut off
as SaveImage does it. PyTorch draws all prompts as one batch, which takes some minutes. Needs torch,
diffusers, transformers, Pillow.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/plugins/goldens"))
LEAST, BELOW_PEER = 38.0, 3.0


def ours(args, compute, prompts, folder):
    """Our pictures in [0, 1], as they were saved."""
    import numpy
    import torch
    from PIL import Image

    pictures = []
    for text, seed in prompts:
        command = [args.program, "run", ROOT / "graphs/scene.json", "--json", "--cache", "none", "--compute",
                   f"cpu={compute}", "--devices", "cpu:0", "--output", folder,
                   "--set", f"prompt.text={text}", "--set", f"KSampler.seed={seed}"]
        if args.models is not None:
            command += ["--models", args.models]
        if args.threads is not None:
            command += ["--threads", str(args.threads)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            sys.exit(f"{args.program} ended with {run.returncode}")
        events = [json.loads(line) for line in run.stdout.splitlines()]
        path = next(event for event in events if event["event"] == "run_done")["files"][0]
        pictures.append(torch.from_numpy(numpy.array(Image.open(path).convert("RGB"))) / 255.0)
    return pictures


def pytorchs(folder, prompts):
    """PyTorch's pictures in float32 and in bfloat16, cut off to 8 bits."""
    import torch
    from make_stage_goldens import Pipeline, tokens

    texts = [text for text, _ in prompts] + [""]
    clip_ids, _ = tokens(folder, "tokenizer", texts, 77)
    t5_ids, _ = tokens(folder, "tokenizer_2", texts, 64)
    noise = torch.cat([torch.randn(1, 16, 32, 32, generator=torch.Generator("cpu").manual_seed(seed))
                       for _, seed in prompts])
    pictures = []
    for dtype in (torch.float32, torch.bfloat16):
        pipeline = Pipeline(folder, dtype)
        pooled, context, _ = pipeline.encode(clip_ids, t5_ids)
        latents, _ = pipeline.sample(noise, pooled, context)
        pictures.append([(pipeline.decode(latents[i : i + 1]) * 255).floor() / 255
                         for i in range(len(prompts))])
    return pictures


def psnr(picture, exact):
    error = (picture - exact).pow(2).mean().item()
    return float("inf") if error == 0 else -10 * math.log10(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--prompts", default="0,1,2,3,4,5,6,7,8,9")
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    from make_stage_goldens import PROMPTS

    prompts = [PROMPTS[int(i)] for i in args.prompts.split(",")]
    folder = (args.models or ROOT / "graphs/models") / "diffusers/tiny-scenes"
    with tempfile.TemporaryDirectory() as pictures:
        rounded = ours(args, "bf16", prompts, pictures)
        full = ours(args, "f32", prompts, pictures)
    exact, peer = pytorchs(str(folder), prompts)
    missed = False
    print(f"{'PSNR against PyTorch f32, in dB':34}{'bf16':>8}{'PyTorch bf16':>14}{'f32':>8}")
    for i, (text, _) in enumerate(prompts):
        got, other, ours_f32 = (psnr(p[i], exact[i]) for p in (rounded, peer, full))
        notes = [f"below {LEAST:.0f}"] if got < LEAST else []
        if got < other - BELOW_PEER:
            notes.append(f"more than {BELOW_PEER:.0f} below PyTorch's")
        missed = missed or bool(notes)
        print(f"{text[:32]:34}{got:8.2f}{other:14.2f}{ours_f32:8.2f}  {', '.join(notes)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
