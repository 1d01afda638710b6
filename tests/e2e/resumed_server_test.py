#!/usr/bin/python3
"""`heddle serve --checkpoint-every` ended in the midst of a job, by SIGKILL and by SIGTERM: the next one goes on.

  resumed_server_test.py PROGRAM SAMPLE_PLUGINS TESTS

The file that the job writes has the bytes of a run that nobody stopped, and steps that were done before are not done again.
"""

import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

SECONDS = 180  # until something has to have happened
STEPS = 60


def prompt(tests):
    def conditioning(name):
        return {"class_type": "test.conditioning",
                "inputs": {"path": str(tests / "plugins/nodes/goldens.safetensors"), "prefix": f"in.{name}", "option": ""}}
    return {"model": {"class_type": "UNETLoader", "inputs": {"unet_name": "plain.safetensors", "weight_dtype": "default"}},
            "one": conditioning("one"), "two": conditioning("two"),
            "empty": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 512, "batch_size": 1}},
            "draw": {"class_type": "KSampler", "inputs": {
                "model": ["model", 0], "seed": 7, "steps": STEPS, "cfg": 3.0, "sampler_name": "dpmpp_3m_sde", "scheduler": "karras",
                "positive": ["one", 0], "negative": ["two", 0], "latent_image": ["empty", 0], "denoise": 1.0}},
            "save": {"class_type": "SaveLatent", "inputs": {"samples": ["draw", 0], "filename_prefix": "made"}}}


class Listener:
    """A WebSocket that only listens; frames of a server are not masked."""

    def __init__(self, url):
        at = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((at.hostname, at.port), timeout=SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /ws?clientId=tab HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n").encode())
        self.file = self.socket.makefile("rb")
        while self.file.readline() not in (b"\r\n", b""):
            pass

    def messages(self):
        while True:
            head = self.file.read(2)
            if len(head) < 2:
                return
            size = head[1] & 0x7f
            if size == 126:
                size, = struct.unpack(">H", self.file.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.file.read(8))
            content = self.file.read(size)
            if head[0] & 0x0f == 1:
                yield json.loads(content)

    def shares(self):
        """What has been done of the drawing, until the job is over."""
        for message in self.messages():
            data = message["data"]
            if message["type"] == "progress" and data["node"] == "draw":
                yield data["value"] / data["max"]
            if message["type"] == "executing" and data["node"] is None:
                return


class Server:
    def __init__(self, args, folder, every):
        self.folder = folder
        environment = dict(os.environ, HOME=str(folder), HEDDLE_PLUGINS="")
        for name in ("CONFIG", "CACHE", "STATE"):
            environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        (folder / "input").mkdir(exist_ok=True)
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [args.program, "serve", "--port", "0", "--json", "--devices", "cpu", "--compute", "cpu=f32", "--threads", "1", "--plugins",
             args.plugins, "--models", folder / "models", "--output", folder / "output", "--input", folder / "input",
             "--checkpoint-every", str(every), "--shutdown-seconds", "60"],
            stdout=subprocess.PIPE, stderr=self.log.open("a"), env=environment, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"no address: {self.log.read_text()[-2000:]}")
        self.url = json.loads(line)["url"]

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data=data), timeout=SECONDS) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as refusal:
            raise AssertionError(f"{path}: {refusal.code}: {refusal.read().decode()}") from refusal

    def ended(self, job):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            entry = self.ask(f"/history/{job}").get(job)
            if entry:
                assert entry["status"]["status_str"] == "success", entry["status"]
                return entry
            time.sleep(0.02)
        raise AssertionError(f"{job} does not end: {self.log.read_text()[-2000:]}")

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(timeout=SECONDS)


def made_in(folder):
    files = sorted((folder / "output").glob("*.latent"))
    assert len(files) == 1, f"{files} instead of one file"
    return files[0].read_bytes()


def folder_for(args):
    folder = pathlib.Path(tempfile.mkdtemp())
    (folder / "models/diffusion_models").mkdir(parents=True)
    shutil.copy(args.tests / "plugins/goldens/random/flux_diffusers.safetensors", folder / "models/diffusion_models/plain.safetensors")
    return folder


def interrupted(args, how, every):
    """The bytes of the file of a job whose server is ended in its midst."""
    folder = folder_for(args)
    server = Server(args, folder, every)
    try:
        listener = Listener(server.url)
        job = server.ask("/prompt", {"prompt": prompt(args.tests), "client_id": "tab"})["prompt_id"]
        for done in listener.shares():
            if done >= 0.3:
                break
        code = server.end(how)
        assert code == (0 if how == signal.SIGTERM else -how), f"exit code {code}"
        assert not list((folder / "output").glob("*.latent")), "it was over before it was ended"
        kept = list(folder.glob("state/heddle/*.checkpoints/*.checkpoint"))
        assert [file.stem for file in kept] == [job], f"checkpoints: {kept}"
        server = Server(args, folder, every)
        first = next(Listener(server.url).shares(), 1)
        server.ended(job)
        assert f"job {job} goes on" in server.log.read_text(), server.log.read_text()[-2000:]
        # Of what was done, a step may be done again that ended behind the last checkpoint.
        assert first >= done - 1 / STEPS, f"{done} was done, and {first} is told next"
        # They go behind the end that is told.
        end = time.monotonic() + SECONDS
        while left := list(folder.glob("state/heddle/*.checkpoints/*")):
            assert time.monotonic() < end, f"checkpoints are left: {left}"
            time.sleep(0.02)
        assert server.end(signal.SIGTERM) == 0
        print(f"{how.name}: {done:.2f} was done, {first:.2f} was told next")
        return made_in(folder)
    except BaseException:
        print(server.log.read_text()[-3000:])
        raise
    finally:
        server.process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def whole(args):
    folder = folder_for(args)
    server = Server(args, folder, 0)
    try:
        server.ended(server.ask("/prompt", {"prompt": prompt(args.tests), "client_id": "tab"})["prompt_id"])
        return made_in(folder)
    finally:
        server.process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "plugins", "tests"):
        parser.add_argument(name, type=lambda text: pathlib.Path(text).resolve())
    args = parser.parse_args()
    expected = whole(args)
    for how, every in ((signal.SIGKILL, 1), (signal.SIGTERM, 1_000_000)):
        assert interrupted(args, how, every) == expected, f"{how.name}: other bytes than those of a run that nobody stopped"


sys.exit(main())
