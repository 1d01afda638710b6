"""Writes what diffusers makes of videos with a tiny autoencoder of HunyuanVideo 1.5.

    make_hunyuan15_vae_goldens.py [OUT]        (default: hunyuan15_vae/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {"vae": {name of the tensor in the publisher's file: [shape, diffusers' name]}}
    expected.safetensors    "FRAMES.frames" (F, H, W, 3) are from 0 to 1, "FRAMES.mean" is what the encoder makes of them,
                            "FRAMES.decoded" (F, H, W, 3) from 0 to 1 what the decoder makes of "FRAMES.latent", both in
                            the autoencoder's units. "picture.z", "picture.image" are two pictures' latents and what
                            becomes of them, from -1 to 1; "picture_encoder.image", ".mean", ".logvar" the way back
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLHunyuanVideo15
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 4
VAE = dict(latent_channels=CHANNELS, block_out_channels=(4, 8, 16, 32, 32), layers_per_block=1)
ROWS, COLUMNS = 1, 2


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of AutoencoderKLHunyuanVideo15."""
    for here, there in (
        ("mid_block.resnets.0", "mid.block_1"),
        ("mid_block.resnets.1", "mid.block_2"),
        ("mid_block.attentions.0", "mid.attn_1"),
        (".to_q.", ".q."),
        (".to_k.", ".k."),
        (".to_v.", ".v."),
        ("down_blocks.", "down."),
        ("up_blocks.", "up."),
        (".resnets.", ".block."),
        (".downsamplers.0.", ".downsample."),
        (".upsamplers.0.", ".upsample."),
    ):
        name = name.replace(here, there)
    return name


def moments(model, pictures):
    """pictures (F, H, W, 3) from -1 to 1, one video."""
    return model.encode(pictures.permute(3, 0, 1, 2)[None]).latent_dist


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "hunyuan15_vae")
    os.makedirs(out, exist_ok=True)
    model = AutoencoderKLHunyuanVideo15(**VAE)
    seeded_weights.load(model, original)
    shapes = {original(name): [list(tensor.shape), name] for name, tensor in model.state_dict().items()}
    assert len(shapes) == len(model.state_dict())
    expected = {}
    for frames in (1, 5, 13):
        pictures = torch.rand(frames, 16 * ROWS, 16 * COLUMNS, 3, generator=torch.Generator().manual_seed(frames))
        latent = randn(100 + frames, 1, CHANNELS, 1 + (frames - 1) // 4, ROWS, COLUMNS)
        expected[f"{frames}.frames"] = pictures
        expected[f"{frames}.mean"] = moments(model, 2 * pictures - 1).mean
        expected[f"{frames}.latent"] = latent
        expected[f"{frames}.decoded"] = model.decode(latent).sample[0].permute(1, 2, 3, 0) * 0.5 + 0.5
    z, image = randn(1, 2, CHANNELS, 2, 2), 2 * torch.rand(2, 32, 32, 3, generator=torch.Generator().manual_seed(2)) - 1
    expected["picture.z"] = z
    # One by one: diffusers' mask is of one video.
    expected["picture.image"] = torch.cat([model.decode(one[None, :, None]).sample[:, :, 0].permute(0, 2, 3, 1) for one in z])
    expected["picture_encoder.image"] = image
    found = [moments(model, one[None]) for one in image]
    expected["picture_encoder.mean"] = torch.cat([one.mean[:, :, 0] for one in found])
    expected["picture_encoder.logvar"] = torch.cat([one.logvar[:, :, 0] for one in found])
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({"vae": shapes}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
