"""Writes composite_goldens.safetensors and composite_cases.json beside this file: layers composited with Pillow and NumPy, and
parts of pictures in bounding boxes, resized with PyTorch.

    make_composite_goldens.py        (needs torch, numpy, Pillow, safetensors)
"""

import hashlib
import json
import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
goldens, cases = {}, []
CLOSE = 2e-5  # powers of f32 numbers, there and back
MODES = ("normal multiply screen overlay darken lighten color-dodge color-burn hard-light soft-light difference exclusion "
         "linear-dodge linear-burn vivid-light pin-light linear-light hard-mix subtract divide grain-extract grain-merge hue "
         "saturation color luminosity").split()
LINEAR = {"normal", "multiply", "darken", "lighten", "linear-dodge", "subtract", "divide", "luminosity"}


def rand(name, *shape, seed):
    goldens["in." + name] = torch.rand(*shape, generator=torch.Generator().manual_seed(seed))
    return goldens["in." + name]


def case(node, inputs, outputs, more):
    number = sum(c["class"] == node for c in cases)
    record = {"class": node, "inputs": inputs, "outputs": [], "more": more}
    for output, (tensor, tolerance) in outputs.items():
        golden = f"{node}.{number}.{output}"
        goldens[golden] = torch.as_tensor(tensor).float().contiguous().clone()
        record["outputs"].append([output, golden, tolerance])
    cases.append(record)


def linear(c):
    return np.where(c <= 0.04045, c / 12.92, ((np.maximum(c, 0) + 0.055) / 1.055) ** 2.4)


def srgb(c):
    return np.where(c <= 0.0031308, 12.92 * c, 1.055 * np.maximum(c, 0) ** (1 / 2.4) - 0.055)


def divide(a, b):
    return np.divide(a, b, out=np.zeros_like(a), where=np.abs(b) >= 1e-6)


def blend(mode, i, l):
    lo, hi = (lambda p: p.min(-1, keepdims=True)), (lambda p: p.max(-1, keepdims=True))
    dodge = lambda i, l: np.where(i <= 0, 0, np.where(1 - l <= 1e-6, 1, np.minimum(divide(i, 1 - l), 1)))
    burn = lambda i, l: np.where(i >= 1, 1, np.where(l <= 1e-6, 0, 1 - np.minimum(divide(1 - i, l), 1)))
    lum = lambda p: (p * np.array([0.2224884, 0.71690369, 0.06060791])).sum(-1, keepdims=True)
    if mode == "normal":
        return l
    if mode == "multiply":
        return i * l
    if mode == "screen":
        return 1 - (1 - i) * (1 - l)
    if mode == "overlay":
        return np.where(i < 0.5, 2 * i * l, 1 - 2 * (1 - l) * (1 - i))
    if mode == "darken":
        return np.minimum(i, l)
    if mode == "lighten":
        return np.maximum(i, l)
    if mode == "color-dodge":
        return dodge(i, l)
    if mode == "color-burn":
        return burn(i, l)
    if mode == "hard-light":
        return np.where(l > 0.5, np.minimum(1 - (1 - i) * (1 - (l - 0.5) * 2), 1), np.minimum(i * l * 2, 1))
    if mode == "soft-light":
        return (1 - i) * (i * l) + i * (1 - (1 - i) * (1 - l))
    if mode == "difference":
        return np.abs(i - l)
    if mode == "exclusion":
        return 0.5 - 2 * (i - 0.5) * (l - 0.5)
    if mode == "linear-dodge":
        return i + l
    if mode == "linear-burn":
        return i + l - 1
    if mode == "vivid-light":
        return np.where(l <= 0.5, burn(i, 2 * l), dodge(i, 2 * l - 1))
    if mode == "pin-light":
        return np.where(l > 0.5, np.maximum(i, 2 * (l - 0.5)), np.minimum(i, 2 * l))
    if mode == "linear-light":
        return i + 2 * l - 1
    if mode == "hard-mix":
        return np.where(i + l < 1, 0.0, 1.0)
    if mode == "subtract":
        return np.maximum(i - l, 0)
    if mode == "divide":
        return np.clip(i / np.maximum(l, 1e-6), 0, 1)
    if mode == "grain-extract":
        return i - l + 0.5
    if mode == "grain-merge":
        return i + l - 0.5
    di, dl = hi(i) - lo(i), hi(l) - lo(l)
    if mode == "hue":
        ratio = divide(di, dl)
        return np.where(dl <= 1e-6, i, l * ratio + hi(i) - hi(l) * ratio)
    if mode == "saturation":
        ratio = divide(divide(dl, hi(l)) * hi(i), di)
        return np.where(di <= 1e-6, hi(i), i * ratio + (1 - ratio) * hi(i))
    if mode == "color":
        a, b = (lo(i) + hi(i)) / 2, (lo(l) + hi(l)) / 2
        room = np.minimum(a, 1 - a)
        ratio = divide(room, np.minimum(b, 1 - b))
        offset = np.where(a > 0.5, 1 - 2 * room, 0) + np.where(b > 0.5, 2 * room - ratio, 0)
        return np.where((b <= 1e-6) | (1 - b <= 1e-6), a, l * ratio + offset)
    return i * divide(lum(l), lum(i))


