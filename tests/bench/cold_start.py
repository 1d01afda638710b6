"""What a new process takes before it works: driver, libraries, plans of convolutions, weights.

    python3 tests/bench/cold_start.py BUNDLE WORKFLOW [--folder DIR] [--parts PART ...] [--repeats 5]

BUNDLE: from cuda_bundle.sh. WORKFLOW: ComfyUI's official flux_dev.json. Files of FLUX.1's true size are
filled with random numbers in DIR (default: a folder in memory where that has room), 34 GB of them.

Parts, all of them in this order where none is named:
  decode  one picture of 1024x1024 by the autoencoder: in the first process on this machine, again with
          heddle's caches empty, with them, and both after the kernel has dropped its copies of
          NVIDIA's libraries; each beside what the work itself takes (the second picture of a process)
  start   process start to the first node on a device, beside a bare program that initialises the driver
          and opens a context on one card; in turn
  plan    `heddle plan WORKFLOW`
  whole   `heddle run WORKFLOW` as a whole process, its prompt kept by an earlier one, with a timeline
  sd15    a picture of 512x512 by a checkpoint of Stable Diffusion 1.5, 20 steps, as a whole process, each
          with a prompt of its own

Run it first of all on a fresh machine, or "first process" means nothing. Where several cards are there,
all are visible to both programs. Needs numpy and a C compiler.
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
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "plugins" / "goldens"))
import flux_headers  # noqa: E402

FILES = ("vae/ae", "diffusion_models/flux1-dev", "text_encoders/t5xxl_fp16", "text_encoders/clip_l")
LIBRARIES = ("libcudnn", "libcublasLt", "libnvrtc", "libcuda.so", "libnvidia-ptxjitcompiler")

# The driver by its own names, so that no header is needed. Prints the seconds of both calls.
BARE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
int main(void) {
  const double begin = now();
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (!driver) return 1;
  int (*init)(unsigned) = dlsym(driver, "cuInit");
  int (*device)(int*, int) = dlsym(driver, "cuDeviceGet");
  int (*retain)(void**, int) = dlsym(driver, "cuDevicePrimaryCtxRetain");
  int (*current)(void*) = dlsym(driver, "cuCtxSetCurrent");
  int card = 0;
  void* context = 0;
  if (init(0)) return 2;
  const double initialised = now();
  if (device(&card, 0) || retain(&context, card) || current(context)) return 3;
  printf("%f %f %f\n", initialised - begin, now() - initialised, now());
  return 0;
}
"""


