"""Writes unet/guidance.safetensors: what UNets draw under Perturbed-Attention Guidance.

    make_unet_guidance_goldens.py

Needs what make_unet_goldens.py needs, whose UNets and texts these are. Formula: ComfyUI's, after
https://arxiv.org/abs/2403.17377: the guided prediction, and so many times what the positive one is
away from that of the UNet whose self-attentions in the middle give their values. These are
diffusers' PAGIdentitySelfAttnProcessor2_0's, written down here for a batch without guidance.
"""

import os

import torch
from safetensors.torch import save_file

from make_unet_goldens import (CLIP_END, denoiser, dpmpp_2m, encode, euler, karras, make_clip,
                               make_unet, noised, normal)

torch.set_grad_enabled(False)
SCALE = 3.0


class Values:
    """Every token attends to itself alone."""

    def __call__(self, attn, hidden_states, *_, **__):
        return attn.to_out[0](attn.to_v(hidden_states))


def perturbed(kind):
    model = make_unet(kind)
    for block in model.mid_block.attentions[0].transformer_blocks:
        block.attn1.set_processor(Values())
    return model


def draw(kind, texts, cfg, levels, method):
    plain = denoiser(make_unet(kind), *texts, cfg)
    positive = denoiser(make_unet(kind), texts[0], texts[0], 1.0)
    away = denoiser(perturbed(kind), texts[0], texts[0], 1.0)

    def guided(x, level):
        return plain(x, level) + SCALE * (positive(x, level) - away(x, level))

    return method(guided, noised(levels), levels)


def main():
    both = (True, False)
    l, g = make_clip("clip_l", 3, "quick_gelu"), make_clip("clip_g", 32, "gelu")
    texts = [encode(l, CLIP_END, words, -1, True)[:1] for words in both]
    made = {"sd1": draw("sd1", texts, 7.0, normal(4), euler)}
    sizes, texts = torch.tensor([[48.0, 80, 0, 0, 48, 80]]), []
    for words in both:
        (first, _), (second, pooled) = encode(l, CLIP_END, words, -2, False), encode(g, 0, words, -2, False)
        texts.append((torch.cat([first, second], dim=-1), pooled, sizes))
    made["sdxl"] = draw("sdxl", texts, 6.0, karras(4), dpmpp_2m)
    here = os.path.dirname(os.path.abspath(__file__))
    save_file({f"{kind}.latent": latent.contiguous() for kind, latent in made.items()},
              os.path.join(here, "unet", "guidance.safetensors"))
    for kind, latent in made.items():
        print(kind, tuple(latent.shape), float(latent.norm()))


if __name__ == "__main__":
    main()
