"""Writes picture_goldens.safetensors and picture_cases.json beside this file: what nodes of pictures,
masks and latents make of small inputs, computed with PyTorch, kornia and Pillow.

    make_picture_goldens.py        (needs torch, numpy, Pillow, kornia, scipy, safetensors)

A case is a node, its inputs (links to the tensors "in.NAME" or to other nodes of the case), and for each
of its outputs the golden and the greatest difference that is allowed.
"""

import json
import math
import os

import kornia
import numpy as np
import scipy.ndimage
import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
EXACT, SUMS = 0.0, 2e-6  # SUMS: a few roundings of f32 numbers up to 1
goldens, cases = {}, []


def rand(name, *shape, seed, scale=1.0, shift=0.0, normal=False):
    g = torch.Generator().manual_seed(seed)
    make = torch.randn if normal else torch.rand
    goldens["in." + name] = make(*shape, generator=g) * scale + shift
    return goldens["in." + name]


def case(node, inputs, outputs, more=None):
    """outputs: name -> (tensor, tolerance); a tensor of a LATENT is its samples."""
    number = sum(c["class"] == node for c in cases)
    record = {"class": node, "inputs": inputs, "outputs": [], "more": more or {}}
    for output, (tensor, tolerance) in outputs.items():
        golden = f"{node}.{number}.{output}"
        goldens[golden] = tensor.float().contiguous()
        record["outputs"].append([output, golden, tolerance])
    cases.append(record)


def nchw(x):
    return x.permute(0, 3, 1, 2)


def nhwc(x):
    return x.permute(0, 2, 3, 1)


def resize(x, height, width, method, crop=False):
    """(B, C, h, w) in another size, as ComfyUI's common upscale."""
    if crop:
        h, w = x.shape[-2:]
        x0 = y0 = 0
        if w / h > width / height:
            x0 = round((w - w * ((width / height) / (w / h))) / 2)
        elif w / h < width / height:
            y0 = round((h - h * ((w / h) / (width / height))) / 2)
        x = x[:, :, y0 : h - y0, x0 : w - x0]
    if method != "lanczos":
        return F.interpolate(x, size=(height, width), mode=method)
    rows = []
    for item in nhwc(x).numpy():
        picture = Image.fromarray(np.clip(255.0 * item, 0, 255).astype(np.uint8))
        rows.append(np.array(picture.resize((width, height), Image.LANCZOS)).astype(np.float32) / 255.0)
    return nchw(torch.from_numpy(np.stack(rows)))


def image(name):
    return [name, 0]


