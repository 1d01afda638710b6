"""Writes list_goldens.safetensors and list_cases.json beside this file: what nodes that resize, put together, take
apart and shuffle pictures make of small inputs, computed with PyTorch, Pillow and NumPy.

    make_list_goldens.py        (needs torch, numpy, Pillow, kornia, safetensors)

A case is a node, its inputs (links to the tensors "in.NAME" or to other nodes of the case), and for each of its
outputs, or elements of a list that it puts out, the golden and the greatest difference that is allowed.
"""

import json
import math
import os

import kornia
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
EXACT, SUMS = 0.0, 2e-6  # SUMS: a few roundings of f32 numbers up to 1
goldens, cases = {}, []


def rand(name, *shape, seed):
    goldens["in." + name] = torch.rand(*shape, generator=torch.Generator().manual_seed(seed))
    return goldens["in." + name]


def case(node, inputs, outputs, more=None):
    """outputs: a name, with ".0" for an element of a list -> (tensor, tolerance)."""
    number = sum(c["class"] == node for c in cases)
    record = {"class": node, "inputs": inputs, "outputs": [], "more": more or {}}
    for output, (tensor, tolerance) in outputs.items():
        golden = f"{node}.{number}.{output}"
        goldens[golden] = tensor.float().contiguous()
        record["outputs"].append([output, golden, tolerance])
    cases.append(record)


def image(name):
    return [name, 0]


def to_bytes(x):
    return (x.numpy() * 255).clip(0, 255).astype(np.uint8)


def lanczos(x, height, width):
    rows = [np.array(Image.fromarray(to_bytes(i)).resize((width, height), Image.LANCZOS)) for i in x]
    return torch.from_numpy(np.stack(rows).astype(np.float32) / 255.0)


def resize(x, height, width, method, crop=False):
    """IMAGE or MASK in another size, as ComfyUI's common upscale."""
    planes = x.permute(0, 3, 1, 2) if x.dim() == 4 else x[:, None]
    if crop:
        h, w = planes.shape[-2:]
        x0 = y0 = 0
        if w / h > width / height:
            x0 = round((w - w * ((width / height) / (w / h))) / 2)
        elif w / h < width / height:
            y0 = round((h - h * ((w / h) / (width / height))) / 2)
        planes = planes[:, :, y0 : h - y0, x0 : w - x0]
    if method == "lanczos":
        back = planes.permute(0, 2, 3, 1) if x.dim() == 4 else planes[:, 0]
        return lanczos(back, height, width)
    planes = F.interpolate(planes, size=(height, width), mode=method)
    return planes.permute(0, 2, 3, 1) if x.dim() == 4 else planes[:, 0]


