"""How far pictures are from each other that are drawn with attention in the compute type and in 8 bits.

    python3 tests/bench/attention_fp8.py HEDDLE WORKFLOW [OPTION ...]

HEDDLE: the program; WORKFLOW: a file; options as `heddle run` takes them, as --devices or --set. Draws twice, the second time with
--attention-dtype fp8_e4m3fn, and prints for each picture the PSNR in decibels of one against the other, the largest difference of
a colour, of 255, and the seconds of both runs. Needs numpy and Pillow.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image


def pictures(command, options):
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        done = subprocess.run([*command, "--output", folder, "--cache", "none", *options])
        seconds = time.perf_counter() - begin
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
        files = sorted(pathlib.Path(folder).rglob("*.png"))
        return {file.name: np.asarray(Image.open(file).convert("RGB"), dtype=np.float64) for file in files}, seconds


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    command = [sys.argv[1], "run", *sys.argv[2:], "--quiet"]
    usual, usual_seconds = pictures(command, [])
    small, small_seconds = pictures(command, ["--attention-dtype", "fp8_e4m3fn"])
    if not usual:
        raise SystemExit(f"{sys.argv[2]} writes no PNG file")
    for name, wanted in usual.items():
        difference = small[name] - wanted
        error = np.mean(difference**2)
        psnr = f"{10 * np.log10(255**2 / error):.1f} dB" if error > 0 else "the same"
        print(f"{name}, {wanted.shape[1]}x{wanted.shape[0]}: PSNR {psnr}, largest difference {np.abs(difference).max():.0f}")
    print(f"{usual_seconds:.2f} s, in 8 bits {small_seconds:.2f} s")


main()
