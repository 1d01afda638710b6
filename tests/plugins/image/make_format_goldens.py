"""Makes formats/*: small pictures in every format that is read beside plain PNG, and formats/goldens.txt,
what Pillow reads from them in the way of ComfyUI's LoadImage.

    python make_format_goldens.py        (needs Pillow with AVIF, numpy)

A line of goldens.txt: file, pictures, width, height, where the alpha of the first comes from (none,
channel, palette, key), the greatest difference of a sample that is allowed, RGB of all pictures, alpha of
all or "-", both compressed by zlib, as hex.
"""
import io
import random
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, ImageSequence

HERE = Path(__file__).parent / "formats"
RNG = random.Random(7)


def smooth(size, channels, phase=0.0):
    """Gradients and a few edges: what lossy formats keep."""
    w, h = size
    y, x = np.mgrid[0:h, 0:w].astype(float)
    planes = [127 + 90 * np.sin((x * (1 + c) + y * (2 - c)) / 9 + c + phase) for c in range(channels)]
    out = np.stack(planes, -1)
    out[: h // 3, : w // 4] = np.array([250, 10, 120, 200])[:channels]
    return np.clip(out, 0, 255).astype(np.uint8)


def rgb(size=(23, 17), phase=0.0):
    return Image.fromarray(smooth(size, 3, phase))


def rgba(size=(23, 17), phase=0.0):
    return Image.fromarray(smooth(size, 4, phase), "RGBA")


def grey(size=(23, 17)):
    return Image.fromarray(smooth(size, 1)[..., 0])


def save(name, image, **options):
    image.save(HERE / name, **options)


def exif(orientation):
    block = Image.Exif()
    block[0x0112] = orientation
    return block


def jpegs():
    save("rgb.jpg", rgb(), quality=90, subsampling=0)
    save("rgb_420.jpg", rgb(), quality=75, subsampling=2)
    save("rgb_progressive.jpg", rgb(), quality=80, progressive=True)
    save("grey.jpg", grey(), quality=90)
    save("cmyk.jpg", rgb().convert("CMYK"), quality=95)
    for orientation in (3, 6, 7):
        save(f"turned{orientation}.jpg", rgb((9, 5)), quality=95, subsampling=0, exif=exif(orientation))
    first = io.BytesIO()
    rgb((11, 8)).save(first, "MPO", save_all=True, append_images=[rgb((11, 8), 2.0)], quality=90)
    (HERE / "two_pictures.mpo").write_bytes(first.getvalue())


def webps():
    save("lossy.webp", rgb(), quality=85)
    save("lossless.webp", rgb(), lossless=True)
    save("alpha.webp", rgba(), lossless=True, exact=True)
    save("turned6.webp", rgb((9, 5)), lossless=True, exif=exif(6))
    save("moving.webp", rgb((12, 9)), lossless=True, save_all=True, duration=100,
         append_images=[rgb((12, 9), 1.0), rgb((12, 9), 2.0)])
    save("moving_alpha.webp", rgba((12, 9)), lossless=True, exact=True, save_all=True, duration=100,
         append_images=[rgba((12, 9), 1.0), rgba((12, 9), 2.0)])


def lzw(indices, bits):
    """LZW data that only clears: codes of bits + 1, the table is started anew before it grows."""
    clear, end, out, codes = 1 << bits, (1 << bits) + 1, 0, []
    for i, index in enumerate(indices):
        if i % ((1 << bits) - 2) == 0:
            codes.append(clear)
        codes.append(index)
    codes.append(end)
    for i, code in enumerate(codes):
        out |= code << (i * (bits + 1))
    data = out.to_bytes((len(codes) * (bits + 1) + 7) // 8, "little")
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255))
    return bytes([bits]) + blocks + b"\0"


