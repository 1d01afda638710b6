"""Writes what diffusers makes of videos with a tiny autoencoder of Wan 2.1.

    make_wan_vae_goldens.py [OUT]        (default: wan_vae/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {"vae": {name of the tensor in the publisher's file: [shape, diffusers' name]}}
    expected.safetensors    "FRAMES.SIZE.frames" (F, H, W, 3) are from 0 to 1, "FRAMES.SIZE.mean" is what the encoder
                            makes of them, in the units of the diffusion model; "FRAMES.SIZE.again" what the decoder
                            makes of that, "FRAMES.SIZE.decoded" (F, H, W, 3) what it makes of "FRAMES.SIZE.latent" in
                            the autoencoder's units, both from 0 to 1. SIZE is "wide" or "tall". "tiled.decoded" is what
                            ComfyUI's way to tile makes of "tiled.latent", clamped, of each fourth row and column, and
                            "tiled.mean" of all of that
"""

import json
import os
import sys
import unittest.mock

import torch
from diffusers import AutoencoderKLWan
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
VAE = dict(base_dim=4, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=2, temperal_downsample=[False, True, True])
SIZES = {"wide": (2, 3), "tall": (3, 2)}  # rows and columns of the latent
CLIPS = [("wide", 1), ("wide", 5), ("wide", 9), ("wide", 13), ("tall", 1), ("tall", 9)]


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of AutoencoderKLWan."""
    for here, there in (
        ("post_quant_conv", "conv2"),
        ("quant_conv", "conv1"),
        ("norm_out", "head.0"),
        ("conv_out", "head.2"),
        ("conv_in", "conv1"),
        ("mid_block.attentions.0", "middle.1"),
        ("mid_block.resnets.0", "middle.0"),
        ("mid_block.resnets.1", "middle.2"),
        ("conv_shortcut", "shortcut"),
        ("down_blocks", "downsamples"),
    ):
        name = name.replace(here, there)
    parts = name.split(".")
    if "up_blocks" in parts:
        at = parts.index("up_blocks")
        each = VAE["num_res_blocks"] + 2  # residual blocks of a level, and the change of size
        inside = each - 1 if parts[at + 2] == "upsamplers" else int(parts[at + 3])
        parts[at : at + 4] = ["upsamples", str(int(parts[at + 1]) * each + inside)]
    residual = {"norm1": "residual.0", "conv1": "residual.2", "norm2": "residual.3", "conv2": "residual.6"}
    return ".".join(parts[:3] + [residual.get(part, part) for part in parts[3:]])


def frames_of(model, latent):
    return model.decode(latent).sample[0].permute(1, 2, 3, 0) * 0.5 + 0.5


def starts(size, tile, overlap):
    return [0] if size <= tile else list(range(0, size - overlap, tile - overlap))


def fade(size, feather):
    """The weights of a tile along one axis."""
    weights = torch.ones(size)
    if feather < size:
        ramp = torch.arange(1, feather + 1) / max(feather, 1)
        weights[:feather] *= ramp
        weights[size - feather :] *= ramp.flip(0)
    return weights


def in_tiles(x, code, tile, overlap, lengths, places):
    """The weighted mean of what `code` makes of tiles of x (1, C, T, H, W). lengths, places: of each axis, from cells of
    x to cells of the result."""
    total = weight = None
    size = [length(n) for length, n in zip(lengths, x.shape[2:])]
    for t in starts(x.shape[2], tile[0], overlap[0]):
        for row in starts(x.shape[3], tile[1], overlap[1]):
            for column in starts(x.shape[4], tile[2], overlap[2]):
                made = code(x[:, :, t : t + tile[0], row : row + tile[1], column : column + tile[2]])
                if total is None:
                    total, weight = torch.zeros(1, made.shape[1], *size), torch.zeros(1, 1, *size)
                along = [fade(n, length(o)) for n, length, o in zip(made.shape[2:], lengths, overlap)]
                mask = along[0][:, None, None] * along[1][:, None] * along[2]
                at = [place(begin) for place, begin in zip(places, (t, row, column))]
                there = (..., *(slice(b, b + n) for b, n in zip(at, made.shape[2:])))
                total[there] += made * mask
                weight[there] += mask
    return total / weight


def unclamped(model, latent):
    """decode() cuts to [-1, 1] what tiles are put together of."""
    with unittest.mock.patch("torch.clamp", lambda x, **_: x):
        return model.decode(latent).sample


def make_tiled(model, means, deviations):
    """VAEDecodeTiled of tile_size 64, overlap 32, temporal_size 8, temporal_overlap 4, then VAEEncodeTiled of the same."""
    latent = randn(200, 1, 16, 4, 10, 9)
    eight, eighth = (lambda n: 8 * n), (lambda n: n // 8)
    decoded = in_tiles(
        latent,
        lambda z: unclamped(model, z),
        (2, 8, 8),
        (1, 2, 2),
        (lambda n: 4 * n - 3, eight, eight),
        (lambda n: 4 * n, eight, eight),
    )
    frames = (decoded * 0.5 + 0.5).clamp(0, 1)
    mean = in_tiles(
        2 * frames - 1,
        lambda x: model.encode(x).latent_dist.mean,
        (5, 64, 64),
        (1, 32, 32),
        (lambda n: (n + 3) // 4, eighth, eighth),
        (lambda n: n // 4, eighth, eighth),
    )
    return {
        "tiled.latent": latent,
        "tiled.decoded": frames[0].permute(1, 2, 3, 0)[:, ::4, ::4],
        "tiled.mean": (mean - means) / deviations,
    }


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_vae")
    os.makedirs(out, exist_ok=True)
    model = AutoencoderKLWan(**VAE)
    seeded_weights.load(model, original)
    shapes = {original(name): [list(tensor.shape), name] for name, tensor in model.state_dict().items()}
    assert len(shapes) == len(model.state_dict())
    means, deviations = (
        torch.tensor(numbers).view(1, -1, 1, 1, 1) for numbers in (model.config.latents_mean, model.config.latents_std)
    )
    expected = {}
    for size, frames in CLIPS:
        rows, columns = SIZES[size]
        at = f"{frames}.{size}."
        pictures = torch.rand(frames, 8 * rows, 8 * columns, 3, generator=torch.Generator().manual_seed(frames))
        latent = randn(100 + frames, 1, 16, 1 + (frames - 1) // 4, rows, columns)
        mean = model.encode(2 * pictures.permute(3, 0, 1, 2)[None] - 1).latent_dist.mean
        expected[at + "frames"] = pictures
        expected[at + "mean"] = (mean - means) / deviations
        expected[at + "latent"] = latent
        expected[at + "decoded"] = frames_of(model, latent)
        if at == "9.wide.":
            expected[at + "again"] = frames_of(model, mean)
    expected.update(make_tiled(model, means, deviations))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({"vae": shapes}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
