"""Writes guide_goldens.safetensors beside this file: levels of single families of models, and runs over the tiny random
models whose model, blocks or noise a node has changed, computed with PyTorch.

    make_guide_goldens.py        (needs what make_goldens.py needs)

Models, inputs and the way from a seed to a latent are those of make_goldens.py.
"""
import math
import os

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from scipy.stats import norm

import make_goldens as base
from make_goldens import FLUX_SCALE, FLUX_SHIFT, flux, flux_table, run, simple, table, velocity

HERE = os.path.dirname(os.path.abspath(__file__))
given = load_file(os.path.join(HERE, "goldens.safetensors"))
conds = {name: (given[f"in.{name}.cross_attn"], given[f"in.{name}.pooled_output"]) for name in ("one", "two", "three")}
raw, shape = given["in.latent"], (1, 4, 6, 8)
goldens = {}


# --- levels


def shifted_times(mu, steps):
    t = torch.linspace(1, 0, steps + 1)
    return math.exp(mu) / (math.exp(mu) + (1 / t - 1))


def flux2(steps, width, height):
    tokens = round(width * height / 256)
    many = 0.00016927 * tokens + 0.45666666
    few = 8.73809524e-05 * tokens + 1.89833333
    slope = (many - few) / 190
    return shifted_times(many if tokens > 4300 else slope * steps + many - 200 * slope, steps)


def ideogram4(steps, width, height, mu, std):
    mean = mu + 0.5 * math.log(width * height / 262144)
    z = mean + std * norm.ppf(np.linspace(0, 1, steps + 1))
    t = (1 - 1 / (1 + np.exp(-z))).clip(1 / (1 + math.exp(9)), 1 / (1 + math.exp(-7.5)))
    sigmas = (1 - t)[::-1].copy()
    sigmas[-1] = 0
    return torch.from_numpy(sigmas)


def ltxv(steps, tokens, terminal):
    slope = (2.05 - 0.95) / (4096 - 1024)
    sigmas = shifted_times(tokens * slope + 0.95 - slope * 1024, steps)
    if terminal is not None:
        sigmas[:-1] = 1 - (1 - sigmas[:-1]) / ((1 - sigmas[-2]) / (1 - terminal))
    return sigmas


def cascade_sigma(t, shift):
    s = torch.tensor(8e-3, dtype=torch.float64)
    alpha = torch.cos((t + s) / (1 + s) * math.pi / 2) ** 2 / torch.cos(s / (1 + s) * math.pi / 2) ** 2
    alpha = torch.sigmoid(torch.log(alpha / (1 - alpha)) - 2 * math.log(shift)).clamp(0.0001, 0.9999)
    return ((1 - alpha) / alpha).sqrt()


def levels():
    goldens["flux2.few"], goldens["flux2.many"] = flux2(20, 1024, 1024), flux2(4, 1536, 1024)
    goldens["ideogram4.plain"], goldens["ideogram4.moved"] = ideogram4(20, 1024, 1024, 0, 1.75), ideogram4(7, 512, 768, -0.5, 0.7)
    goldens["ltxv.plain"], goldens["ltxv.to_the_end"] = ltxv(8, 4096, None), ltxv(3, 48, 0.0)
    goldens["cascade"] = torch.tensor(simple(cascade_sigma(torch.arange(1, 10001, dtype=torch.float64) / 10000, 2.0), 5))


# --- runs


def step_of(model, cond, guidance=None):
    return lambda x, s: x - s * velocity(model, x, s, cond, guidance)


class Skipping:
    """A model some of whose blocks hand on what they get."""

    def __init__(self, doubles, singles):
        model = flux(False)
        # A double block gives (text, picture), a single block too: what came in.
        for index in doubles:
            model.transformer_blocks[index].forward = lambda hidden_states, encoder_hidden_states, **_: (encoder_hidden_states, hidden_states)
        for index in singles:
            model.single_transformer_blocks[index].forward = lambda hidden_states, encoder_hidden_states, **_: (encoder_hidden_states, hidden_states)
        self.model = model


def runs():
    model, dev = flux(False), flux(True)
    one, two = conds["one"], conds["two"]
    p, n = step_of(model, one), step_of(model, two)
    cfg = lambda positive, negative: lambda x, s: negative(x, s) + 3.0 * (positive(x, s) - negative(x, s))

    def golden(name, denoised, sigmas=None, sampler="euler", **more):
        goldens[name] = run(sampler, sigmas or simple(table(1.0), 4), shape, 7, denoised, **more)

    # The weights of the two models are the same but for the guidance.
    golden("unguided", p, simple(flux_table(1.15), 3))
    mu = 48 * (2.05 - 0.95) / (4096 - 1024) + 0.95 - (2.05 - 0.95) / (4096 - 1024) * 1024
    golden("ltxv_model", p, simple(flux_table(mu), 3))

    scaled = (raw - FLUX_SHIFT) * FLUX_SCALE
    noise = torch.randn(raw.shape, generator=torch.Generator().manual_seed(9))
    goldens["noised"] = 0.75 * noise + 0.25 * scaled
    goldens["blended"] = torch.lerp(raw, F.interpolate(raw[1:, ..., :5], size=(6, 8), mode="nearest-exact"), 0.3)
    plain = torch.randn
    torch.randn = lambda *args, **more: 2.0 * plain(*args, **more)
    golden("noise_scale", p, sampler="euler_ancestral")
    torch.randn = plain

    golden("two_models", cfg(p, step_of(dev, two, 3.5)))
    skipped = step_of(Skipping([1], [0]).model, one)

    def skip_layers(scale, rescaling, least, most, skipped=skipped):
        def denoised(x, s):
            result = cfg(p, n)(x, s)
            if not least <= np.float32(s) <= most:
                return result
            c = p(x, s)
            result = result + scale * (c - skipped(x, s))
            if rescaling:
                result = result * (rescaling * c.std() / result.std() + 1 - rescaling)
            return result
        return denoised

    golden("skip_layers", skip_layers(2.5, 0.0, 0.3, 0.8))
    golden("skip_layers_rescaled", skip_layers(2.5, 0.6, 0.0, 1.0))
    golden("skip_double_layers", skip_layers(2.0, 0.0, 0.0, 1.0, step_of(Skipping([0, 1], []).model, one)))
    less = step_of(Skipping([1], [0]).model, two)
    golden("skip_layers_of_negative", lambda x, s: cfg(p, less if 0.3 <= np.float32(s) <= 0.8 else n)(x, s))


if __name__ == "__main__":
    levels()
    runs()
    save_file({name: tensor.float().contiguous() for name, tensor in goldens.items()}, os.path.join(HERE, "guide_goldens.safetensors"))
    for name, tensor in sorted(goldens.items()):
        print(name, tuple(tensor.shape), float(tensor.double().norm()))
