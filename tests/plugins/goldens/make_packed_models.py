"""Writes the small FLUX of make_quantised_models.py's gguf file, with three double blocks, in the forms of ComfyUI's quantised files, each matrix in another one,
and what diffusers makes of the weights widened to float32.

    make_packed_models.py [OUT]        (default: quantised/ beside this file)

Needs what make_quantised_models.py, make_quantised_lora_goldens.py and packed_forms.py need, and their files. Files:

    flux_packed.safetensors      nvfp4 (also with factors of the columns), mxfp8, convrot_w4a4, asym_w4a8_int8 (levels that kernels
                                 know, others, none, 6 bits), awq_w4a16, int8 and bf16; told beside a matrix or by the metadata.
                                 Rows of 256 numbers stay packed on a device, those of 64 are widened
    expected_packed.safetensors  "out" at the inputs "flux." of expected.safetensors, "kohya.out" with gguf_kohya.safetensors at 0.75
"""

import json
import os
import sys

import torch
from diffusers import FluxTransformer2DModel
from safetensors.torch import load_file, save_file

import original_names
from make_quantised_lora_goldens import COMMON, GGUF, evaluate, with_kohya
from make_quantised_models import HERE
from make_random_models import shake
from packed_forms import description, quantise

torch.set_grad_enabled(False)
PACKED = {**GGUF, "num_layers": 3}  # enough matrices for all forms
LEVELS = torch.linspace(-1, 1, 16) ** 3
WIDE = [("nvfp4", {}), ("asym_w4a8_int8", {}), ("awq_w4a16", {}), ("mxfp8", {}), ("convrot_w4a4", {}),
        ("asym_w4a8_int8", {"levels": LEVELS}), ("asym_w4a8_int8", {"bits": 6}), ("nvfp4", {"factors": True})]
NARROW = [("nvfp4", {}), ("awq_w4a16", {}), ("asym_w4a8_int8", {"convrot_groupsize": 64}), ("nvfp4", {"factors": True}),
          ("mxfp8", {"typed": True}), ("convrot_w4a4", {"convrot_groupsize": 64}), None]


def forms_of(shape, counts):
    """The next form for matrices of this width: whole tiles of nvfp4 and mxfp8 alone are not filled up."""
    if len(shape) != 2 or shape[0] % 32 != 0 or shape[1] % 64 != 0:
        return None
    wide = shape[1] % 256 == 0
    counts[wide] += 1
    forms = WIDE if wide else NARROW
    return forms[(counts[wide] - 1) % len(forms)]


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "quantised")
    torch.manual_seed(5)
    model = shake(FluxTransformer2DModel(**COMMON, **PACKED), 1)
    stored, meant, layers, counts = {}, {}, {}, [0, 0]
    for number, (name, tensor) in enumerate(original_names.flux(model.state_dict()).items()):
        module, form = name.removesuffix(".weight"), forms_of(tensor.shape, counts)
        if form is None:
            stored[name] = tensor.bfloat16().contiguous()
            meant[name] = stored[name].float()
            continue
        made, told, meant[name] = quantise(module, tensor, *form)
        print(f"{name} {tuple(tensor.shape)}: {told['format']}")
        stored.update(made)
        if number % 4 == 0:
            layers[module] = told
        else:
            stored[module + ".comfy_quant"] = description(told)
    assert counts[0] >= len(NARROW) and counts[1] >= len(WIDE), counts
    metadata = {"_quantization_metadata": json.dumps({"format_version": "1.0", "layers": layers})}
    save_file(stored, os.path.join(out, "flux_packed.safetensors"), metadata)
    given = load_file(os.path.join(HERE, "quantised", "expected.safetensors"))
    inputs = [given[f"flux.{field}"] for field in ("x", "context", "y", "timestep", "guidance")]
    kohya = load_file(os.path.join(HERE, "quantised_loras", "gguf_kohya.safetensors"))
    expected = {"out": evaluate(PACKED, meant, inputs), "kohya.out": evaluate(PACKED, with_kohya(meant, kohya, 0.75), inputs)}
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected_packed.safetensors"))
    for name in ("flux_packed.safetensors", "expected_packed.safetensors"):
        print(os.path.getsize(os.path.join(out, name)), name)


if __name__ == "__main__":
    main()