def resizes(a, m, small):
    def node(x, name, method, children, golden, tolerance=SUMS):
        key, *rest = children.items()
        inputs = {"input": image(name), "resize_type": key[1], "scale_method": method}
        case("ResizeImageMaskNode", inputs | {f"resize_type.{k}": v for k, v in rest}, {"resized": (golden, tolerance)})

    h, w = 10, 13
    for method in ("nearest-exact", "bilinear", "area", "bicubic", "lanczos"):
        exact = EXACT if method in ("nearest-exact", "lanczos") else SUMS
        node(a, "a", method, {"": "scale dimensions", "width": 6, "height": 8, "crop": "center"},
             resize(a, 8, 6, method, True), exact)
        node(m, "m", method, {"": "scale dimensions", "width": 7, "height": 0, "crop": "disabled"},
             resize(m, round(h * 7 / w), 7, method), exact)
    node(a, "a", "area", {"": "scale by multiplier", "multiplier": 1.5}, resize(a, 15, round(19.5), "area"))
    node(a, "a", "bilinear", {"": "scale longer dimension", "longer_size": 20},
         resize(a, round(10 / 13 * 20), 20, "bilinear"))
    node(a, "a", "bilinear", {"": "scale shorter dimension", "shorter_size": 7},
         resize(a, 7, round(13 / 10 * 7), "bilinear"))
    node(a, "a", "bicubic", {"": "scale width", "width": 9}, resize(a, round(10 * 9 / 13), 9, "bicubic"))
    node(a, "a", "bicubic", {"": "scale height", "height": 9}, resize(a, 9, round(13 * 9 / 10), "bicubic"))
    n, (h2, w2) = goldens["in.n"], goldens["in.n"].shape[1:]
    for megapixels, multiple in ((0.01, 1), (0.012, 8)):
        f = math.sqrt(int(megapixels * 1024 * 1024) / (w2 * h2))
        side = lambda length: max(1, round(length * f / multiple)) * multiple
        node(n, "n", "nearest-exact", {"": "scale total pixels", "megapixels": megapixels, "multiple": multiple},
             resize(n, side(h2), side(w2), "nearest-exact"), EXACT)
    node(m, "m", "bilinear", {"": "match size", "match": image("small"), "crop": "center"},
         resize(m, small.shape[1], small.shape[2], "bilinear", True))
    for multiple in (4, 8):
        tw, th = w // multiple * multiple, h // multiple * multiple
        if tw / w >= th / h:
            sw, sh = tw, max(th, math.ceil(h * (tw / w)))
        else:
            sw, sh = max(tw, math.ceil(w * (th / h))), th
        big, x0, y0 = resize(a, sh, sw, "bilinear"), (sw - tw) // 2, (sh - th) // 2
        node(a, "a", "bilinear", {"": "scale to multiple", "multiple": multiple},
             big[:, y0 : y0 + th, x0 : x0 + tw])
    node(a, "a", "bilinear", {"": "scale to multiple", "multiple": 64}, a, EXACT)
    node(a, "a", "lanczos", {"": "scale dimensions", "width": 0, "height": 0, "crop": "center"}, a, EXACT)


def batches(a, m, small, clear):
    def opaque(x):
        return torch.cat([x, torch.ones(*x.shape[:-1], 1)], -1)

    case("BatchImagesNode", {"images.image0": image("a"), "images.image2": image("small")},
         {"IMAGE": (torch.cat([a, resize(small, 10, 13, "bilinear", True)]), SUMS)})
    case("BatchImagesNode", {"images.image0": image("a"), "images.image1": image("clear")},
         {"IMAGE": (torch.cat([opaque(a), resize(clear, 10, 13, "bilinear", True)]), SUMS)})
    case("BatchMasksNode", {"masks.mask1": image("m"), "masks.mask0": image("n")},
         {"MASK": (torch.cat([goldens["in.n"], resize(m, 5, 6, "bilinear", True)]), SUMS)})
    listed = {"listed": {"class_type": "CreateList", "inputs": {"inputs.input0": image("a"), "inputs.input1": image("a2")}}}
    a2 = goldens["in.a2"]
    together = torch.cat([a, a2])
    case("RebatchImages", {"images": ["listed", 0], "batch_size": 2},
         {f"IMAGE.{i}": (together[2 * i : 2 * i + 2], EXACT) for i in range(3)}, listed)
    case("MergeImageLists", {"images": ["listed", 0]},
         {f"images.{i}": (together[i : i + 1], EXACT) for i in range(5)}, listed)
    rng = np.random.RandomState(7 % (2**32 - 1))
    case("ShuffleDataset", {"images": ["listed", 0], "seed": 7},
         {f"images.{i}": (together[k : k + 1], EXACT) for i, k in enumerate(rng.permutation(5))}, listed)
    big = rand("big", 1, 80, 90, 1, seed=9)
    coords = tiles(90, 80, 70, 64, 20)
    case("SplitImageToTileList", {"image": image("big"), "tile_width": 70, "tile_height": 64, "overlap": 20},
         {f"IMAGE.{i}": (big[:, t:b, l:r], EXACT) for i, (l, t, r, b) in enumerate(coords)})
    parts = {"parts": {"class_type": "SplitImageToTileList",
                       "inputs": {"image": image("big"), "tile_width": 70, "tile_height": 64, "overlap": 20}}}
    merged, weights = torch.zeros(1, 80, 90, 1), torch.zeros(1, 80, 90, 1)
    down = torch.sin(math.pi * torch.linspace(0, 1, 64)).clamp(min=1e-5)
    across = torch.sin(math.pi * torch.linspace(0, 1, 70)).clamp(min=1e-5)
    weight = (down[:, None] * across[None])[None, ..., None]
    for l, t, r, b in coords:
        merged[:, t:b, l:r] += big[:, t:b, l:r] * weight
        weights[:, t:b, l:r] += weight
    case("ImageMergeTileList", {"image_list": ["parts", 0], "final_width": 90, "final_height": 80, "overlap": 20},
         {"IMAGE": (merged / weights, 2e-5)}, parts)  # the weights at the edges are as small as 1e-10


