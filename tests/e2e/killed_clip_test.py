#!/usr/bin/python3
"""`heddle run` killed by SIGKILL while it writes a clip of 81 frames: no file that is not whole has its final name.

  killed_clip_test.py PROGRAM [ROUNDS]

For each node that saves a clip: once to its end, which tells the bytes of the whole file; then killed when its folder changes for
the first time, as the file begins to be written there, and ROUNDS times at other instants of the run. What has the final name
afterwards has the bytes of the whole file.
"""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

SECONDS = 120  # until a run has to have ended
SIDE, FRAMES = 64, 81
# Noise, so that files are of megabytes.
PICTURES = {"grey": {"class_type": "EmptyImage", "inputs": {"width": SIDE, "height": SIDE, "batch_size": FRAMES, "color": 8421504}},
            "image": {"class_type": "ImageAddNoise", "inputs": {"image": ["grey", 0], "seed": 81, "strength": 0.4}},
            "video": {"class_type": "CreateVideo", "inputs": {"images": ["image", 0], "fps": 16}}}
SAVERS = {
    ".mp4": {"class_type": "SaveVideo", "inputs": {"video": ["video", 0], "filename_prefix": "clip", "format": "auto"}},
    ".webm": {"class_type": "SaveWEBM", "inputs": {"images": ["image", 0], "filename_prefix": "clip", "codec": "vp9", "fps": 16.0,
                                                   "crf": 32.0}},
    ".webp": {"class_type": "SaveAnimatedWEBP", "inputs": {"images": ["image", 0], "filename_prefix": "clip", "fps": 16.0,
                                                           "lossless": True, "quality": 80, "method": "fastest"}},
}


def start(program, folder, saver):
    flow = folder / "clip.json"
    flow.write_text(json.dumps(PICTURES | {"save": saver}))
    environment = dict(os.environ, HOME=str(folder), HEDDLE_PLUGINS="")
    for name in ("CONFIG", "CACHE", "STATE"):
        environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
    output = folder / "output"
    output.mkdir(exist_ok=True)
    process = subprocess.Popen([program, "run", flow, "--devices", "cpu", "--output", output], stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, env=environment)
    return process, output


def entries(output):
    return sorted(path.name for path in output.iterdir())


def final(output, ending):
    return [path for path in output.iterdir() if path.name.startswith("clip_") and path.name.endswith(ending)]


def killed(program, saver, ending, whole, delay):
    """delay: None is when the folder changes. Whether the file was there."""
    with tempfile.TemporaryDirectory() as name:
        process, output = start(program, pathlib.Path(name), saver)
        end = time.monotonic() + (SECONDS if delay is None else delay)
        while time.monotonic() < end and process.poll() is None:
            if delay is None and entries(output):
                break
            if delay is not None:
                time.sleep(0.002)
        began = bool(entries(output))
        process.kill()
        error = process.communicate()[1].decode()
        assert delay is not None or began, f"nothing was ever written: {error}"
        files = final(output, ending)
        for path in files:
            assert path.read_bytes() == whole, f"{path.name} has {path.stat().st_size} of {len(whole)} bytes after a kill"
        return bool(files)


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    choice = random.Random(81)
    for ending, saver in SAVERS.items():
        with tempfile.TemporaryDirectory() as name:
            begin = time.monotonic()
            process, output = start(program, pathlib.Path(name), saver)
            error = process.communicate(timeout=SECONDS)[1].decode()
            took = time.monotonic() - begin
            if process.returncode != 0 and "writes no WebP" in error:
                print(f"{ending}: this build writes none")
                continue
            assert process.returncode == 0, error
            files = final(output, ending)
            assert len(files) == 1 and entries(output) == [files[0].name], entries(output)
            whole = files[0].read_bytes()
        there = [killed(program, saver, ending, whole, None)]
        there += [killed(program, saver, ending, whole, choice.uniform(0.3, 1.0) * took) for _ in range(rounds)]
        print(f"{ending}: {len(whole)} bytes in {took:.2f} s; killed {len(there)} times, whole files afterwards: {sum(there)}")


if __name__ == "__main__":
    main()
