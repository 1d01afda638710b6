"""How near to the whole run a picture is that a step cache (EasyCache, LazyCache) skips steps of, and how much time it saves.

    python3 tests/bench/step_cache_pictures.py PROGRAM [WORKFLOW] [--rounds 3] [--devices cpu]

PROGRAM: heddle. WORKFLOW: graphs/scene.json, or another in the API format with one KSampler and one SaveImage. Runs it as it is, and with
each of the two at its default threshold between model and sampler, in turn. Prints the PSNR of the pictures beside those of the whole
run (dB, of 8 bits), the median of the sampler's seconds, and their ratio to the whole run's. Needs numpy and Pillow.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy
from PIL import Image

CACHES = {"none": None, "EasyCache": "EasyCache", "LazyCache": "LazyCache"}


def with_cache(flow, cache):
    """The workflow with a cache, by its defaults, between the model and the sampler."""
    flow = json.loads(json.dumps(flow))
    if cache:
        sampler = next(node for node in flow.values() if node["class_type"] == "KSampler")
        flow["cache"] = {"class_type": cache, "inputs": {"model": sampler["inputs"]["model"]}}
        sampler["inputs"]["model"] = ["cache", 0]
    return flow


def seconds_and_picture(arguments, flow):
    sampler = next(name for name, node in flow.items() if node["class_type"] == "KSampler")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "flow.json"
        path.write_text(json.dumps(flow))
        command = [arguments.program, "run", str(path), "--json", "--devices", arguments.devices, "--output", folder]
        log = pathlib.Path(folder) / "log"
        with log.open("w") as to:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=to, text=True)
        times = []
        for line in process.stdout:
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("node") == sampler:
                times.append(time.monotonic())
        if process.wait() != 0:
            raise SystemExit(f"exit code {process.returncode}: {log.read_text()[-2000:]}")
        picture = numpy.asarray(Image.open(next(pathlib.Path(folder).rglob("*.png"))).convert("RGB"), dtype=float)
    return times[-1] - times[0], picture


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("workflow", nargs="?", default=pathlib.Path(__file__).parents[2] / "graphs/scene.json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--devices", default="cpu")
    arguments = parser.parse_args()
    flow = json.loads(arguments.workflow.read_text())
    seconds, pictures = {}, {}
    for _ in range(arguments.rounds):
        for name, cache in CACHES.items():
            taken, pictures[name] = seconds_and_picture(arguments, with_cache(flow, cache))
            seconds.setdefault(name, []).append(taken)
    whole = statistics.median(seconds["none"])
    for name in CACHES:
        median = statistics.median(seconds[name])
        error = numpy.mean((pictures[name] - pictures["none"]) ** 2)
        near = "the same bytes" if error == 0 else f"{20 * math.log10(255) - 10 * math.log10(error):.1f} dB"
        print(f"{name}: {near}, {median:.2f} s ({median / whole:.2f})")


if __name__ == "__main__":
    main()