def tiles(width, height, tile_width, tile_height, overlap):
    """Left, top, right, bottom; the last in each direction ends where the picture does."""
    def starts(side, tile):
        step, begin, out = round(max(tile * 0.25, tile - overlap)), 0, []
        while True:
            end = min(begin + tile, side)
            out.append((max(0, end - tile), end))
            if end >= side:
                return out
            begin += step
    return [(l, t, r, b) for t, b in starts(height, tile_height) for l, r in starts(width, tile_width)]


def datasets(a, small):
    def through_bytes(x):
        return torch.from_numpy(to_bytes(x).astype(np.float32) / 255.0)

    case("ResizeImagesByShorterEdge", {"images": image("a"), "shorter_edge": 7},
         {"images": (lanczos(a, 7, int(13 * (7 / 10))), EXACT)})
    case("ResizeImagesByLongerEdge", {"images": image("a"), "longer_edge": 19},
         {"images": (lanczos(a, int(10 * (19 / 13)), 19), EXACT)})
    case("CenterCropImages", {"images": image("a"), "width": 6, "height": 50},
         {"images": (through_bytes(a[:, :, 3:9]), EXACT)})
    rng = np.random.RandomState(5)
    left, top = rng.randint(0, 13 - 4 + 1), rng.randint(0, 10 - 6 + 1)
    case("RandomCropImages", {"images": image("a"), "width": 4, "height": 6, "seed": 5},
         {"images": (through_bytes(a[:, top : top + 6, left : left + 4]), EXACT)})
    case("NormalizeImages", {"images": image("a"), "mean": 0.4, "std": 0.3}, {"images": ((a - 0.4) / 0.3, EXACT)})
    case("AdjustBrightness", {"images": image("a"), "factor": 1.3}, {"images": ((a * 1.3).clamp(0, 1), EXACT)})
    case("AdjustContrast", {"images": image("a"), "factor": 1.7},
         {"images": (((a - 0.5) * 1.7 + 0.5).clamp(0, 1), EXACT)})
    listed = {"listed": {"class_type": "CreateList", "inputs": {"inputs.input0": image("a"), "inputs.input1": image("small")}}}
    singles = [*a.split(1), *small.split(1)]
    grid = torch.zeros(1, 2 * 32 + 3, 2 * 40 + 3, 3)
    for i, one in enumerate(singles):
        y, x = i // 2 * 35, i % 2 * 43
        grid[:, y : y + 32, x : x + 40] = lanczos(one, 32, 40)
    case("ImageGrid", {"images": ["listed", 0], "columns": 2, "cell_width": 40, "cell_height": 32, "padding": 3},
         {"images": (grid, EXACT)}, listed)

    def look(x):
        grey = np.array(Image.fromarray(to_bytes(x[0])).resize((8, 8), Image.LANCZOS).convert("L")).astype(int)
        return grey.ravel() > grey.mean()

    kept = []
    for one in singles + [a[:1] * 0.99]:
        if not any(1 - (look(one) != look(k)).sum() / 64 >= 0.9 for k in kept):
            kept.append(one)
    goldens["in.dim"] = (a[:1] * 0.99).contiguous()
    more = {"all": {"class_type": "CreateList", "inputs": {
        "inputs.input0": image("a"), "inputs.input1": image("small"), "inputs.input2": image("dim")}}}
    assert len(kept) == len(singles)
    case("ImageDeduplication", {"images": ["all", 0], "similarity_threshold": 0.9},
         {f"images.{i}": (one, EXACT) for i, one in enumerate(kept)}, more)


