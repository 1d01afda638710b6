"""Writes patch_golden.json beside it: what patches of predictions and latent operations make of random numbers.

    python make_patch_goldens.py        (needs PyTorch)

Each formula is written out in tensors, in double precision, from its paper or from ComfyUI's definition: guidance of
several conditionings, averages over areas and masks.
"""
import json
import math
import pathlib

import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
SHAPE = (2, 3, 5, 8)
SIGMA = 0.7


def draw(seed, shape=SHAPE, scale=1.0):
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).float().double()


X, COND, UNCOND, OWN = draw(1), draw(2), draw(3), draw(4)
dims = (1, 2, 3)


def norm(t, dim=dims):
    return torch.linalg.vector_norm(t, dim=dim, keepdim=True)


def plain(c, u, cfg):
    return u + (c - u) * cfg


def rescale(m, cfg):
    x = X / (SIGMA**2 + 1)
    v = lambda d: (x - d) * math.sqrt(SIGMA**2 + 1) / SIGMA
    mixed = plain(v(COND), v(UNCOND), cfg)
    scaled = mixed * (v(COND).std(dim=dims, keepdim=True) / mixed.std(dim=dims, keepdim=True))
    return x - (m * scaled + (1 - m) * mixed) * SIGMA / math.sqrt(SIGMA**2 + 1)


def renorm(trunc, most, cfg):
    if SIGMA >= trunc:
        return COND
    mixed = plain(COND, UNCOND, cfg)
    longest = norm(COND) * most
    return torch.where(norm(mixed) >= longest, mixed * longest / norm(mixed), mixed) if most > 0 else mixed


def perp_neg(neg_scale, cfg):
    p, q = COND - OWN, UNCOND - OWN
    return OWN + cfg * (p - neg_scale * (q - (q * p).sum() / p.norm() ** 2 * p))


def apg(eta, threshold, momentum, cfg):
    """Two evaluations: the second has the first one's guidance in its average."""
    average = COND - UNCOND
    guidance = momentum * average + average if momentum else average
    if threshold > 0:
        guidance = guidance * torch.minimum(torch.ones_like(norm(guidance)), threshold / norm(guidance))
    unit = COND / norm(COND)
    parallel = (guidance * unit).sum(dim=dims, keepdim=True) * unit
    changed = UNCOND + (guidance - parallel) + eta * parallel + (COND - UNCOND) / cfg
    return plain(changed, UNCOND, cfg)


def fresca(low, high, cutoff, cfg):
    at = torch.fft.fftshift(torch.fft.fftn(COND - UNCOND, dim=(-2, -1)), dim=(-2, -1))
    row, column = SHAPE[-2] // 2, SHAPE[-1] // 2
    scale = torch.full(SHAPE, high, dtype=torch.float64)
    scale[..., row - cutoff:row + cutoff, column - cutoff:column + cutoff] = low
    changed = torch.fft.ifftn(torch.fft.ifftshift(at * scale, dim=(-2, -1)), dim=(-2, -1)).real
    return plain(UNCOND + changed, UNCOND, cfg)


def cfg_norm(strength, cfg):
    mixed = plain(COND, UNCOND, cfg)
    return mixed * (norm(COND, 1) / (norm(mixed, 1) + 1e-8)).clamp(0, 1) * strength


def cfg_norm_noise(strength, cfg):
    c, mixed = X - COND, X - plain(COND, UNCOND, cfg)
    return X - (strength * mixed * norm(c, 1) / norm(mixed, 1) + (1 - strength) * mixed)


def zero_star(cfg):
    p, n = (X - COND).flatten(1), (X - UNCOND).flatten(1)
    scale = ((p * n).sum(1) / ((n * n).sum(1) + 1e-8))[:, None, None, None]
    return plain(COND, UNCOND * scale, cfg)


def tcfg(cfg):
    rows = torch.stack([(X - UNCOND).flatten(1), (X - COND).flatten(1)], 1)
    v = torch.linalg.svd(rows, full_matrices=False).Vh[:, :1]
    damped = (rows[:, :1] @ v.transpose(1, 2) * v).reshape(SHAPE)
    return plain(COND, X - damped, cfg)


