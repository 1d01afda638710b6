"""Writes what PyTorch makes of a video of LTX-Video that passes pictures, by ComfyUI's way of LTXVAddGuide.

    make_ltxv_guide_goldens.py [OUT]        (default: ltxv_guides/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32, with the models "flow" of make_ltxv_goldens.py
and make_ltxv_vae_goldens.py. A video of 17 frames of 128 x 96 pixels passes a picture at its end, kept by 0.75, nine
pictures from its beginning on, kept whole, and nine from its tenth picture on, kept by 0.5:

    expected.safetensors    "pictures" are the nine, 32 x 24 pixels; "latent" and "mask" are what the sampler is given, "end" is
                            what it makes of it in three of Euler's steps with guidance 3 and the noise of seed 7, without the
                            frames behind the video's own
"""

import os
import sys

import torch
from safetensors.torch import save_file

import make_ltxv_goldens
import make_ltxv_vae_goldens

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
FRAMES, HEIGHT, WIDTH, RATE = 3, 3, 4, 24


def encoded(vae, pictures):
    """Of pictures from 0 to 1, resized."""
    sized = torch.nn.functional.interpolate(pictures.permute(0, 3, 1, 2), (96, 128), mode="bilinear")
    return make_ltxv_vae_goldens.encode(vae, 2 * sized.permute(0, 2, 3, 1) - 1)


def make_latent(vae, pictures):
    """The latent, its mask by frames, and the picture of the video at which each frame begins."""
    at_end = encoded(vae, pictures[:1])
    begin = encoded(vae, pictures)
    # No picture behind others is a frame by itself: it would be, but for the one in front.
    behind = encoded(vae, torch.cat([pictures[:1], pictures[:8]]))[:, :, 1:]
    latent = torch.cat([torch.zeros(1, 128, FRAMES, HEIGHT, WIDTH), at_end, begin, behind], 2)
    return latent, torch.tensor([1, 1, 1, 0.25, 0, 0, 0.5]), torch.tensor([0.0, 8, 16, 16, 0, 1, 9])


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltxv_guides")
    os.makedirs(out, exist_ok=True)
    vae, model = make_ltxv_vae_goldens.make(128)[0], make_ltxv_goldens.make("flow")
    pictures = torch.rand(9, 24, 32, 3, generator=torch.Generator().manual_seed(5))
    latent, mask, starts = make_latent(vae, pictures)
    rows, columns = 32.0 * torch.arange(HEIGHT), 32.0 * torch.arange(WIDTH)
    coords = torch.stack(torch.meshgrid(starts * (1.0 / RATE), rows, columns, indexing="ij")).flatten(1)[None]
    m = mask[None, None, :, None, None]
    x = make_ltxv_goldens.randn(7, *latent.shape)
    texts = [make_ltxv_goldens.randn(92, 1, 9, 40), make_ltxv_goldens.randn(93, 1, 5, 40)]
    sigmas = make_ltxv_goldens.scheduled(3, latent[0, 0].numel())
    for here, there in zip(sigmas, sigmas[1:]):
        seen = x * m + latent * (1 - m)
        yes, no = (
            make_ltxv_goldens.velocity(model, seen, torch.tensor(here), text, RATE, frame_noise=mask, coords=coords) for text in texts
        )
        denoised = (seen - here * (no + 3 * (yes - no))) * m + latent * (1 - m)
        x = x + (x - denoised) / here * (there - here)
    expected = {"pictures": pictures, "latent": latent, "mask": mask, "end": x[:, :, :FRAMES].contiguous()}
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)


if __name__ == "__main__":
    main()