def fill(path, tensors):
    """Random numbers where flux_headers left a hole: of each type a pool, from another place for each piece."""
    flux_headers.write(str(path), tensors)
    kind = {"F32": numpy.float32, "F16": numpy.float16}.get(next(iter(tensors.values()))[0])
    numbers = numpy.random.default_rng(5).standard_normal(4194301, dtype=numpy.float32) * 0.02
    if kind is None:  # bf16: the upper half
        pool = (numbers.view(numpy.uint32) >> 16).astype(numpy.uint16)
    else:
        pool = numbers.astype(kind)
    pool = numpy.concatenate([pool, pool]).view(numpy.uint8)
    size = path.stat().st_size
    begin = 8 + int.from_bytes(path.open("rb").read(8), "little")
    piece = len(pool) // 2

    def write(at):
        with open(path, "r+b", buffering=0) as file:
            turn = (at // piece) * 4099 * 4 % piece
            file.seek(at)
            view = memoryview(pool)[turn : turn + min(piece, size - at)]
            while view:
                view = view[file.write(view) :]

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        list(threads.map(write, range(begin, size, piece)))


def drop(paths):
    os.sync()
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def library_files(environment):
    """Those that the dynamic loader, the toolkit and pip may give."""
    folders = [pathlib.Path(p) for p in environment.get("HEDDLE_CUDA_LIBRARIES", "").split(":") if p]
    folders += [pathlib.Path("/usr/lib/x86_64-linux-gnu"), pathlib.Path("/usr/local/cuda/lib64")]
    found = {}
    for folder in folders:
        for name in LIBRARIES:
            for path in folder.glob(name + "*.so*"):
                real = path.resolve()
                if real.is_file():
                    found[real] = real.stat().st_size
    return found


def spans(path):
    """Of a timeline: process, thread, kind, name, begin and end in seconds."""
    events = json.loads(path.read_text())["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    return [(processes[e["pid"]], threads[e["pid"], e["tid"]], e["cat"], e["name"], e["ts"] / 1e6, (e["ts"] + e["dur"]) / 1e6)
            for e in events if e["ph"] == "X"]


class Process:
    """One run of the program: when it said what, in seconds since it was started."""

    def __init__(self, command, environment, cwd=None):
        begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                                   env=environment)
        self.events = []
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            errors = thread.submit(process.stderr.read)
            for line in process.stdout:
                self.events.append((time.clock_gettime(time.CLOCK_MONOTONIC) - begin, line))
            self.errors = errors.result()
        code = process.wait()
        self.seconds = time.clock_gettime(time.CLOCK_MONOTONIC) - begin
        if code != 0:
            print("".join(line for _, line in self.events)[-3000:], self.errors[-3000:])
            sys.exit(f"{' '.join(map(str, command))}: exit code {code}")
        self.said = []
        for at, line in self.events:
            if line.startswith("{"):
                self.said.append((at, json.loads(line)))

    def of(self, event, node=None):
        return [(at, e) for at, e in self.said if e.get("event") == event and node in (None, e.get("class"), e.get("node"))]


