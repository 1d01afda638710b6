"""FLUX.1 on a card of 16 GiB of which another program takes and frees 6 GiB.

    python3 tests/bench/foreign_memory.py BUNDLE WORKFLOW [--folder DIR] [--card 16] [--take 6] [--steps 12]

BUNDLE: from cuda_bundle.sh. WORKFLOW: ComfyUI's official flux_dev.json. Files of FLUX.1's true size are
filled with random numbers in DIR (default: a folder in memory where that has room), 34 GB of them. The
other program is PyTorch: it holds all of the card but --card GiB, and takes and frees --take GiB of those.

Cases, each a whole process of heddle run:
  alone    the card has --card GiB, and nobody takes any
  taken    the other program has --take GiB of them from before the run to its end
  freed    it has them from the start, and frees them when three steps are done
  rhythm   it takes them and frees them every two seconds, as often as it gets them
  budget   the whole card, --budget cuda:0=16GiB, and the other program takes and frees --take GiB
All have to end well with the same picture. Prints for each the seconds of its process and of its steps, and
how often the other program got what it wanted. Needs PyTorch and numpy.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "plugins" / "goldens"))
GIB = 1 << 30

# Reads commands and answers each with a line: what it holds, and what the card has free.
FOREIGN = """
import sys, torch
torch.cuda.init()
torch.zeros(1, device="cuda")
ballast, taken = [], []
def free():
    return torch.cuda.mem_get_info()[0]
