"""Writes nag_goldens.safetensors beside this file: runs over the tiny random models whose attention Normalized Attention
Guidance changes, computed with PyTorch.

    make_nag_goldens.py        (needs what make_goldens.py needs)

Models, inputs and the way from a seed to a latent are those of make_goldens.py and ../goldens/make_qwen_image_goldens.py. The
formula is that of arXiv 2505.21179 as ComfyUI's NAGuidance applies it: to the attention of a batch of the positive and the
negative conditioning, of its image tokens only, behind the softmax and before the projection.
"""
import os

import torch
from diffusers import QwenImageTransformer2DModel
from diffusers.models.transformers import transformer_flux, transformer_qwenimage
from safetensors.torch import load_file, save_file

from make_goldens import FLUX_SCALE, FLUX_SHIFT, flux, flux_table, run, shake, simple, table, velocity
import make_qwen_image_goldens as qwen  # found by what make_goldens.py does

HERE = os.path.dirname(os.path.abspath(__file__))
given = load_file(os.path.join(HERE, "goldens.safetensors"))
conds = {name: (given[f"in.{name}.cross_attn"], given[f"in.{name}.pooled_output"]) for name in ("one", "two", "three")}
raw = given["in.latent"]
goldens = {}


def normalized(positive, negative, scale, alpha, tau):
    guided = positive * scale - negative * (scale - 1)
    before = positive.abs().sum(-1, keepdim=True).clamp_min(1e-6)
    after = guided.abs().sum(-1, keepdim=True).clamp_min(1e-6)
    ratio = after / before
    Guided.cut += int((ratio > tau).sum())
    Guided.whole += int((ratio <= tau).sum())
    return guided * (ratio.clamp(max=tau) / ratio) * alpha + positive * (1 - alpha)


class Guided:
    """While it is entered, attentions of both models are guided; the batch is the positive half, then the negative one."""

    cut = whole = 0  # rows that tau bounds, and others

    def __init__(self, text, scale=5.0, alpha=0.5, tau=1.5):
        self.text, self.numbers = text, (scale, alpha, tau)

    def __enter__(self):
        self.plain = transformer_flux.dispatch_attention_fn, transformer_qwenimage.dispatch_attention_fn

        def attention(*args, **more):
            out = self.plain[0](*args, **more).flatten(2, 3)
            half, shape = out.shape[0] // 2, (args[0].shape[2], args[0].shape[3])
            image = out[:, self.text:]
            image[:half] = normalized(image[:half], image[half:], *self.numbers)
            return out.unflatten(2, shape)

        transformer_flux.dispatch_attention_fn = transformer_qwenimage.dispatch_attention_fn = attention

    def __exit__(self, *_):
        transformer_flux.dispatch_attention_fn, transformer_qwenimage.dispatch_attention_fn = self.plain


def both(model, x, sigma, positive, negative, nag, guidances=None):
    """What the model predicts of x by each conditioning, seen together. guidances: of a model that is told one."""
    items = x.shape[0]
    rows = tuple(torch.cat([p.expand(items, *p.shape[1:]), n.expand(items, *n.shape[1:])]) for p, n in zip(positive, negative))
    if guidances is None:
        plain = model
    else:
        told = torch.tensor(guidances).repeat_interleave(items)
        plain = lambda guidance, **inputs: model(guidance=told, **inputs)
    with nag:
        v = velocity(plain, torch.cat([x, x]), sigma, rows)
    return x - sigma * v[:items], x - sigma * v[items:]


def flux_runs():
    model, dev = flux(False), flux(True)
    one, two, three = (conds[name] for name in ("one", "two", "three"))
    shape, levels = (1, 4, 6, 8), table(1.0)
    cfg = lambda p, n, scale: n + scale * (p - n)

    goldens["nag"] = run("euler", simple(levels, 4), shape, 7, lambda x, s: cfg(*both(model, x, s, one, two, Guided(5)), 3.0))
    other = Guided(5, scale=3.0, alpha=0.25, tau=3.7)
    goldens["nag_cfg_1"] = run("euler", simple(levels, int(4 / 0.6))[-5:], (2, 4, 6, 8), 7,
                               lambda x, s: both(model, x, s, one, two, other)[0], latent=(raw - FLUX_SHIFT) * FLUX_SCALE)
    goldens["nag_guidance"] = run("euler", simple(flux_table(1.15), 3), shape, 7,
                                  lambda x, s: cfg(*both(dev, x, s, one, two, Guided(5), (2.0, 3.5)), 2.0))

    def combined(x, s):
        p, n = both(model, x, s, one, two, Guided(5))
        return cfg((p + x - s * velocity(model, x, s, three)) / 2, n, 3.0)

    goldens["nag_combined"] = run("euler", simple(levels, 4), shape, 7, combined)


def qwen_run():
    model = shake(QwenImageTransformer2DModel(**qwen.CONFIG), 12)
    text = load_file(os.path.join(HERE, "../goldens/qwen_image/expected.safetensors"))["in.long.cross_attn"]
    texts = torch.cat([text, torch.zeros_like(text)])
    sigmas = [torch.tensor(s) for s in simple(flux_table(1.15), 3)]
    x = torch.randn(1, qwen.CHANNELS, 6, 8, generator=torch.Generator().manual_seed(7)) * sigmas[0]
    for sigma, after in zip(sigmas, sigmas[1:]):
        with Guided(text.shape[1]):
            positive, negative = qwen.velocity(model, torch.cat([x, x]), sigma, texts).chunk(2)
        x = x + (negative + 2.5 * (positive - negative)) * (after - sigma)
    goldens["nag_qwen_image"] = x


if __name__ == "__main__":
    flux_runs()
    qwen_run()
    print("rows that tau bounds:", Guided.cut, "others:", Guided.whole)
    save_file({name: tensor.float().contiguous() for name, tensor in goldens.items()}, os.path.join(HERE, "nag_goldens.safetensors"))
    for name, tensor in sorted(goldens.items()):
        print(name, tuple(tensor.shape), float(tensor.double().norm()))
