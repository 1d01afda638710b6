"""Runs workflows over small files of random weights (small_files.py), under the names that
the workflows ask for, and with small pictures of few frames.

    small_runs.py HEDDLE [--all] FOLDER|FILE ... [-- HEDDLE'S OPTIONS ...]

HEDDLE is the program; workflows are *.json of either form. One that is as ComfyUI's interface saves
it runs twice: so, and in the API format that `heddle convert` makes of it. One line for each:

    runs           the files that it wrote; frames and sound of both forms are the same, byte for byte
    differs        they are not
    fails          what is said
    lacks classes  those that no plugin brings
    no such model  files that small_files.py does not make

Exit code 1 where one fails or differs; with --all also where one lacks classes or files, or where there is none. Only the standard library is needed. `KEEP=DIR` in the environment keeps
files and outputs there.
"""

import contextlib
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import plan_headers
import small_files

CLASS = re.compile(r"no loaded plugin brings the class '([^']+)'")
SECONDS = 600
PICTURES = (".png", ".jpg", ".jpeg", ".webp")
MEDIA = Path(__file__).resolve().parent.parent / "plugins" / "video" / "data"
SOUND, VIDEO = MEDIA / "stereo.mp3", MEDIA / "h264_stereo.mp4"

# What inputs are set to, by their names; a few are so only for some classes.
SMALL = {
    "width": 256,
    "height": 128,
    "length": 9,
    "longer_edge": 256,
    "largest_size": 256,
    "megapixels": 0.04,
    "resize_type.width": 256,
    "resize_type.height": 128,
    "resize_type.longer_size": 256,
    "resize_type.megapixels": 0.04,
    "frames_number": 9,
    "max_length": 8,
}
# Where an area begins, within what is left of the picture.
PLACES = {"ConditioningSetArea": {"x": 64, "y": 32}}
# The least that some classes take.
LEAST = {("ResolutionSelector", "megapixels"): 0.1}
# Of literals that workflows name by titles.
TITLES = {
    "width": 256,
    "height": 128,
    "length": 9,
    "frames": 9,
    "frame count": 9,
    "duration": 1,
}
LITERALS = ("PrimitiveInt", "PrimitiveFloat")
# Steps are fewer where no class counts them itself.
STEPS = 4
COUNTING = ("KSamplerAdvanced", "SplitSigmas", "SplitSigmasDenoise")
# What is painted where a Painter has nothing: a half of a picture each, in turn.
PAINTED = ("painted_left.png", "painted_right.png")


# Workflows of other classes alone show values, and write nothing.
WRITES = re.compile(r"Save|Preview(?!Any)|Compare")
SIDES = re.compile(r"width|height|edge|size|pixels")


def small_values(nodes):
    """What is to be set: {(node, input): value}."""
    # LTX's models draw half a picture first, in cells of 32 pixels.
    large = any("LTXV" in node["class_type"] for node in nodes.values())
    counts = any(node["class_type"] in COUNTING for node in nodes.values())
    limits = SMALL if counts else SMALL | {"steps": STEPS}
    made, painted = {}, itertools.cycle(PAINTED)
    for key, node in nodes.items():
        if node["class_type"] == "Painter" and node.get("inputs", {}).get("mask") == "":
            made[key, "mask"] = next(painted)
        kind, inputs = node["class_type"], node.get("inputs", {})
        if kind in LITERALS:
            title = node.get("_meta", {}).get("title", "").lower()
            value = next((TITLES[word] for word in TITLES if word in title), None)
            given = inputs.get("value", 0)  # a list is a link
            if value is not None and not isinstance(given, list) and given > value:
                made[key, "value"] = value
            continue
        for name, most in PLACES.get(kind, {}).items():
            if isinstance(inputs.get(name), int) and inputs[name] > most:
                made[key, name] = most
        for name, value in inputs.items():
            if name not in limits:
                continue
            source = key, name
            if isinstance(value, list):  # a link, whose literal is set
                other = nodes.get(str(value[0]), {})
                if other.get("class_type") not in LITERALS:
                    continue
                source, value = (str(value[0]), "value"), other["inputs"].get("value")
            if isinstance(value, (int, float)) and value > limits[name]:
                made[source] = limits[name]
    for (key, name), value in made.items():
        if isinstance(value, str):
            continue
        title = nodes[key].get("_meta", {}).get("title", "").lower()
        if not large and SIDES.search(title if name == "value" else name):
            made[key, name] = value / 4 if "pixels" in name else value // 2
        made[key, name] = max(made[key, name], LEAST.get((nodes[key]["class_type"], name), 0))
    return made


