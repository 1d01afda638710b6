#!/usr/bin/env python3
"""Writes what becomes of a tiny Stable Diffusion 1.x's picture that is made larger and drawn on, and of pictures of which
a part is drawn anew by a model that was not trained for that.

    make_hires_goldens.py [OUT]        (default: hires/ beside this file)

Needs torch, diffusers, transformers, spandrel and safetensors from PyPI; runs on the CPU in float32. Models and samplers
are those of make_unet_goldens.py, the upscaler that of make_upscaler_goldens.py ("compact_x2"), both by weights that
follow from their names; the rules of ComfyUI are written down here.

    expected.safetensors    "latent.latent" is the end of the second run and "latent.picture" the picture, of which every
                            fifth pixel, where the latent was stretched between; likewise "latent_by", "pixels" and
                            "model" (a picture stretched, and one made larger by a model), and "masked", "changed",
                            "filled" (a mask of the latent, of which each part is drawn from a step on, and
                            VAEEncodeForInpaint). "pixels_shown", "mask" are what those three are shown
"""
import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from spandrel import ModelLoader

import make_unet_goldens as unet
import seeded_weights

SCALE = unet.SD_SCALE
STEPS, CFG = 4, 7.0
expected = {}


def noise_of(latent):
    return torch.randn(latent.shape, generator=torch.Generator().manual_seed(7))


def decoded(vae, latent):
    return ((vae.decode(latent / SCALE).sample + 1) / 2).clamp(0, 1)  # (1, 3, H, W)


def encoded(vae, pixels):
    return vae.encode(2 * pixels - 1).latent_dist.mode() * SCALE


def keep(name, vae, latent):
    expected[f"{name}.latent"] = latent
    expected[f"{name}.picture"] = decoded(vae, latent).permute(0, 2, 3, 1)[:, ::5, ::5]


def second(denoise, latent):
    """Half of the noise: the last levels of twice as many steps. It is not the highest level, so the noise is added."""
    levels = unet.normal(2 * STEPS)[-STEPS - 1 :]
    return unet.euler(denoise, latent + noise_of(latent) * levels[0], levels)


def upscaler():
    shapes = json.loads(pathlib.Path(__file__).with_name("upscalers").joinpath("shapes.json").read_text())["compact_x2"]
    whole = ModelLoader().load_from_state_dict({key: seeded_weights.seeded(key, tuple(shape)) for key, shape in shapes.items()})
    whole.model.eval()
    return whole


def hires(vae, denoise):
    levels = unet.normal(STEPS)
    first = unet.euler(denoise, unet.noised(levels), levels)
    picture = decoded(vae, first)
    keep("latent", vae, second(denoise, F.interpolate(first, size=(9, 15), mode="bilinear")))
    keep("latent_by", vae, second(denoise, F.interpolate(first, size=(9, 15), mode="nearest-exact")))
    keep("pixels", vae, second(denoise, encoded(vae, F.interpolate(picture, size=(72, 120), mode="bicubic"))))
    larger = upscaler()(picture).clamp(0, 1)
    keep("model", vae, second(denoise, encoded(vae, F.interpolate(larger, size=(72, 120), mode="area"))))


def within(denoise, latent, mask, levels, changes=False):
    """Outside of the mask the model is shown the latent with the level's noise, and what it makes there is left out."""
    noise = noise_of(latent)
    first, last = unet.time_of(levels[0]), unet.time_of(max(float(unet.TABLE[0]), levels[-1]))

    def seen(x, level):
        now = mask
        if changes:
            now = (mask >= (unet.time_of(level) - last) / (first - last)).float()
        shown = x * now + (latent + noise * level) * (1 - now)
        return denoise(shown, level) * now + latent * (1 - now)

    return unet.euler(seen, unet.noised(levels, latent), levels)


def inpaint(vae, denoise):
    levels = unet.normal(STEPS)
    pixels = torch.rand(1, 48, 80, 3, generator=torch.Generator().manual_seed(8))
    mask = torch.zeros(1, 48, 80)
    mask[:, 13:37, 20:61] = 1
    mask[:, :13, 20:61] = torch.linspace(0, 0.9, 13)[:, None]
    expected.update({"pixels_shown": pixels, "mask": mask})
    planes = pixels.permute(0, 3, 1, 2)
    whole = encoded(vae, planes)
    small = F.interpolate(mask[:, None], size=(6, 10), mode="bilinear")
    keep("masked", vae, within(denoise, whole, small, levels))
    keep("changed", vae, within(denoise, whole, small, levels, changes=True))
    grown = F.conv2d(mask[:, None].round(), torch.ones(1, 1, 6, 6), padding=math.ceil(5 / 2)).clamp(0, 1)[:, :, :48, :80].round()
    hidden = (planes - 0.5) * (1 - mask.round())[:, None] + 0.5
    keep("filled", vae, within(denoise, encoded(vae, hidden), F.interpolate(grown, size=(6, 10), mode="bilinear"), levels))


def main(out):
    out.mkdir(exist_ok=True)
    model, clip, vae = unet.make_unet("sd1"), unet.make_clip("clip_l", 3, "quick_gelu"), unet.make_vae()
    states = [unet.encode(clip, unet.CLIP_END, words, -1, True)[:1] for words in (True, False)]
    denoise = unet.denoiser(model, *states, CFG)
    hires(vae, denoise)
    inpaint(vae, denoise)
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, out / "expected.safetensors")
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("hires"))
