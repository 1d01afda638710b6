#!/usr/bin/env python3
"""Writes what diffusers makes with a small TAESD (AutoencoderTiny).

    make_taesd_goldens.py [OUT]        (default: taesd/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors in TAESD's own files (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             "decoder", "encoder": {name in TAESD's own files: shape}; "diffusers": {name in the file of
                            diffusers: shape}
    expected.safetensors    "decoder.z" is a latent of FLUX.1's large autoencoder, "decoder.image" what becomes of it;
                            "encoder.image", "encoder.mean" the other way round; "both.z" and "both.image" by the
                            weights of diffusers' names
"""
import json
import pathlib
import sys

import torch
from diffusers import AutoencoderTiny
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
SCALE, SHIFT = 0.3611, 0.1159


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("taesd"))
    folder.mkdir(exist_ok=True)
    model = AutoencoderTiny(
        encoder_block_out_channels=(8, 8, 8), decoder_block_out_channels=(8, 8, 8), latent_channels=16,
        num_encoder_blocks=(1, 2, 1), num_decoder_blocks=(2, 1, 1),
    )
    shapes, state = {"decoder": {}, "encoder": {}, "diffusers": {}}, {}
    for name, tensor in model.state_dict().items():
        side, _, number, rest = name.split(".", 3)
        # Its own decoders count the limit that they begin with, too.
        own = f"{int(number) + (side == 'decoder')}.{rest}"
        shape = list(tensor.shape)
        state[name] = seeded_weights.seeded(own, tuple(shape))
        shapes[side][own] = shape
    model.load_state_dict(state)
    model.eval()
    generator = torch.Generator().manual_seed(5)
    z = torch.randn(2, 16, 5, 7, generator=generator) * 3
    image = torch.rand(1, 3, 20, 12, generator=generator) * 2 - 1
    expected = {
        "decoder.z": z,
        "decoder.image": model.decode((z - SHIFT) * SCALE).sample.permute(0, 2, 3, 1).contiguous(),
        "encoder.image": image.permute(0, 2, 3, 1).contiguous(),
        "encoder.mean": (model.encode(image).latents / SCALE + SHIFT).contiguous(),
    }
    both = AutoencoderTiny.from_config(model.config)
    shapes["diffusers"] = seeded_weights.load(both)
    expected["both.z"] = z.clone()
    expected["both.image"] = both.decode((z - SHIFT) * SCALE).sample.permute(0, 2, 3, 1).contiguous()
    save_file(expected, folder / "expected.safetensors")
    (folder / "shapes.json").write_text(json.dumps(shapes, indent=1) + "\n")


main()
