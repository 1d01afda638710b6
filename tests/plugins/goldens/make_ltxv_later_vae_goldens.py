"""Writes what diffusers makes with tiny autoencoders of LTX-Video 0.9.1 and 0.9.5, and of LTX 2.

    make_ltxv_later_vae_goldens.py [OUT]        (default: ltxv_later_vae/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), the deviations of latents from the name "std.norm.weight", and "timestep_scale_multiplier" is
1000, so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: [shape, name in diffusers]}}: "0.9.1", "0.9.5",
                            "2", and "2.3", whose decoder is causal, has another order of changes of size, and adds none of
                            their inputs
    expected.safetensors    of each model "z" and "noise", latents in the diffusion model's units, of which a share of 0.025 is
                            noise; "noise.0" and so on, what its residual blocks draw, by size; "out", what is decoded with the
                            level 0.05: three of the frames, of each every second row and column; "mean", the latent of the
                            video "clip.image"; "0.9.1.drawn" is "0.9.1.z" decoded by ComfyUI's way with heddle's
                            own noise (plugins/blocks/decoder_noise.h), from 0 to 1; "tiled.out" are each fourth frame, and of
                            these each eighth row and column, that ComfyUI's tiles of "tiled.z" make by "2", from 0 to 1
"""

import json
import math
import os
import sys

import numpy
import torch
from diffusers import AutoencoderKLLTX2Video, AutoencoderKLLTXVideo
from safetensors.torch import save_file

import make_ltxv_vae_goldens
import make_wan_vae_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS, SHARE, LEVEL = 8, 0.025, 0.05
FRAMES = [0, 7, 16]
randn = make_ltxv_vae_goldens.randn

DECODER = dict(
    decoder_block_out_channels=(8, 16, 32),
    decoder_layers_per_block=(1, 2, 1, 2),
    decoder_spatio_temporal_scaling=(True, True, True),
    upsample_residual=(True, True, True),
    upsample_factor=(2, 2, 2),
)
# Changes of size that keep the input, in the order of levels.
GATHERING = dict(layers_per_block=(1, 2, 1, 1, 1), downsample_type=("spatial", "temporal", "spatiotemporal", "spatiotemporal"))


def make_091():
    return AutoencoderKLLTXVideo(
        latent_channels=CHANNELS,
        block_out_channels=(8, 12, 16, 16),
        layers_per_block=(1, 1, 1, 1, 1),
        decoder_inject_noise=(True, True, True, False),
        timestep_conditioning=True,
        **DECODER,
    )


def make_095():
    return AutoencoderKLLTXVideo(
        latent_channels=CHANNELS,
        block_out_channels=(8, 16, 32, 64, 64),
        down_block_types=("LTXVideo095DownBlock3D",) * 4,
        spatio_temporal_scaling=(True,) * 4,
        decoder_inject_noise=(False,) * 4,
        timestep_conditioning=True,
        **GATHERING,
        **DECODER,
    )


def make_2():
    return AutoencoderKLLTX2Video(
        latent_channels=CHANNELS, block_out_channels=(16, 32, 64, 64), decoder_causal=False, **GATHERING, **DECODER
    )


def make_23():
    return AutoencoderKLLTX2Video(
        latent_channels=CHANNELS,
        block_out_channels=(16, 32, 64, 64),
        decoder_block_out_channels=(8, 16, 16, 32),
        decoder_layers_per_block=(1, 1, 1, 2, 1),
        decoder_spatio_temporal_scaling=(True,) * 4,
        decoder_inject_noise=(False,) * 5,
        upsample_type=("spatiotemporal", "spatiotemporal", "temporal", "spatial"),
        upsample_residual=(False,) * 4,
        upsample_factor=(2, 2, 1, 2),
        decoder_causal=True,
        decoder_spatial_padding_mode="zeros",
        **GATHERING,
    )


def alternating(inside, there, middle):
    """The publishers' number of a block where residual blocks and changes of size alternate."""
    if inside.startswith("mid_block."):
        return f"{there}.{middle}." + inside.split(".", 1)[1]
    _, number, rest = inside.split(".", 2)
    number = 2 * int(number) + (2 if there == "up_blocks" else 0)
    for part, more in (("upsamplers.0.", -1), ("downsamplers.0.", 1)):
        if rest.startswith(part):
            return f"{there}.{number + more}.{rest[len(part):]}"
    return f"{there}.{number}.{rest}"


def original(name, alternates):
    """The publisher's name of a tensor; alternates: by side."""
    side, _, inside = name.partition(".")
    if side not in ("decoder", "encoder") or not alternates[side]:
        return make_ltxv_vae_goldens.original(name)
    if inside.startswith(("mid_block.", "up_blocks.", "down_blocks.")):
        inside = alternating(inside, *(("up_blocks", 0) if side == "decoder" else ("down_blocks", 8)))
    elif inside.startswith(("time_embedder.", "scale_shift_table")):
        inside = "last_" + inside
    inside = inside.replace(".resnets.", ".res_blocks.").replace(".conv_shortcut.conv.", ".conv_shortcut.")
    return f"{side}.{inside.replace('.norm3.', '.norm3.norm.')}"