def put(mode, below, layer, opacity):
    i, l = below[..., :3], layer[..., :3]
    mixed = blend(mode, i, l) if mode in LINEAR else linear(blend(mode, srgb(i), srgb(l)))
    under, alpha = below[..., 3:], layer[..., 3:] * opacity
    if mode != "normal":
        rgb = np.where((under == 0) | (alpha == 0), i, mixed * alpha + i * (1 - alpha))
        return np.concatenate([rgb, under], -1)
    new = alpha + (1 - alpha) * under
    ratio = divide(alpha, new)
    rgb = ratio * (under * (mixed - l) + l - i) + i
    rgb = np.where((alpha == 0) | (new == 0), i, np.where(under == 0, l, rgb))
    return np.concatenate([rgb, new], -1)


def to_bytes(x):
    return np.clip(np.rint(x * np.float32(255)), 0, 255).astype(np.uint8)


def alpha_of(image, mask):
    alpha = image[..., 3] if image.shape[-1] == 4 else None
    if mask is None:
        return alpha
    if mask.shape[1:] != image.shape[1:3]:
        mask = F.interpolate(mask[:, None], size=image.shape[1:3], mode="bilinear")[:, 0]
    kept = (1 - mask).clamp(0, 1)
    return kept if alpha is None else alpha * kept