def masks(a, small, m, n):
    case("MaskToImage", {"mask": image("m")}, {"IMAGE": (m[..., None].repeat(1, 1, 1, 3), EXACT)})
    for c, channel in enumerate(("red", "green", "blue")):
        case("ImageToMask", {"image": image("a"), "channel": channel}, {"MASK": (a[..., c], EXACT)})
    steps = (a.clamp(0, 1) * 255).round().int()
    r, g, b = steps[1, 2, 3].tolist()
    picked = (steps == torch.tensor([r, g, b])).all(-1)
    case("ImageColorToMask", {"image": image("a"), "color": (r << 16) + (g << 8) + b}, {"MASK": (picked, EXACT)})
    case("CropMask", {"mask": image("m"), "x": 3, "y": 2, "width": 100, "height": 4}, {"MASK": (m[:, 2:6, 3:], EXACT)})
    for operation in ("multiply", "add", "subtract", "and", "or", "xor"):
        out, x, y = m.clone(), 4, 5
        part = out[:, y : y + n.shape[1], x : x + n.shape[2]]
        s = n[:, : part.shape[1], : part.shape[2]]
        bits = part.round().bool(), s.round().bool()
        part[:] = {"multiply": part * s, "add": part + s, "subtract": part - s,
                   "and": (bits[0] & bits[1]).float(), "or": (bits[0] | bits[1]).float(),
                   "xor": (bits[0] ^ bits[1]).float()}[operation]
        case("MaskComposite", {"destination": image("m"), "source": image("n"), "x": x, "y": y, "operation": operation},
             {"MASK": (out.clamp(0, 1), EXACT)})
    for left, top, right, bottom in ((3, 0, 0, 0), (2, 3, 4, 5), (99, 1, 0, 0)):
        out = m.clone()
        h, w = out.shape[1:]
        l, r, t, b = min(left, w), min(right, w), min(top, h), min(bottom, h)
        for x in range(l):
            out[:, :, x] *= (x + 1.0) / l
        for x in range(r):
            out[:, :, -x] *= (x + 1.0) / r
        for y in range(t):
            out[:, y, :] *= (y + 1.0) / t
        for y in range(b):
            out[:, -y, :] *= (y + 1.0) / b
        case("FeatherMask", {"mask": image("m"), "left": left, "top": top, "right": right, "bottom": bottom},
             {"MASK": (out, SUMS)})
    for expand, tapered in ((2, True), (1, False), (-2, True), (-1, False), (50, True)):
        c = 0 if tapered else 1
        kernel = np.array([[c, 1, c], [1, 1, 1], [c, 1, c]])
        out = []
        for item in m.numpy():
            for _ in range(abs(expand)):
                grow = scipy.ndimage.grey_dilation if expand > 0 else scipy.ndimage.grey_erosion
                item = grow(item, footprint=kernel)
            out.append(torch.from_numpy(item))
        case("GrowMask", {"mask": image("m"), "expand": expand, "tapered_corners": tapered},
             {"MASK": (torch.stack(out), EXACT)})
    case("ThresholdMask", {"mask": image("m"), "value": 0.4}, {"MASK": (m > 0.4, EXACT)})
    alpha = 1 - F.interpolate(n[:, None], size=a.shape[1:3], mode="bilinear")[:, 0]
    joined = torch.cat([a, alpha.repeat(2, 1, 1)[..., None]], -1)
    case("JoinImageWithAlpha", {"image": image("a"), "alpha": image("n")}, {"IMAGE": (joined, SUMS)})
    goldens["in.rgba"] = joined.contiguous()
    case("SplitImageWithAlpha", {"image": image("rgba")}, {"IMAGE": (joined[..., :3], EXACT), "MASK": (1 - joined[..., 3], EXACT)})
    case("SplitImageWithAlpha", {"image": image("small")},
         {"IMAGE": (small, EXACT), "MASK": (torch.zeros(small.shape[:3]), EXACT)})
    case("ImageToMask", {"image": image("rgba"), "channel": "alpha"}, {"MASK": (joined[..., 3], EXACT)})


