"""Writes packed.safetensors: small matrices in each form of ComfyUI's quantised files, and NAME.values, the numbers that they mean.

Usage: make_packed_goldens.py [OUTPUT]; see tests/plugins/goldens/packed_forms.py for what it needs.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "plugins" / "goldens"))

from packed_forms import description, quantise  # noqa: E402

LEVELS = torch.linspace(-1, 1, 16) ** 3
# Rows: nvfp4 and mxfp8 have whole tiles of scales, so that a few more than 128 are two of them.
CASES = {
    "nvfp4": ((16, 512), "nvfp4", {}),
    "nvfp4_narrow": ((144, 80), "nvfp4", {}),
    "nvfp4_awq": ((16, 256), "nvfp4", {"factors": True}),
    "mxfp8": ((32, 512), "mxfp8", {}),
    "mxfp8_narrow": ((32, 96), "mxfp8", {"typed": True}),
    "w4a4": ((3, 512), "convrot_w4a4", {}),
    "w4a4_narrow": ((3, 64), "convrot_w4a4", {"convrot_groupsize": 64}),
    "w4a8": ((3, 512), "asym_w4a8_int8", {}),
    "w4a8_levels": ((3, 256), "asym_w4a8_int8", {"levels": LEVELS}),
    "w4a8_uniform": ((3, 256), "asym_w4a8_int8", {"codebook": False}),
    "w4a8_narrow": ((3, 64), "asym_w4a8_int8", {"group_size": 32, "convrot_groupsize": 64}),
    "w6a8": ((3, 256), "asym_w4a8_int8", {"bits": 6}),
    "awq": ((3, 512), "awq_w4a16", {}),
    "awq_narrow": ((3, 64), "awq_w4a16", {"group_size": 32}),
}


def main():
    torch.manual_seed(11)
    tensors = {}
    for name, (shape, form, options) in CASES.items():
        made, told, values = quantise(name, torch.randn(shape) * torch.rand(shape[0], 1), form, options)
        tensors.update(made)
        tensors[name + ".comfy_quant"] = description(told)
        tensors[name + ".values"] = values
    save_file(tensors, sys.argv[1] if len(sys.argv) > 1 else str(HERE / "packed.safetensors"))


main()