def transfers():
    """ColorTransfer, as ComfyUI computes it, with kornia's Lab."""
    target, one, two = rand("target", 2, 6, 7, 3, seed=21), rand("one", 1, 5, 4, 3, seed=22), rand("two", 2, 5, 4, 3, seed=23)
    goldens["in.one"] = one = (one * 0.5 + 0.3).contiguous()

    def lab(x):
        return kornia.color.rgb_to_lab(x.permute(0, 3, 1, 2).double()).flatten(2)

    def spread(labs):
        mean = labs.mean(2).mean(0)[:, None]
        apart = labs - mean
        return mean, (apart @ apart.transpose(1, 2)).mean(0) / labs.shape[2]

    def root(m):
        values, vectors = torch.linalg.eigh(m)
        return vectors @ torch.diag(values.clamp(min=0).sqrt().clamp(min=1e-6)) @ vectors.T

    def cdf(x):
        bins = (x * 255).long().clamp(0, 255).flatten(0, 2)
        counts = torch.stack([torch.bincount(bins[:, c], minlength=256) for c in range(3)]).float().cumsum(1)
        return counts / counts[:, -1:]

    def run(reference, name, method, stats, strength, index=0):
        out = []
        for i in range(2):
            t = target if stats == "uniform" else target[index : index + 1] if stats == "target_frame" else target[i : i + 1]
            r = reference if stats != "per_frame" or len(reference) == 1 else reference[i : i + 1]
            x = target[i : i + 1]
            if method == "histogram":
                table = torch.searchsorted(cdf(r), cdf(t)).clamp(max=255).float() / 255
                levels = (x * 255).long().clamp(0, 255)
                matched = torch.stack([table[c][levels[..., c]] for c in range(3)], -1)
                out.append(torch.lerp(x, matched, strength).clamp(0, 1) if strength != 1 else matched)
                continue
            (tm, tc), (rm, rc), x = spread(lab(t)), spread(lab(r)), lab(x)
            if method == "reinhard_lab":
                map_ = torch.diag((rc.diagonal().sqrt() / tc.diagonal().sqrt()))
            else:
                half = root(tc)
                map_ = half.inverse() @ root(half @ rc @ half) @ half.inverse()
            moved = torch.lerp(x, map_ @ (x - tm) + rm, strength)
            out.append(kornia.color.lab_to_rgb(moved.view(1, 3, 6, 7)).permute(0, 2, 3, 1))
        inputs = {"image_target": image("target"), "image_ref": image(name), "method": method, "source_stats": stats,
                  "strength": strength}
        if stats == "target_frame":
            inputs["source_stats.target_index"] = index
        case("ColorTransfer", inputs, {"image": (torch.cat(out), (EXACT if strength == 1.0 else SUMS) if method == "histogram" else 2e-5)})

    for method in ("reinhard_lab", "mkl_lab", "histogram"):
        run(one, "one", method, "per_frame", 1.0)
        run(two, "two", method, "per_frame", 0.4)
        run(two, "two", method, "uniform", 1.0)
        run(one, "one", method, "target_frame", 1.0, index=1)