def composites(a, small, m, n, rgba):
    def composite(x, y, resizes, mask):
        out, source = a.clone(), small
        if resizes:
            source = nhwc(F.interpolate(nchw(source), size=a.shape[1:3], mode="bilinear"))
        weight = torch.ones(1, *source.shape[1:3], 1)
        if mask is not None:
            weight = F.interpolate(mask[:, None], size=source.shape[1:3], mode="bilinear")[:, 0, :, :, None]
        part = out[:, y : y + source.shape[1], x : x + source.shape[2]]
        h, w = part.shape[1:3]
        part[:] = weight[:, :h, :w] * source[:, :h, :w] + (1 - weight[:, :h, :w]) * part
        return out

    for x, y, resizes, mask in ((2, 1, False, None), (6, 4, False, m), (0, 0, True, n), (0, 2, True, m)):
        inputs = {"destination": image("a"), "source": image("small"), "x": x, "y": y, "resize_source": resizes}
        if mask is not None:
            inputs["mask"] = image("m" if mask is m else "n")
        case("ImageCompositeMasked", inputs, {"IMAGE": (composite(x, y, resizes, mask), SUMS)})
    b = nhwc(resize(nchw(small), a.shape[1], a.shape[2], "bicubic", True))
    g = torch.where(a <= 0.25, ((16 * a - 12) * a + 4) * a, torch.sqrt(a.clamp(0)))
    modes = {"normal": b, "multiply": a * b, "screen": 1 - (1 - a) * (1 - b), "difference": a - b,
             "overlay": torch.where(a <= 0.5, 2 * a * b, 1 - 2 * (1 - a) * (1 - b)),
             "soft_light": torch.where(b <= 0.5, a - (1 - 2 * b) * a * (1 - a), a + (2 * b - 1) * (g - a))}
    for mode, blended in modes.items():
        case("ImageBlend", {"image1": image("a"), "image2": image("small"), "blend_factor": 0.3, "blend_mode": mode},
             {"IMAGE": ((a * 0.7 + blended * 0.3).clamp(0, 1), SUMS)})
    stitches(a, small, rgba)
    sa, da = 1 - m[:1, ..., None], 1 - m[1:, ..., None]
    si, di = b[:1] * sa, a[:1] * da
    ways = {
        "ADD": ((sa + da).clamp(0, 1), (si + di).clamp(0, 1)), "CLEAR": (sa * 0, si * 0),
        "DARKEN": (sa + da - sa * da, (1 - da) * si + (1 - sa) * di + torch.min(si, di)), "DST": (da, di),
        "DST_ATOP": (sa, sa * di + (1 - da) * si), "DST_IN": (sa * da, di * sa), "DST_OUT": ((1 - sa) * da, (1 - sa) * di),
        "DST_OVER": (da + (1 - da) * sa, di + (1 - da) * si),
        "LIGHTEN": (sa + da - sa * da, (1 - da) * si + (1 - sa) * di + torch.max(si, di)),
        "MULTIPLY": (sa * da, si * di),
        "OVERLAY": (sa + da - sa * da, torch.where(2 * di < da, 2 * si * di, sa * da - 2 * (da - di) * (sa - si))),
        "SCREEN": (sa + da - sa * da, si + di - si * di), "SRC": (sa, si), "SRC_ATOP": (da, da * si + (1 - sa) * di),
        "SRC_IN": (sa * da, si * da), "SRC_OUT": ((1 - da) * sa, (1 - da) * si),
        "SRC_OVER": (sa + (1 - sa) * da, si + (1 - sa) * di),
        "XOR": ((1 - da) * sa + (1 - sa) * da, (1 - da) * si + (1 - sa) * di)}
    goldens["in.m0"], goldens["in.m1"] = m[:1].clone(), m[1:].clone()
    for mode, (alpha, colour) in ways.items():
        colour = torch.where(alpha > 1e-5, colour / alpha, torch.zeros_like(colour)).clamp(0, 1)
        case("PorterDuffImageComposite",
             {"source": image("small"), "source_alpha": image("m0"), "destination": image("a"),
              "destination_alpha": image("m1"), "mode": mode},
             {"IMAGE": (colour, 1e-4), "MASK": (1 - alpha[..., 0], SUMS)})  # colours are divided by small alphas


