"""Writes a tiny T5 whose matrices are int8, and what transformers makes of it when its products are widened and when they are of
whole numbers.

    make_int8_products.py [OUT]        (default: quantised/ beside this file)

Needs torch, transformers and safetensors from PyPI; runs on the CPU in float32. Files:

    t5_int8.safetensors          one layer, width 256, all matrices in int8 with a scale for each row
    t5_int8_convrot.safetensors  the same, rotated in groups of 256
    expected_int8.safetensors    "int8.ids" is the input, "int8.last_hidden" the output by matrices widened to float32,
                                 "int8.rounded" the output where each row of a product's input becomes whole numbers
                                 (plugins/blocks/linear_int8.h), too; "int8_convrot...." the same of the other file
"""

import json
import os
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import T5Config, T5EncoderModel

from make_random_models import shake

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
GROUP = 256


def hadamard(order):
    seed = torch.tensor([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], dtype=torch.float64)
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < order:
        matrix = torch.kron(matrix, seed)
    return matrix / order**0.5


class WholeLinear(torch.nn.Module):
    """Rows of x become whole numbers, in NumPy's float32; sums are exact."""

    def __init__(self, numbers, scales, rotation):
        super().__init__()
        self.numbers, self.scales, self.rotation = numbers, scales, rotation
        self.weight = scales  # whose type T5 looks at

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1]).numpy()
        if self.rotation is not None:
            rows = (rows.reshape(len(rows), -1, GROUP) @ self.rotation.numpy().astype(np.float32)).reshape(rows.shape)
        scale = np.maximum(np.abs(rows).max(1, keepdims=True) / np.float32(127), np.float32(1e-30))
        whole = np.clip(np.rint(rows / scale), -127, 127).astype(np.int64)
        sums = (whole @ self.numbers.numpy().astype(np.int64).T).astype(np.float32)
        return torch.from_numpy(sums * (scale * self.scales.numpy().T)).reshape(*x.shape[:-1], -1)


def make(out, form, expected):
    config = T5Config(
        vocab_size=50,
        d_model=256,
        d_kv=128,
        d_ff=256,
        num_layers=1,
        num_heads=2,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
        feed_forward_proj="gated-gelu",
        is_encoder_decoder=False,
        use_cache=False,
    )
    model = shake(T5EncoderModel(config), 11)
    rotation = hadamard(GROUP) if form == "int8_convrot" else None
    stored, linears = {}, {}
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        wide = module.weight.double()
        turned = wide if rotation is None else (wide.reshape(len(wide), -1, GROUP) @ rotation).reshape(wide.shape)
        scale = turned.abs().amax(1, keepdim=True).float() / 127
        numbers = (turned / scale.double()).round().to(torch.int8)
        meant = numbers.double() * scale.double()
        if rotation is not None:
            meant = (meant.reshape(len(wide), -1, GROUP) @ rotation).reshape(wide.shape)
        module.weight.copy_(meant.float())
        told = {"format": "int8_tensorwise"}
        if rotation is not None:
            told |= {"convrot": True, "convrot_groupsize": GROUP}
        stored[name + ".weight"], stored[name + ".weight_scale"] = numbers, scale
        stored[name + ".comfy_quant"] = torch.frombuffer(bytearray(json.dumps(told).encode()), dtype=torch.uint8)
        linears[name] = WholeLinear(numbers, scale, rotation)
    for name, tensor in model.state_dict().items():
        if name not in stored and name != "encoder.embed_tokens.weight":
            stored[name] = tensor.clone()
    save_file(stored, os.path.join(out, f"t5_{form}.safetensors"))
    ids = torch.cat([torch.arange(2, 32)[None], torch.arange(40, 10, -1)[None]])
    expected[f"{form}.ids"] = ids.int()
    expected[f"{form}.last_hidden"] = model(ids).last_hidden_state.clone()
    for name, linear in linears.items():
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, linear)
    expected[f"{form}.rounded"] = model(ids).last_hidden_state.clone()
    exact, rounded = expected[f"{form}.last_hidden"], expected[f"{form}.rounded"]
    print(form, "relative error of whole numbers", float((exact - rounded).norm() / exact.norm()))


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "quantised")
    expected = {}
    for form in ("int8", "int8_convrot"):
        make(out, form, expected)
    save_file(expected, os.path.join(out, "expected_int8.safetensors"))


if __name__ == "__main__":
    main()
