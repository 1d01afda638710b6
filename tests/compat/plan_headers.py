"""Plans workflows over model files of true size that hold nothing: names, shapes and types of the
published files of FLUX.1, FLUX.2, Qwen-Image (2.1, too), Z-Image, Lumina 2, Krea 2, Chroma, Stable
Diffusion (3, too), SDXL, Wan, LTX, upscalers, LoRAs and ControlNets before one hole, so that 24 GB take some kB of disk.

    plan_headers.py HEDDLE [--all] FOLDER ... [-- HEDDLE'S OPTIONS ...]

HEDDLE is the program. Each FOLDER holds workflows (*.json, of either form). Of a workflow that
lacks files alone, those that ../plugins/goldens/flux_headers.py can make are made, pictures are
drawn, and a video and a sound of the tests are taken, all in a temporary folder, and it is planned: "plans" with its number of nodes, "does not
plan" with what is said, or "no such model" with the files that nobody can make.
Exit code 1 where one does not plan; with --all also where one lacks classes or files, or where there is none. Only the standard library is needed.
"""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "plugins" / "goldens"))
import flux_headers  # noqa: E402

FILE = re.compile(r"there is no file '([^']+)' in '([^']+)'")
CLASS = re.compile(r"no loaded plugin brings the class")
PICTURES = (".png", ".jpg", ".jpeg", ".webp")
DATA = Path(__file__).resolve().parent.parent / "plugins" / "video" / "data"
MEDIA = {".mp4": DATA / "h264_stereo.mp4", ".mp3": DATA / "stereo.mp3", ".wav": DATA / "stereo.mp3"}
SECONDS = 120  # of a plan
SAME = {"unet": "diffusion_models", "clip": "text_encoders"}
# What LotusConditioning reads, and no workflow names.
UNNAMED = ("embeddings", "lotus_conditioning.safetensors")
# Saved without a link that the workflow needs, so that ComfyUI refuses it as well: the node, its input, and what belongs there.
UNLINKED = {"video_ltx2_i2v_lora": ("75", "video", ["92:97", 0])}


def png_of(width, height, kind, rows):
    """A PNG of 8 bits; kind: of its colours."""

    def chunk(name, data):
        body = name + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", size + bytes([8, kind, 0, 0, 0]))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def png(width, height):
    """Grey, as a PNG."""
    return png_of(width, height, 2, (b"\0" + b"\x80" * (3 * width)) * height)


def make(folder, name, root):
    """Whether the file could be made."""
    if folder == "input":
        content = png(256, 192) if name.lower().endswith(PICTURES) else None
        for ending, media in MEDIA.items():
            if name.lower().endswith(ending):
                content = media.read_bytes()
        if content is None:
            return False
        target = root / "input" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        return True
    # What a file is read as follows from its content, so that a .ckpt may be one of these, too.
    stem, _, ending = name.rpartition(".")
    key = f"{SAME.get(folder, folder)}/{stem}"
    tensors = flux_headers.FILES.get(key)
    if tensors is None or ending not in ("safetensors", "ckpt", "pth"):
        return False
    with contextlib.redirect_stdout(io.StringIO()):
        flux_headers.write(str(root / "models" / f"{key}.{ending}"), tensors(), flux_headers.CONFIGS.get(key))
    return True


def plan(heddle, path, options):
    try:
        done = subprocess.run([heddle, "plan", str(path), *options], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return 1, "", f"not planned after {SECONDS} seconds"
    return done.returncode, done.stdout, done.stderr


def linked(heddle, path, root):
    """A workflow of UNLINKED in API format with its link, or any other as it is."""
    if path.stem not in UNLINKED:
        return path
    done = subprocess.run([heddle, "convert", str(path)], capture_output=True, text=True, check=True)
    flow = json.loads(done.stdout)
    node, name, source = UNLINKED[path.stem]
    flow.get("prompt", flow)[node]["inputs"][name] = source
    target = root / "linked" / path.name
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(flow), encoding="utf-8")
    return target


def judge(heddle, path, root, given):
    path = linked(heddle, path, root)
    options = ["--models", str(root / "models"), "--input", str(root / "input"), *given]
    code, _, report = plan(heddle, path, options)
    if code != 0:
        if CLASS.search(report):
            return "lacks classes", ""
        wanted = set(FILE.findall(report))
        unknown = sorted(name for name, folder in wanted if not make(folder, name, root))
        if unknown:
            return "no such model", ", ".join(unknown)
    code, told, report = plan(heddle, path, [*options, "--json"])
    if code != 0:
        return "does not plan", report.strip().splitlines()[0]
    nodes = {step["node"] for step in json.loads(told)["steps"] if step["kind"] == "run"}
    return "plans", f"{len(nodes)} nodes"


def main():
    arguments = sys.argv[1:]
    given = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, given = arguments[:at], arguments[at + 1 :]
    is_strict = "--all" in arguments
    heddle, *folders = (argument for argument in arguments if argument != "--all")
    counts = {}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name in ("models", "input"):
            (root / name).mkdir()
        make(*UNNAMED, root)
        for folder in folders:
            for path in sorted(Path(folder).glob("*.json")):
                verdict, note = judge(heddle, path, root, given)
                counts[verdict] = counts.get(verdict, 0) + 1
                if is_strict or verdict != "lacks classes":
                    print(f"{path.parent.name}/{path.stem}: {verdict}; {note}", flush=True)
    print()
    for verdict, count in sorted(counts.items()):
        print(f"{count:4} {verdict}")
    failed = set(counts) != {"plans"} if is_strict else counts.get("does not plan")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
