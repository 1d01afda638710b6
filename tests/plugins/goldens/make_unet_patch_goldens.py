"""Writes unet/patches.safetensors: what UNets draw with FreeU, HyperTile and self-attention guidance.

    make_unet_patch_goldens.py

Needs what make_unet_goldens.py needs, whose UNets these are; texts are named tensors (seeded_weights.py). Formulas:
ComfyUI's, after https://arxiv.org/abs/2309.11497 (FreeU), https://github.com/tfernd/HyperTile and
https://arxiv.org/abs/2210.00939 (SAG), written down here with torch.fft, reshapes and softmax. "<kind>.<patch>" is the
end of a guided run of two steps.
"""

import math
import os

import torch
import torch.nn.functional as F
from diffusers.models.unets import unet_2d_blocks
from safetensors.torch import save_file

from make_unet_goldens import SIZES, denoiser, euler, make_unet, normal
from seeded_weights import seeded

torch.set_grad_enabled(False)
WIDTH, HEIGHT = 16, 8  # of the latent
CFG, STEPS = 4.0, 2


def texts(kind):
    width = 128 if kind == "sdxl" else 64
    told = []
    # SDXL's refiner is told that the negative picture looks bad.
    for name, tokens, score in (("one", 7, 6.0), ("two", 4, 2.5)):
        entry = [seeded(f"in.{name}.cross_attn", (1, tokens, width))]
        if kind in SIZES:
            more = [score] if SIZES[kind] == 5 else [8.0 * HEIGHT, 8 * WIDTH]
            entry += [seeded(f"in.{name}.pooled_output", (1, 64)), torch.tensor([[8.0 * HEIGHT, 8 * WIDTH, 0, 0, *more]])]
        told.append(entry)
    return told


def noised(levels, height=HEIGHT, width=WIDTH):
    noise = torch.randn(1, 4, height, width, generator=torch.Generator().manual_seed(7))
    return noise * math.sqrt(1 + levels[0] ** 2)


def low_waves_scaled(x, scale):
    waves = torch.fft.fftshift(torch.fft.fftn(x, dim=(-2, -1)), dim=(-2, -1))
    row, column = x.shape[-2] // 2, x.shape[-1] // 2
    waves[..., row - 1 : row + 1, column - 1 : column + 1] *= scale
    return torch.fft.ifftn(torch.fft.ifftshift(waves, dim=(-2, -1)), dim=(-2, -1)).real


def with_free_u(model, factors, by_mean):
    """diffusers calls apply_freeu where a stage upwards reads one of the way down."""
    first = model.config.block_out_channels[0]
    scales = {4 * first: factors[0::2], 2 * first: factors[1::2]}

    def changed(_, hidden, skip, **__):
        if hidden.shape[1] not in scales:
            return hidden, skip
        b, s = scales[hidden.shape[1]]
        factor = b
        if by_mean:
            mean = hidden.mean(1, keepdim=True)
            low, high = mean.amin((2, 3), keepdim=True), mean.amax((2, 3), keepdim=True)
            factor = 1 + (b - 1) * (mean - low) / (high - low)
        half = hidden.shape[1] // 2
        return torch.cat([hidden[:, :half] * factor, hidden[:, half:]], dim=1), low_waves_scaled(skip, s)

    unet_2d_blocks.apply_freeu = changed
    model.enable_freeu(s1=1.0, s2=1.0, b1=1.0, b2=1.0)  # to be called
    return model


