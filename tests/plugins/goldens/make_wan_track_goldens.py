"""Writes tracks of points, pictures with them, and what a tiny model of Wan 2.1 draws that is told of tracks.

    make_wan_track_goldens.py [OUT]        (default: wan_tracks/ beside this file)

Needs torch, diffusers, transformers, pillow and safetensors from PyPI; runs on the CPU in float32. Neither diffusers nor
transformers has ATI or Wan-Move: what they make of a latent is written down here in PyTorch, from the formulas as ComfyUI
runs them; discs and lines are Pillow's own. All weights follow from the names of their tensors (seeded_weights.py), so only
shapes are written, and what comes out:

    shapes.json             {"flow": {name of the tensor in the publishers' files: shape}}: a model of Wan for pictures; "{0-3}"
                            stands for each of these numbers
    expected.safetensors    "in.one.cross_attn" and "in.two.cross_attn" are texts, "pictures" what a video begins with, "shown"
                            whether there is a track at all at each of 9 frames, as masks;
                            "KIND.path" are the tracks of each of CURVES, by its name;
                            "canvas" is a picture, "drawn.STYLE" what stands there at the frames DRAWN of the tracks
                            "curve" with the masks "shown", in bytes; "discs" half the width of each row of discs of
                            the radii 1 to 128, from their middles on, with it;
                            "ati.NAME.image" and ".mask" are what the model reads beside the point of ATI's tracks,
                            "move.NAME.image" of the tracks "move.path" in Wan-Move; "ati.latent" and "move.latent" the ends of 3 steps of
                            Euler's method with guidance 3, of the noise of seed 7;
                            "told.CLIP.x" is an input of the model, "told.CLIP.out" an output with a row for each step, where what it
                            reads beside x is told of ATI's tracks
    tracks.json             the tracks of both, as tests give them to the nodes
"""

import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_talk_goldens as talk
import make_workflow_goldens

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, HEIGHT, CELL, PLACES = 64, 48, 8, 121
# Of what GenerateTracks makes: frames, tracks, the places of a start, a middle and an end, in parts of 64 x 48 pixels.
CURVES = {
    "line": dict(frames=9, count=3, spread=0.1, start=(0, 0), end=(1, 1), pace="linear"),
    "curve": dict(frames=9, count=4, spread=0.05, start=(0.1, 0.9), middle=(0.3, 0.05), end=(0.95, 0.6), pace="ease_in_out"),
    "slow": dict(frames=7, count=2, spread=0.2, start=(0.5, 0.25), end=(0.25, 0.75), pace="ease_in"),
    "fast": dict(frames=12, count=1, spread=0.2, start=(0.5, 0.25), middle=(0.9, 0.9), end=(0.25, 0.75), pace="ease_out"),
    "still": dict(frames=3, count=3, spread=0.125, start=(0.5, 0.5), end=(0.5, 0.5), pace="constant"),
}
DRAWN = (2, 5, 7)
COLOURS = [(102, 153, 255), (0, 255, 255), (255, 255, 0), (255, 102, 204), (0, 255, 0)]


def time_of(pace, t):
    return {"linear": t, "ease_in": t**2, "ease_out": 1 - (1 - t) ** 2, "ease_in_out": t * t * (3 - 2 * t), "constant": 0 * t}[pace]


def generated(frames, count, spread, start, end, pace, middle=None):
    """(frames, count, 2)"""
    size = torch.tensor([WIDTH, HEIGHT], dtype=torch.float64)
    a, b = (torch.tensor(place, dtype=torch.float64) * size for place in (start, end))
    t = time_of(pace, torch.linspace(0, 1, frames)).double()[:, None]
    if middle is None:
        way, along = a + (b - a) * t, (b - a).expand(frames, 2)
    else:
        m = torch.tensor(middle, dtype=torch.float64) * size
        way = (1 - t) ** 2 * a + 2 * (1 - t) * t * m + t**2 * b
        along = 2 * (1 - t) * (m - a) + 2 * t * (b - m)
    length = along.norm(dim=1, keepdim=True)
    aside = torch.where(length > 0, torch.stack([-along[:, 1], along[:, 0]], 1) / length, torch.tensor([1.0, 0.0]).double())
    steps = (torch.arange(count) - (count - 1) / 2).double() * spread * (WIDTH + HEIGHT) / 2
    return (way[:, None] + aside[:, None] * steps[:, None]).float()