def mahiro(cfg):
    root = lambda t: t.abs().sqrt() * t.sign()
    leap, mixed = COND * cfg, plain(COND, UNCOND, cfg)
    alike = 2 * (F.cosine_similarity(root(UNCOND * cfg), root((leap + mixed) / 2)).mean() + 1)
    return (alike * mixed + (4 - alike) * leap) / 4


def rescore(k, sigma, cfg):
    alpha = 1 - SIGMA  # of a flow
    snr = (alpha / SIGMA) ** 2
    ratio = (snr * sigma**2 + 1) / (snr * sigma**2 / k + 1)
    return torch.lerp(X / alpha, plain(COND, UNCOND, cfg), ratio)


def by_item(scales):
    scale = torch.tensor(scales, dtype=torch.float64)[:, None, None, None]
    return UNCOND + scale * (COND - UNCOND)


def tonemap(t, multiplier):
    length = norm(t, 1) + 1e-10
    top = (length.std(dim=dims, keepdim=True) * 5 + length.mean(dim=dims, keepdim=True)) * multiplier
    return t / length * top * (length / top) / (length / top + 1)


def sharpen(t, radius, sigma, alpha):
    length = norm(t, 1) + 1e-6
    at = torch.linspace(-1, 1, 2 * radius + 1, dtype=torch.float64)
    kernel = torch.exp(-(at[:, None] ** 2 + at[None] ** 2) / (2 * sigma**2))
    kernel = kernel / kernel.sum() * -10 * alpha
    kernel[radius, radius] += 1 - kernel.sum()
    padded = F.pad(t / length, (radius,) * 4, mode="reflect")
    return length * F.conv2d(padded, kernel.expand(t.shape[1], 1, *kernel.shape), groups=t.shape[1])


def flat(t):
    return [float("%.8g" % v) for v in t.flatten().tolist()]


def patch(name, cfg, result, **numbers):
    return {"name": name, "cfg": cfg, "numbers": numbers, "result": flat(result)}


PATCHES = [
    patch("rescale_cfg", 5.0, rescale(0.7, 5.0), multiplier=0.7),
    patch("renorm_cfg", 4.0, renorm(100, 1.0, 4.0), cfg_trunc=100, renorm_cfg=1.0),
    patch("renorm_cfg", 4.0, renorm(100, 0.0, 4.0), cfg_trunc=100, renorm_cfg=0.0),
    patch("renorm_cfg", 4.0, renorm(0.5, 1.0, 4.0), cfg_trunc=0.5, renorm_cfg=1.0),
    patch("perp_neg", 6.0, perp_neg(1.5, 6.0), neg_scale=1.5),
    patch("apg", 3.0, apg(0.5, 5.0, 0.0, 3.0), eta=0.5, norm_threshold=5.0, momentum=0.0),
    patch("apg", 3.0, apg(1.0, 0.0, -0.5, 3.0), eta=1.0, norm_threshold=0.0, momentum=-0.5),
    patch("fresca", 4.0, fresca(0.7, 1.4, 1, 4.0), scale_low=0.7, scale_high=1.4, freq_cutoff=1),
    patch("fresca", 4.0, fresca(0.7, 1.4, 2, 4.0), scale_low=0.7, scale_high=1.4, freq_cutoff=2),
    patch("fresca", 4.0, fresca(0.7, 1.4, 3, 4.0), scale_low=0.7, scale_high=1.4, freq_cutoff=3),
    patch("fresca", 4.0, fresca(0.7, 1.4, 20, 4.0), scale_low=0.7, scale_high=1.4, freq_cutoff=20),
    patch("cfg_norm", 4.0, cfg_norm(0.9, 4.0), strength=0.9),
    patch("cfg_norm_noise", 4.0, cfg_norm_noise(0.6, 4.0), strength=0.6),
    patch("cfg_zero_star", 4.0, zero_star(4.0)),
    patch("tcfg", 4.0, tcfg(4.0)),
    patch("mahiro", 4.0, mahiro(4.0)),
    patch("epsilon_scaling", 4.0, X - (X - plain(COND, UNCOND, 4.0)) / 1.005, scaling_factor=1.005),
    patch("temporal_score_rescaling", 4.0, rescore(0.95, 1.3, 4.0), tsr_k=0.95, tsr_sigma=1.3),
    patch("video_linear_cfg", 4.0, by_item([1.5, 4.0]), min_cfg=1.5),
    patch("video_triangle_cfg", 4.0, by_item([1.5, 1.5]), min_cfg=1.5),
    patch("latent_operation_cfg", 4.0, plain(tonemap(COND - UNCOND, 0.5) + UNCOND, UNCOND, 4.0), multiplier=0.5,
          start_percent=0.0, end_percent=1.0),
]
OPERATIONS = [
    {"name": "tonemap_reinhard", "numbers": {"multiplier": 0.8}, "result": flat(tonemap(COND, 0.8))},
    {"name": "sharpen", "numbers": {"sharpen_radius": 3, "sigma": 0.7, "alpha": 0.2}, "result": flat(sharpen(COND, 3, 0.7, 0.2))},
]