def add_paintings(root):
    """Black, where there is anything."""
    side = 64
    for name, row in zip(PAINTED, (b"\0\0\0\xff" * (side // 2) + bytes(2 * side), bytes(2 * side) + b"\0\0\0\xff" * (side // 2))):
        (root / "input" / name).write_bytes(plan_headers.png_of(side, side, 6, (b"\0" + row) * side))


def add_input(root, name):
    target = root / "input" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    ending = target.suffix.lower()
    if ending in PICTURES:
        target.write_bytes(plan_headers.png(256, 192))
    elif ending in (".mp3", ".wav", ".flac"):
        target.write_bytes(SOUND.read_bytes())
    elif ending in (".mp4", ".webm"):
        target.write_bytes(VIDEO.read_bytes())
    else:
        return False
    return True


def add_file(root, name, folder):
    """Whether the file could be made."""
    if folder == "input":
        return add_input(root, name)
    stem, _, ending = name.rpartition(".")
    key = f"{plan_headers.SAME.get(folder, folder)}/{stem}"
    if key not in small_files.SMALL:
        return False
    small_files.write(root / "models", key, ending)
    return True


def ask(*command):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return 1, "", f"not done after {SECONDS} seconds"
    return done.returncode, done.stdout, done.stderr


def content_of(path):
    """Frames and sound in a file without what it says of its workflow, or None."""
    data = path.read_bytes()
    kept, at = [], 0
    if path.suffix == ".mp4":
        while at + 8 <= len(data):
            size, kind = struct.unpack(">I4s", data[at : at + 8])
            kept += [data[at : at + size]] if kind == b"mdat" else []
            at += max(size, 8)
    elif path.suffix == ".webp":
        at = 12
        while at + 8 <= len(data):
            kind, size = struct.unpack("<4sI", data[at : at + 8])
            kept += [] if kind in (b"EXIF", b"XMP ") else [data[at : at + 8 + size]]
            at += 8 + size + size % 2
    elif path.suffix == ".png":
        at = 8
        while at + 8 <= len(data):
            size, kind = struct.unpack(">I4s", data[at : at + 8])
            kept += [data[at : at + size + 12]] if kind == b"IDAT" else []
            at += size + 12
    return b"".join(kept) or None


def first_line(text):
    lines = [line for line in text.strip().splitlines() if "rror" in line] or text.strip().splitlines()
    return lines[0] if lines else ""


class Runner:
    def __init__(self, heddle, root, given):
        self.heddle, self.root = heddle, root
        self.options = ["--models", root / "models", "--input", root / "input", *given]

    def prepare(self, path):
        """What a workflow lacks, as a verdict with a note, or None."""
        code, _, report = ask(self.heddle, "plan", path, *self.options)
        if code == 0:
            return None
        classes = sorted(set(CLASS.findall(report)))
        if classes:
            return "lacks classes", ", ".join(classes)
        wanted = set(plan_headers.FILE.findall(report))
        unknown = sorted(name for name, folder in wanted if not add_file(self.root, name, folder))
        return ("no such model", ", ".join(unknown)) if unknown else None

    def output(self, path, form):
        return self.root / "output" / f"{path.stem}.{form}"

    def files(self, path, form):
        output = self.output(path, form)
        return sorted(one for one in output.rglob("*") if one.is_file()) if output.is_dir() else []

    def run(self, path, sets, form, writes):
        output = self.output(path, form)
        shutil.rmtree(output, ignore_errors=True)
        options = [part for (node, name), value in sets.items() for part in ("--set", f"{node}.{name}={value}")]
        code, _, report = ask(self.heddle, "run", path, "--quiet", "--output", output, *options, *self.options)
        made = self.files(path, form)
        if code != 0:
            return "fails", first_line(report)
        if bool(made) != writes or any(one.stat().st_size == 0 for one in made):
            return "fails", ("it wrote nothing: " if writes else "it wrote a file: ") + report.strip()
        warned = report.strip().splitlines()
        note = ", ".join(str(one.relative_to(output)) for one in made)
        return "runs", note + "".join(f"\n    {line}" for line in warned)

    def judge(self, path):
        """(form, verdict, note) of each form."""
        path = plan_headers.linked(self.heddle, path, self.root)
        lack = self.prepare(path)
        if lack is not None:
            yield "both", *lack
            return
        code, out, report = ask(self.heddle, "convert", path)
        if code != 0:
            yield "both", "fails", first_line(report)
            return
        flow = json.loads(out)
        nodes = flow.get("prompt", flow)
        sets = small_values(nodes)
        writes = any(WRITES.search(node["class_type"]) for node in nodes.values())
        is_saved = "nodes" in json.loads(path.read_text(encoding="utf-8"))
        if is_saved:
            yield "saved", *self.run(path, sets, "saved", writes)
        converted = self.root / "converted" / path.name
        converted.parent.mkdir(exist_ok=True)
        converted.write_text(out, encoding="utf-8")
        verdict, note = self.run(converted, sets, "api", writes)
        if is_saved and verdict == "runs":
            saved, api = (sorted(filter(None, map(content_of, self.files(path, form)))) for form in ("saved", "api"))
            verdict = "runs" if saved == api else "differs"
        yield "api", verdict, note


@contextlib.contextmanager
def folder():
    if os.environ.get("KEEP"):
        yield Path(os.environ["KEEP"])
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def main():
    arguments, given = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, given = arguments[:at], arguments[at + 1 :]
    is_strict = "--all" in arguments
    heddle, *places = (argument for argument in arguments if argument != "--all")
    paths = []
    for place in map(Path, places):
        paths += sorted(place.glob("*.json")) if place.is_dir() else [place]
    counts = {}
    with folder() as root:
        for name in ("models", "input"):
            (root / name).mkdir(parents=True, exist_ok=True)
        small_files.write_tokenizers(root / "models")
        add_file(root, *reversed(plan_headers.UNNAMED))
        add_paintings(root)
        runner = Runner(heddle, root, given)
        for path in paths:
            for form, verdict, note in runner.judge(path):
                counts[verdict] = counts.get(verdict, 0) + 1
                print(f"{path.stem} ({form}): {verdict}; {note}", flush=True)
    print()
    for verdict, count in sorted(counts.items()):
        print(f"{count:4} {verdict}")
    failed = set(counts) != {"runs"} if is_strict else counts.get("fails") or counts.get("differs")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