def drawn(picture, path, seen, t, earlier, radius, opacity, line):
    """Of a picture (H, W, 3) and tracks (T, N, 2), by Pillow, as ComfyUI calls it."""
    height, width = picture.shape[:2]
    pixels = path.long()
    discs, ways = (Image.new("RGBA", (width, height), (0, 0, 0, 0)) for _ in range(2))
    for n in range(path.shape[1]):
        if not seen[t, n]:
            continue
        x, y = pixels[t, n].tolist()
        colour = COLOURS[n % 5]
        ImageDraw.Draw(discs).ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour + (int(255 * opacity),))
        back = pixels[max(t - earlier, 0) : t + 1, n].flip(0).tolist()
        lengths = [math.dist(one, two) for one, two in zip(back, back[1:])]
        whole, before = sum(lengths), 0
        for (x0, y0), (x1, y1), length in zip(back, back[1:], lengths):
            steps = max(int(length), 1)
            for i in range(steps if whole > 0 else 0):
                left = 1 - (before + i / steps * length) / whole
                x, y = int(x0 + (x1 - x0) * i / steps), int(y0 + (y1 - y0) * i / steps)
                fill = colour + (int(255 * left * opacity),)
                ImageDraw.Draw(ways).line([(x, y), (x + 1, y)], fill=fill, width=max(int(line * left), 1))
            before += length
    made = (picture * 255).floor().double()
    for over in (discs, ways):
        over = torch.frombuffer(bytearray(over.tobytes()), dtype=torch.uint8).view(height, width, 4).double()
        share = over[..., 3:] / 255
        made = over[..., :3] * share + made * (1 - share)
    return made.floor().to(torch.uint8)


def spread_over(frames):
    """Which of the 121 places each frame behind the first takes."""
    common = math.gcd(PLACES - 1, frames)
    step, times = (PLACES - 1) // common, frames // common
    return [1 + (1 + k * step) // times for k in range(frames)]


def ati(latent, tracks, length, temperature, nearest):
    """latent (C, T, h, w) in the model's units; tracks: lists of (x, y) -> the latent, and how much of each place is told."""
    channels, cells, rows, columns = latent.shape
    places, seen = torch.zeros(len(tracks), PLACES, 2), torch.zeros(len(tracks), PLACES)
    for n, track in enumerate(tracks):
        count = min(len(track), PLACES)
        places[n, :count], seen[n, :count] = torch.tensor(track[:count], dtype=torch.float32), 1
    size = torch.tensor([WIDTH, HEIGHT], dtype=torch.float32)
    places = (places - size / 2) / (min(WIDTH, HEIGHT) / 2)
    least = min(rows, columns)
    ends = torch.tensor([columns / least, rows / least])
    begin = (places[:, 0] / ends).clamp(-1, 1)
    features = F.grid_sample(latent[None, :, 0], begin[None, None], align_corners=False)[0, :, 0].T
    taken = spread_over(length - 1)
    later, there = places[:, taken].unflatten(1, (-1, 4)), seen[:, taken].unflatten(1, (-1, 4))
    middle = (later * there[..., None]).sum(2) / (there.sum(2) + 1e-5)[..., None]  # (N, T - 1, 2)
    x, y = (torch.linspace(-end, end, count) for end, count in zip(ends.tolist(), (columns, rows)))
    grid = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1)  # (h, w, 2)
    distance = (middle.transpose(0, 1)[:, None, None] - grid[None, :, :, None]).square().sum(-1)
    weight = torch.exp(-temperature * distance) * (there.sum(2) > 0).float().T[:, None, None]
    best, which = weight.topk(min(nearest, len(tracks)), -1)
    told = (features[which] * best[..., None]).sum(-2).permute(3, 0, 1, 2)
    whole = best.sum(-1)
    mixed = torch.cat([latent[:, :1], told + latent[:, 1:] * (1 - whole.clamp(0, 1))], 1)
    return mixed, torch.cat([torch.ones(1, rows, columns), whole])


