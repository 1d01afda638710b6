#!/usr/bin/python3
"""`heddle serve` killed by SIGKILL at random instants, under load: no job that it took is lost, none is done twice.

  killed_server_test.py PROGRAM KILLS [--seed N] [--checkpoint-every N]

Jobs are sent and cancelled by several threads while the server runs; it is killed after up to half a second, begins again on the
same queue, and is killed again. In the end it is left to finish. Then every job that was answered with an id stands in the history once, done or
cancelled; one that nobody cancelled is done; every file that the history names is there and whole; and files that it does not
name are no more than kills: of jobs that were killed between their file and their end.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

SECONDS = 180  # until the last job has to be done
SENDERS = 3
MOST_WAITING = 40  # jobs; senders wait for the others, so that the end is not far


def prompt(number):
    """A picture that no other job draws; of some it takes long enough to be interrupted."""
    side, radius = (600, 31) if number % 4 == 0 else (96, 5)
    return {"image": {"class_type": "EmptyImage", "inputs": {"width": side, "height": side, "batch_size": 1, "color": number}},
            "blurred": {"class_type": "ImageBlur", "inputs": {"image": ["image", 0], "blur_radius": radius, "sigma": 2.0}},
            "save": {"class_type": "SaveImage", "inputs": {"images": ["blurred", 0], "filename_prefix": f"job{number}"}}}


class Server:
    def __init__(self, program, folder, every):
        environment = dict(os.environ, HOME=str(folder), HEDDLE_PLUGINS="")
        for name in ("CONFIG", "CACHE", "STATE"):
            environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        (folder / "input").mkdir(exist_ok=True)
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--json", "--devices", "cpu", "--output", folder / "output", "--input", folder / "input",
             "--checkpoint-every", str(every)],
            stdout=subprocess.PIPE, stderr=self.log.open("a"), env=environment, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no address: {self.log.read_text()[-2000:]}")
        self.url = json.loads(line)["url"]

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=SECONDS) as reply:
            text = reply.read()
            return json.loads(text) if text else None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=SECONDS)


class Load:
    """What is sent to the servers that come and go, and what they said."""

    def __init__(self, seed):
        self.lock = threading.Lock()
        self.random = random.Random(seed)
        self.server = None
        self.is_over = False
        self.sent = 0
        self.taken = {}      # id -> number
        self.cancelled = set()  # ids for which somebody asked, whether it was answered or not

    def number(self):
        with self.lock:
            self.sent += 1
            return self.sent

    def work(self):
        while not self.is_over:
            server = self.server
            if server is None:
                time.sleep(0.005)
                continue
            try:
                self.one(server)
            except (OSError, ValueError, urllib.error.URLError):  # it was killed meanwhile
                time.sleep(0.005)

    def one(self, server):
        number = self.number()
        answer = server.ask("/prompt", {"prompt": prompt(number)})
        with self.lock:
            self.taken[answer["prompt_id"]] = number
            some = self.random.choice(list(self.taken)[-6:]) if self.random.random() < 0.2 else None
            kind = self.random.randrange(2)
            if some:
                self.cancelled.add(some)
        if some and kind:
            server.ask("/queue", {"delete": [some]})
        elif some:
            server.ask("/interrupt", {"prompt_id": some})
        if server.ask("/prompt")["exec_info"]["queue_remaining"] > MOST_WAITING:
            time.sleep(0.1)


def is_whole(file):
    content = file.read_bytes()
    return content.startswith(b"\x89PNG\r\n\x1a\n") and content.endswith(b"IEND\xaeB\x60\x82")


def check(load, history, output, kills):
    states = collections.Counter()
    named = set()
    for job, number in load.taken.items():
        entry = history.get(job)
        if entry is None:
            # What waited and was deleted from the queue leaves no trace, as in ComfyUI.
            assert job in load.cancelled, f"job {job} ({number}) is lost"
            states["deleted"] += 1
            continue
        state = entry["status"]["status_str"]
        is_done = state == "success"
        assert is_done or job in load.cancelled, f"job {job} ({number}) ended with {entry['status']}"
        states["done" if is_done else "cancelled"] += 1
    for job, entry in history.items():
        for picture in entry["outputs"].get("save", {}).get("images", []):
            assert entry["prompt"][2]["save"]["inputs"]["filename_prefix"] == picture["filename"].split("_")[0], "another job's file"
            named.add(picture["filename"])
            assert is_whole(output / picture["filename"]), f"{picture['filename']} is not whole"
        if entry["status"]["status_str"] == "success":
            assert len(entry["outputs"]["save"]["images"]) == 1, f"{job} has {entry['outputs']}"
    files = {file.name for file in output.glob("*.png")}
    unnamed = files - named
    for name in unnamed:
        assert is_whole(output / name), f"{name} is not whole"
    ended_early = states["cancelled"] + states["deleted"]
    assert len(unnamed) <= 4 * kills + ended_early, f"{len(unnamed)} files of jobs that ran twice, by {kills} kills"
    print(f"{kills} kills, {len(load.taken)} jobs: {dict(states)}; {len(unnamed)} files of what was killed or cancelled behind them")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps; then jobs go on where they were")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    folder = pathlib.Path(tempfile.mkdtemp())
    load = Load(args.seed)
    threads = [threading.Thread(target=load.work) for _ in range(SENDERS)]
    chance = random.Random(args.seed + 1)
    server = None
    try:
        for thread in threads:
            thread.start()
        for _ in range(args.kills):
            server = Server(args.program, folder, args.checkpoint_every)
            load.server = server
            time.sleep(chance.random() ** 2 / 2)
            load.server = None if chance.random() < 0.5 else server  # killed while it is idle, and while it is asked
            server.kill()
            load.server = None
        load.is_over = True
        for thread in threads:
            thread.join()
        server = Server(args.program, folder, args.checkpoint_every)
        end = time.monotonic() + SECONDS
        while server.ask("/prompt")["exec_info"]["queue_remaining"]:
            assert time.monotonic() < end, f"still in the queue: {server.ask('/queue')}"
            time.sleep(0.05)
        check(load, server.ask("/history"), folder / "output", args.kills)
        while left := list(folder.glob("state/heddle/*.checkpoints/*")):  # they go behind the end that is told
            assert time.monotonic() < end, f"checkpoints are left of jobs that have ended: {left}"
            time.sleep(0.02)
        assert server.stop() == 0, "the server does not end"
    except BaseException:
        load.is_over = True
        if server:
            server.process.kill()
            print(server.log.read_text()[-3000:])
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