def composite(canvas_size, layers, background=None):
    """layers: (image, mask, x, y, w, h, radians, opacity, mode, flip_h, flip_v) from below to above."""
    canvas = np.zeros((canvas_size[1], canvas_size[0], 4))
    if background is not None:
        colour, opacity = background
        fill = np.concatenate([linear(np.array(colour) / 255), [1.0]])
        canvas = put("normal", canvas, np.broadcast_to(fill, canvas.shape), opacity)
    for image, mask, x, y, w, h, radians, opacity, mode, flip_h, flip_v in layers:
        alpha = alpha_of(image, mask)
        rgb = to_bytes(image[0, ..., :3].numpy())
        a = np.full(rgb.shape[:2], 255, np.uint8) if alpha is None else to_bytes(alpha[0].numpy())
        img = Image.fromarray(np.dstack([rgb, a]), "RGBA")
        if flip_h:
            img = img.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if flip_v:
            img = img.transpose(Image.Transpose.FLIP_TOP_BOTTOM)
        if img.size != (round(w), round(h)):
            img = img.resize((round(w), round(h)), Image.Resampling.LANCZOS)
        if radians != 0:
            img = img.rotate(-math.degrees(radians), expand=True, resample=Image.Resampling.BICUBIC, fillcolor=(0, 0, 0, 0))
        corners = [(x + w / 2 + dx * math.cos(radians) - dy * math.sin(radians),
                    y + h / 2 + dx * math.sin(radians) + dy * math.cos(radians))
                   for dx, dy in ((-w / 2, -h / 2), (w / 2, -h / 2), (w / 2, h / 2), (-w / 2, h / 2))]
        bx, by = math.floor(min(c[0] for c in corners)), math.floor(min(c[1] for c in corners))
        bw = max(1, math.ceil(max(c[0] for c in corners)) - bx)
        bh = max(1, math.ceil(max(c[1] for c in corners)) - by)
        bytes_ = np.asarray(img).astype(np.float64) / 255
        pixels = np.concatenate([linear(bytes_[..., :3]), bytes_[..., 3:]], -1)
        whole = np.zeros((canvas.shape[0] + 200, canvas.shape[1] + 200, 4))  # a border around the canvas
        ox, oy = bx + (bw - img.width) // 2 + 100, by + (bh - img.height) // 2 + 100
        whole[oy : oy + img.height, ox : ox + img.width] = pixels
        keep = np.zeros(whole.shape[:2], bool)
        keep[by + 100 : by + bh + 100, bx + 100 : bx + bw + 100] = True
        inner = np.s_[100 : 100 + canvas.shape[0], 100 : 100 + canvas.shape[1]]
        canvas = np.where(keep[inner][..., None], put(mode, canvas, whole[inner], opacity), canvas)
    out = np.concatenate([srgb(np.clip(canvas[..., :3], 0, 1)), np.clip(canvas[..., 3:], 0, 1)], -1)[None]
    if (out[..., 3] >= 1 - 1e-3).all():
        return out[..., :3], np.zeros(out.shape[:3])
    return out, 1 - out[..., 3]


def add(image, more_inputs=None, below=None):
    inputs = {"image": [image, 0]} | (more_inputs or {}) | ({"layers": [below, 0]} if below else {})
    return {"class_type": "AddLayer", "inputs": inputs}


def composited(size, layers, more, state=None, background=None, last="l2"):
    image, mask = composite(size, layers, background)
    case("ImageCompositor", {"layers": [last, 0], "compositor": state or {}}, {"IMAGE": (image, CLOSE), "MASK": (mask, CLOSE)},
         more)


def compositors():
    base, top, mask = rand("base", 1, 8, 10, 3, seed=1), rand("top", 1, 6, 7, 4, seed=2), rand("m", 1, 3, 4, seed=3)
    below = (base, None, 0, 0, 10, 8, 0.0, 1.0, "normal", False, False)
    for mode in MODES:
        more = {"l1": add("base"), "l2": add("top", {"mask": ["m", 0], "x": 2, "y": -1, "opacity": 0.75, "blend_mode": mode}, "l1")}
        composited((10, 8), [below, (top, mask, 2, -1, 7, 6, 0.0, 0.75, mode, False, False)], more)
    # Turned, larger, flipped, behind the other one, on a transparent canvas.
    for degrees, flips in ((30.0, {"flip_h": True}), (-90.0, {"flip_v": True}), (180.0, {}), (-200.5, {"flip_h": True, "flip_v": True})):
        radians = degrees * (math.pi / 180)
        more = {"l1": add("base", {"x": 3, "y": 4}),
                "l2": add("top", {"x": 1, "y": 2, "rotation": degrees, "width": 11, "height": 9, "z_index": -1, **flips}, "l1")}
        layer = (top, None, 1, 2, 11, 9, radians, 1.0, "normal", flips.get("flip_h", False), flips.get("flip_v", False))
        corners = [(1 + 5.5 + dx * math.cos(radians) - dy * math.sin(radians), 2 + 4.5 + dx * math.sin(radians) + dy * math.cos(radians))
                   for dx in (-5.5, 5.5) for dy in (-4.5, 4.5)]
        size = max(13, math.ceil(max(c[0] for c in corners))), max(12, math.ceil(max(c[1] for c in corners)))
        composited(size, [layer, (base, None, 3, 4, 10, 8, 0.0, 1.0, "normal", False, False)], more)
    batch = rand("batch", 2, 5, 6, 3, seed=4)
    boxes = [{"x": 1, "y": 2, "width": 8, "height": 7, "metadata": {"z_index": 9, "name": "one"}},
             {"x": 0, "y": 0, "width": 4, "height": 4, "metadata": {"content_rect": [1, 1, 3, 9]}}]
    for given in (boxes, json.dumps(boxes), [boxes]):
        more = {"boxes": {"class_type": "ComfyPassOrNoneNode", "inputs": {"anything": {"__value__": given}}},
                "l2": {"class_type": "LayersFromBoundingBoxes",
                       "inputs": {"image": ["batch", 0], "bboxes": ["boxes", 0], "canvas_width": 12, "canvas_height": 9}}}
        composited((12, 9), [(batch[1:, 1:5, 1:4], None, 1, 1, 3, 4, 0.0, 1.0, "normal", False, False),
                             (batch[:1], None, 1, 2, 8, 7, 0.0, 1.0, "normal", False, False)], more)
    edited(base, top, mask)


