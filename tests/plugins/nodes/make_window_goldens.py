"""Writes window_goldens.safetensors beside this file: runs over the tiny random models that see the latent in context windows,
computed with PyTorch.

    make_window_goldens.py        (needs what make_goldens.py needs)

Windows are those of ../samplers/window_reference.py, models and levels those of make_goldens.py and make_concat_goldens.py.
"""
import os

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from make_goldens import FLUX_SCALE, FLUX_SHIFT, flux, scoped_mean, simple, table, velocity
import make_concat_goldens as concat
from sampler_reference import SAMPLERS
from window_reference import look, predict, region, repeat_noise, shares, windows_at

HERE = os.path.dirname(os.path.abspath(__file__))
given = load_file(os.path.join(HERE, "goldens.safetensors"))
conds = {name: (given[f"in.{name}.cross_attn"], given[f"in.{name}.pooled_output"]) for name in ("one", "two", "three")}
levels, model = table(1.0), flux(False)
goldens = {}


def evened(x):
    """Odd sides are completed with the first row or column."""
    return F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2), mode="circular")


def picture(cond):
    def seen(x, sigma):
        return x - sigma * velocity(model, evened(x), sigma, cond)[..., :x.shape[2], :x.shape[3]]
    return seen


class Windows:
    def __init__(self, dim, length, overlap, schedule="standard_static", stride=1, closed=False, fuse="pyramid", retained=(),
                 anchored=True):
        self.dim, self.fuse, self.retained, self.anchored = dim, fuse, retained, anchored
        self.given, self.schedule = (length, overlap, stride, closed), schedule

    def at(self, full, step):
        length, overlap, stride, closed = self.given
        windows = windows_at(self.schedule, full, length, overlap, stride, closed, step)
        return windows, shares(windows, self.fuse, full, overlap)

    def __call__(self, x, step, seen):
        """seen(window, x in it): its prediction."""
        windows, parts = self.at(x.shape[self.dim], step)
        self.shifted = getattr(self, "shifted", set()) | {str(windows)}
        return predict(lambda k, x: seen(windows[k], x), x, self.dim, windows, parts, self.retained, self.anchored)


def draw(sampler, sigmas, noise, denoised):
    """denoised(x, sigma, the step of the run that has this level)."""
    def seen(x, sigma):
        step = next(i for i, level in enumerate(sigmas) if abs(level - sigma) <= 1e-4 * sigma)
        return denoised(torch.from_numpy(np.asarray(x)).float(), sigma, step).double().numpy()
    end = SAMPLERS[sampler](seen, noise.double().numpy(), np.array(sigmas), None, True, 1.0)
    return torch.from_numpy(end).float()


def noise(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(7))


def mixed(positive, negative, cfg=3.0):
    return negative + cfg * (positive - negative)


one, two, three = (picture(conds[name]) for name in ("one", "two", "three"))

wide = Windows(3, 4, 1, "standard_uniform")
goldens["width"] = draw("euler", simple(levels, 4), noise(1, 4, 6, 8), lambda x, s, k: mixed(
    wide(x, k, lambda w, x: one(x, s)), wide(x, k, lambda w, x: two(x, s))))
assert len(wide.shifted) > 1

ring = Windows(2, 3, 1, "looped_uniform", stride=2, closed=True, fuse="relative", retained=(0, -1), anchored=False)
goldens["ring"] = draw("heun", simple(levels, 3), repeat_noise(noise(2, 4, 6, 8), 2, 3, 1, 7), lambda x, s, k: mixed(
    ring(x, k, lambda w, x: one(x, s)), ring(x, k, lambda w, x: two(x, s))))
assert len(ring.shifted) > 1

items = Windows(0, 2, 1, fuse="overlap-linear")
goldens["divided"] = draw("euler", simple(levels, 3), noise(5, 4, 6, 8), lambda x, s, k: mixed(
    items(x, k, lambda w, x: (one, three)[region(w, 5, 2)](x, s)), items(x, k, lambda w, x: two(x, s))))

whole, always, area = torch.ones(6, 8), (2.0, -1.0), (4, 4, 2, 4)
entries = {"positive": [(conds["one"], 0.7 * whole, area, always), (conds["three"], 0.5 * whole, None, always)],
           "negative": [(conds["two"], whole, None, always), (conds["two"], 0.7 * whole, area, always)]}
apart = Windows(0, 2, 1, "batched", anchored=False)
scoped = lambda name, x, s, k: apart(x, k, lambda w, x: scoped_mean(model, entries[name], x.shape)(x, s))
goldens["areas"] = draw("euler", simple(levels, 3), noise(5, 4, 6, 8),
                        lambda x, s, k: mixed(scoped("positive", x, s, k), scoped("negative", x, s, k)))

beside = concat.beside(load_file(os.path.join(HERE, "concat_goldens.safetensors"))["in.image.concat_latent_image"], None, 6, 8)
strips = Windows(3, 4, 1, fuse="flat")


def by_picture(window, x, sigma):
    part = evened(look(window, beside, 3, (0,))[0])
    return concat.denoised(concat.canny, part)(evened(x), sigma)[..., :x.shape[3]]


goldens["beside"] = draw("euler", simple(levels, 3), noise(1, 4, 6, 8), lambda x, s, k: strips(x, k, lambda w, x: by_picture(w, x, s)))

save_file({name: tensor.float().contiguous() for name, tensor in goldens.items()}, os.path.join(HERE, "window_goldens.safetensors"))
for name, tensor in sorted(goldens.items()):
    print(name, tuple(tensor.shape), float(tensor.double().norm()))
