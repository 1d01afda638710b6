"""Draws graphs/scene.json with heddle and with diffusers on PyTorch's CPU, in turn, and compares.

    python3 scene.py build/heddle [FOLDER] [--repeats 5] [--threads N] [--peak GFLOPS]

FOLDER is the diffusers folder of the model (default: graphs/models/diffusers/tiny-scenes); --models
names the folder above `diffusers/` when the program shall look elsewhere. Both draw the same picture:
same prompt, noise, schedule and guidance with two conditionings, in f32, with as many threads. Medians
over the repeats of: the whole process, a denoising step (the first one is left out, where kernels are
chosen and weights packed), peak memory. When the machine is busy with other things, seconds on the
clock say little; those of the processor say more, best with --threads 1, because the threads of
PyTorch wait for each other by spinning. --peak is the register-only peak that cpu_kernels_bench
prints. Nothing is asserted: the table says which goals are met. Needs torch and diffusers; with
Pillow, how far the two pictures are apart is printed, too.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
QUIET = {"TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore", "DIFFUSERS_VERBOSITY": "error",
         "TRANSFORMERS_VERBOSITY": "error"}
GOALS = {"process": 0.5, "step": 0.9, "memory": 0.5}


class Child:
    """A process that runs to its end: its lines of output with their times, and what it used."""

    def __init__(self, command, environment):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                   env=os.environ | environment)
        # The processor clock of another process, as clock_getcpuclockid(3) makes it.
        clock = (~process.pid << 3) | 2
        self.lines = []  # (text, seconds on the clock, seconds of the processor)
        for line in process.stdout:
            try:
                processor = time.clock_gettime(clock)
            except OSError:  # it has ended meanwhile
                processor = None
            self.lines.append((line, time.perf_counter(), processor))
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.wall = time.perf_counter() - start
        self.processor = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * 1024
        if process.returncode != 0:
            sys.exit(f"{command[0]} ended with {process.returncode}: {' '.join(map(str, command))}")


def node(graph, class_type):
    return next(n["inputs"] for n in graph.values() if n["class_type"] == class_type)


def settings_of(graph, folder):
    """What the workflow asks for, as the peer is told it."""
    sampler, size = node(graph, "KSampler"), node(graph, "EmptySD3LatentImage")
    if (sampler["sampler_name"], sampler["scheduler"], sampler["denoise"]) != ("euler", "simple", 1):
        sys.exit("scene.py compares euler on the simple schedule, from noise alone: this workflow "
                 "has others")
    text = {key: graph[sampler[key][0]]["inputs"]["text"] for key in ("positive", "negative")}
    steps = sampler["steps"]
    # The simple schedule takes every (1000 / steps)-th of a table of 1,000; the pipeline shifts it.
    times = [(1000 - int(i * 1000 / steps)) / 1000 for i in range(steps)]
    return {"folder": str(folder), "prompt": text["positive"], "negative": text["negative"],
            "width": size["width"], "height": size["height"], "steps": steps,
            "cfg": sampler["cfg"], "seed": sampler["seed"], "times": times}


def run_heddle(args, picture_folder):
    command = [args.program, "run", ROOT / "graphs/scene.json", "--json", "--cache", "none", "--threads",
               str(args.threads), "--output", picture_folder]
    if args.models is not None:
        command += ["--models", args.models]
    child = Child(command, {})
    events = [(json.loads(line), wall, processor) for line, wall, processor in child.lines]
    steps = [(wall, processor) for event, wall, processor in events
             if event["event"] == "node_progress" and event["class"] == "KSampler"]
    done = next(event for event, _, _ in events if event["event"] == "run_done")
    return {"process": child.wall, "process cpu": child.processor, "memory": child.memory,
            "step": statistics.median(b[0] - a[0] for a, b in zip(steps, steps[1:])),
            "step cpu": (steps[-1][1] - steps[0][1]) / (len(steps) - 1),
            "stages": {stage["class"]: stage["seconds"] for stage in done["stages"]},
            "picture": done["files"][0]}


def run_diffusers(args, settings, picture_folder):
    picture = f"{picture_folder}/diffusers.png"
    settings = settings | {"threads": args.threads, "picture": picture}
    child = Child([args.python, HERE / "scene_diffusers.py", json.dumps(settings)],
                  {"OMP_NUM_THREADS": str(args.threads), "MKL_NUM_THREADS": str(args.threads)} | QUIET)
    said = json.loads(child.lines[-1][0])
    return {"process": child.wall, "process cpu": child.processor, "memory": child.memory,
            "step": statistics.median(wall for wall, _ in said["steps"]),
            "step cpu": sum(cpu for _, cpu in said["steps"]) / len(said["steps"]),
            "stages": {name: wall for name, (wall, _) in said["seconds"].items()},
            "picture": picture, "version": said["version"], "text_length": said["text_length"]}


def step_flops(folder, settings, text_length):
    """Multiplications and additions of the blocks in one step: projections, MLPs, attention."""
    config = json.loads((folder / "transformer/config.json").read_text())
    width = config["num_attention_heads"] * config["attention_head_dim"]
    tokens = settings["width"] // 16 * (settings["height"] // 16) + text_length
    blocks = config["num_layers"] + config["num_single_layers"]
    # Both kinds of block: 12 width^2 weights for each token; attention: two products of tokens^2.
    a_set = blocks * (2 * tokens * 12 * width * width + 4 * tokens * tokens * width)
    return (2 if settings["cfg"] != 1 else 1) * a_set


def apart(one, other):
    try:
        from PIL import Image, ImageChops
    except ImportError:
        return "the pictures were not compared: there is no Pillow"
    pictures = [Image.open(path).convert("RGB") for path in (one, other)]
    worst = max(high for _, high in ImageChops.difference(*pictures).getextrema())
    return f"the pictures differ by at most {worst} of 255"


def row(name, ours, theirs, scale, unit, goal=None):
    ratio = ours / theirs
    verdict = "" if goal is None else f"goal {goal:.2f}: {'met' if ratio <= goal else 'missed'}"
    print(f"{name:34}{ours * scale:10.3f}{theirs * scale:12.3f} {unit:4}{ratio:8.3f}  {verdict}")


def report(args, settings, ours, theirs):
    mid = {key: [statistics.median(run[key] for run in runs) for runs in (ours, theirs)]
           for key in ("process", "process cpu", "memory", "step", "step cpu")}
    peer = theirs[0]["version"]
    print(f"{'medians of ' + str(len(ours)):34}{'heddle':>10}{'diffusers':>12} {'':4}{'ratio':>8}  "
          f"({args.threads} threads, {peer})")
    row("whole process", *mid["process"], 1, "s", GOALS["process"])
    row("whole process, of the processor", *mid["process cpu"], 1, "s")
    row("denoising step", *mid["step"], 1e3, "ms", GOALS["step"])
    row("denoising step, of the processor", *mid["step cpu"], 1e3, "ms")
    row("peak memory", *mid["memory"], 1e-6, "MB", GOALS["memory"])
    flops = step_flops(args.folder, settings, theirs[0]["text_length"])
    print(f"\na step's blocks are {flops / 1e9:.2f} GFLOP:")
    for name, wall, cpu in zip(("heddle", "diffusers"), mid["step"], mid["step cpu"]):
        rates = [flops / seconds / 1e9 for seconds in (wall, cpu / args.threads)]
        share = "".join(f" ({100 * rate / args.peak:.0f} % of the peak)" for rate in rates[1:]
                        if args.peak)
        print(f"  {name:10}{rates[0]:8.1f} GFLOP/s on the clock, {rates[1]:.1f} if no thread ever "
              f"waited{share}")
    print("\nstages, seconds on the clock:")
    for name, runs in (("heddle", ours), ("diffusers", theirs)):
        stages = {key: statistics.median(run["stages"][key] for run in runs)
                  for key in runs[0]["stages"]}
        print(f"  {name:10}" + ", ".join(f"{key} {value:.3f}" for key, value in stages.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=ROOT / "graphs/models/diffusers/tiny-scenes")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--peak", type=float, default=0)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    graph = json.loads((ROOT / "graphs/scene.json").read_text())
    settings = settings_of(graph, args.folder)
    ours, theirs = [], []
    load = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.repeats):
            ours.append(run_heddle(args, folder))
            theirs.append(run_diffusers(args, settings, folder))
        comparison = apart(ours[0]["picture"], theirs[0]["picture"])
    load.append(os.getloadavg()[0])
    report(args, settings, ours, theirs)
    print(f"\n{comparison}")
    print(f"load of the machine: {load[0]:.1f} before, {load[1]:.1f} after, "
          f"{os.cpu_count()} cores; beyond {args.threads}, others were running")


if __name__ == "__main__":
    main()