def gif_frame(box, indices, *, transparent=None, disposal=0, palette=None, interlaced=False):
    x, y, w, h = box
    out = b"!\xf9\x04" + bytes([disposal << 2 | (transparent is not None)]) + b"\x0a\0"
    out += bytes([transparent or 0, 0])
    flags = (0x80 | 3 if palette else 0) | (0x40 if interlaced else 0)
    out += b"," + struct.pack("<HHHHB", x, y, w, h, flags) + (bytes(palette) if palette else b"")
    if interlaced:
        order = [r for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for r in range(first, h, step)]
        indices = [v for r in order for v in indices[r * w:(r + 1) * w]]
    return out + lzw(indices, 4)


def gif(name, size, frames, palette, background=0):
    flags = 0x80 | 3 if palette else 0
    out = b"GIF89a" + struct.pack("<HHBBB", *size, flags, background, 0) + bytes(palette or [])
    (HERE / name).write_bytes(out + b"".join(frames) + b";")


def gifs():
    palette = [RNG.randint(0, 255) for _ in range(48)]
    other = [RNG.randint(0, 255) for _ in range(48)]

    def noise(w, h):
        return [RNG.randint(0, 15) for _ in range(w * h)]

    size = (13, 11)
    gif("plain.gif", size, [gif_frame((0, 0, *size), noise(*size))], palette)
    gif("interlaced.gif", size, [gif_frame((0, 0, *size), noise(*size), interlaced=True)], palette)
    gif("transparent.gif", size, [gif_frame((0, 0, *size), noise(*size), transparent=5)], palette)
    gif("part.gif", size, [gif_frame((3, 2, 6, 7), noise(6, 7), transparent=4)], palette)
    gif("part_opaque.gif", size, [gif_frame((3, 2, 6, 7), noise(6, 7))], palette)
    gif("greys.gif", size, [gif_frame((0, 0, *size), noise(*size))], None)
    gif("moving.gif", size, [
        gif_frame((0, 0, *size), noise(*size)),
        gif_frame((2, 1, 5, 6), noise(5, 6), palette=other),
        gif_frame((4, 3, 8, 8), noise(8, 8), transparent=3)], palette)
    for name, clear in (("disposed.gif", 2), ("disposed_opaque.gif", None)):
        gif(name, size, [
            gif_frame((0, 0, *size), noise(*size), transparent=clear, disposal=1),
            gif_frame((2, 1, 5, 6), noise(5, 6), transparent=clear, disposal=2),
            gif_frame((4, 3, 8, 8), noise(8, 8), transparent=clear, disposal=3, palette=other),
            gif_frame((0, 0, 4, 4), noise(4, 4), transparent=clear, disposal=0)], palette, background=7)
    gif("grows.gif", (6, 5), [gif_frame((0, 0, 8, 7), noise(8, 7)),
                              gif_frame((1, 1, 3, 3), noise(3, 3))], palette)


