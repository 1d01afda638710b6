"""Sixteen runs of FLUX.1 at once on two cards, beside one run alone on one card.

    python3 tests/bench/many_runs.py BUNDLE WORKFLOW [--folder DIR] [--runs 16] [--steps 8] [--budget SIZE ...] [--host-budget SIZE] [--previews] [--traces DIR]

BUNDLE: from cuda_bundle.sh. WORKFLOW: ComfyUI's official flux_dev.json. Files of FLUX.1's true size are filled with random
numbers in DIR (default: a folder in memory where that has room), 34 GB of them. One process of heddle serve has cuda:0 and
draws one picture at a time; another has both cards and gets all the prompts at once. Both are warm: they have drawn before,
and know the prompt. For each --budget (default: all of the card, and 12GiB of it) prints the seconds of one run (median of
five), of all of them, and how that compares with an equal share of both cards, which is runs / 2 times one run; and the pictures
a second of both cards beside those of one card that got half of the prompts at once. With --previews a WebSocket client
listens, so that every step makes a preview. The pictures have to be the same bytes on either. With --traces the runs are made once
more with another prompt in each and a timeline of each, which is kept in DIR; prints which card had how many samplers, and how long an encoder or a
decoder of one run was at work while the sampler of another was. With --only-traces that is all.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from foreign_memory import Bench  # noqa: E402


class Listener:
    """A WebSocket client that counts bytes: for as long as it is there, the server sends previews."""

    def __init__(self, port):
        self.bytes = 0
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(f"GET /ws?clientId=bench HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        while data := self.socket.recv(1 << 16):
            self.bytes += len(data)


class Server:
    def __init__(self, bench, port, devices, budget, previews, traces=None):
        self.address = f"http://127.0.0.1:{port}"
        self.output = bench.work / f"output-{port}"
        command = [str(bench.bundle / "heddle"), "serve", "--devices", devices, "--jobs", "16", "--cache", "none", "--port", str(port),
                   "--plugins", str(bench.bundle / "plugins"), "--models", "models", "--output", str(self.output),
                   "--queue", str(bench.work / f"queue-{port}.db"), "--user", str(bench.work / f"user-{port}")]
        if budget != "all":
            command += ["--budget", f"cuda={budget}"]
        if getattr(bench, "host_budget", None):
            command += ["--host-budget", bench.host_budget]
        if traces:
            command += ["--traces", str(traces)]
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{bench.bundle / 'lib'}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        self.flow = json.loads((bench.work / "workflow.json").read_text())
        self.process = subprocess.Popen(command, cwd=bench.work, env=environment)
        self.wait_until_it_answers()
        self.listener = Listener(port) if previews else None

    def wait_until_it_answers(self):
        for _ in range(600):
            try:
                self.ask("/queue")
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not answer")

    def ask(self, path, body=None):
        request = urllib.request.Request(self.address + path, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def submit(self, seed, prompt=None):
        flow = json.loads(json.dumps(self.flow))
        for node in flow.values():
            if node["class_type"] == "RandomNoise":
                node["inputs"]["noise_seed"] = seed
            if node["class_type"] == "SaveImage":
                node["inputs"]["filename_prefix"] = f"seed{seed}"
            if prompt and node["class_type"] == "CLIPTextEncode":
                node["inputs"]["text"] = prompt
        return self.ask("/prompt", {"prompt": flow, "client_id": "bench"})["prompt_id"]

    def seconds(self, seeds):
        begin = time.monotonic()
        waiting = [self.submit(seed) for seed in seeds]
        while waiting:
            time.sleep(0.01)
            entry = self.ask(f"/history/{waiting[0]}").get(waiting[0])
            if entry is None:
                continue
            if entry["status"]["status_str"] != "success":
                raise RuntimeError(json.dumps(entry["status"])[:2000])
            waiting.pop(0)
        return time.monotonic() - begin

    def end_of(self, prompt_id):
        """When a run ended, in microseconds of the clock on the wall; None: it has not."""
        entry = self.ask(f"/history/{prompt_id}").get(prompt_id)
        if entry is None:
            return None
        if entry["status"]["status_str"] != "success":
            raise RuntimeError(json.dumps(entry["status"])[:2000])
        return 1000 * next(told["timestamp"] for name, told in entry["status"]["messages"] if name == "execution_success")

    def digest(self, seed):
        return hashlib.sha256(next(self.output.glob(f"seed{seed}_*.png")).read_bytes()).hexdigest()[:16]

    def end(self):
        self.process.terminate()
        self.process.wait()


def compare(bench, number, budget, runs, previews):
    alone = Server(bench, 8300 + 2 * number, "cuda:0", budget, previews)
    try:
        first = alone.seconds([1000])
        alone.seconds([1001])
        each = [alone.seconds([seed]) for seed in range(1, 6)]
        digests = [alone.digest(seed) for seed in range(1, 6)]
        half = alone.seconds(range(4001, 4001 + runs // 2))
        sent = alone.listener.bytes if previews else 0
    finally:
        alone.end()
    one = statistics.median(each)
    print(f"{budget}: one run {one:.3f} s ({' '.join(f'{s:.3f}' for s in each)}; the first {first:.2f})", flush=True)
    both = Server(bench, 8301 + 2 * number, "cuda:0,cuda:1", budget, previews)
    try:
        for turn in range(3):
            both.seconds([2000 + 4 * turn + i for i in range(4)])
        together = both.seconds(range(1, runs + 1))
        again = both.seconds(range(3001, 3001 + runs))
        same = digests == [both.digest(seed) for seed in range(1, 6)]
    finally:
        both.end()
    share = runs / 2 * one
    print(f"{budget}: {runs} runs at once {together:.3f} s and {again:.3f} s: {together / share:.3f} and {again / share:.3f} times {runs // 2}"
          f" runs; pictures {'the same' if same else 'DIFFER'}", flush=True)
    print(f"{budget}: {runs // 2} runs at once on one card {half:.3f} s; both cards make {2 * half / min(together, again):.3f} and"
          f" {2 * half / max(together, again):.3f} times the pictures of one{f'; {sent} bytes of messages and previews' if previews else ''}", flush=True)
    return same


SAMPLERS, NEIGHBOURS = ("SamplerCustomAdvanced", "KSampler"), ("CLIPTextEncode", "VAEDecode")


def overlap(bench, budget, runs, folder):
    """Prints how much of the encoders and decoders lay beside a sampler of another run; whether any did."""
    traces = pathlib.Path(folder).resolve() / budget
    traces.mkdir(parents=True, exist_ok=True)
    server = Server(bench, 8390, "cuda:0,cuda:1", budget, True, traces)
    try:
        server.seconds([7000, 7001])
        ids = [server.submit(7100 + i, f"a lighthouse at sea, number {i}") for i in range(runs)]
        ends = {}
        while len(ends) < runs:
            time.sleep(0.05)
            ends.update({i: end for i in ids if i not in ends and (end := server.end_of(i)) is not None})
        spans = []  # (run, class, card, begin, end)
        for run in ids:
            with urllib.request.urlopen(f"{server.address}/v1/jobs/{run}/trace", timeout=60) as answer:
                events = json.loads(answer.read())["traceEvents"]
            cards = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
            lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
            # A timeline counts from where the run has its memory, which nothing else tells; its last span ends the run.
            zero = ends[run] - max(e["ts"] + e["dur"] for e in events if e.get("ph") == "X")
            for e in events:
                if e.get("cat") == "node" and lanes.get((e["pid"], e["tid"])) == "compute":
                    begin = zero + e["ts"]
                    spans.append((run, e["name"].split()[-1], cards[e["pid"]], begin, begin + e["dur"]))
    finally:
        server.end()
    first = min(begin for _, _, _, begin, _ in spans)
    for card in sorted({card for _, kind, card, _, _ in spans if kind in SAMPLERS}):
        mine = sorted((begin - first, end - first) for _, kind, its_card, begin, end in spans if kind in SAMPLERS and its_card == card)
        print(f"{budget}: {card}: {len(mine)} samplers: {' '.join(f'{begin / 1e6:.2f}-{end / 1e6:.2f}' for begin, end in mine)}", flush=True)
    seen = False
    for name in NEIGHBOURS:
        total = beside = same_card = 0.0
        for run, kind, card, begin, end in spans:
            if kind != name:
                continue
            total += end - begin
            for other, sampler, its_card, its_begin, its_end in spans:
                both = min(end, its_end) - max(begin, its_begin)
                if other != run and sampler in SAMPLERS and both > 0:
                    beside += both
                    same_card += both if its_card == card else 0
        seen = seen or beside > 0
        print(f"{budget}: {name} {total / 1e6:.3f} s in all; beside samplers of other runs {beside / 1e6:.3f} s, of that {same_card / 1e6:.3f} s on the same card",
              flush=True)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("workflow")
    parser.add_argument("--folder")
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--budget", nargs="+", default=["all", "12GiB"])
    parser.add_argument("--host-budget")
    parser.add_argument("--previews", action="store_true")
    parser.add_argument("--traces")
    parser.add_argument("--only-traces", action="store_true")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    bench.host_budget = arguments.host_budget
    try:
        if arguments.traces and not all(overlap(bench, budget, arguments.runs, arguments.traces) for budget in arguments.budget):
            sys.exit(1)
        if arguments.only_traces:
            return
        same = [compare(bench, number, budget, arguments.runs, arguments.previews) for number, budget in enumerate(arguments.budget)]
        sys.exit(0 if all(same) else 1)
    finally:
        shutil.rmtree(bench.work, ignore_errors=True)


if __name__ == "__main__":
    main()
