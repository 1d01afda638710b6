"""Writes unet/shrinks.safetensors: what UNets draw with PatchModelAddDownscale ("deep shrink").

    make_shrink_goldens.py

Needs what make_unet_goldens.py needs, whose UNets these are; texts are those of make_unet_patch_goldens.py. The UNet's
way down and up is written down here over diffusers' modules, as ComfyUI counts them: 0 is the first convolution, then
each residual block (with its transformer) and each downsampling is one. Pictures are resized by torch's interpolate(),
or ("bislerp") by the angles between pixels, in float64. "<kind>.<case>" is the end of a guided run of four steps.
"""

import math
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from make_unet_control_goldens import make_control
from make_unet_goldens import SIZES, TABLE, euler, level_at, make_unet, normal, time_of
from make_unet_patch_goldens import CFG, noised, texts
from seeded_weights import seeded

torch.set_grad_enabled(False)
STEPS = 4
# block number, factor, start, end, after skip, down, up
CASES = {
    "after": (3, 2.0, 0.0, 0.5, True, "bicubic", "bicubic"),
    "before": (3, 2.0, 0.0, 0.5, False, "bicubic", "bilinear"),
    "late": (1, 1.5, 0.3, 0.7, True, "area", "nearest-exact"),
    "uneven": (2, 1.7, 0.0, 1.0, False, "bilinear", "area"),
    "larger": (4, 0.6, 0.0, 1.0, True, "nearest-exact", "bicubic"),
    "turned": (3, 1.6, 0.0, 1.0, True, "bislerp", "bislerp"),
}


def between_pixels(a, b, share):
    """Channels are axis 1."""
    la, lb = a.norm(dim=1, keepdim=True), b.norm(dim=1, keepdim=True)
    unit = lambda x, length: torch.where(length > 0, x / length.clamp(min=1e-300), torch.zeros_like(x))
    ua, ub = unit(a, la), unit(b, lb)
    cosine = (ua * ub).sum(1, keepdim=True)
    angle = cosine.clamp(-1, 1).acos()
    turned = (torch.sin((1 - share) * angle) * ua + torch.sin(share * angle) * ub) / torch.sin(angle)
    turned = turned * (la * (1 - share) + lb * share)
    turned = torch.where(cosine > 1 - 1e-5, a, turned)
    return torch.where(cosine < 1e-5 - 1, a * (1 - share) + b * share, turned)


def turned_along(x, side):
    """The last axis."""
    count = x.shape[-1]
    bilinear = lambda cells: F.interpolate(cells.reshape(1, 1, 1, -1), size=(1, side), mode="bilinear").flatten()
    cells = torch.arange(count, dtype=torch.float32)
    places = bilinear(cells)
    after = bilinear((cells + 1).clamp(max=count - 1))
    return between_pixels(x[..., places.long()], x[..., after.long()], (places - places.floor()).double())


def bislerp(x, height, width):
    wide = turned_along(x.double(), width)
    return turned_along(wide.transpose(-1, -2), height).transpose(-1, -2).to(x.dtype)


def resized(x, height, width, method):
    return bislerp(x, height, width) if method == "bislerp" else F.interpolate(x, size=(height, width), mode=method)


def shrunk(x, factor, method):
    return resized(x, round(x.shape[-2] * (1 / factor)), round(x.shape[-1] * (1 / factor)), method)


def ways(model):
    """The numbered parts of the way down and of the way up: (residual block, transformer, resampling)."""
    down, up = [], []
    for block in model.down_blocks:
        for i, resnet in enumerate(block.resnets):
            down.append((resnet, getattr(block, "attentions", {i: None})[i] if hasattr(block, "attentions") else None, None))
        if block.downsamplers is not None:
            down.append((None, None, block.downsamplers[0]))
    for block in model.up_blocks:
        for i, resnet in enumerate(block.resnets):
            is_last = i + 1 == len(block.resnets) and block.upsamplers is not None
            attention = block.attentions[i] if hasattr(block, "attentions") else None
            up.append((resnet, attention, block.upsamplers[0] if is_last else None))
    return down, up


