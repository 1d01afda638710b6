"""Writes two small sets of weights and what PyTorch makes of merging them.

    make_merge_goldens.py [OUT]        (default: merge_goldens.safetensors beside this file)

Names: "a.<tensor>", "b.<tensor>"; "simple.<tensor>" is 0.3 a + 0.7 b, "subtract.<tensor>" is
1.7 a - 1.7 b, "factor.<tensor>" is 0.37 a, all in f32: each product and sum as ComfyUI takes them.
"saved.<tensor>" is "simple.<tensor>" in the type of a.
Needs torch and safetensors from PyPI.
"""

import os
import sys

import torch
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "merge_goldens.safetensors")
SHAPES = {
    "wide": ((67, 301), torch.bfloat16, torch.float16),
    "half": ((9, 40), torch.float16, torch.bfloat16),
    "filter": ((4, 3, 3, 3), torch.float32, torch.float32),
    "bias": ((67,), torch.float32, torch.bfloat16),
}


def merged(a, b, keep, add):
    weight = a.float().clone()
    weight *= keep
    if b is not None:
        weight += add * b.float()
    return weight


def main():
    generator = torch.Generator().manual_seed(5)
    stored = {}
    for name, (shape, of_a, of_b) in SHAPES.items():
        a = torch.randn(shape, generator=generator).to(of_a)
        b = (torch.randn(shape, generator=generator) * 3).to(of_b)
        stored["a." + name], stored["b." + name] = a, b
        stored["simple." + name] = merged(a, b, 0.3, 1 - 0.3)
        stored["subtract." + name] = merged(a, b, 1.7, -1.7)
        stored["saved." + name] = stored["simple." + name].to(of_a, copy=True)
        stored["factor." + name] = merged(a, None, 0.37, 0)
    save_file(stored, OUT)


if __name__ == "__main__":
    main()
