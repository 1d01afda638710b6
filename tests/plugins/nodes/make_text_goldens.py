"""Writes text_goldens.safetensors and text_cases.json beside this file: texts and boxes that Pillow draws on pictures, with
DejaVu Sans and Pillow's basic layout.

    make_text_goldens.py [FONT]        (needs torch, numpy, Pillow, safetensors; FONT: DejaVuSans.ttf)

FreeType 2.12 and 2.14 make the same letters.
"""
import json
import os
import sys

import numpy as np
import torch
from PIL import Image, ImageColor, ImageDraw, ImageEnhance, ImageFont
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
FONT = sys.argv[1] if len(sys.argv) > 1 else "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
LETTERS = 1e-6
goldens, cases = {}, []


def rand(name, *shape, seed):
    goldens["in." + name] = torch.rand(*shape, generator=torch.Generator().manual_seed(seed))
    return goldens["in." + name].numpy()


def case(node, inputs, output, picture, tolerance):
    golden = f"{node}.{sum(c['class'] == node for c in cases)}"
    goldens[golden] = torch.as_tensor(np.ascontiguousarray(picture)).float()
    cases.append({"class": node, "inputs": inputs, "outputs": [[output, golden, tolerance]], "more": {}})


def font(pixels):
    return ImageFont.truetype(FONT, pixels, layout_engine=ImageFont.Layout.BASIC)


def broken(text, face, most):
    """Lines no longer than that; words that are longer are cut."""
    lines = []
    for given in text.split("\n"):
        line, rest = "", given.split()
        if not rest:
            lines.append("")
        while rest:
            word = rest.pop(0)
            if face.getlength(word) > most and len(word) > 1:
                fits = max([n for n in range(1, len(word)) if face.getlength(word[:n]) <= most] or [1])
                lines += ([line] if line else []) + [word[:fits]]
                line, rest = "", [word[fits:]] + rest
            elif line and face.getlength(line + " " + word) > most:
                lines.append(line)
                line = word
            else:
                line = line + " " + word if line else word
        if line:
            lines.append(line)
    return lines