def cut_outs():
    """ImageCropToMask for masks that need no correction, and for an inverted one."""
    x = rand("scene", 2, 40, 60, 3, seed=31)
    masks = torch.zeros(2, 40, 60)
    masks[0, 10:25, 5:20] = 1.0
    masks[1] = 1.0
    masks[1, 8:30, 20:50] = 0.0
    goldens["in.chosen"] = masks
    out = []
    for i, (box, grow) in enumerate((((5, 10, 19, 24), 2), ((20, 8, 49, 29), 2))):
        left, top, right, bottom = box[0] - grow, box[1] - grow, box[2] + grow, box[3] + grow
        chosen = torch.zeros(40, 60)
        chosen[top : bottom + 1, left : right + 1] = 1.0
        bw, bh, aspect, pad = right - left + 1, bottom - top + 1, 64 / 72, 1.2
        if bw / bh >= aspect:
            cw, ch = int(bw * pad), int(bw / aspect * pad)
        else:
            ch, cw = int(bh * pad), int(bh * aspect * pad)
        hw, hh = math.ceil(cw / 2), math.ceil(ch / 2)
        x0, y0 = int((left + right) / 2 - hw), int((top + bottom) / 2 - hh)
        colour = torch.tensor([0x33, 0x66, 0x99]) / 255
        whole = x[i] * chosen[..., None]
        room = torch.zeros(200, 200, 3)
        room[:] = colour
        room[80:120, 70:130] = whole + colour * (1 - chosen[..., None])
        part = room[80 + y0 : 80 + y0 + 2 * hh, 70 + x0 : 70 + x0 + 2 * hw].clamp(0, 1)
        out.append(lanczos(part[None], 72, 64))
    case("ImageCropToMask", {"images": image("scene"), "masks": image("chosen"), "width": 64, "height": 72,
                             "pad_factor": 1.2, "grow_mask": 2, "background": "#336699"},
         {"images": (torch.cat(out), EXACT)})
    case("ImageCropV2", {"image": image("scene"), "crop_region": {"x": 50, "y": 3, "width": 30, "height": 4}},
         {"IMAGE": (x[:, 3:7, 50:], EXACT)})


def latents():
    def grow(name, *shape, seed):
        goldens["in." + name] = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
        return goldens["in." + name]

    s, t = grow("latent", 2, 4, 6, 5, seed=41), grow("latent_t", 1, 4, 4, 4, seed=42)
    u = resize_planes(t, 6, 5)
    case("BatchLatentsNode", {"latents.latent0": image("latent"), "latents.latent1": image("latent_t")},
         {"LATENT": (torch.cat([s, u]), SUMS * 3)})
    more = {"listed": {"class_type": "CreateList", "inputs": {
        "inputs.input0": image("latent"), "inputs.input1": image("latent"), "inputs.input2": image("latent_t")}}}
    case("RebatchLatents", {"latents": ["listed", 0], "batch_size": 3},
         {"LATENT.0.samples": (torch.cat([s, s[:1]]), EXACT), "LATENT.1.samples": (s[1:], EXACT),
          "LATENT.2.samples": (t, EXACT)}, more)
    a = goldens["in.a"]
    noise = torch.randn(a.shape, generator=torch.Generator().manual_seed(77))
    case("ImageAddNoise", {"image": image("a"), "seed": 77, "strength": 0.3},
         {"IMAGE": ((a + 0.3 * noise).clamp(0, 1), SUMS)})


def resize_planes(x, height, width):
    return resize(x.permute(0, 2, 3, 1), height, width, "bilinear", True).permute(0, 3, 1, 2)


def main():
    a, m = rand("a", 3, 10, 13, 3, seed=1), rand("m", 2, 10, 13, seed=2)
    rand("n", 1, 5, 6, seed=5)
    small, clear = rand("small", 1, 7, 5, 3, seed=3), rand("clear", 1, 9, 9, 4, seed=4)
    rand("a2", 2, 10, 13, 3, seed=6)
    resizes(a, m, small)
    batches(a, m, small, clear)
    datasets(a, small)
    transfers()
    cut_outs()
    latents()
    save_file({k: v.clone() for k, v in goldens.items()}, os.path.join(HERE, "list_goldens.safetensors"))
    with open(os.path.join(HERE, "list_cases.json"), "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(len(cases), "cases")


main()
