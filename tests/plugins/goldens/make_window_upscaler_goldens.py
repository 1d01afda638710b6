#!/usr/bin/env python3
"""Writes what spandrel makes with small upscalers that attend to themselves: SPAN, SwinIR, HAT, DAT, PLKSR.

    make_window_upscaler_goldens.py [OUT]        (default: window_upscalers/ beside this file)

Needs torch, spandrel, einops, pillow and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of
their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}, without what spandrel makes by itself (positions, masks,
                            convolutions that it joins)
    FAMILY.safetensors      "NAME.0.image" is an input (1, H, W, C), "NAME.0.out" what the model makes of it, not clamped;
                            "NAME.1..." the same of another size; "NAME.odd.out" what upscalers/odd.png becomes, which
                            is completed to sides of 16 before, clamped
"""
import json
import pathlib
import re
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import save_file
from spandrel import ModelLoader
from spandrel.architectures.DAT import DAT
from spandrel.architectures.HAT import HAT
from spandrel.architectures.PLKSR import PLKSR, RealPLKSR
from spandrel.architectures.SPAN import SPAN
from spandrel.architectures.SwinIR import SwinIR

import seeded_weights

torch.set_grad_enabled(False)
DERIVED = re.compile(r"relative_position_index|attn_mask|eval_conv|rpe_biases|num_batches_tracked")
SWIN = {"embed_dim": 12, "depths": [2, 2], "num_heads": [2, 3], "mlp_ratio": 2.0, "window_size": 8}
HATS = {"embed_dim": 12, "compress_ratio": 3, "squeeze_factor": 4, "mlp_ratio": 2.0, "num_feat": 16}
DATS = {"embed_dim": 32, "expansion_factor": 2.0}

# {name: (class, arguments, sizes)}
MODELS = {
    "span_x2": (SPAN, {"num_in_ch": 3, "num_out_ch": 3, "feature_channels": 8, "upscale": 2}, [(8, 12), (5, 7)]),
    "span_plain_x4": (SPAN, {"num_in_ch": 3, "num_out_ch": 3, "feature_channels": 8, "upscale": 4, "norm": False}, [(6, 5), (1, 3)]),
    "swin_shuffle_x2": (SwinIR, SWIN | {"upsampler": "pixelshuffle", "upscale": 2}, [(16, 24), (9, 11)]),
    "swin_direct_x3": (SwinIR, SWIN | {"upsampler": "pixelshuffledirect", "upscale": 3, "depths": [3]}, [(16, 8), (9, 11)]),
    "swin_real_x4": (SwinIR, SWIN | {"upsampler": "nearest+conv", "upscale": 4, "resi_connection": "3conv"}, [(8, 8), (9, 7)]),
    "swin_unshuffled_x2": (SwinIR, SWIN | {"upsampler": "nearest+conv", "upscale": 4, "start_unshuffle": 2}, [(16, 16), (32, 16)]),
    "swin_jpeg_x1": (SwinIR, SWIN | {"window_size": 7, "in_chans": 1, "img_range": 255.0, "img_size": 21}, [(14, 21), (10, 13)]),
    "swin_noise_x1": (SwinIR, SWIN | {"resi_connection": "3conv"}, [(16, 16), (15, 9)]),
    "hat_x2": (HAT, HATS | {"depths": [3, 2], "num_heads": [2, 3], "window_size": 8, "upscale": 2, "upsampler": "pixelshuffle"}, [(16, 24), (9, 11)]),
    "hat_wide_x3": (HAT, HATS | {"depths": [2], "num_heads": [2], "window_size": 16, "upscale": 3, "upsampler": "pixelshuffle",
                                 "resi_connection": "identity", "patch_norm": False, "qkv_bias": False}, [(16, 16), (9, 17)]),
    "dat_x2": (DAT, DATS | {"depth": [3, 2], "num_heads": [4, 2], "split_size": [4, 8], "upscale": 2}, [(16, 24), (9, 13)]),
    "dat_light_x3": (DAT, DATS | {"depth": [3], "num_heads": [2], "split_size": [8, 8], "upscale": 3, "qkv_bias": False,
                                  "resi_connection": "3conv", "upsampler": "pixelshuffledirect"}, [(8, 16), (11, 7)]),
    "plksr_x2": (PLKSR, {"dim": 16, "n_blocks": 2, "upscaling_factor": 2, "kernel_size": 9}, [(8, 12), (5, 7)]),
    "plksr_real_x4": (RealPLKSR, {"dim": 16, "n_blocks": 2, "upscaling_factor": 4, "kernel_size": 17}, [(6, 9), (3, 5)]),
    "plksr_normed_x2": (RealPLKSR, {"dim": 16, "n_blocks": 2, "upscaling_factor": 2, "kernel_size": 5, "layer_norm": True, "use_ea": False},
                        [(8, 12), (5, 7)]),
}


def load(name):
    made, arguments, _ = MODELS[name]
    whole = made(**arguments).state_dict()
    shapes = {key: list(value.shape) for key, value in whole.items() if not DERIVED.search(key)}
    whole |= {key: seeded_weights.seeded(key, tuple(shape)) for key, shape in shapes.items()}
    if arguments.get("start_unshuffle", 1) > 1:  # as its files name it
        for end in ("weight", "bias"):
            shapes[f"conv_first.1.{end}"] = shapes.pop(f"conv_first.{end}")
            whole.pop(f"conv_first.{end}")
            whole[f"conv_first.1.{end}"] = seeded_weights.seeded(f"conv_first.1.{end}", tuple(shapes[f"conv_first.1.{end}"]))
    found = ModelLoader().load_from_state_dict(dict(whole))
    assert isinstance(found.model, made), name
    found.model.eval()
    return found, shapes


def family_of(name):
    return MODELS[name][0].__name__.lower().removeprefix("real")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("window_upscalers"))
    folder.mkdir(exist_ok=True)
    generator = torch.Generator().manual_seed(5)
    expected, shapes = {}, {}
    with Image.open(pathlib.Path(__file__).with_name("upscalers") / "odd.png") as picture:
        odd = torch.from_numpy(numpy.array(picture)).float().div(255).permute(2, 0, 1)[None]
    for name, (_, _, sizes) in MODELS.items():
        whole, shapes[name] = load(name)
        model, channels = whole.model, whole.input_channels
        for i, (height, width) in enumerate(sizes):
            image = torch.rand(1, channels, height, width, generator=generator)
            out = model(image)
            print(name, tuple(image.shape), tuple(out.shape), "mean", float(out.mean()), "deviation", float(out.std()))
            family = expected.setdefault(family_of(name), {})
            family[f"{name}.{i}.image"] = image.permute(0, 2, 3, 1).contiguous()
            family[f"{name}.{i}.out"] = out.permute(0, 2, 3, 1).contiguous()
        if name in ("span_plain_x4", "swin_unshuffled_x2", "hat_x2"):
            made = whole(odd).clamp(0, 1)
            print("inside 0 to 1:", ((made > 0) & (made < 1)).float().mean())
            expected[family_of(name)][f"{name}.odd.out"] = made.permute(0, 2, 3, 1).contiguous()
    for family, tensors in expected.items():
        save_file(tensors, folder / f"{family}.safetensors")
    lines = (f'"{name}": {json.dumps(found, separators=(",", ":"))}' for name, found in shapes.items())
    (folder / "shapes.json").write_text("{" + ",\n".join(lines) + "}\n")


main()
