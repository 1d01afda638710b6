"""Makes data/*.png and data/goldens.txt: small PNG files of every colour type and bit depth, plain and
interlaced, with and without transparency, and all EXIF orientations, beside what Pillow reads from
them in the way of ComfyUI's LoadImage. Also data/json.txt, texts as Python's json module writes them.

    python make_goldens.py

A line of goldens.txt: file, width, height, where the alpha comes from (none, channel, palette, key),
RGB as hex, alpha as hex or "-".
"""
import json
import random
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

DATA = Path(__file__).parent / "data"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(row, depth):
    """One row of samples as bytes."""
    if depth == 16:
        return struct.pack(f">{len(row)}H", *row)
    bits = "".join(format(v, f"0{depth}b") for v in row)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def filtered(rows, bytes_per_pixel):
    """The rows with PNG's filters 0 to 4 in turn."""
    out, above = b"", bytes(len(rows[0]))
    for y, row in enumerate(rows):
        kind, line = y % 5, bytearray()
        for i, value in enumerate(row):
            a = row[i - bytes_per_pixel] if i >= bytes_per_pixel else 0
            b = above[i]
            c = above[i - bytes_per_pixel] if i >= bytes_per_pixel else 0
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line.append((value - (0, a, b, (a + b) // 2, paeth)[kind]) % 256)
        out += bytes([kind]) + bytes(line)
        above = row
    return out


def png(size, depth, colour, samples, *, palette=None, transparency=None, interlaced=False, exif=None):
    """samples[y][x] is a tuple of CHANNELS[colour] numbers of `depth` bits."""
    width, height = size
    per_pixel = max(1, depth * CHANNELS[colour] // 8)

    def scan(x0, y0, dx, dy):
        rows = [packed([v for x in range(x0, width, dx) for v in samples[y][x]], depth)
                for y in range(y0, height, dy) if x0 < width]
        return filtered(rows, per_pixel) if rows else b""

    raw = b"".join(scan(*step) for step in ADAM7) if interlaced else scan(0, 0, 1, 1)
    out = b"\x89PNG\r\n\x1a\n"
    out += chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced)))
    if palette:
        out += chunk(b"PLTE", bytes(palette))
    if transparency:
        out += chunk(b"tRNS", bytes(transparency))
    if exif:
        out += chunk(b"eXIf", exif)
    half = len(zlib.compress(raw)) // 2  # two IDAT chunks
    data = zlib.compress(raw)
    return out + chunk(b"IDAT", data[:half]) + chunk(b"IDAT", data[half:]) + chunk(b"IEND", b"")


def read(path):
    """What LoadImage makes of a file, before it divides by 255; alpha as LoadImageMask sees it."""
    image = ImageOps.exif_transpose(Image.open(path))
    has_key = image.mode not in ("P",) and "transparency" in image.info
    kind = ("channel" if "A" in image.getbands() else "key" if has_key
            else "palette" if "transparency" in image.info else "none")
    alpha = np.array(image.convert("RGBA").getchannel("A")) if kind != "none" else None
    if image.mode == "I;16":  # wide grey: ComfyUI's rule for Pillow's 32-bit grey
        image = image.convert("I").point(lambda v: v * (1 / 255))
    return np.array(image.convert("RGB")), kind, alpha


def random_samples(rng, size, depth, colour, most=None):
    most = (1 << depth) - 1 if most is None else most
    return [[tuple(rng.randint(0, most) for _ in range(CHANNELS[colour])) for _ in range(size[0])]
            for _ in range(size[1])]


def make_files(rng):
    files = {}
    size = (13, 7)
    for colour, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
        for depth in depths:
            for interlaced in (False, True):
                colours = min(1 << depth, 40)
                palette = [rng.randint(0, 255) for _ in range(3 * colours)] if colour == 3 else None
                samples = random_samples(rng, size, depth, colour, colours - 1 if colour == 3 else None)
                name = f"colour{colour}_depth{depth}" + ("_adam7" if interlaced else "")
                files[name] = png(size, depth, colour, samples, palette=palette, interlaced=interlaced)
                if colour == 3 and not interlaced:
                    alpha = [rng.randint(0, 255) for _ in range(colours // 2)]
                    files[name + "_alpha"] = png(size, depth, colour, samples, palette=palette,
                                                 transparency=alpha)
    grey = random_samples(rng, size, 8, 0, 3)
    files["grey_key"] = png(size, 8, 0, grey, transparency=[0, 2])
    rgb = random_samples(rng, size, 8, 2, 1)
    files["rgb_key"] = png(size, 8, 2, rgb, transparency=[0, 1, 0, 0, 0, 1])
    files["one_pixel"] = png((1, 1), 8, 2, [[(1, 2, 3)]])
    files["one_pixel_adam7"] = png((1, 1), 8, 6, [[(1, 2, 3, 4)]], interlaced=True)
    small = random_samples(rng, (3, 2), 8, 6)
    for orientation in range(1, 9):
        order = "<" if orientation % 2 else ">"
        exif = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
        exif += struct.pack(order + "H", 1) + struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
        exif += struct.pack(order + "I", 0)
        files[f"orientation{orientation}"] = png((3, 2), 8, 6, small, exif=exif)
    return files


def main():
    DATA.mkdir(exist_ok=True)
    lines = []
    for name, content in make_files(random.Random(5)).items():
        path = DATA / (name + ".png")
        path.write_bytes(content)
        rgb, kind, alpha = read(path)
        lines.append(f"{path.name} {rgb.shape[1]} {rgb.shape[0]} {kind} {rgb.tobytes().hex()} "
                     + ("-" if alpha is None else alpha.tobytes().hex()))
    (DATA / "goldens.txt").write_text("\n".join(lines) + "\n")
    texts = [{"3": {"class_type": "KSampler", "inputs": {"seed": 2**64 - 1, "cfg": 3.5, "model": ["1", 0]}}},
             {"text": "d\u00e9j\u00e0 vu \u65e5\u672c \U0001f642 \u007f \"q\" \\ / \n\t\b\f\r \u0001"},
             [], {}, [None, True, False, -1, 1e-07, [], {"": {}}], "\u2028"]
    pairs = [[json.dumps(text, ensure_ascii=False, separators=(",", ":")), json.dumps(text)] for text in texts]
    pairs.append([json.dumps(texts[0], indent=4), json.dumps(texts[0])])
    (DATA / "json.txt").write_text("".join(f"{len(a.encode())} {len(b)}\n{a}{b}\n" for a, b in pairs))


if __name__ == "__main__":
    main()
