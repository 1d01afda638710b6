#!/usr/bin/python3
"""`heddle serve` on disks that are full: of outputs, of temporary files, of the queue.

  full_disk_test.py PROGRAM SAMPLE_PLUGINS

Each is a small file system in memory, mounted where nobody else sees it. What has no room is refused in words, nothing is lost, and
all goes on when there is room again. Skipped (77) where nothing can be mounted.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

SECONDS = 180  # until something has to have happened
SKIPPED = 77
BYTES = 4 << 20  # of each disk


def mounted(folder):
    """An empty disk at the folder; False: it may not be made."""
    folder.mkdir(parents=True, exist_ok=True)
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "tmpfs", folder], stderr=subprocess.DEVNULL)
    return made.returncode == 0


class Full:
    """A disk with no byte left, until it is left."""

    def __init__(self, folder):
        self.file = folder / "filler"

    def __enter__(self):
        with self.file.open("wb", buffering=0) as file:
            size = 1 << 20
            while size:
                try:
                    file.write(b"x" * size)
                except OSError:
                    size //= 2
        return self

    def __exit__(self, *_):
        self.file.unlink()


class Server:
    def __init__(self, program, plugins, folder):
        environment = dict(os.environ, HOME=str(folder), HEDDLE_PLUGINS="")
        for name in ("CONFIG", "CACHE", "STATE"):
            environment[f"XDG_{name}_HOME"] = str(folder / name.lower())
        (folder / "input").mkdir()
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--json", "--devices", "cpu", "--jobs", "1", "--plugins", plugins, "--input",
             folder / "input", "--output", folder / "output", "--queue", folder / "queue/queue.db"],
            stdout=subprocess.PIPE, stderr=self.log.open("a"), env=environment, text=True)
        line = self.process.stdout.readline()
        assert line, f"no address: {self.log.read_text()[-2000:]}"
        self.url = json.loads(line)["url"]

    def ask(self, method, path, body=None, status=(200, 201, 202)):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as reply:
                code, text = reply.status, reply.read()
        except urllib.error.HTTPError as refusal:
            code, text = refusal.code, refusal.read()
        assert code in status, f"{method} {path}: {code}: {text.decode()}"
        return json.loads(text) if text else None

    def refused(self, path, body=None):
        """For want of room, in words that name the file."""
        error = self.ask("POST", path, body, status=(500,))["error"]
        assert error["code"] == "input/output", error
        assert "queue.db" in error["message"], error
        return error

    def submit(self, workflow):
        return self.ask("POST", "/v1/jobs", {"workflow": workflow})["jobs"][0]["id"]

    def job(self, job):
        return self.ask("GET", f"/v1/jobs/{job}")

    def wait(self, job, *states):
        end = time.monotonic() + SECONDS
        while (told := self.job(job))["state"] not in states:
            assert time.monotonic() < end, f"{told}\n{self.log.read_text()[-2000:]}"
            time.sleep(0.02)
        return told


def picture(color, node="SaveImage"):
    inputs = {"images": ["1", 0]}
    if node == "SaveImage":
        inputs["filename_prefix"] = f"p{color}"
    return {"1": {"class_type": "EmptyImage", "inputs": {"width": 64, "height": 64, "batch_size": 1, "color": color}},
            "2": {"class_type": node, "inputs": inputs}}


def number(value):
    return {"1": {"class_type": "test.add", "inputs": {"a": value, "b": 1}},
            "2": {"class_type": "PreviewAny", "inputs": {"source": ["1", 0]}}}


WAITS = {"1": {"class_type": "test.wait", "inputs": {}}, "2": {"class_type": "test.keep", "inputs": {"value": ["1", 0]}}}


def files_of(disk):
    return sorted(file for file in disk.rglob("*") if file.is_file() and file.name != "filler")


def check_pictures(server, disk, node):
    """A job fails that cannot write, and leaves no piece; others go on; tried again with room, it is done."""
    before = files_of(disk)
    with Full(disk):
        job = server.submit(picture(5, node))
        told = server.wait(job, "failed", "done")
        assert told["state"] == "failed", told
        assert told["error"]["code"] == "input/output", told["error"]
        assert "No space left" in told["error"]["message"], told["error"]
        assert files_of(disk) == before, f"{files_of(disk)} instead of {before}"
        server.wait(server.submit(number(len(node))), "done")
    again = server.ask("POST", f"/v1/jobs/{job}/retry")["id"]
    told = server.wait(again, "failed", "done")
    assert told["state"] == "done", told
    made, = set(files_of(disk)) - set(before)
    content = made.read_bytes()
    assert content.startswith(b"\x89PNG") and b"IEND" in content[-12:], made
    print(f"{node}: refused, then {made.name}")


def check_queue(server, disk):
    """What cannot be kept is refused; what is there stays, and runs once."""
    runs = server.submit(WAITS)
    server.wait(runs, "running")
    waiting = [server.submit(number(value)) for value in range(3)]
    with Full(disk):
        for attempt in range(3):
            server.refused("/v1/jobs", {"workflow": number(100 + attempt)})
        error = server.ask("POST", "/prompt", {"prompt": number(200)}, status=(500,))["error"]
        assert "queue.db" in json.dumps(error), error
        server.refused(f"/v1/jobs/{runs}/cancel")
        server.refused("/v1/queue/pause")
        # To look at it takes no room.
        assert server.ask("GET", "/v1/queue")["running"], "what runs is not told"
        assert [server.job(job)["state"] for job in waiting] == ["pending"] * 3
        server.ask("GET", "/v1/health/live")
    server.ask("POST", f"/v1/jobs/{runs}/cancel")
    server.wait(runs, "cancelled")
    for job in [*waiting, server.submit(number(300))]:
        server.wait(job, "done")
    total = server.ask("GET", "/v1/jobs")["total"]
    assert total == len(waiting) + 2 + check_queue.before, f"{total} jobs"
    print("queue: refused, then all are done")


def main(program, plugins):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        disks = [folder / "queue", folder / "output", folder / "output/temp"]
        made = []
        try:
            for disk in disks:
                if not mounted(disk):
                    print("skipped: no disk can be mounted here")
                    return SKIPPED
                made.append(disk)
            server = Server(program, plugins, folder)
            try:
                check_pictures(server, disks[1], "SaveImage")
                check_pictures(server, disks[2], "PreviewImage")
                check_queue.before = server.ask("GET", "/v1/jobs")["total"]
                check_queue(server, disks[0])
                server.process.terminate()
                assert server.process.wait(timeout=SECONDS) == 0
            except BaseException:
                print(server.log.read_text()[-3000:])
                raise
            finally:
                server.process.kill()
                server.process.wait()
        finally:
            for disk in reversed(made):
                subprocess.run(["umount", disk], check=False)
    return 0


if __name__ == "__main__":
    if "--inside" in sys.argv:
        sys.exit(main(*sys.argv[1:3]))
    # Mounts of its own, so that they end with this.
    alone = ["unshare", "--mount", "--propagation", "private"]
    if subprocess.run([*alone, "true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: only root may mount a disk here")
        sys.exit(SKIPPED)
    sys.exit(subprocess.run([*alone, sys.executable, __file__, *sys.argv[1:], "--inside"]).returncode)
