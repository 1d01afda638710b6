"""Writes what PyTorch makes of a video of LTX-Video that passes pictures, by ComfyUI's way of LTXVAddGuide.

    make_ltxv_guide_goldens.py [OUT]        (default: ltxv_guides/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32, with the models "flow" of make_ltxv_goldens.py
and make_ltxv_vae_goldens.py. A video of 17 frames of 128 x 96 pixels passes a picture at its end, kept by 0.75, nine
pictures from its beginning on, kept whole, and nine from its tenth picture on, kept by 0.5. One of 128 x 128 passes nine
pictures from its beginning on, by 0.75, a quarter as large, with "weights", a mask of two pictures of 10 x 6, and a picture
at its end, kept whole:

    expected.safetensors    "pictures" are the nine, 32 x 24 pixels; "latent" and "mask" are what the sampler is given, "end" is
                            what it makes of it in three of Euler's steps with guidance 3 and the noise of seed 7, without the
                            frames behind the video's own; "small.latent", "small.mask", "small.end" those of the second video

Attention counts what is seen of a guide, and what the guide sees of the video, by the strength times the mask's mean over
what a token stands for; places of the latent that are none of a small guide's tokens are not there.
"""

import os
import sys

import torch
from safetensors.torch import save_file

import make_ltxv_goldens
import make_ltxv_vae_goldens

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES, RATE = 3, 24
# As the conditionings are told.
TEXTS = [make_ltxv_goldens.randn(92, 1, 9, 40), make_ltxv_goldens.randn(93, 1, 5, 40)]


def encoded(vae, pictures, height, width):
    """Of pictures from 0 to 1, cut in the middle and resized."""
    given = pictures.permute(0, 3, 1, 2)
    if height * given.shape[3] != width * given.shape[2]:
        cut = round((given.shape[3] - given.shape[2] * width / height) / 2)
        given = given[:, :, :, cut : given.shape[3] - cut]
    sized = torch.nn.functional.interpolate(given, (height, width), mode="bilinear")
    return make_ltxv_vae_goldens.encode(vae, 2 * sized.permute(0, 2, 3, 1) - 1)


def log_weights(own, weights):
    """Added to the scores of attention: (T, T), of so many tokens of the video and those of guides."""
    logs = weights.log()
    bias = torch.zeros(own + len(weights), own + len(weights))
    bias[:own, own:], bias[own:, :own] = logs[None], logs[:, None]
    return bias


class Biased:
    """The attention of a model's tokens to themselves, with something added to its scores."""

    def __init__(self, model, bias):
        self.hooks = [
            block.attn1.register_forward_pre_hook(lambda _, args, kwargs: (args, kwargs | {"attention_mask": bias[None]}), with_kwargs=True)
            for block in model.transformer_blocks
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()


def velocity(model, tokens, level, text, coords):
    """Of tokens (1, T, C) at levels (T)."""
    return model(
        tokens,
        text,
        1000 * level[None],
        torch.ones(1, text.shape[1]),
        1,
        1,
        tokens.shape[1],
        rope_interpolation_scale=(8 / RATE, 32, 32),
        video_coords=coords,
        return_dict=False,
    )[0]


def drawn(model, latent, mask, starts, weights, is_token):
    """The end of three steps: of a latent, a mask of its frames, the picture at which each begins, the weights of guides' tokens
    and which places (F, H, W) are tokens."""
    _, channels, frames, height, width = latent.shape
    rows, columns = 32.0 * torch.arange(height), 32.0 * torch.arange(width)
    kept = is_token.flatten()
    coords = torch.stack(torch.meshgrid(starts * (1.0 / RATE), rows, columns, indexing="ij")).flatten(1)[None][:, :, kept]
    noise = mask.repeat_interleave(height * width)[kept]
    m = mask[None, None, :, None, None]
    x = make_ltxv_goldens.randn(7, *latent.shape)
    sigmas = make_ltxv_goldens.scheduled(3, latent[0, 0].numel())
    with Biased(model, log_weights(int(kept.sum()) - len(weights), weights)):
        for here, there in zip(sigmas, sigmas[1:]):
            seen = x * m + latent * (1 - m)
            tokens = seen.flatten(2).transpose(1, 2)[:, kept]
            yes, no = (velocity(model, tokens, here * noise, text, coords) for text in TEXTS)
            made = torch.zeros(1, kept.numel(), channels)
            made[:, kept] = no + 3 * (yes - no)
            denoised = (seen - here * made.transpose(1, 2).reshape(seen.shape)) * m + latent * (1 - m)
            x = x + (x - denoised) / here * (there - here)
    return x[:, :, :FRAMES].contiguous()


def make_whole(vae, model, pictures):
    height, width = 96, 128
    at_end = encoded(vae, pictures[:1], height, width)
    begin = encoded(vae, pictures, height, width)
    # No picture behind others is a frame by itself: it would be, but for the one in front.
    behind = encoded(vae, torch.cat([pictures[:1], pictures[:8]]), height, width)[:, :, 1:]
    latent = torch.cat([torch.zeros(1, 128, FRAMES, 3, 4), at_end, begin, behind], 2)
    mask, starts = torch.tensor([1, 1, 1, 0.25, 0, 0, 0.5]), torch.tensor([0.0, 8, 16, 16, 0, 1, 9])
    weights = torch.tensor([0.75, 1, 1, 0.5]).repeat_interleave(12)
    end = drawn(model, latent, mask, starts, weights, torch.ones(7, 3, 4, dtype=torch.bool))
    return {"latent": latent, "mask": mask, "end": end}


def make_small(vae, model, pictures, seen):
    small, whole = encoded(vae, pictures, 64, 64), encoded(vae, pictures[:1], 128, 128)
    latent = torch.zeros(1, 128, FRAMES + 3, 4, 4)
    latent[:, :, 3:5, ::2, ::2], latent[:, :, 5:] = small, whole
    is_token = torch.ones(6, 4, 4, dtype=torch.bool)
    is_token[3:5] = False
    is_token[3:5, ::2, ::2] = True
    mask = torch.ones(1, 1, 6, 4, 4)
    mask[:, :, 3:5] = torch.where(is_token[3:5], 0.25, -1.75)
    mask[:, :, 5] = 0
    # The first frame of a guide is of its first picture, the second of the mask's other one.
    cells = torch.nn.functional.adaptive_avg_pool2d(seen[:, None], (2, 2)).flatten()
    weights = torch.cat([0.75 * cells, torch.ones(16)])
    end = drawn(model, latent, torch.tensor([1, 1, 1, 0.25, 0.25, 0]), torch.tensor([0.0, 8, 16, 0, 1, 16]), weights, is_token)
    return {"small.latent": latent, "small.mask": mask, "small.end": end}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltxv_guides")
    os.makedirs(out, exist_ok=True)
    vae, model = make_ltxv_vae_goldens.make(128)[0], make_ltxv_goldens.make("flow")
    pictures = torch.rand(9, 24, 32, 3, generator=torch.Generator().manual_seed(5))
    seen = torch.rand(2, 6, 10, generator=torch.Generator().manual_seed(6))
    expected = {"pictures": pictures, "weights": seen} | make_whole(vae, model, pictures) | make_small(vae, model, pictures, seen)
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)


if __name__ == "__main__":
    main()
