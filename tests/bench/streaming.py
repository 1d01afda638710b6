"""Runs a model that is larger than the host's memory may be, and looks at the disk.

    python3 streaming.py build/heddle [--gigabytes 4] [--budget 1GiB] [--steps 2] [--items 64]
                         [--folder DIR] [--devices NAMES] [--keep]

Writes a checkpoint of equal linear layers of random numbers (the family test.layers of
build/sample_plugins) from a seed, unless the folder has it already, measures at which rate the disk
gives it when the kernel has nothing of it, in pieces of 4 MiB by as many threads as heddle reads with,
through the kernel's copies and past them, before and after the run, of which the best counts; and
runs it with the kernel's copies dropped, under --host-budget. Reports, against the goals: the
process's peak memory, as /usr/bin/time -v tells it; the rate of loading, which is that while something
was read, for the disk waits when computing takes longer; and how much of the time the rows disk, copy
and compute of the trace worked, alone and at the same time. With `ninja host_loading_bench`, too, at
which rate the checkpoint is loaded when nobody computes: --rounds times, each between two looks at the
disk, whose own rate is seldom the same for a minute, and the median of the shares counts. Seconds on a
machine that does other things, too, say little: the load is told. Needs only the standard library.
"""

import argparse
import concurrent.futures
import ctypes
import json
import mmap
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
WIDTH = 2048
LAYER = WIDTH * WIDTH * 4  # bytes
PIECE = 4 << 20
READERS = 2
HUGE = 2 << 20  # bytes of a large page