class Tiled:
    """Tile i of the queries attends to the i-th part of the keys. `depth`: how often the latent was halved."""

    def __init__(self, tile, depth, deepens, seen):
        self.tile, self.depth, self.deepens, self.seen = tile, depth, deepens, seen

    def __call__(self, attn, hidden_states, *_, **__):
        b, tokens, _ = hidden_states.shape
        q, k, v = attn.to_q(hidden_states), attn.to_k(hidden_states), attn.to_v(hidden_states)
        levels = [WIDTH * HEIGHT / 4**i for i in range(self.depth + 1)]
        down = across = 1
        if tokens in levels:
            aspect, least = WIDTH / HEIGHT, self.tile * (2 ** levels.index(tokens) if self.deepens else 1)
            first, second = round(math.sqrt(tokens * aspect)), round(math.sqrt(tokens / aspect))
            # The least divisor that is no shorter: what swap_size 2 gives, of whose two the first is always taken.
            parts = lambda side: side // next(i for i in range(min(least, side), side + 1) if side % i == 0)
            down, across = parts(first), parts(second)
            self.seen.add((tokens, down, across))
        if down * across > 1:
            q = q.reshape(b, down, first // down, across, second // across, -1).transpose(2, 3)
        heads = lambda x: x.reshape(b * down * across, -1, attn.heads, x.shape[-1] // attn.heads).transpose(1, 2)
        out = F.scaled_dot_product_attention(heads(q), heads(k), heads(v)).transpose(1, 2).flatten(2)
        if down * across > 1:
            out = out.reshape(b, down, across, first // down, second // across, -1).transpose(2, 3)
        return attn.to_out[0](out.reshape(b, tokens, -1))


def with_tiles(model, tile, depth, deepens):
    seen = set()
    for name, module in model.named_modules():
        if name.endswith("attn1"):
            module.set_processor(Tiled(tile // 8, depth, deepens, seen))
    return model, seen


class Recorded:
    """Attention whose softmax is kept."""

    def __call__(self, attn, hidden_states, *_, **__):
        heads = lambda x: x.unflatten(-1, (attn.heads, -1)).transpose(1, 2)
        q, k, v = (heads(to(hidden_states)) for to in (attn.to_q, attn.to_k, attn.to_v))
        self.weights = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).softmax(-1)
        return attn.to_out[0]((self.weights @ v).transpose(1, 2).flatten(2))


def blurred_where_seen(x, weights, sigma):
    mask = (weights.mean(1).sum(1) > 1.0).float()
    assert 0 < mask.mean() < 1
    height, width = x.shape[-2:]
    rows = round(math.sqrt(height / width * mask.shape[-1]))
    mask = F.interpolate(mask.reshape(len(x), 1, rows, -1), (height, width))
    places = torch.linspace(-4, 4, 9)
    bell = torch.exp(-0.5 * (places / sigma) ** 2)
    bell = bell / bell.sum()
    filters = (bell[:, None] * bell[None]).expand(x.shape[1], 1, 9, 9)
    blurred = F.conv2d(F.pad(x, [4] * 4, mode="reflect"), filters, groups=x.shape[1])
    return blurred * mask + x * (1 - mask)


def self_guided(kind, positive, negative, scale, sigma):
    model, recorded = make_unet(kind), Recorded()
    model.mid_block.attentions[0].transformer_blocks[0].attn1.set_processor(recorded)
    seen_by = [denoiser(model, *[text, text], 1.0) for text in (positive, negative)]

    def guided(x, level):
        conditioned, unconditioned = seen_by[0](x, level), seen_by[1](x, level)
        result = unconditioned + CFG * (conditioned - unconditioned)
        degraded = blurred_where_seen(unconditioned, recorded.weights, sigma)
        again = seen_by[1](degraded + x - unconditioned, level)
        return result + (degraded - again) * scale

    return guided


def main():
    levels, made = normal(STEPS), {}
    plain = unet_2d_blocks.apply_freeu
    for kind in ("sd1", "sdxl"):
        told = texts(kind)
        draw = lambda model: euler(denoiser(model, *told, CFG), noised(levels), levels)
        made[f"{kind}.plain"] = draw(make_unet(kind))
        for name, by_mean in (("free_u", False), ("free_u_v2", True)):
            made[f"{kind}.{name}"] = draw(with_free_u(make_unet(kind), (1.3, 1.4, 0.9, 0.2), by_mean))
        unet_2d_blocks.apply_freeu = plain
        model, seen = with_tiles(make_unet(kind), 32, 1, False)
        made[f"{kind}.tiles"] = draw(model)
        print(kind, seen)
        guided = self_guided(kind, *told, 0.75, 2.0)
        made[f"{kind}.self_guided"] = euler(guided, noised(levels), levels)
    told = texts("refiner")
    made["refiner.plain"] = euler(denoiser(make_unet("refiner"), *told, CFG), noised(levels), levels)
    made["refiner.self_guided"] = euler(self_guided("refiner", *told, 0.75, 2.0), noised(levels), levels)
    here = os.path.dirname(os.path.abspath(__file__))
    save_file({name: latent.contiguous() for name, latent in made.items()}, os.path.join(here, "unet", "patches.safetensors"))
    for name, latent in made.items():
        change = float((latent - made[name.split(".")[0] + ".plain"]).norm() / latent.norm())
        print(f"{name:20} {tuple(latent.shape)} {float(latent.norm()):.4g} changed by {change:.3g}")


if __name__ == "__main__":
    main()
