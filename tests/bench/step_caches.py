"""What a step costs that a step cache (EasyCache, LazyCache) skips, with FLUX.1 of true size.

    python3 tests/bench/step_caches.py BUNDLE WORKFLOW [--folder DIR] [--steps 20]

BUNDLE: from cuda_bundle.sh. WORKFLOW: ComfyUI's official flux_dev.json. Files of FLUX.1's true size are filled with random numbers
(foreign_memory.py). `heddle run` without a cache, and with each of the two between model and guider at a threshold that skips whatever may
be skipped; the milliseconds of each step are those between the events of its progress. Prints the medians of steps that were computed and of
those that were skipped (below half of a step), and the ratio.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from foreign_memory import Bench  # noqa: E402


def steps_of(bench, name, flow):
    (bench.work / f"{name}.json").write_text(json.dumps(flow))
    command = [str(bench.bundle / "heddle"), "run", f"{name}.json", "--json", "--devices", "cuda:0", "--plugins", str(bench.bundle / "plugins"),
               "--models", "models", "--output", str(bench.work / "output")]
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{bench.bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=bench.work, env=environment)
    times = []
    for line in process.stdout:
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "node_progress" and event.get("node") == bench.sampler:
            times.append(time.monotonic())
    if process.wait() != 0:
        raise SystemExit(f"{name}: exit code {process.returncode}: {process.stderr.read()[-2000:]}")
    return [1e3 * (after - before) for before, after in zip(times, times[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("workflow")
    parser.add_argument("--folder")
    parser.add_argument("--steps", type=int, default=20)
    bench = Bench(parser.parse_args())
    try:
        flow = json.loads((bench.work / "workflow.json").read_text())
        steps_of(bench, "first", flow)
        whole = statistics.median(steps_of(bench, "none", flow))
        print(f"no cache: {whole:.2f} ms a step", flush=True)
        loader = next(n for n, node in flow.items() if node["class_type"] == "UNETLoader")
        for kind in ("EasyCache", "LazyCache"):
            cached = json.loads(json.dumps(flow))
            for node in cached.values():
                for key, value in node["inputs"].items():
                    if value == [loader, 0]:
                        node["inputs"][key] = ["cache", 0]
            cached["cache"] = {"class_type": kind, "inputs": {"model": [loader, 0], "reuse_threshold": 3.0, "start_percent": 0.1,
                                                              "end_percent": 0.95, "verbose": False}}
            steps = steps_of(bench, kind, cached)
            skipped = [s for s in steps if s < whole / 2]
            computed = [s for s in steps if s >= whole / 2]
            if not skipped:
                raise SystemExit(f"{kind}: no step was skipped: {steps}")
            print(f"{kind}: {len(skipped)} steps skipped, {statistics.median(skipped):.2f} ms each, {statistics.median(skipped) / whole:.4f} of a"
                  f" step; {len(computed)} computed, {statistics.median(computed):.2f} ms", flush=True)
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