def move(latent, path, seen, strength):
    """latent (C, T, h, w); path (frames, N, 2). Of tracks that meet, the last one counts."""
    before = latent.clone()
    made = latent.clone()
    rows, columns = latent.shape[2:]

    def cell(t, n):
        x, y = path[t, n].tolist()
        inside = seen[t, n] and 0 <= x < WIDTH and 0 <= y < HEIGHT
        return (int(y // CELL), int(x // CELL)) if inside else None

    for t in range(1, latent.shape[1]):
        if 4 * t >= len(path):
            break
        for n in range(path.shape[1]):
            to, start = cell(4 * t, n), cell(0, n)
            if to is None:
                continue
            # One that begins nowhere takes the last cell: Python's index -1.
            row, column = (-1, -1) if start is None else start
            old = before[:, t, to[0], to[1]]
            made[:, t, to[0], to[1]] = old + (before[:, 0, row, column] - old) * strength
    return made


def text_of(tracks):
    return [[{"x": x, "y": y} for x, y in track] for track in tracks]


def some_tracks(seed, count, places):
    """Points that wander, now and then out of the picture."""
    generator = torch.Generator().manual_seed(seed)
    size = torch.tensor([WIDTH, HEIGHT], dtype=torch.float32)
    start, end = (torch.rand(count, 1, 2, generator=generator) * size * 1.2 - 0.1 * size for _ in range(2))
    t = torch.linspace(0, 1, places)[None, :, None]
    bend = torch.sin(math.pi * t) * torch.randn(count, 1, 2, generator=generator) * 8
    return (start + (end - start) * t + bend).mul(4).round().div(4).tolist()


def draw(model, expected, concats, seed=7):
    """Of items with their own videos beside the point."""
    x = wan.randn(seed, len(concats), wan.CHANNELS, *concats[0].shape[2:])
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        slopes = []
        for item, concat in zip(x.split(1), concats):
            yes, no = (talk.velocity(model, item, torch.tensor(here), text, concat) for text in texts)
            slopes.append(no + 3 * (yes - no))
        x = x + torch.cat(slopes) * (there - here)
    return x


def make_forward(model, expected, clip, seed, frames, height, width, tracks):
    """Of a latent of random numbers that tracks are told of; height and width in cells."""
    mixed, whole = ati(wan.randn(seed, wan.CHANNELS, frames, height, width), tracks, 4 * frames - 3, 40, 2)
    given = {
        "x": wan.randn(seed + 1, 1, wan.CHANNELS, frames, height, width),
        "context": wan.randn(seed + 2, 1, wan.TOKENS, wan.TEXT),
        "concat": torch.cat([whole.expand(4, -1, -1, -1), mixed])[None],
    }
    rows = [talk.velocity(model, given["x"], level, given["context"], given["concat"]) for level in wan.LEVELS]
    given |= {"timestep": 1000 * wan.LEVELS, "out": torch.stack(rows)}
    expected.update({f"told.{clip}.{name}": tensor for name, tensor in given.items()})


def beside(image, told):
    """image (C, T, h, w) in the autoencoder's units; told (4|1, T, h, w), 1 where it is given."""
    return torch.cat([told.expand(4, -1, -1, -1)[None], umt5.scaled(image[None])], 1)


def main(out):
    expected, texts = {}, {}
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    for name, curve in CURVES.items():
        expected[f"{name}.path"] = generated(**curve)
    shown = torch.zeros(9, 4, 6)
    shown[[0, 1, 2, 4, 5, 7], 1, 3] = 0.25
    expected["shown"] = shown

    generator = torch.Generator().manual_seed(31)
    pictures = torch.rand(2, 9, 12, 3, generator=generator)
    expected["pictures"] = pictures
    # Pictures of 64 x 48 with tracks: other radii and widths each.
    canvas = F.interpolate(pictures[:1].movedim(-1, 1), size=(HEIGHT, WIDTH), mode="nearest").movedim(1, -1)[0]
    expected["canvas"] = canvas[None]
    seen = shown.flatten(1).amax(1, keepdim=True).gt(0).expand(9, 4)
    path = expected["curve.path"]
    styles = {"thin": (24, 1, 1.0, 1), "plain": (3, 5, 0.75, 6), "wide": (8, 12, 0.4, 15), "huge": (2, 40, 0.33, 64)}
    for name, (earlier, radius, opacity, line) in styles.items():
        frames = [drawn(canvas, path, seen, t, earlier, radius, opacity, line) for t in DRAWN]
        expected[f"drawn.{name}"] = torch.stack(frames)
    # Discs of every radius, in a row each: how far each row of pixels of theirs goes.
    discs = torch.zeros(128, 129, dtype=torch.uint8)
    for radius in range(1, 129):
        whole = Image.new("L", (260, 260))
        ImageDraw.Draw(whole).ellipse((130 - radius, 130 - radius, 130 + radius, 130 + radius), fill=1)
        rows = torch.frombuffer(bytearray(whole.tobytes()), dtype=torch.uint8).view(260, 260)
        discs[radius - 1] = ((rows[130:259].sum(1) + 1) // 2).to(torch.uint8)
    expected["discs"] = discs

    vae = make_workflow_goldens.make_vae()
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean[0]  # noqa: E731
    pixels = F.interpolate(pictures.movedim(-1, 1), size=(HEIGHT, WIDTH), mode="bilinear")

    def begun(first, count, length):
        grey = torch.full((length, 3, HEIGHT, WIDTH), 0.5)
        grey[:count] = pixels[first : first + count]
        return encode(grey)

    sets = {
        # A whole set, one with short tracks of which the third is only there at first, and one alone.
        "whole": [some_tracks(1, 5, 121)],
        "two": [some_tracks(2, 3, 121), some_tracks(3, 2, 60) + [some_tracks(4, 1, 20)[0]]],
        "alone": [some_tracks(5, 1, 150)],
    }
    texts["ati"] = {"whole": text_of(sets["whole"][0]), "two": [text_of(one) for one in sets["two"]], "alone": text_of(sets["alone"][0])[0]}
    model, listed = talk.make_model(2, 128, wan.CHANNELS, 2, False)
    make_forward(model, expected, "long", 20, 3, 6, 8, sets["whole"][0])
    make_forward(model, expected, "odd", 30, 2, 7, 5, sets["two"][1])

    def mixed(first, tracks, length, temperature, nearest):
        latent = umt5.scaled(begun(first, 1, length)[None])[0]
        made, whole = ati(latent, tracks, length, temperature, nearest)
        return made * umt5.DEVIATIONS[0] + umt5.MEANS[0], whole

    for name, length, temperature, nearest in (("whole", 9, 60.5, 2), ("two", 17, 40, 10), ("alone", 13, 220, 1)):
        made = [mixed(i, tracks, length, temperature, nearest) for i, tracks in enumerate(sets[name])]
        expected[f"ati.{name}.image"] = torch.stack([image for image, _ in made])
        expected[f"ati.{name}.mask"] = torch.stack([1 - whole.expand(4, -1, -1, -1) for _, whole in made])
        print(f"{name}: {(torch.stack([whole for _, whole in made])[:, 1:] > 0.01).float().mean():.2f} of the later places are told")
    both = [beside(image, 1 - mask) for image, mask in zip(expected["ati.two.image"], expected["ati.two.mask"])]
    expected["ati.latent"] = draw(model, expected, both)

    path = torch.tensor(some_tracks(6, 7, 9)).transpose(0, 1).contiguous()
    # Two that meet in a cell, and one that begins outside.
    path[8, 0], path[8, 1] = torch.tensor([20.0, 20.0]), torch.tensor([23.0, 17.0])
    path[0, 3], path[4, 3] = torch.tensor([-1.0, 5.0]), torch.tensor([9.0, 40.0])
    texts["move"] = text_of(path.transpose(0, 1).tolist())
    expected["move.path"] = path
    hidden = shown.flatten(1).amax(1, keepdim=True).gt(0).expand(9, 7)
    always = torch.ones_like(hidden)
    latent = begun(0, 2, 9)
    for name, told, strength in (("plain", always, 1.0), ("strong", always, 1.5), ("hidden", hidden, 0.4)):
        expected[f"move.{name}.image"] = move(latent, path, told, strength)[None]
        changed = (expected[f"move.{name}.image"][0] != latent).any(0).sum()
        print(f"{name}: {changed} cells are another")
    given = torch.zeros(1, 3, HEIGHT // CELL, WIDTH // CELL)
    given[:, :1] = 1
    expected["move.latent"] = draw(model, expected, [beside(expected["move.strong.image"][0], given)])
    plain = draw(model, expected, [beside(latent, given)])
    print(f"tracks change a video by {(expected['move.latent'] - plain).norm() / plain.norm():.3f}")

    wan.write(out, {"flow": listed}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    with open(os.path.join(out, "tracks.json"), "w") as file:
        json.dump(texts, file, separators=(",", ":"))
        file.write("\n")
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_tracks"))
