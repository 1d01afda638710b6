"""Workflows of nodes in Python, through the program that stands first among the arguments."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HEDDLE = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))


def heddle(*arguments, python=sys.executable, code=0):
    done = subprocess.run([HEDDLE, *arguments, "--python", python], capture_output=True, text=True, timeout=300,
                          env={**{name: value for name, value in os.environ.items() if not name.startswith("HEDDLE_")}, "VIRTUAL_ENV": ""})
    told = done.stdout + done.stderr
    assert done.returncode == code, f"{arguments}: exit code {done.returncode} instead of {code}\n{told}"
    return told


class Flow(unittest.TestCase):
    packs = "packs"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.count = 0

    def run_flow(self, nodes, *options, code=0, python=sys.executable, packs=None, more=()):
        self.count += 1
        path = os.path.join(self.folder.name, f"{self.count}.json")
        with open(path, "w") as file:
            json.dump({id: {"class_type": kind, "inputs": inputs} for id, (kind, inputs) in nodes.items()}, file)
        return heddle("run", path, "--devices", "cpu:0", "--output", self.folder.name, "--cache", "none", "--python-nodes",
                      os.path.join(HERE, packs or self.packs),
                      *(option for pack in more for option in ("--python-nodes", os.path.join(HERE, pack))), *options,
                      code=code, python=python)

    def texts(self, nodes, shown, *options, **more):
        """What PreviewAny shows of links, by their texts."""
        all_nodes = dict(nodes)
        for i, (_, link) in enumerate(shown):
            all_nodes[f"show{i}"] = ("PreviewAny", {"source": link})
        told = self.run_flow(all_nodes, *options, **more)
        for i, (expected, _) in enumerate(shown):
            lines = re.findall(rf"^show{i} PreviewAny: (?!started on|done in)(.*)$", told, re.M)
            self.assertEqual("|".join(lines), expected, told)
        return told


def pythons():
    """One with torch and one with NumPy alone, as far as there are such, by the library's name."""
    given = os.environ.get("HEDDLE_TEST_PYTHON", "").split(":")
    found = {}
    for path in [*given, sys.executable, "/usr/bin/python3"]:
        if not path or not os.access(path, os.X_OK):
            continue
        ask = "import importlib.util as u; print(next((n for n in ('torch', 'numpy') if u.find_spec(n)), ''))"
        name = subprocess.run([path, "-c", ask], capture_output=True, text=True).stdout.strip()
        if name:
            found.setdefault(name, path)
    return found
