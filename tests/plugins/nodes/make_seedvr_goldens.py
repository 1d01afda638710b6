"""Writes seedvr_goldens.safetensors and seedvr_cases.json beside this file: what SeedVR2's nodes that need no model
make of small inputs, computed with PyTorch and torchvision's rule of resizing (bicubic with antialiasing).

    make_seedvr_goldens.py        (needs torch, safetensors)

Cases are as in make_list_goldens.py. Sources: the meaning that ComfyUI's classes have, CIE 15, StableSR's low
frequencies, AdaIN.
"""

import json
import math
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
EXACT, SUMS, LAB = 0.0, 2e-6, 4e-5  # LAB: f32 roundings of a curve whose slope at black is 12.92
goldens, cases = {}, []


def given(name, *shape, seed, normal=False):
    g = torch.Generator().manual_seed(seed)
    goldens["in." + name] = (torch.randn if normal else torch.rand)(*shape, generator=g)
    return goldens["in." + name]


def case(node, inputs, outputs, more=None):
    number = sum(c["class"] == node for c in cases)
    record = {"class": node, "inputs": inputs, "outputs": [], "more": more or {}}
    for output, (tensor, tolerance) in outputs.items():
        golden = f"{node}.{number}.{output}"
        goldens[golden] = tensor.float().contiguous()
        record["outputs"].append([output, golden, tolerance])
    cases.append(record)


def link(name):
    return [name, 0]


# Pictures (T, 3, H, W) from -1 to 1 from here on.


def low(x):
    most = max(1, min(x.shape[-2:]) // 8)
    kernel = torch.tensor([1.0, 2.0, 1.0])
    kernel = (kernel[:, None] * kernel[None] / 16).expand(x.shape[1], 1, 3, 3)
    for level in range(5):
        step = min(2**level, most)
        x = F.conv2d(F.pad(x, (step,) * 4, mode="replicate"), kernel, groups=x.shape[1], dilation=step)
    return x


def wavelet(x, y):
    return (x - low(x) + low(y)).clamp(-1, 1)


TO_XYZ = torch.tensor([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                       [0.0193339, 0.1191920, 0.9503041]], dtype=torch.float64)
FROM_XYZ = torch.tensor([[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560],
                         [0.0556434, -0.2040259, 1.0572252]], dtype=torch.float64)
WHITE = torch.tensor([0.95047, 1.0, 1.08883], dtype=torch.float64)
DELTA, KAPPA = 6 / 29, (29 / 3) ** 3


def to_lab(x):
    """(N, 3) from 0 to 1."""
    linear = torch.where(x > 0.04045, ((x + 0.055) / 1.055) ** 2.4, x / 12.92)
    t = linear @ TO_XYZ.T / WHITE
    f = torch.where(t > DELTA**3, t ** (1 / 3), (KAPPA * t + 16) / 116)
    return torch.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1)


def from_lab(lab):
    y = (lab[:, 0] + 16) / 116
    f = torch.stack([lab[:, 1] / 500 + y, y, y - lab[:, 2] / 200], 1)
    linear = torch.where(f > DELTA, f**3, (116 * f - 16) / KAPPA) * WHITE @ FROM_XYZ.T
    shown = torch.where(linear > 0.0031308, 1.055 * linear.clamp(min=0) ** (1 / 2.4) - 0.055, 12.92 * linear)
    return shown.clamp(0, 1)


def lab(x, y):
    x = wavelet(x, y)
    out = []
    for own, wanted in zip(x, y):
        own, wanted = (to_lab(((z.double().flatten(1).T + 1) / 2).clamp(0, 1)).float().double() for z in (own, wanted))
        matched = torch.empty_like(own)
        for c in range(3):
            matched[own[:, c].sort(stable=True).indices, c] = wanted[:, c].sort().values
        matched[:, 0] = 0.8 * own[:, 0] + 0.2 * matched[:, 0]
        out.append((2 * from_lab(matched) - 1).T.reshape(x.shape[1:]))
    return torch.stack(out).float()


