"""Writes true_files.json: names, shapes and types of the published files of Qwen-Image and Z-Image, by the names that
ComfyUI's examples give them.

    make_true_files.py

Needs torch, diffusers and transformers from PyPI: models of the published configurations are made on PyTorch's meta
device, which holds no weights, and named as ComfyUI's files name them. {file: {name: [type, shape]}}, where "{0-27}" in a
name stands for each of these numbers. flux_headers.py writes files of it; tests/plugins/families/true_files_test.cpp
holds the families against it.
"""

import json
import os
import re

import torch
from diffusers import AutoencoderKLQwenImage, QwenImageTransformer2DModel, ZImageTransformer2DModel
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen3Config, Qwen3ForCausalLM

import make_workflow_goldens

make_workflow_goldens.VAE["num_res_blocks"] = 2


def language(name):
    """Of Qwen2.5-VL as it was published, before transformers put its parts into one model."""
    return name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")


def fused(shapes):
    """Z-Image's original names; queries, keys and values in one tensor."""
    out = {}
    for name, shape in shapes.items():
        if "attention.to_k." in name or "attention.to_v." in name:
            continue
        is_first = "attention.to_q." in name
        out[make_workflow_goldens.z_name(name.replace("to_q.", "qkv."))] = [3 * shape[0], *shape[1:]] if is_first else shape
    return out


def scaled(shapes):
    """Matrices of the language model's layers in fp8 with a scale each, all else in bf16."""
    out = {"scaled_fp8": ["F8_E4M3", [0]]}
    for name, shape in shapes.items():
        is_matrix = len(shape) == 2 and name.startswith("model.layers.")
        out[name] = ["F8_E4M3" if is_matrix else "BF16", shape]
        if is_matrix:
            out[name.removesuffix("weight") + "scale_weight"] = ["F32", []]
    return out


def typed(shapes, dtype):
    return {name: [dtype, shape] for name, shape in shapes.items()}


def shapes_of(model, rename=lambda name: name):
    return {rename(name): list(tensor.shape) for name, tensor in model.state_dict().items()}


def compressed(tensors):
    """Equal tensors of consecutive layers under one name."""
    numbers = {}
    for name, what in tensors.items():
        found = re.search(r"\.(\d+)\.", name)
        pattern = name if found is None else f"{name[:found.start()]}.{{}}.{name[found.end():]}"
        numbers.setdefault((pattern, json.dumps(what)), []).append(None if found is None else int(found[1]))
    out = {}
    for (pattern, what), found in numbers.items():
        while found:
            first = last = found.pop(0)
            while found and first is not None and found[0] == last + 1:
                last = found.pop(0)
            number = "" if first is None else f"{first}" if first == last else f"{{{first}-{last}}}"
            out[pattern.replace("{}", number)] = json.loads(what)
    return out


def main():
    with torch.device("meta"):
        qwen = QwenImageTransformer2DModel()
        vae = AutoencoderKLQwenImage()
        z_image = ZImageTransformer2DModel()
        text = Qwen2_5_VLForConditionalGeneration(
            Qwen2_5_VLConfig(
                text_config=dict(
                    vocab_size=152064,
                    hidden_size=3584,
                    intermediate_size=18944,
                    num_hidden_layers=28,
                    num_attention_heads=28,
                    num_key_value_heads=4,
                ),
                vision_config=dict(hidden_size=1280, out_hidden_size=3584, intermediate_size=3420),
            )
        )
        qwen3 = Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=151936,
                hidden_size=2560,
                intermediate_size=9728,
                num_hidden_layers=36,
                num_attention_heads=32,
                num_key_value_heads=8,
                head_dim=128,
                tie_word_embeddings=True,
            )
        )
    transformer, z_transformer = shapes_of(qwen), fused(shapes_of(z_image))
    tied = {name: shape for name, shape in shapes_of(qwen3).items() if name != "lm_head.weight"}
    files = {
        "diffusion_models/qwen_image_fp8_e4m3fn": typed(transformer, "F8_E4M3"),
        "diffusion_models/qwen_image_2512_fp8_e4m3fn": typed(transformer, "F8_E4M3"),
        "text_encoders/qwen_2.5_vl_7b_fp8_scaled": scaled(shapes_of(text, language)),
        "vae/qwen_image_vae": typed(shapes_of(vae, make_workflow_goldens.vae_names), "BF16"),
        "diffusion_models/z_image_turbo_bf16": typed(z_transformer, "BF16"),
        "diffusion_models/z_image_bf16": typed(z_transformer, "BF16"),
        "text_encoders/qwen_3_4b": typed(tied, "BF16"),
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "true_files.json"), "w") as file:
        texts = []
        for name, tensors in files.items():
            rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(what)}" for key, what in compressed(tensors).items())
            texts.append(f' "{name}": {{\n{rows}\n }}')
            print(name, len(tensors))
        file.write("{\n" + ",\n".join(texts) + "\n}\n")


if __name__ == "__main__":
    main()