class Bench:
    def __init__(self, arguments):
        self.bundle = pathlib.Path(arguments.bundle).resolve()
        self.workflow = json.loads(pathlib.Path(arguments.workflow).read_text())
        self.repeats, self.parts = arguments.repeats, arguments.parts
        memory = pathlib.Path("/dev/shm")
        has_room = shutil.disk_usage(memory).free > 40e9
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="cold-", dir=arguments.folder or (memory if has_room else None)))
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{self.bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        (self.work / "models").mkdir()
        self.empty_caches()

    def empty_caches(self):
        caches = self.work / "caches"
        shutil.rmtree(caches, ignore_errors=True)
        caches.mkdir()
        self.environment["XDG_CACHE_HOME"] = str(caches / "xdg")
        self.environment["CUDA_CACHE_PATH"] = str(caches / "cuda")

    def make(self, *names, has_numbers=True):
        begin = time.time()
        for name in names:
            path = self.work / "models" / f"{name}.safetensors"
            if not path.exists():
                if has_numbers:
                    fill(path, flux_headers.FILES[name]())
                else:
                    flux_headers.write(str(path), flux_headers.FILES[name]())
        print(f"files in {self.work}: {time.time() - begin:.1f} s", flush=True)

    def heddle(self, command, workflow, *options):
        path = self.work / "workflow.json"
        path.write_text(json.dumps(workflow))
        return Process([str(self.bundle / "heddle"), command, str(path), "--plugins", str(self.bundle / "plugins"), "--models", str(self.work / "models"),
                        "--output", str(self.work / "output"), *options], self.environment, cwd=self.work)

    # ---- decode ----

    def decode_once(self, label):
        flow = {"vae": {"class_type": "VAELoader", "inputs": {"vae_name": "ae.safetensors"}}}
        for i in (1, 2):
            flow[f"latent{i}"] = {"class_type": "RandomLatent", "inputs": {"width": 1024, "height": 1024, "channels": 16, "seed": i}}
            flow[f"decode{i}"] = {"class_type": "VAEDecode", "inputs": {"samples": [f"latent{i}", 0], "vae": ["vae", 0]}}
            flow[f"save{i}"] = {"class_type": "SaveImage", "inputs": {"images": [f"decode{i}", 0], "filename_prefix": f"decode{i}"}}
        shutil.rmtree(self.work / "output", ignore_errors=True)
        trace = self.work / "trace.json"
        done = self.heddle("run", flow, "--json", "--trace", str(trace))
        # On the host a node is over when its work is enqueued: the end is the device's.
        host, device = ({s[3].split()[0]: s for s in spans(trace) if s[2] == "node" and (s[1] == "host") == on_host and "VAEDecode" in s[3]}
                        for on_host in (True, False))
        first, work = device["decode1"][5] - host["decode1"][4], device["decode2"][5] - device["decode2"][4]
        begins = done.of("node_started", "decode1")[0][0]
        pictures = sorted((self.work / "output").glob("*.png"))
        digest = hashlib.sha256(b"".join(p.read_bytes() for p in pictures)).hexdigest()[:12]
        print(f"decode, {label:34}: begins {begins:.3f} s after the process, takes {first:.3f}, the second {work:.3f} on the device,"
              f" process {done.seconds:.3f}; {digest}", flush=True)
        return done

    def decode(self):
        self.make("vae/ae")
        files = library_files(self.environment)
        print("libraries:", ", ".join(f"{p} {s >> 20} MiB" for p, s in sorted(files.items())))
        self.decode_once("first process on this machine")
        self.decode_once("caches kept")
        self.decode_once("caches kept, once more")
        self.empty_caches()
        self.decode_once("caches empty")
        drop(files)
        self.decode_once("libraries dropped, caches kept")
        drop(files)
        self.empty_caches()
        self.decode_once("libraries dropped, caches empty")
        drop(files)
        begin = time.time()
        total = 0
        for path in files:
            if "libcudnn" in path.name or "libcublasLt" in path.name:
                total += len(path.read_bytes())
        print(f"reading {total / 1e6:.0f} MB of dropped libraries: {time.time() - begin:.2f} s")

    # ---- start ----

    def bare(self):
        program = self.work / "bare"
        if not program.exists():
            (self.work / "bare.c").write_text(BARE)
            subprocess.run(["cc", "-O2", "-o", str(program), str(self.work / "bare.c"), "-ldl"], check=True)
        done = Process([str(program)], self.environment)
        initialised, context, _ = map(float, done.events[0][1].split())
        return done.events[0][0], initialised, context

    def start(self):
        flow = {"image": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": 7}},
                "invert": {"class_type": "ImageInvert", "inputs": {"image": ["image", 0]}},
                "end": {"class_type": "Discard", "inputs": {"value": ["invert", 0]}}}
        bare, began, over = [], [], []
        for turn in range(self.repeats + 1):
            told = self.bare()
            done = self.heddle("run", flow, "--json", "--cache", "none", "--place", "invert=cuda:0")
            if turn == 0:
                continue  # opens files for both
            bare.append(told)
            began.append(done.of("node_started", "invert")[0][0])
            over.append(done.of("node_done", "invert")[0][0])
        median = [statistics.median(column) for column in zip(*bare)]
        print(f"start: bare program {median[0]:.3f} s (cuInit {median[1]:.3f}, context {median[2]:.3f}); heddle's first node on the card begins at"
              f" {statistics.median(began):.3f}, is done at {statistics.median(over):.3f}: {statistics.median(over) - median[0]:+.3f}")
        print("   all:", " ".join(f"{b[0]:.3f}/{x:.3f}/{y:.3f}" for b, x, y in zip(bare, began, over)), flush=True)

    # ---- plan ----

    def plan(self):
        self.make(*FILES, has_numbers="whole" in self.parts)  # a plan reads headers
        for devices in ("cuda", "cuda:0"):
            seconds = [self.heddle("plan", self.workflow, "--quiet", "--devices", devices).seconds for _ in range(self.repeats)]
            print(f"plan --devices {devices}: {statistics.median(seconds):.3f} s ({' '.join(f'{s:.3f}' for s in seconds)})", flush=True)

    # ---- sd15 ----

    def sd15(self):
        name = "checkpoints/v1-5-pruned-emaonly-fp16"
        self.make(name)
        text = lambda words: {"class_type": "CLIPTextEncode", "inputs": {"clip": ["file", 1], "text": words}}  # noqa: E731
        flow = {"file": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": f"{pathlib.Path(name).name}.safetensors"}},
                "no": text("blurry, dark"),
                "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 512, "batch_size": 1}},
                "sampled": {"class_type": "KSampler", "inputs": {
                    "model": ["file", 0], "positive": ["yes", 0], "negative": ["no", 0], "latent_image": ["empty", 0], "seed": 7, "steps": 20,
                    "cfg": 8, "sampler_name": "euler", "scheduler": "normal", "denoise": 1}},
                "decoded": {"class_type": "VAEDecode", "inputs": {"samples": ["sampled", 0], "vae": ["file", 2]}},
                "saved": {"class_type": "SaveImage", "inputs": {"images": ["decoded", 0], "filename_prefix": "sd15"}}}
        for turn in range(self.repeats + 1):
            done = self.heddle("run", {**flow, "yes": text(f"a photo of fox number {turn}")}, "--json", "--devices", "cuda:0")
            nodes = {e["class"]: e["seconds"] for _, e in done.of("node_done")}
            print(f"sd15{' (first process)' if turn == 0 else ''}: {done.seconds:.3f} s; " + ", ".join(
                f"{c} {s:.3f}" for c, s in nodes.items() if s > 0.002), flush=True)

    # ---- whole ----

    def whole(self):
        self.make(*FILES)
        self.empty_caches()
        self.heddle("run", self.workflow, "--json", "--devices", "cuda:0")
        trace = self.work / "trace.json"
        for turn in range(self.repeats + 1):
            options = ["--trace", str(trace)] if turn == self.repeats else []
            done = self.heddle("run", self.workflow, "--json", "--devices", "cuda:0", *options)
            steps = [at for at, e in done.of("node_progress", "SamplerCustomAdvanced") if "fraction" in e]
            nodes = {e["class"]: e["seconds"] for _, e in done.of("node_done")}
            sampler = done.of("node_started", "SamplerCustomAdvanced")[0][0]
            over = done.of("run_done")[0][0]
            print(f"whole{', traced' if options else ''}: {done.seconds:.3f} s; sampler begins {sampler:.3f}, steps seen from {steps[0]:.3f} to {steps[-1]:.3f} ({len(steps)}),"
                  f" run over {over:.3f}; " + ", ".join(f"{c} {s:.3f}" for c, s in nodes.items() if s > 0.002), flush=True)
        self.timeline(trace)

    def timeline(self, path):
        """Of the trace: each row's spans by kind, first begin to last end; then those of the decode alone."""
        every = spans(path)
        self.print_rows("trace", every)
        decode = min(s[4] for s in every if s[2] == "node" and "VAEDecode" in s[3])
        self.print_rows("decode", [(*s[:4], s[4] - decode, s[5] - decode) for s in every if s[4] >= decode])

    def print_rows(self, title, every):
        rows = {}
        for process, thread, kind, _, begin, end in every:
            thread = thread.rstrip("0123456789 ")
            old = rows.get((process, thread, kind), (1e9, 0, 0, 0))
            rows[process, thread, kind] = (min(old[0], begin), max(old[1], end), old[2] + end - begin, old[3] + 1)
        for row, (begin, end, busy, count) in sorted(rows.items(), key=lambda r: str(r[0])):
            print(f"   {title} {' / '.join(map(str, row)):50} from {begin:.3f} to {end:.3f} s, busy {busy:.3f}, {count} spans")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("workflow")
    parser.add_argument("--folder")
    parser.add_argument("--parts", nargs="*", default=["decode", "start", "plan", "whole"])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    bench = Bench(arguments)
    try:
        for part in arguments.parts:
            getattr(bench, part)()
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