def write_checkpoint(path, size):
    """Layers of numbers between -2/WIDTH and 2/WIDTH, in f32. A block of a few MiB is drawn and turned
    by another number of bytes for each layer: no layer is like another, and drawing takes no time."""
    layers = max(2, size // LAYER)
    header = {f"layers.{i}.weight": {"dtype": "F32", "shape": [WIDTH, WIDTH],
                                     "data_offsets": [i * LAYER, (i + 1) * LAYER]}
              for i in range(layers)}
    text = json.dumps(header, separators=(",", ":")).encode()
    draw = random.Random(5)
    numbers = [draw.uniform(-2 / WIDTH, 2 / WIDTH) for _ in range(1 << 18)]
    block = struct.pack(f"<{len(numbers)}f", *numbers)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for i in range(layers):
            turn = (i * 4099 * 4) % len(block)
            turned = block[turn:] + block[:turn]
            for _ in range(LAYER // len(block)):
                file.write(turned)
        file.flush()
        os.fsync(file.fileno())
    return layers


def drop_cached(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def large_pages(size):
    """Memory as O_DIRECT wants it, and in as few pieces as can be."""
    memory = mmap.mmap(-1, size + HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(bytes(size + HUGE))
    begin = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % HUGE
    return memoryview(memory)[begin:begin + size]


def disk_rate(path, threads, flags):
    """Bytes a second of a cold file, all of it, each thread with a piece of its own at a time."""
    drop_cached(path)
    size = os.path.getsize(path)
    descriptor = os.open(path, os.O_RDONLY | flags)
    buffers = [large_pages(PIECE) for _ in range(threads)]

    def read(thread):
        for offset in range(thread * PIECE, size, threads * PIECE):
            os.preadv(descriptor, [buffers[thread]], offset)

    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, range(threads)))
    seconds = time.perf_counter() - start
    os.close(descriptor)
    return size / seconds


def disk_rates(path):
    """As heddle reads: through the kernel's copies, and past them."""
    return {"buffered": disk_rate(path, READERS, 0), "direct": disk_rate(path, READERS, os.O_DIRECT)}


def workflow(path, steps, items):
    return {"prompt": {
        "load": {"class_type": "test.load", "inputs": {"path": str(path)}},
        "x": {"class_type": "test.ramp", "inputs": {"count": WIDTH, "items": items}},
        "loop": {"class_type": "test.loop",
                 "inputs": {"model": ["load", 0], "x": ["x", 0], "steps": steps, "sets": 1}},
        "keep": {"class_type": "test.keep", "inputs": {"value": ["loop", 0]}}}}


def run(args, folder, checkpoint):
    flow, trace = folder / "streaming.json", folder / "trace.json"
    flow.write_text(json.dumps(workflow(checkpoint, args.steps, args.items)))
    program = pathlib.Path(args.program).resolve()
    command = [program, "run", flow, "--plugins", program.parent / "sample_plugins",
               "--host-budget", args.budget, "--trace", trace]
    if args.threads:
        command += ["--threads", str(args.threads)]
    if args.devices:
        command += ["--plugins", program.parent / "fake_device", "--devices", args.devices]
    drop_cached(checkpoint)
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"heddle ended with {process.returncode}: {' '.join(map(str, command))}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024, json.loads(trace.read_text())


def program_alone(args, checkpoint):
    """Of host_loading_bench, where it is built beside the program: nobody computes. For each round its
    bytes a second, and those of the disk on average before and after it, by the faster way to read."""
    bench = pathlib.Path(args.program).resolve().parent / "tests" / "bench" / "host_loading_bench"
    if not bench.exists():
        return []
    rounds, before = [], max(disk_rates(checkpoint).values())
    for _ in range(args.rounds):
        drop_cached(checkpoint)
        done = subprocess.run([bench, checkpoint, "1024"], stdout=subprocess.PIPE, text=True, check=True)
        after = max(disk_rates(checkpoint).values())
        rounds.append((float(done.stdout.split()[0]) * 2**20, (before + after) / 2))
        before = after
    return rounds


def union(spans):
    """The spans without their overlaps, in order."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def seconds_of(spans):
    return sum(end - begin for begin, end in spans)


def both(a, b):
    """When both work."""
    spans, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        begin, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if begin < end:
            spans.append([begin, end])
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return spans


def lanes(trace):
    """Row -> when it works, in seconds, and how many bytes were read from disk."""
    events = trace["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events
             if e["ph"] == "M" and e["name"] == "thread_name"}
    rows, read = {"disk": [], "copy": [], "compute": []}, 0
    for event in events:
        if event["ph"] != "X":
            continue
        name = names[event["pid"], event["tid"]]
        row = ("disk" if name.startswith("disk") else "copy" if event["cat"] == "page-in"
               else "compute" if name == "compute" else None)
        if row is None:
            continue
        rows[row].append((event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6))
        if row == "disk":
            read += event["args"]["bytes"]
    return {row: union(spans) for row, spans in rows.items()}, read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--budget", default="1GiB")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--items", type=int, default=64, help="rows of the input: what there is to compute")
    parser.add_argument("--rounds", type=int, default=7, help="of loading alone")
    parser.add_argument("--folder", type=pathlib.Path, help="for the checkpoint (default: a temporary one)")
    parser.add_argument("--devices", help="of the fake plugin, instead of the CPU")
    parser.add_argument("--threads", type=int, help="that compute (default: all cores, which then have none left for the disk's)")
    parser.add_argument("--keep", action="store_true", help="leave the checkpoint in --folder")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or pathlib.Path(temporary)
        checkpoint = folder / f"layers_{args.gigabytes:g}.safetensors"
        if not checkpoint.exists():
            write_checkpoint(checkpoint, int(args.gigabytes * (1 << 30)))
        size = os.path.getsize(checkpoint)
        try:
            load = os.getloadavg()[0]
            rates = [disk_rates(checkpoint)]
            seconds, peak, trace = run(args, folder, checkpoint)
            alone = program_alone(args, checkpoint)
            rates.append(disk_rates(checkpoint))
        finally:
            if args.folder and not args.keep:
                checkpoint.unlink()
    rows, read = lanes(trace)
    rate = max(max(each.values()) for each in rates)
    print(f"load before {load:.1f}; disk, MiB/s before and after: "
          + "; ".join(", ".join(f"{how} {each[how] / 2**20:.0f}" for how in each) for each in rates))
    print(f"checkpoint {size / 2**30:.2f} GiB, host budget {args.budget}, {args.steps} steps: {seconds:.1f} s")
    print(f"peak memory {peak / 2**30:.3f} GiB (goal for 1GiB: under 1.3)")
    reading = seconds_of(rows["disk"])
    if reading > 0:
        print(f"read {read / 2**30:.2f} GiB in {reading:.2f} s: {read / reading / 2**20:.0f} MiB/s, "
              f"{100 * read / reading / rate:.0f} % of the disk's {rate / 2**20:.0f} MiB/s (goal: 90 %)")
    if alone:
        print("loading alone, nobody computing, and the disk then, MiB/s: "
              + ", ".join(f"{ours / 2**20:.0f} of {disk / 2**20:.0f}" for ours, disk in alone)
              + f": {100 * statistics.median(ours / disk for ours, disk in alone):.0f} % of the disk's rate")
    for row, spans in rows.items():
        print(f"{row:8} works {seconds_of(spans):7.2f} s")
    for a, b in (("disk", "copy"), ("disk", "compute"), ("copy", "compute")):
        shared = seconds_of(both(rows[a], rows[b]))
        least = min(seconds_of(rows[a]), seconds_of(rows[b]))
        print(f"{a} and {b} at the same time {shared:.2f} s"
              + (f", {100 * shared / least:.0f} % of the shorter" if least > 0 else ""))


main()