def fingerprint(image, alpha, *rest):
    digest = hashlib.sha256(repr(tuple(image.shape)).encode())
    digest.update(to_bytes(image[0, ..., :3].numpy()).tobytes())
    if alpha is not None:
        digest.update(to_bytes(alpha[0].numpy()).tobytes())
    digest.update(repr(rest).encode())
    return digest.hexdigest()[:16]


def edited(base, top, mask):
    prints = [fingerprint(base, None, 0, 0, 10, 8, 0.0, 1.0, "normal", True, False, False),
              fingerprint(top, alpha_of(top, mask), 2, -1, 7, 6, math.radians(30), 0.5, "screen", True, True, False)]
    more = {"l1": add("base"), "l2": add("top", {"mask": ["m", 0], "x": 2, "y": -1, "opacity": 0.5, "blend_mode": "screen",
                                                 "rotation": 30.0, "flip_h": True}, "l1")}
    state = {"version": 1, "canvas": {"w": 14, "h": 12}, "inputs": prints, "order": [1, 0],
             "background": {"color": "#36C", "opacity": 0.5},
             "layers": [{"opacity": 0.5, "transform": {"x": 3.4, "y": 2.6, "w": 9.5, "h": 7.2, "rotation": 0.3}},
                        {"blend": "normal", "flipV": True, "transform": {"x": 0, "y": 1}}]}
    layers = [(top, mask, 0, 1, 7, 6, 0.0, 1.0, "normal", False, True),
              (base, None, 3.4, 2.6, 9.5, 7.2, 0.3, 0.5, "normal", False, False)]
    composited((14, 12), layers, more, state, ((0x33, 0x66, 0xCC), 0.5))
    stale = state | {"inputs": prints[:1] + ["0" * 16]}
    # As large as the turned layer needs.
    turn = math.radians(30)
    size = (math.ceil(5.5 + 3.5 * math.cos(turn) + 3 * math.sin(turn)), max(8, math.ceil(2 + 3.5 * math.sin(turn) + 3 * math.cos(turn))))
    composited(size, [(base, None, 0, 0, 10, 8, 0.0, 1.0, "normal", False, False),
                      (top, mask, 2, -1, 7, 6, math.radians(30), 0.5, "screen", True, False)], more, stale)