def overlay(pictures, text, percent, colour, position, align, outline):
    height, width = pictures.shape[1:3]
    layer = Image.new("RGBA", (width, height), (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    margin = round(0.01 * min(width, height))
    size = max(1, round(percent / 100 * height))
    least = min(size, max(10, round(0.02 * height)))
    while True:
        face = font(size)
        stroke = max(1, round(size * 0.04)) if outline else 0
        block = "\n".join(broken(text.replace("\\n", "\n"), face, max(1, width - 2 * margin)))
        one, two = (draw.multiline_textbbox((0, 0), t, font=face, spacing=0, stroke_width=stroke) for t in ("Ay", "Ay\nAy"))
        spacing = round(size * 1.2 - ((two[3] - two[1]) - (one[3] - one[1])))
        box = draw.multiline_textbbox((0, 0), block, font=face, spacing=spacing, stroke_width=stroke)
        if box[3] - box[1] <= max(1, height - 2 * margin) or size <= least:
            break
        size = max(least, int(size * 0.9))
    anchor, x = {"left": ("l", margin), "center": ("m", width / 2), "right": ("r", width - margin)}[align]
    y = height - margin - box[3] if position == "bottom" else margin - box[1]
    fill = ImageColor.getrgb(colour)
    draw.multiline_text((x, y), block, font=face, fill=fill + (255,) * (4 - len(fill)), anchor=anchor + "a", align=align,
                        spacing=spacing, stroke_width=stroke, stroke_fill=(0, 0, 0, 255) if outline else None)
    over = np.asarray(layer, np.float32) / 255
    rgb, alpha = over[..., :3], over[..., 3:]
    if pictures.shape[-1] == 3:
        return pictures * (1 - alpha) + rgb * alpha
    behind = pictures[..., 3:]
    whole = alpha + (1 - alpha) * behind
    mixed = rgb * alpha + (1 - alpha) * pictures[..., :3] * behind
    return np.concatenate([np.where(whole > 1e-5, mixed / np.maximum(whole, 1e-5), 0).clip(0, 1), whole + 0 * pictures[..., :1]], -1)


def overlays():
    wide, tall, clear = rand("wide", 1, 36, 72, 3, seed=1), rand("tall", 1, 60, 36, 3, seed=2), rand("clear", 1, 30, 48, 4, seed=3)
    for name, pictures, text, percent, colour, position, align, outline in (
        ("wide", wide, "AVATAR, Too; gyp", 25.0, "#ffffff", "top", "left", True),
        ("wide", wide, "two\\nlines of it", 30.0, "#20C0ff", "bottom", "right", False),
        ("wide", wide, "first\n\nthird", 20.0, "#f80", "bottom", "center", True),
        ("wide", wide, "\u00c4\u00df\u0436 \u00e9", 50.0, "#ff000080", "top", "center", True),
        ("tall", tall, "Donaudampfschifffahrt", 20.0, "#ffffff", "top", "left", True),
        ("tall", tall, "as many words as do not fit at all in it", 25.0, "#00ff00", "top", "left", True),
        ("clear", clear, "glass", 40.0, "#ffff00", "bottom", "left", True),
        ("clear", clear, "glass", 40.0, "#ffff00", "bottom", "left", False),
    ):
        case("TextOverlay", {"images": [name, 0], "text": text, "font_size": percent, "color": colour, "position": position,
                             "align": align, "outline": outline},
             "images", overlay(pictures, text, percent, colour, position, align, outline), LETTERS)


def boxes():
    pair = rand("pair", 2, 40, 80, 3, seed=4)
    colours = {"person": (255, 0, 0), "car": (0, 0, 255), None: (255, 0, 0)}

    def drawn(picture, own):
        image = Image.fromarray((picture * 255).astype(np.uint8))
        draw = ImageDraw.Draw(image)
        for box in sorted(own, key=lambda b: b.get("score", 1.0)):
            label = box.get("label") if box.get("label") in colours else None
            colour = colours[label]
            corner = [box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]]
            draw.rectangle(corner, outline=colour, width=3)
            if label is not None:
                draw.text((int(box["x"] + 2), int(box["y"] + 2)), f"{label} {box.get('score', 1.0):.2f}", fill=colour, font=font(16))
        return np.asarray(image, np.float32) / 255

    person = {"x": 3.5, "y": 2, "width": 70.25, "height": 30, "label": "person", "score": 0.876}
    car = {"x": 3, "y": 9, "width": 60, "height": 25, "label": "car", "score": 0.4}
    plain = {"x": 60, "y": 10, "width": 20, "height": 50, "label": "dragon"}
    small = {"x": 10, "y": 40, "width": 1, "height": 1}
    for given, lists in ((person, [[person], [person]]), ([person, car, plain, small], [[person, car, plain, small]] * 2),
                         ([[plain], [small]], [[plain], [small]]), ([[], [small]], [[], [small]])):
        case("DrawBBoxes", {"bboxes": {"__value__": given}, "image": ["pair", 0]}, "out_image",
             np.stack([drawn(p, own) for p, own in zip(pair, lists)]), LETTERS)
    case("DrawBBoxes", {"bboxes": {"__value__": [plain, small]}}, "out_image", drawn(np.zeros((60, 80, 3)), [plain, small])[None], 0.0)


def previews():
    grey = goldens["in.wide"].numpy()[0]
    regions = [{"x": 6, "y": 6, "width": 44, "height": 30, "metadata": {"type": "obj", "text": "", "desc": "", "palette": ["#ff8000", "#0000ff", "#123"]}},
               {"x": 108, "y": 76, "width": -56, "height": -48, "metadata": {"type": "text", "text": "Hi", "desc": "red", "palette": []}}]

    def drawn(image, scale_w, scale_h):
        draw = ImageDraw.Draw(image)
        width, height = image.size
        size = max(10, round(height / 64))
        for i, box in enumerate(regions):
            palette = box["metadata"]["palette"]
            hexed = lambda c: tuple(int(c[k:k + 2], 16) for k in (1, 3, 5)) if len(c) == 7 else (255, 255, 255)
            colour = hexed(palette[0]) if palette else (140, 140, 140)
            x = sorted(round(v / scale_w * width) for v in (box["x"], box["x"] + box["width"]))
            y = sorted(round(v / scale_h * height) for v in (box["y"], box["y"] + box["height"]))
            draw.rectangle([x[0], y[0], x[1], y[1]], outline=colour, width=2)
            part = (x[1] - x[0]) / max(1, len(palette))
            for k, c in enumerate(palette):
                draw.rectangle([x[0] + round(k * part), y[0], x[0] + round((k + 1) * part), y[0] + max(5, size // 2)], fill=hexed(c))
            tag = f"{i + 1:02}"
            draw.rectangle([x[0], y[0], x[0] + int(font(max(9, size - 2)).getlength(tag)) + 6, y[0] + size + 2], fill=colour)
            bright = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]
            draw.text((x[0] + 3, y[0] + 1), tag, fill=(0, 0, 0) if bright > 140 else (255,) * 3, font=font(max(9, size - 2)))
            if box["metadata"]["type"] == "text":
                lines = broken('"Hi" \u2014 red', font(size), x[1] - x[0] - 8)
                for k, line in enumerate(lines):
                    if (top := y[0] + size + 5 + k * (size + 2)) <= y[1]:
                        draw.text((x[0] + 4, top), line, fill=colour, font=font(size))
        return np.asarray(image, np.float32)[None] / 255

    empty = Image.new("RGB", (112, 80), (32, 32, 32))
    inputs = {"width": 112, "height": 80, "editor_state": {"__value__": regions}}
    case("CreateBoundingBoxes", inputs, "preview", drawn(empty, 112, 80), LETTERS)
    behind = ImageEnhance.Brightness(Image.fromarray((grey * 255).astype(np.uint8))).enhance(0.25)
    case("CreateBoundingBoxes", {**inputs, "background": ["wide", 0]}, "preview", drawn(behind, 112, 80), LETTERS)


overlays()
boxes()
previews()
save_file(goldens, os.path.join(HERE, "text_goldens.safetensors"))
with open(os.path.join(HERE, "text_cases.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