def get(into, wanted):
    piece = 256 << 20
    try:
        for _ in range(int(wanted) // piece):
            into.append(torch.empty(piece, dtype=torch.uint8, device="cuda"))
        return True
    except torch.OutOfMemoryError:
        return False
for line in sys.stdin:
    command, _, amount = line.strip().partition(" ")
    done = True
    if command == "leave":
        ballast.clear()
        torch.cuda.empty_cache()
        done = get(ballast, free() - int(amount))
    elif command == "take":
        done = get(taken, int(amount))
        if not done:
            taken.clear()
            torch.cuda.empty_cache()
    elif command == "free":
        taken.clear()
        torch.cuda.empty_cache()
    print(int(done), len(taken) * (256 << 20), free(), flush=True)
"""


class Foreign:
    """The other program."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", FOREIGN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        self.taken = self.refused = 0

    def ask(self, command):
        with self.lock:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
            done, held, free = map(int, self.process.stdout.readline().split())
        return done == 1, held, free

    def take(self, amount):
        done, _, _ = self.ask(f"take {amount}")
        self.taken += done
        self.refused += not done
        return done

    def free(self):
        return self.ask("free")[2]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Rhythm(threading.Thread):
    """Takes and frees until it is stopped."""

    def __init__(self, foreign, amount, seconds=2.0):
        super().__init__()
        self.foreign, self.amount, self.seconds = foreign, amount, seconds
        self.stopped = threading.Event()

    def run(self):
        has = False
        while not self.stopped.wait(self.seconds):
            if has:
                self.foreign.free()
                has = False
            else:
                has = self.foreign.take(self.amount)
        if has:
            self.foreign.free()

    def stop(self):
        self.stopped.set()
        self.join()


def fill(path, tensors):
    """A file of random numbers, around 0 with a deviation of 0.02, in pieces by several threads."""
    import flux_headers

    flux_headers.write(str(path), tensors)
    kind = next(iter(tensors.values()))[0]
    numbers = numpy.random.default_rng(7).standard_normal(1 << 22, dtype=numpy.float32) * 0.02
    if kind == "BF16":
        pool = (numbers.view(numpy.uint32) >> 16).astype(numpy.uint16)
    else:
        pool = numbers.astype(numpy.float16 if kind == "F16" else numpy.float32)
    pool = pool.view(numpy.uint8)
    twice = memoryview(numpy.concatenate([pool, pool]))
    with open(path, "rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
    size = path.stat().st_size

    def write(at):
        turn = at // len(pool) * 4096 * 9 % len(pool)
        with open(path, "r+b", buffering=0) as file:
            file.seek(at)
            part = twice[turn : turn + min(len(pool), size - at)]
            while part:
                part = part[file.write(part) :]

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(write, range(begin, size, len(pool))))


class Bench:
    def __init__(self, arguments):
        import flux_headers

        self.arguments = arguments
        self.bundle = pathlib.Path(arguments.bundle).resolve()
        memory = pathlib.Path("/dev/shm")
        has_room = shutil.disk_usage(memory).free > 40e9
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="foreign-", dir=arguments.folder or (memory if has_room else None)))
        begin = time.time()
        for name in ("vae/ae", "diffusion_models/flux1-dev", "text_encoders/t5xxl_fp16", "text_encoders/clip_l"):
            fill(self.work / "models" / f"{name}.safetensors", flux_headers.FILES[name]())
        print(f"files in {self.work}: {time.time() - begin:.1f} s", flush=True)
        flow = json.loads(pathlib.Path(arguments.workflow).read_text())
        self.sampler = next(n for n, node in flow.items() if node["class_type"] == "SamplerCustomAdvanced")
        scheduler = next(n for n, node in flow.items() if node["class_type"] == "BasicScheduler")
        flow[scheduler]["inputs"]["steps"] = arguments.steps
        (self.work / "workflow.json").write_text(json.dumps(flow))
        self.digests = {}
        self.failed = 0

    def run(self, name, foreign, on_step=None, options=()):
        """heddle run as a whole process. on_step(number) is called after each step."""
        output = self.work / "output"
        shutil.rmtree(output, ignore_errors=True)
        command = [str(self.bundle / "heddle"), "run", "workflow.json", "--json", "--devices", "cuda:0", "--cache", "none",
                   "--plugins", str(self.bundle / "plugins"), "--models", "models", "--output", str(output), *options]
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{self.bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        foreign.taken = foreign.refused = 0
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.work, env=environment)
        steps, warnings, nodes = [], [], {}
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            errors = thread.submit(process.stderr.read)
            for line in process.stdout:
                if not line.startswith("{"):
                    continue
                event = json.loads(line)
                if event["event"] == "warning":
                    warnings.append(event.get("message", line))
                if event["event"] == "node_done":
                    nodes[event["class"]] = event["seconds"]
                if event["event"] == "node_progress" and event.get("node") == self.sampler:
                    steps.append(time.monotonic())
                    if on_step:
                        on_step(len(steps))
            text = errors.result()
        code, seconds = process.wait(), time.monotonic() - begin
        each = [b - a for a, b in zip(steps, steps[1:])]
        if code != 0:
            self.failed += 1
            print(f"{name}: FAIL, exit code {code} after {seconds:.1f} s: {text[-2000:]}", flush=True)
            return
        picture = next(output.glob("*.png")).read_bytes()
        self.digests[name] = hashlib.sha256(picture).hexdigest()[:16]
        print(f"{name}: {seconds:.2f} s; steps {' '.join(f'{s:.2f}' for s in each)} (median {statistics.median(each):.2f});"
              f" picture {self.digests[name]}, {len(picture)} bytes; the other program got its memory {foreign.taken} times, was refused"
              f" {foreign.refused} times; decode {nodes.get('VAEDecode', 0):.2f} s", flush=True)
        for warning in warnings:
            print("   warning:", warning[:300])
        for line in text.splitlines():
            if "come free" in line or "out of memory" in line:
                print("   ", line[:300])

    def cases(self):
        take = int(self.arguments.take * GIB)
        foreign = Foreign()
        try:
            # Once, for what the first process of a machine does; its picture counts.
            foreign.ask(f"leave {int(self.arguments.card * GIB)}")
            print("the other program leaves", foreign.ask("look")[2] / GIB, "GiB", flush=True)
            self.run("first", foreign)
            self.run("alone", foreign)
            foreign.take(take)
            self.run("taken", foreign)
            self.run("freed", foreign, on_step=lambda step: step == 3 and foreign.free())
            rhythm = Rhythm(foreign, take)
            rhythm.start()
            self.run("rhythm", foreign)
            rhythm.stop()
            foreign.ask(f"leave {200 * GIB}")  # gives its ballast back
            rhythm = Rhythm(foreign, take)
            rhythm.start()
            self.run("budget", foreign, options=("--budget", f"cuda:0={self.arguments.card:g}GiB"))
            rhythm.stop()
        finally:
            foreign.end()
        if len(set(self.digests.values())) != 1:
            self.failed += 1
            print("FAIL: the pictures differ:", self.digests)
        print(f"{self.failed} failures")
        return self.failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("workflow")
    parser.add_argument("--folder")
    parser.add_argument("--card", type=float, default=16, help="GiB that the other program leaves")
    parser.add_argument("--take", type=float, default=6, help="GiB that it takes and frees")
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    bench = Bench(arguments)
    try:
        sys.exit(1 if bench.cases() else 0)
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