def crops():
    x = rand("scene", 3, 90, 110, 1, seed=7)

    def crop(i, left, top, right, bottom, size, pad):
        part = x[i : i + 1, top:bottom, left:right].permute(0, 3, 1, 2)
        w, h = size
        sw, sh = (w, h)
        if pad:
            scale = min(w / (right - left), h / (bottom - top))
            sw, sh = round((right - left) * scale), round((bottom - top) * scale)
        out = torch.zeros(1, 1, h, w)
        left, top = (w - sw) // 2, (h - sh) // 2
        out[..., top : top + sh, left : left + sw] = F.interpolate(part, size=(sh, sw), mode="area")
        return out.permute(0, 2, 3, 1)

    def node(given, parts, padding=0, pad=False):
        more = {"boxes": {"class_type": "ComfyPassOrNoneNode", "inputs": {"anything": {"__value__": given}}}}
        case("CropByBBoxes", {"image": ["scene", 0], "bboxes": ["boxes", 0], "output_width": 72, "output_height": 64,
                              "padding": padding, "keep_aspect": "pad" if pad else "stretch"},
             {"IMAGE": (torch.cat([crop(*p, (72, 64), pad) for p in parts]) if parts else x, 2e-6)}, more)

    box = lambda x, y, w, h: {"x": x, "y": y, "width": w, "height": h}
    node([[box(10.7, 5, 30.2, 20), box(2, 8, 5, 40)], [], [box(90, 70, 50, 50)]], [(0, 2, 5, 40, 48), (2, 90, 70, 110, 90)])
    node(box(10, 5, 30, 20), [(i, 5, 0, 45, 30) for i in range(3)], 5, True)
    node([[box(200, 200, 5, 5)]], [(i, 41, 9, 68, 36) for i in range(3)])
    node([[]], [])


def quantized(x, colors, dither):
    out = []
    for picture in x:
        img = Image.fromarray((picture[..., :3].numpy() * 255).clip(0, 255).astype(np.uint8))
        palette = img.quantize(colors=colors)
        if dither.startswith("bayer"):
            matrix = np.zeros((1, 1), np.float32)
            for n in range(1, int(math.log2(int(dither[6:]))) + 1):
                m = np.float32(4**n) * matrix
                matrix = np.block([[m - np.float32(1.5), m + np.float32(0.5)], [m + np.float32(1.5), m - np.float32(0.5)]])
                matrix = matrix / np.float32(4**n)
            matrix = np.float32(2 * 256 / (len(palette.getpalette()) // 3)) * matrix + np.float32(0.5)
            h, w = picture.shape[:2]
            tiled = np.tile(matrix, (h // len(matrix) + 1, w // len(matrix) + 1))[:h, :w, None]
            img = Image.fromarray((np.array(img).astype(np.float32) + tiled).clip(0, 255).astype(np.uint8))
        kind = Image.Dither.FLOYDSTEINBERG if dither == "floyd-steinberg" else Image.Dither.NONE
        rgb = np.array(img.quantize(colors=colors, palette=palette, dither=kind).convert("RGB")).astype(np.float32) / 255
        out.append(np.concatenate([rgb, picture[..., 3:].numpy()], -1))
    return np.stack(out)


def quantizers():
    noise, clear = rand("noise", 2, 21, 17, 3, seed=8), rand("clear", 1, 9, 20, 4, seed=9)
    y, x = torch.meshgrid(torch.arange(24.0), torch.arange(18.0), indexing="ij")
    goldens["in.ramp"] = ramp = torch.stack([x / 17, y / 23, (x + y) / 40], -1)[None].contiguous()
    for name, picture, colors in (("noise", noise, 16), ("clear", clear, 7), ("ramp", ramp, 32), ("ramp", ramp, 256), ("ramp", ramp, 1)):
        for dither in ("none", "floyd-steinberg", "bayer-2", "bayer-4", "bayer-8", "bayer-16"):
            if colors > 100 and dither != "floyd-steinberg":
                continue
            case("ImageQuantize", {"image": [name, 0], "colors": colors, "dither": dither},
                 {"IMAGE": (quantized(picture, colors, dither), 0.0)}, {})


compositors()
crops()
quantizers()
save_file(goldens, os.path.join(HERE, "composite_goldens.safetensors"))
with open(os.path.join(HERE, "composite_cases.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