def stitches(a, small, rgba):
    colours = {"white": (1, 1, 1), "black": (0, 0, 0), "red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}
    for direction, matches, spacing, colour, first, second in (
            ("right", True, 0, "white", "a", "small"), ("down", True, 3, "red", "a", "small"),
            ("left", False, 4, "white", "a", "small"), ("up", False, 2, "green", "small", "a"),
            ("right", False, 1, "blue", "rgba", "small")):
        x, y = goldens["in." + first], goldens["in." + second]
        n = max(len(x), len(y))
        x, y = (torch.cat([v] + [v[-1:]] * (n - len(v))) for v in (x, y))
        row = direction in ("right", "left")
        if matches:
            aspect = y.shape[2] / y.shape[1]
            size = (x.shape[1], int(x.shape[1] * aspect)) if row else (int(x.shape[2] / aspect), x.shape[2])
            y = nhwc(resize(nchw(y), *size, "lanczos"))
        value = 1.0 if colour == "white" else 0.0
        side = 1 if row else 2
        longest = max(x.shape[side], y.shape[side])

        def padded(v):
            rest = longest - v.shape[side]
            pad = (rest // 2, rest - rest // 2)
            return F.pad(v, (0, 0, 0, 0, *pad) if row else (0, 0, *pad), value=value)

        x, y = padded(x), padded(y)
        c = max(x.shape[3], y.shape[3])
        x, y = (torch.cat([v, torch.ones(*v.shape[:3], c - v.shape[3])], -1) for v in (x, y))
        parts = [x, y]
        if spacing:
            spacing += spacing % 2
            strip = torch.ones(n, longest if row else spacing, spacing if row else longest, c)
            strip[..., :3] = torch.tensor(colours[colour]).float()
            parts = [x, strip, y]
        if direction in ("left", "up"):
            parts.reverse()
        case("ImageStitch",
             {"image1": image(first), "image2": image(second), "direction": direction, "match_image_size": matches,
              "spacing_width": spacing, "spacing_color": colour},
             {"IMAGE": (torch.cat(parts, 2 if row else 1), SUMS)})


def transforms(a, small):
    for x, y, w, h in ((2, 1, 4, 3), (8, 5, 100, 100), (99, 99, 5, 5)):
        x0, y0 = min(x, a.shape[2] - 1), min(y, a.shape[1] - 1)
        case("ImageCrop", {"image": image("a"), "width": w, "height": h, "x": x, "y": y},
             {"IMAGE": (a[:, y0 : y0 + h, x0 : x0 + w], EXACT)})
    case("ImageFlip", {"image": image("a"), "flip_method": "x-axis: vertically"}, {"IMAGE": (a.flip(1), EXACT)})
    case("ImageFlip", {"image": image("a"), "flip_method": "y-axis: horizontally"}, {"IMAGE": (a.flip(2), EXACT)})
    for k, rotation in enumerate(("none", "90 degrees", "180 degrees", "270 degrees")):
        case("ImageRotate", {"image": image("a"), "rotation": rotation}, {"IMAGE": (torch.rot90(a, k, [2, 1]), EXACT)})
    h, w = a.shape[1:3]
    for method in ("area", "lanczos", "bicubic"):
        out = nhwc(resize(nchw(a), round(h / w * 16), 16, method))
        case("ImageScaleToMaxDimension", {"image": image("a"), "upscale_method": method, "largest_size": 16},
             {"IMAGE": (out, SUMS)})
    for tw, th, colour, method in ((20, 9, "white", "bilinear"), (6, 16, "black", "lanczos")):
        scale = min(tw / w, th / h)
        nw, nh = int(w * scale), int(h * scale)
        out = torch.full((len(a), th, tw, 3), 1.0 if colour == "white" else 0.0)
        y0, x0 = (th - nh) // 2, (tw - nw) // 2
        out[:, y0 : y0 + nh, x0 : x0 + nw] = nhwc(resize(nchw(a), nh, nw, method))
        case("ResizeAndPadImage",
             {"image": image("a"), "target_width": tw, "target_height": th, "padding_color": colour, "interpolation": method},
             {"IMAGE": (out, SUMS)})
    black = torch.zeros(len(a), h, w, 3)
    case("EmptyImage", {"width": ["size", 0], "height": ["size", 1], "batch_size": ["size", 2], "color": 0},
         {"IMAGE": (black, EXACT)}, more={"size": {"class_type": "GetImageSize", "inputs": {"image": image("a")}}})


def gaussian(size, sigma):
    x, y = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    d = torch.sqrt(x * x + y * y)
    g = torch.exp(-(d * d) / (2.0 * sigma * sigma))
    return g / g.sum()


def filters(a, edgy):
    def convolved(x, kernel, radius):
        padded = F.pad(nchw(x), (radius,) * 4, "reflect").double()
        weight = kernel.double().expand(x.shape[3], 1, -1, -1)
        return nhwc(F.conv2d(padded, weight, groups=x.shape[3])).float()

    for radius, sigma in ((1, 1.0), (3, 0.4), (6, 10.0)):
        case("ImageBlur", {"image": image("a"), "blur_radius": radius, "sigma": sigma},
             {"IMAGE": (convolved(a, gaussian(2 * radius + 1, sigma), radius), SUMS)})
    for radius, sigma, alpha in ((1, 1.0, 0.5), (2, 0.7, 3.0)):
        kernel = gaussian(2 * radius + 1, sigma) * -(alpha * 10)
        kernel[radius, radius] += 1 - kernel.sum()
        case("ImageSharpen", {"image": image("a"), "sharpen_radius": radius, "sigma": sigma, "alpha": alpha},
             {"IMAGE": (convolved(a, kernel, radius).clamp(0, 1), 2e-5)})  # weights of 30
    m = kornia.morphology
    operations = {"erode": m.erosion, "dilate": m.dilation, "open": m.opening, "close": m.closing,
                  "gradient": m.gradient, "top_hat": m.top_hat, "bottom_hat": m.bottom_hat}
    for operation, compute in operations.items():
        for size in (3, 4):
            case("Morphology", {"image": image("a"), "operation": operation, "kernel_size": size},
                 {"IMAGE": (nhwc(compute(nchw(a), torch.ones(size, size))), SUMS)})
    for low, high in ((0.2, 0.5), (0.05, 0.9)):
        edges = kornia.filters.canny(nchw(edgy), low, high)[1]
        case("Canny", {"image": image("edgy"), "low_threshold": low, "high_threshold": high},
             {"IMAGE": (nhwc(edges.repeat(1, 3, 1, 1)), EXACT)})
    yuv = nhwc(kornia.color.rgb_to_ycbcr(nchw(a)))
    planes = [yuv[..., i : i + 1].repeat(1, 1, 1, 3) for i in range(3)]
    case("ImageRGBToYUV", {"image": image("a")}, {name: (plane, SUMS) for name, plane in zip("YUV", planes)})
    for name, plane in zip("yuv", planes):
        goldens["in." + name] = plane.contiguous()
    back = nhwc(kornia.color.ycbcr_to_rgb(nchw(yuv)))
    case("ImageYUVToRGB", {"Y": image("y"), "U": image("u"), "V": image("v")}, {"IMAGE": (back, SUMS)})


def latents():
    s = rand("latent", 2, 4, 10, 9, seed=11, normal=True)
    t = rand("latent_t", 1, 4, 6, 7, seed=12, normal=True)
    video = rand("latent_v", 1, 4, 5, 4, 6, seed=13, normal=True)
    m = goldens["in.m"]

    def latent(out, tolerance=EXACT):
        return {"LATENT": (out, tolerance)}

    u = resize(t, 10, 9, "bilinear", True).repeat(2, 1, 1, 1)
    two = {"samples1": image("latent"), "samples2": image("latent_t")}
    case("LatentAdd", two, latent(s + u, SUMS * 3))
    case("LatentSubtract", two, latent(s - u, SUMS * 3))
    case("LatentMultiply", {"samples": image("latent"), "multiplier": -1.3}, latent(s * -1.3))
    n1, n2 = s.norm(dim=1, keepdim=True), u.norm(dim=1, keepdim=True)
    mix = s / n1 * 0.3 + u / n2 * 0.7
    case("LatentInterpolate", {**two, "ratio": 0.3},
         latent(mix / mix.norm(dim=1, keepdim=True) * (n1 * 0.3 + n2 * 0.7), 2e-5))
    b = resize(t, 10, 9, "bicubic", True).repeat(2, 1, 1, 1)
    case("LatentBlend", {**two, "blend_factor": 0.4}, latent(s * 0.4 + b * 0.6, SUMS * 3))
    case("LatentBatch", two, latent(torch.cat([s, u[:1]]), SUMS * 3))
    for x, y, feather in ((0, 0, 0), (16, 24, 16), (40, 40, 24), (0, 8, 8)):
        out, x0, y0, f = s.clone(), x // 8, y // 8, feather // 8
        part = out[:, :, y0 : y0 + 6, x0 : x0 + 7]
        h, w = part.shape[2:]
        weight = torch.ones(h, w)
        for k in range(f):
            rate = (1.0 / f) * (k + 1)
            if y0 != 0:
                weight[k : k + 1] *= rate
            if y0 + h < 10:
                weight[h - 1 - k : h - k] *= rate
            if x0 != 0:
                weight[:, k : k + 1] *= rate
            if x0 + w < 9:
                weight[:, w - 1 - k : w - k] *= rate
        part[:] = t[:, :, :h, :w] * weight + part * (1 - weight)
        case("LatentComposite",
             {"samples_to": image("latent"), "samples_from": image("latent_t"), "x": x, "y": y, "feather": feather},
             latent(out, SUMS))
    for x, y, resizes, masked in ((8, 16, False, True), (40, 0, False, False), (0, 0, True, True)):
        out, source = s.clone(), t
        if resizes:
            source = F.interpolate(t, size=(10, 9), mode="bilinear")
        weight = torch.ones(1, 1, *source.shape[2:])
        if masked:
            weight = F.interpolate(m[:, None], size=source.shape[2:], mode="bilinear")
        part = out[:, :, y // 8 : y // 8 + source.shape[2], x // 8 : x // 8 + source.shape[3]]
        h, w = part.shape[2:]
        part[:] = weight[:, :, :h, :w] * source[:, :, :h, :w] + (1 - weight[:, :, :h, :w]) * part
        inputs = {"destination": image("latent"), "source": image("latent_t"), "x": x, "y": y, "resize_source": resizes}
        case("LatentCompositeMasked", inputs | ({"mask": image("m")} if masked else {}), latent(out, SUMS * 3))
    for k, rotation in enumerate(("none", "90 degrees", "180 degrees", "270 degrees")):
        case("LatentRotate", {"samples": image("latent"), "rotation": rotation}, latent(torch.rot90(s, k, [3, 2])))
    case("LatentFlip", {"samples": image("latent"), "flip_method": "x-axis: vertically"}, latent(s.flip(2)))
    case("LatentFlip", {"samples": image("latent"), "flip_method": "y-axis: horizontally"}, latent(s.flip(3)))
    case("LatentCrop", {"samples": image("latent"), "width": 64, "height": 64, "x": 8, "y": 80},
         latent(s[:, :, 2:10, 1:9]))
    for dim, axis in (("x", -1), ("-y", -2), ("t", -3)):
        other = video * 2
        pair = (other, video) if dim.startswith("-") else (video, other)
        case("LatentConcat", {"samples1": image("latent_v"), "samples2": ["double", 0], "dim": dim},
             latent(torch.cat(pair, axis)),
             more={"double": {"class_type": "LatentMultiply", "inputs": {"samples": image("latent_v"), "multiplier": 2}}})
    for dim, index, amount, part in (("x", 2, 3, video[..., 2:5]), ("y", -2, 9, video[..., -2:, :]),
                                     ("t", 4, 7, video[:, :, 4:]), ("t", -99, 2, video[:, :, :2])):
        case("LatentCut", {"samples": image("latent_v"), "dim": dim, "index": index, "amount": amount}, latent(part))
    case("LatentCutToBatch", {"samples": image("latent_v"), "dim": "t", "slice_size": 2},
         latent(torch.cat([video[:, :, :2], video[:, :, 2:4]])))
    case("LatentCutToBatch", {"samples": image("latent"), "dim": "x", "slice_size": 4},
         latent(torch.stack([s[0, ..., :4], s[0, ..., 4:8], s[1, ..., :4], s[1, ..., 4:8]])))
    case("TrimVideoLatent", {"samples": image("latent_v"), "trim_amount": 2}, latent(video[:, :, 2:]))
    video_frames(video)
    case("LatentBatchSeedBehavior", {"samples": image("latent"), "seed_behavior": "fixed"}, latent(s))
    empty()
    bislerps(s, t)


def video_frames(video):
    # A later frame far from the others, for each bound to be met somewhere.
    moved = torch.cat([video[:, :, :2] * 0.1 - 1, video[:, :, 2:3] * 3 + 2, video[:, :, 3:]], 2)
    pair = torch.cat([moved, video])
    for samples, name in ((video, "latent_v"), (moved, "latent_moved"), (pair, "latent_pair")):
        if name != "latent_v":
            goldens["in." + name] = samples.contiguous()
        for begin, count in ((1, 5), (3, 1), (4, 99)):
            first, behind = samples[:, :, :begin], samples[:, :, begin:begin + min(count, samples.shape[2] - 1)]
            mean, deviation = first.mean(dim=(1, 3, 4), keepdim=True), first.std(dim=(1, 3, 4), keepdim=True)
            to_mean = torch.clamp(behind.mean(), mean - 0.3, mean + 0.35)
            to_deviation = torch.clamp(behind.std(), deviation - 0.35, deviation + 0.5)
            out = torch.cat([(first - mean) / (deviation + 1e-8) * to_deviation + to_mean, samples[:, :, begin:]], 2)
            case("NormalizeVideoLatentStart", {"latent": image(name), "start_frame_count": begin, "reference_frame_count": count},
                 {"latent.samples": (out, SUMS * 3)})
    part = {"part": {"class_type": "LatentCut", "inputs": {"samples": image("latent_moved"), "dim": "t", "index": 1, "amount": 2}}}
    for name, samples in (("latent_v", video), ("latent_pair", pair)):
        for index, begin in ((0, 0), (3, 3), (-4, 1), (4, None), (-6, None)):
            out = samples.clone()
            if begin is not None:
                out[:, :, begin:begin + 2] = moved[:, :, 1:3]
            case("ReplaceVideoLatentFrames", {"destination": image(name), "source": ["part", 0], "index": index},
                 {"LATENT": (out, EXACT)}, more=part)
    case("ReplaceVideoLatentFrames", {"destination": image("latent_v"), "index": 1}, {"LATENT": (video, EXACT)})


def empty():
    size = {"width": 64, "height": 64, "batch_size": 1}
    for node, shape, more in (
            ("EmptyFlux2LatentImage", (128, 4, 4), {}), ("EmptyHunyuanImageLatent", (64, 2, 2), {}),
            ("EmptyChromaRadianceLatentImage", (3, 64, 64), {}),
            ("EmptyHunyuanLatentVideo", (16, 7, 8, 8), {"length": 25}),
            ("EmptyHunyuanVideo15Latent", (32, 7, 4, 4), {"length": 25}),
            ("EmptyLTXVLatentVideo", (128, 4, 2, 2), {"length": 25}),
            ("EmptyMochiLatentVideo", (12, 5, 8, 8), {"length": 25}),
            ("EmptyCosmosLatentVideo", (16, 4, 8, 8), {"length": 25}),
            ("EmptyQwenImageLayeredLatentImage", (16, 4, 8, 8), {"layers": 3})):
        case(node, size | more, {"LATENT": (torch.zeros(1, *shape), EXACT)})


def slerp(a, b, r):
    """Rows of a and b, directions and lengths apart."""
    na, nb = a.norm(dim=-1, keepdim=True), b.norm(dim=-1, keepdim=True)
    ua, ub = a / na, b / nb
    ua[(na == 0).expand_as(ua)] = 0
    ub[(nb == 0).expand_as(ub)] = 0
    dot = (ua * ub).sum(1)
    omega = torch.acos(dot)
    so = torch.sin(omega)
    out = (torch.sin((1 - r[:, 0]) * omega) / so)[:, None] * ua + (torch.sin(r[:, 0] * omega) / so)[:, None] * ub
    out = out * (na * (1 - r) + nb * r)
    out[dot > 1 - 1e-5] = a[dot > 1 - 1e-5]
    opposite = dot < 1e-5 - 1
    out[opposite] = (a * (1 - r) + b * r)[opposite]
    return out


def bislerp(x, height, width):
    for axis, new in ((3, width), (2, height)):
        old = x.shape[axis]
        first = F.interpolate(torch.arange(old).float()[None, None, None], size=(1, new), mode="bilinear")[0, 0, 0]
        after = torch.arange(old).float() + 1
        after[-1] -= 1
        second = F.interpolate(after[None, None, None], size=(1, new), mode="bilinear")[0, 0, 0]
        ratio = first - first.floor()
        moved = x.movedim(1, -1).movedim(axis - 1, -2)  # channels last, the axis before them
        a, b = moved[..., first.long(), :], moved[..., second.long(), :]
        r = ratio[:, None].expand(*a.shape[:-1], 1)
        mixed = slerp(a.reshape(-1, a.shape[-1]), b.reshape(-1, a.shape[-1]), r.reshape(-1, 1)).reshape(a.shape)
        x = mixed.movedim(-2, axis - 1).movedim(-1, 1)
    return x


def bislerps(s, t):
    case("LatentUpscale", {"samples": image("latent"), "upscale_method": "bislerp", "width": 136, "height": 104, "crop": "disabled"},
         {"LATENT": (bislerp(s, 13, 17), 2e-5)})
    case("LatentUpscaleBy", {"samples": image("latent_t"), "upscale_method": "bislerp", "scale_by": 0.6},
         {"LATENT": (bislerp(t, round(6 * 0.6), round(7 * 0.6)), 2e-5)})


if __name__ == "__main__":
    a = rand("a", 2, 7, 10, 3, seed=1)
    small = rand("small", 1, 5, 4, 3, seed=2)
    m = rand("m", 2, 7, 10, seed=3)
    n = rand("n", 1, 4, 9, seed=4)
    edgy = F.interpolate(rand("coarse", 1, 3, 6, 7, seed=5), size=(24, 31), mode="bicubic").clamp(0, 1)
    del goldens["in.coarse"]
    goldens["in.edgy"] = edgy = nhwc(edgy).contiguous()
    masks(a, small, m, n)
    composites(a, small, m, n, goldens["in.rgba"])
    transforms(a, small)
    filters(a, edgy)
    latents()
    save_file({k: v.clone().contiguous() for k, v in goldens.items()}, os.path.join(HERE, "picture_goldens.safetensors"))
    with open(os.path.join(HERE, "picture_cases.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(len(cases), "cases of", len({c["class"] for c in cases}), "nodes")