def seed(model, alternates):
    shapes, state = {}, {}
    for name, tensor in model.state_dict().items():
        if name.endswith("timestep_scale_multiplier"):
            continue
        there = original(name, alternates)
        shapes[there] = [list(tensor.shape), name]
        state[name] = seeded_weights.seeded(there, tuple(tensor.shape))
    state["latents_std"] = seeded_weights.seeded("std.norm.weight", (CHANNELS,))
    missing = model.load_state_dict(state, strict=False).missing_keys
    assert all(name.endswith("timestep_scale_multiplier") for name in missing), missing
    model.eval()
    return shapes


def numbers(stream, begin, shape):
    """heddle's normal numbers of a stream, from the one at `begin` on."""
    n = (numpy.uint64(stream) << numpy.uint64(40)) + numpy.arange(begin, begin + math.prod(shape), dtype=numpy.uint64)
    with numpy.errstate(over="ignore"):
        n += numpy.uint64(0x9E3779B97F4A7C15)
        n = (n ^ (n >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        n = (n ^ (n >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    n ^= n >> numpy.uint64(31)
    a, b = ((n >> numpy.uint64(32)) + numpy.uint64(1)) * 2.0**-32, (n & numpy.uint64(0xFFFFFFFF)) * 2.0**-32
    drawn = numpy.sqrt(-2 * numpy.log(a)) * numpy.cos(2 * numpy.pi * b)
    return torch.from_numpy(drawn.astype(numpy.float32).reshape(shape))


def decode(model, z, noise, is_told, by_heddle=False):
    """The pictures, and what the residual blocks drew, by how often the latent's size is doubled there."""
    drawn, generator, real = {}, torch.Generator().manual_seed(1), torch.randn

    def record(shape, **_):
        times = (shape[0] // z.shape[3]).bit_length() - 1
        planes = drawn.setdefault(times, [])
        if by_heddle:
            planes.append(numbers(1 + times, len(planes) * math.prod(shape), shape))
        else:
            planes.append(real(*shape, generator=generator))
        return planes[-1]

    seen = (1 - SHARE) * z + SHARE * noise if is_told else z
    raw = seen * make_ltxv_vae_goldens.by_channel(model.latents_std) + make_ltxv_vae_goldens.by_channel(model.latents_mean)
    torch.randn = record
    try:
        made = model.decode(raw, torch.tensor([LEVEL]) if is_told else None, return_dict=False)[0]
    finally:
        torch.randn = real
    return made[0].permute(1, 2, 3, 0)[FRAMES, ::2, ::2].contiguous(), {times: torch.stack(planes) for times, planes in drawn.items()}


def make_tiled(model):
    """VAEDecodeTiled of tile_size 128, overlap 32, temporal_size 16, temporal_overlap 8."""
    z, side = randn(150, 1, CHANNELS, 3, 6, 4), lambda n: 32 * n

    def code(tile):
        raw = tile * make_ltxv_vae_goldens.by_channel(model.latents_std) + make_ltxv_vae_goldens.by_channel(model.latents_mean)
        return model.decode(raw, return_dict=False)[0]

    lengths, places = (lambda n: 8 * n - 7, side, side), (lambda n: 8 * n, side, side)
    made = make_wan_vae_goldens.in_tiles(z, code, (2, 4, 4), (1, 1, 1), lengths, places)
    return z, (made[0].permute(1, 2, 3, 0)[::4, ::8, ::8] / 2 + 0.5).clamp(0, 1).contiguous()


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltxv_later_vae")
    os.makedirs(out, exist_ok=True)
    image = randn(102, 9, 32, 64, 3).clamp(-1, 1)
    shapes, expected = {}, {"clip.image": image}
    both, decoder = {"encoder": True, "decoder": True}, {"encoder": False, "decoder": True}
    makers = (("0.9.1", make_091, decoder, True), ("0.9.5", make_095, both, True), ("2", make_2, both, False), ("2.3", make_23, both, False))
    for number, (name, make, alternates, is_told) in enumerate(makers):
        model = make()
        shapes[name] = seed(model, alternates)
        z, noise = (randn(10 * number + more, 1, CHANNELS, 3, 2, 2) for more in (100, 101))
        pictures, drawn = decode(model, z, noise, is_told)
        expected.update({f"{name}.z": z, f"{name}.out": pictures})
        if is_told:
            expected[f"{name}.noise"] = noise
        if name == "0.9.1":
            own, _ = decode(model, z, numbers(0, 0, z.shape), is_told, True)
            expected["0.9.1.drawn"] = (own / 2 + 0.5).clamp(0, 1)
        for i, planes in drawn.items():
            expected[f"{name}.noise.{i}"] = planes
        if name == "2":
            expected["tiled.z"], expected["tiled.out"] = make_tiled(model)
        expected[f"{name}.mean"] = make_ltxv_vae_goldens.encode(model, image)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