def forward(model, x, time, context, pooled=None, sizes=None, shrinks=(), up_method=None, residuals={}):
    """shrinks: (block number, factor, after skip, down) of those at work; up_method: of the first node, which is the first
    to find two sizes, whether it is at work or not; residuals: of a ControlNet,
    "control.output.<i>" and "control.middle", left out where they have another size."""
    added = None if pooled is None else {"text_embeds": pooled, "time_ids": sizes}
    embedding = model.time_embedding(model.time_proj(time.reshape(1)))
    more = model.get_aug_embed(embedding, context, added)
    embedding = embedding if more is None else embedding + more
    plus = lambda h, name: h + residuals[name] if name in residuals and residuals[name].shape[2:] == h.shape[2:] else h

    def part(h, resnet, attention):
        h = h if resnet is None else resnet(h, embedding)
        return h if attention is None else attention(h, encoder_hidden_states=context).sample

    down, up = ways(model)
    h = model.conv_in(x)
    kept = [h]
    for number, (resnet, attention, smaller) in enumerate(down, 1):
        h = part(h, resnet, attention) if smaller is None else smaller(h)
        for is_after in (False, True):
            if is_after:
                kept.append(h)
            for block, factor, after, method in shrinks:
                if block == number and after == is_after:
                    h = shrunk(h, factor, method)
    middle = model.mid_block
    h = middle.resnets[0](h, embedding)
    h = middle.attentions[0](h, encoder_hidden_states=context).sample
    h = plus(middle.resnets[1](h, embedding), "control.middle")
    for resnet, attention, larger in up:
        skip = kept.pop()
        if h.shape[2:] != skip.shape[2:]:
            h = resized(h, *skip.shape[2:], up_method)
        skip = plus(skip, f"control.output.{len(kept)}")
        h = part(torch.cat([h, skip], dim=1), resnet, attention)
        if larger is not None:
            h = larger.conv(F.interpolate(h, size=kept[-1].shape[2:], mode="nearest"))
    return model.conv_out(F.silu(model.conv_norm_out(h)))


def level_of(percent):
    return math.inf if percent <= 0 else 0.0 if percent >= 1 else level_at(999 * (1 - percent))


def residuals_of(control, x, time, context, _pooled=None, _sizes=None):
    """Of a grey hint, 0.3 times."""
    hint = torch.full((1, 3, 8 * x.shape[2], 8 * x.shape[3]), 128 / 255)
    downs, middle = control(x, time, context, hint, conditioning_scale=0.3, return_dict=False)
    return {f"control.output.{i}": down for i, down in enumerate(downs)} | {"control.middle": middle}


def guided(model, positive, negative, cases, control=None):
    def clean(x, level, told):
        at_work = [(*case[:2], *case[4:6]) for case in cases if level_of(case[3]) <= level <= level_of(case[2])]
        scaled, time = x / math.sqrt(level**2 + 1), torch.tensor(time_of(level))
        residuals = residuals_of(control, scaled, time, *told) if control else {}
        made = forward(model, scaled, time, *told, shrinks=at_work, up_method=cases[0][6] if cases else None, residuals=residuals)
        return x - made * level

    def both(x, level):
        without = clean(x, level, negative)
        return without + CFG * (clean(x, level, positive) - without)

    return both


def main():
    levels, made = normal(STEPS), {}
    print("levels", levels, "of", float(TABLE[-1]))
    for kind in ("sd1", "sdxl"):
        told, model = texts(kind), make_unet(kind)
        x = seeded("in.x", (1, 4, 8, 16))
        plain = forward(model, x, torch.tensor(431.0), *told[0])
        added = {} if len(told[0]) == 1 else {"added_cond_kwargs": {"text_embeds": told[0][1], "time_ids": told[0][2]}}
        whole = model(x, torch.tensor(431.0), encoder_hidden_states=told[0][0], **added).sample
        print(kind, "the way written down here differs from diffusers' by", float((plain - whole).norm() / whole.norm()))
        assert (plain - whole).norm() < 1e-6 * whole.norm()
        run = lambda *cases: euler(guided(model, *told, cases), noised(levels), levels)
        made[f"{kind}.plain"] = run()
        for name, case in CASES.items():
            made[f"{kind}.{name}"] = run(case)
        made[f"{kind}.two"] = run(CASES["after"], CASES["late"])
    told = texts("sd1")
    steered = lambda *cases: euler(guided(make_unet("sd1"), *told, cases, make_control("sd1")), noised(levels), levels)
    made["sd1.controlled"] = steered(CASES["after"])
    print("without it", float((steered() - made["sd1.controlled"]).norm() / made["sd1.controlled"].norm()))
    # All pixels of block 1 point one way or the other, or nowhere.
    for name in ("line", "nowhere"):
        model = make_unet("sdxl")
        model.conv_in.weight[:] = seeded("in.v", (32, 1, 1, 1)) * seeded("in.w", (1, 4, 3, 3)) if name == "line" else 0.0
        model.conv_in.bias[:] = 0.0
        for parameter in model.down_blocks[0].resnets[0].conv2.parameters():
            parameter[:] = 0.0
        made[f"sdxl.{name}"] = euler(guided(model, *texts("sdxl"), [(1, *CASES["turned"][1:])]), noised(levels), levels)
    here = os.path.dirname(os.path.abspath(__file__))
    save_file({name: latent.contiguous() for name, latent in made.items()}, os.path.join(here, "unet", "shrinks.safetensors"))
    for name, latent in made.items():
        kind = name.split(".")[0]
        if f"{kind}.plain" in made:
            change = float((latent - made[kind + ".plain"]).norm() / latent.norm())
            print(f"{name:20} {tuple(latent.shape)} {float(latent.norm()):.4g} changed by {change:.3g}")


if __name__ == "__main__":
    main()
