"""Writes tiny language models whose matrices stand in int8, as ComfyUI's quantised text encoders have them, and the states that
transformers computes with the numbers that they mean.

    make_quantised_texts.py [OUT]        (default: quantised_texts/ beside this file)

Needs torch, transformers and safetensors from PyPI. A layer of width 256; names as single files have them; norms and the table of tokens
in bf16. Files:

    qwen3_int8.safetensors          matrices with a scale for each row or for all, told by a tensor beside them, by the metadata, or by
                                    nothing but the scale
    qwen3_int8_convrot.safetensors  with a scale for each row, rotated: rows of 256 numbers in one group, which are multiplied as they
                                    are, those of 64 in another, which are widened
    qwen2vl_int8_convrot.safetensors    likewise, of Qwen2.5-VL, which has biases
    expected.safetensors            "qwen3_int8.ids" is an input of two rows, "qwen3_int8.last_hidden" what is behind the final norm
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3Model
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLTextModel

from make_quantised_models import hadamard
from make_random_models import shake

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = dict(vocab_size=60, hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=128)
ROPE = {"rope_type": "default", "rope_theta": 1e6}


def in_int8(state, is_rotated):
    """What is stored, what it means, and what the metadata tell."""
    stored, meant, layers, number = {}, {}, {}, 0
    for name, tensor in state.items():
        key = f"model.{name}"
        stored[key], meant[name] = tensor.bfloat16(), tensor
        if tensor.dim() != 2 or not name.startswith("layers."):
            continue
        columns, told = tensor.shape[1], {"format": "int8_tensorwise"}
        rotation = torch.eye(columns, dtype=torch.float64)
        if is_rotated:
            group = 256 if columns % 256 == 0 else 64
            rotation = torch.kron(torch.eye(columns // group, dtype=torch.float64), hadamard(group))
            told |= {"convrot": True, "convrot_groupsize": group}
        turned = tensor.double() @ rotation.T
        of_rows = is_rotated or number % 2 == 0
        scale = (turned.abs().amax(1, keepdim=True) if of_rows else turned.abs().max().reshape(1)).float() / 127
        stored[key] = (turned / scale.double()).round().to(torch.int8)
        stored[key + "_scale"] = scale
        meant[name] = (stored[key].double() * scale.double() @ rotation).float()
        module = key.removesuffix(".weight")
        if is_rotated or number % 3 == 0:
            stored[module + ".comfy_quant"] = torch.frombuffer(bytearray(json.dumps(told).encode()), dtype=torch.uint8)
        elif number % 3 == 1:
            layers[module] = told
        number += 1
    return stored, meant, {"_quantization_metadata": json.dumps({"format_version": "1.0", "layers": layers})} if layers else None


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "quantised_texts")
    os.makedirs(out, exist_ok=True)
    expected = {}
    wide = Qwen2_5_VLTextConfig(**SIZES, rms_norm_eps=1e-6, rope_parameters=ROPE | {"mrope_section": [16, 24, 24]})
    for seed, (name, model) in enumerate((
        ("qwen3_int8", Qwen3Model(Qwen3Config(**SIZES, head_dim=32, rope_parameters=ROPE))),
        ("qwen3_int8_convrot", Qwen3Model(Qwen3Config(**SIZES, head_dim=32, rope_parameters=ROPE))),
        ("qwen2vl_int8_convrot", Qwen2_5_VLTextModel(wide)),
    )):
        shake(model, 20 + seed)
        stored, meant, metadata = in_int8(model.state_dict(), name.endswith("convrot"))
        path = os.path.join(out, f"{name}.safetensors")
        save_file({key: tensor.contiguous() for key, tensor in stored.items()}, path, metadata)
        os.chmod(path, 0o644)
        before = model.state_dict()["layers.0.mlp.up_proj.weight"].clone()
        model.load_state_dict(meant)
        print(f"{name}: a matrix changes by {(before - meant['layers.0.mlp.up_proj.weight']).norm() / before.norm():.4f}")
        ids = torch.randint(0, 60, (2, 21), generator=torch.Generator().manual_seed(seed))
        expected |= {f"{name}.ids": ids.int(), f"{name}.last_hidden": model(input_ids=ids, use_cache=False).last_hidden_state.contiguous()}
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