def adain(x, y):
    def moments(z):
        return z.mean((2, 3), keepdim=True), (z.var((2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
    (m, s), (n, t) = moments(x), moments(y)
    return ((x - m) / s * t + n).clamp(-1, 1)


def preprocesses():
    for frames, height, width, channels, seed in ((1, 16, 17, 3, 1), (3, 5, 33, 4, 2), (7, 18, 2, 3, 3), (5, 16, 16, 3, 4)):
        x = given(f"pictures_{seed}", frames, height, width, channels, seed=seed) * 1.4 - 0.2
        goldens[f"in.pictures_{seed}"] = x
        y = x[..., :3].clamp(0, 1)
        y = F.pad(y, (0, 0, 0, -width % 16, 0, -height % 16))
        y = torch.cat([y, y[-1:].repeat(-(frames - 1) % 4, 1, 1, 1)])
        case("SeedVR2Preprocess", {"resized_images": link(f"pictures_{seed}")}, {"images": (y, EXACT)})


def postprocesses():
    drawn = given("drawn", 3, 32, 32, 3, seed=11)
    film = given("film", 2, 29, 25, 3, seed=12) ** 2
    clear = given("clear", 2, 28, 31, 4, seed=13) * 0.7
    large = given("large", 1, 43, 37, 3, seed=14)
    goldens["in.film"], goldens["in.clear"] = film, clear
    methods = {"lab": (lab, LAB), "wavelet": (wavelet, SUMS), "adain": (adain, 2 * SUMS), "none": (None, EXACT)}
    for name, reference in (("film", film), ("clear", clear), ("large", large)):
        for method, (f, tolerance) in methods.items():
            frames, height, width = (min(a, b) for a, b in zip(drawn.shape, reference.shape[:3]))
            x, y = drawn[:frames, :height, :width], reference[:frames]
            if f:
                planes = y[..., :3].permute(0, 3, 1, 2)
                if planes.shape[2:] != (height, width):
                    planes = F.interpolate(planes, size=(height, width), mode="bicubic", antialias=True)
                x = (f(x.permute(0, 3, 1, 2) * 2 - 1, planes * 2 - 1).permute(0, 2, 3, 1) + 1) / 2
                x = x.clamp(0, 1)
            if reference.shape[-1] == 4:
                x = torch.cat([x, y[:, :height, :width, 3:]], -1)
            x = x[:, : height // 2 * 2, : width // 2 * 2]
            case("SeedVR2PostProcessing", {"images": link("drawn"), "original_resized_images": link(name),
                                           "color_correction_method": method}, {"images": (x, tolerance)})


def merged(chunks, overlap):
    size = chunks[0].shape[2]
    step = size - min(overlap, size - 1)
    out = chunks[0]
    for i, chunk in enumerate(chunks[1:], 1):
        shared = min(out.shape[2] - i * step, chunk.shape[2])
        u = torch.linspace(0, 1, shared)
        w = (0.5 + 0.5 * torch.cos(math.pi * (3 * u - 1).clamp(0, 1)))[:, None, None]
        mixed = out[:, :, i * step : i * step + shared] * w + chunk[:, :, :shared] * (1 - w)
        out = torch.cat([out[:, :, : i * step], mixed, chunk[:, :, shared:]], 2)
    return out


def parts():
    x = given("latent_film", 2, 16, 11, 3, 2, seed=21, normal=True)

    def split(frames, overlap):
        return {"latent": link("latent_film"), "temporal_overlap": overlap, "chunking_mode": "manual",
                "chunking_mode.frames_per_chunk": frames}

    for frames, overlap, begins in ((13, 0, (0, 4, 8)), (17, 2, (0, 3, 6)), (9, 99, range(9)), (41, 3, (0,))):
        size = (frames - 1) // 4 + 1
        case("SeedVR2TemporalChunk", split(frames, overlap),
             {f"latents.{i}.samples": (x[:, :, b : b + size], EXACT) for i, b in enumerate(begins)})
    case("SeedVR2TemporalChunk", {"latent": link("latent_film"), "temporal_overlap": 2, "chunking_mode": "auto"},
         {"latents.0.samples": (x, EXACT)})
    for number, (sizes, overlap) in enumerate((((5, 5, 4), 3), ((4, 4), 1), ((3, 2), 2), ((2, 2, 1), 0), ((6,), 2), ((6, 6), 5))):
        chunks = [given(f"latent_{number}{i}", 1, 16, t, 2, 3, seed=30 + 10 * number + i, normal=True) for i, t in enumerate(sizes)]
        more = {"listed": {"class_type": "CreateList", "inputs": {
            f"inputs.input{i}": link(f"latent_{number}{i}") for i in range(len(chunks))}},
            "overlap": {"class_type": "PrimitiveInt", "inputs": {"value": overlap}}}
        case("SeedVR2TemporalMerge", {"latents": link("listed"), "temporal_overlap": link("overlap")},
             {"latent.samples": (merged(chunks, overlap) if overlap else torch.cat(chunks, 2), SUMS)}, more)
    split_first = {"class_type": "SeedVR2TemporalChunk", "inputs": split(17, 2)}
    case("SeedVR2TemporalMerge", {"latents": ["parts", 0], "temporal_overlap": ["parts", 1]},
         {"latent.samples": (x, SUMS)}, {"parts": split_first})


def main():
    preprocesses()
    postprocesses()
    parts()
    save_file({k: v.clone().contiguous() for k, v in goldens.items()}, os.path.join(HERE, "seedvr_goldens.safetensors"))
    with open(os.path.join(HERE, "seedvr_cases.json"), "w") as out:
        out.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
    print(len(cases), "cases")


main()