def bmps():
    def bmp(name, size, bits, rows, *, palette=(), masks=(), compression=0, top_down=False, core=False):
        w, h = size
        if core:
            header = struct.pack("<IHHHH", 12, w, h, 1, bits)
            colours = b"".join(bytes(c[::-1]) for c in palette)
        else:
            length = 40 if len(masks) < 4 else 56
            header = struct.pack("<IiiHHIIiiII", length, w, -h if top_down else h, 1, bits, compression,
                                 len(rows), 2835, 2835, len(palette), 0)
            colours = b"".join(struct.pack("<I", m) for m in masks)
            colours += b"".join(bytes(c[::-1]) + b"\0" for c in palette)
        start = 14 + len(header) + len(colours)
        head = b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start)
        (HERE / name).write_bytes(head + header + colours + rows)

    def padded(row):
        return row + b"\0" * (-len(row) % 4)

    size = w, h = 11, 6
    for bits in (1, 4, 8):
        palette = [tuple(RNG.randint(0, 255) for _ in range(3)) for _ in range(1 << min(bits, 5))]
        rows = b""
        for _ in range(h):
            text = "".join(format(RNG.randrange(len(palette)), f"0{bits}b") for _ in range(w))
            text += "0" * (-len(text) % 8)
            rows += padded(bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8)))
        bmp(f"palette{bits}.bmp", size, bits, rows, palette=palette)
        if bits == 8:
            bmp("core8.bmp", size, bits, rows, palette=palette + [(0, 0, 0)] * 224, core=True)
    for name, bits, masks, top_down in (
            ("rgb15.bmp", 16, (), False), ("rgb24.bmp", 24, (), False), ("rgb32.bmp", 32, (), True),
            ("masks565.bmp", 16, (0xf800, 0x7e0, 0x1f), False),
            ("masks32.bmp", 32, (0xff0000, 0xff00, 0xff, 0xff000000), False)):
        rows = b"".join(padded(RNG.randbytes(w * bits // 8)) for _ in range(h))
        bmp(name, size, bits, rows, masks=masks, compression=3 if masks else 0, top_down=top_down)
    palette = [tuple(RNG.randint(0, 255) for _ in range(3)) for _ in range(16)]
    # Runs, pixels one by one, a row that ends early, the end of each row, the end.
    row8 = [5, 3, 6, 9, 0, 0, 0, 5, 1, 2, 3, 4, 5, 0, 6, 7, 0, 0, 11, 8, 0, 0, 11, 1, 0, 0, 4, 6, 0, 3, 7, 7, 2, 0,
            4, 9, 0, 0, 11, 2, 0, 1]
    bmp("runs8.bmp", size, 8, bytes(row8), palette=palette, compression=1)
    row4 = [11, 0x3a, 0, 0, 0, 5, 0x12, 0x34, 0x50, 0, 6, 0x77, 0, 0, 11, 0x8c, 0, 0, 11, 0x11, 0, 0, 5, 0x21, 6, 0x99,
            0, 0, 11, 0x4f, 0, 1]
    bmp("runs4.bmp", size, 4, bytes(row4), palette=palette, compression=2)


def tiffs():
    save("plain.tif", rgb())
    save("lzw.tif", rgb(), compression="tiff_lzw")
    save("deflate.tif", rgba(), compression="tiff_adobe_deflate")
    save("jpeg.tif", rgb((32, 24)), compression="jpeg", quality=90)
    save("one_bit.tif", grey().convert("1"), compression="group4")
    save("palette.tif", rgb().quantize(16), compression="tiff_lzw")
    save("cmyk.tif", rgb().convert("CMYK"), compression="tiff_lzw")
    wide = (smooth((13, 9), 1)[..., 0].astype(np.uint16) * 300)
    save("wide_grey.tif", Image.fromarray(wide))
    save("int_grey.tif", Image.fromarray(smooth((13, 9), 1)[..., 0].astype(np.int32) * 400 - 9000))
    save("float_grey.tif", Image.fromarray(smooth((13, 9), 1)[..., 0].astype(np.float32) * 1.3 - 20))
    save("grey_alpha.tif", rgba().convert("LA"))
    save("pages.tif", rgb((12, 9)), compression="tiff_lzw", save_all=True,
         append_images=[rgb((12, 9), 1.0), rgb((7, 9)), rgb((12, 9), 2.0)])
    save("turned6.tif", rgb((9, 5)), tiffinfo={274: 6})
    save("tiles.tif", rgb((40, 37)), compression="tiff_adobe_deflate",
         tiffinfo={322: 16, 323: 16})
    # 16 bits a channel, big-endian, which Pillow reads but does not write.
    size = w, h = 7, 5
    data = b"".join(struct.pack(">HHH", *(RNG.randint(0, 65535) for _ in range(3))) for _ in range(w * h))
    entries = [(256, 3, 1, w << 16), (257, 3, 1, h << 16), (258, 3, 3, 0), (259, 3, 1, 1 << 16),
               (262, 3, 1, 2 << 16), (273, 4, 1, 0), (277, 3, 1, 3 << 16), (278, 3, 1, h << 16),
               (279, 4, 1, len(data))]
    base = 8 + 2 + 12 * len(entries) + 4
    out = b"MM\0*" + struct.pack(">IH", 8, len(entries))
    for tag, kind, count, value in entries:
        value = {258: base, 273: base + 6}.get(tag, value)
        out += struct.pack(">HHII", tag, kind, count, value)
    (HERE / "wide_rgb.tif").write_bytes(out + b"\0" * 4 + struct.pack(">HHH", 16, 16, 16) + data)


def avifs():
    save("rgb.avif", rgb((32, 24)), quality=95, subsampling="4:4:4")
    save("alpha.avif", rgba((32, 24)), quality=95)
    save("turned.avif", rgb((32, 24)), quality=95, subsampling="4:4:4", exif=exif(6))
    save("mirrored.avif", rgb((32, 24)), quality=95, subsampling="4:4:4", exif=exif(5))
    save("moving.avif", rgb((32, 24)), quality=90, save_all=True, append_images=[rgb((32, 24), 1.0)])


def apngs():
    save("moving.png", rgb((12, 9)), save_all=True, duration=100,
         append_images=[rgb((12, 9), 1.0), rgb((12, 9), 2.0)])
    for disposal in (0, 1):  # Pillow forgets what was there before a picture that it blends
        pictures = [rgba((12, 9), i * 0.7) for i in range(4)]
        for i, picture in enumerate(pictures[1:]):  # differ in a part only, partly transparent
            clear = Image.new("RGBA", picture.size)
            clear.paste(picture.crop((i, i, i + 6, i + 5)), (i, i))
            pictures[i + 1] = clear
        save(f"over{disposal}.png", pictures[0], save_all=True, duration=100, blend=1,
             disposal=disposal, append_images=pictures[1:])
    save("apart.png", rgb((12, 9)), save_all=True, default_image=True,
         append_images=[rgb((12, 9), 1.0), rgb((12, 9), 2.0)])
    save("turned6.png", rgb((9, 5)), save_all=True, append_images=[rgb((9, 5), 1.0)], exif=exif(6))


def workflow_exif():
    """The EXIF block of a WebP file with a workflow, as ComfyUI makes it."""
    block = Image.Exif()
    block[0x0110] = 'prompt:{"1": {}}'
    block[0x010F] = 'workflow:{"nodes": []}'
    block[0x010E] = "x:1"
    (HERE / "workflow.exif").write_bytes(block.tobytes()[6:])


def read(path):
    """What LoadImage makes of a file before it divides by 255."""
    opened = Image.open(path)
    colours, alphas, kinds = [], [], []
    for image in ImageSequence.Iterator(opened):
        image = ImageOps.exif_transpose(image)
        has_key = image.mode != "P" and "transparency" in image.info and "A" not in image.getbands()
        kind = ("channel" if "A" in image.getbands() else "key" if has_key
                else "palette" if image.mode == "P" and "transparency" in image.info else "none")
        alpha = np.array(image.convert("RGBA").getchannel("A")) if kind != "none" else None
        if image.mode in ("I", "I;16", "I;16B"):
            image = image.convert("I").point(lambda v: v * (1 / 255))
        picture = np.array(image.convert("RGB"))
        if colours and picture.shape != colours[0].shape:
            continue
        colours.append(picture)
        alphas.append(alpha)
        kinds.append(kind)
        if opened.format == "MPO":
            break
    return np.stack(colours), kinds[0], np.stack(alphas) if alphas[0] is not None else None


def main():
    HERE.mkdir(exist_ok=True)
    for make in (jpegs, webps, gifs, bmps, tiffs, avifs, apngs):
        make()
    workflow_exif()
    lines = []
    for path in sorted(HERE.iterdir()):
        if path.suffix in (".txt", ".exif"):
            continue
        colours, kind, alpha = read(path)
        allowed = 2 if path.suffix == ".avif" else 1 if path.name == "jpeg.tif" else 0
        n, h, w, _ = colours.shape
        lines.append(f"{path.name} {n} {w} {h} {kind} {allowed} "
                     f"{zlib.compress(colours.tobytes(), 9).hex()} "
                     + ("-" if alpha is None else zlib.compress(alpha.tobytes(), 9).hex()))
        print(lines[-1][:60])
    (HERE / "goldens.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