# --- weights of several predictions: each counts by its strength and mask, fades at inner edges of its area over a quarter of
# it or 8 cells, and all are divided by their sum. An entry: strength, area (h, w, y, x) or None, mask or None, default.
GRID = (24, 40)
MASK = (torch.rand((2, *GRID), generator=torch.Generator().manual_seed(9)) > 0.4).double() * 0.5


def own_weight(strength, area, mask):
    weight = torch.zeros(2, *GRID, dtype=torch.float64)
    h, w, y, x = area or (*GRID, 0, 0)
    h, w = min(h, GRID[0] - y), min(w, GRID[1] - x)
    box = torch.full((2, h, w), strength, dtype=torch.float64)
    if mask:
        box *= MASK[:, y:y + h, x:x + w] * 0.8
    elif area:
        for axis, (size, at, whole) in ((1, (h, y, GRID[0])), (2, (w, x, GRID[1]))):
            r, view = min(8, size // 4), [1, 1, 1]
            view[axis] = size
            fade = torch.ones(size, dtype=torch.float64)
            ramp = torch.arange(1, r + 1, dtype=torch.float64) / r
            if at != 0:
                fade[:r] *= ramp
            if at + size < whole:
                fade[size - r:] *= ramp.flip(0)
            box *= fade.view(view)
    weight[:, y:y + h, x:x + w] = box
    return weight


def weigh(entries):
    own = [own_weight(*entry[:3]) for entry in entries]
    rest = (1 - sum(w for w, entry in zip(own, entries) if not entry[3])).clamp(min=0)
    own = [rest if entry[3] else w for w, entry in zip(own, entries)]
    total = sum(own)
    return [torch.where(total > 0, w / total.clamp(min=1e-30), 0.0) for w in own]


CASES = {
    "areas": [(1.0, (16, 20, 0, 0), False, False), (0.5, (20, 24, 8, 20), False, False), (0.25, None, False, False)],
    "mask": [(1.0, None, True, False), (2.0, (12, 12, 6, 6), True, False)],
    "default": [(0.75, (16, 20, 0, 0), False, False), (1.0, None, False, True)],
    "covered": [(1.0, None, False, False), (1.0, None, False, True)],
}
WEIGHTS = [{"name": name, "entries": [{"strength": s, "area": list(a or ()), "mask": m, "default": d} for s, a, m, d in case],
            "weights": [[float("%.7g" % v) for v in w.flatten()[::7].tolist()] for w in weigh(case)]} for name, case in CASES.items()]

if __name__ == "__main__":
    golden = {"shape": SHAPE, "sigma": SIGMA, "x": flat(X), "cond": flat(COND), "uncond": flat(UNCOND), "own": flat(OWN),
              "patches": PATCHES, "operations": OPERATIONS, "grid": GRID, "mask": flat(MASK), "weights": WEIGHTS}
    (HERE / "patch_golden.json").write_text(json.dumps(golden, separators=(",", ":")).replace("},{", "},\n{") + "\n")
