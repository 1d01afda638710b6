"""Writes tiny models in gguf files with quantised random weights and what diffusers and transformers make of the weights widened to
float32 by the gguf package, as make_quantised_models.py does for FLUX.1 and T5.

    make_gguf_models.py [OUT]        (default: gguf/ beside this file)

Needs gguf, torch, diffusers, transformers and safetensors from PyPI. Matrices stand in blocks of every format that is read, in turn
as their width allows: rows of 256 in Q4_K, Q5_K, Q6_K, too. Files:

    qwen_image.gguf, z_image.gguf, chroma.gguf, flux2.gguf   one layer of each kind, hidden 64 or 96; the publishers' names
    qwen3.gguf, qwen2vl.gguf    2 layers and one, width 256; llama.cpp's names
    expected.safetensors        "z_image.x" is an input, "z_image.out" an output (with a row for each step)
"""

import os
import sys

import torch
from diffusers import ChromaTransformer2DModel, Flux2Transformer2DModel, QwenImageTransformer2DModel, ZImageTransformer2DModel
from diffusers.loaders.single_file_utils import convert_flux2_transformer_checkpoint_to_diffusers
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3Model
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLTextModel

import make_chroma_goldens
import make_flux2_goldens
import make_qwen_image_goldens
import make_workflow_goldens
from make_quantised_models import Quantised
from make_random_models import randn, shake

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.125])
WIDTH = 256  # of texts
expected = {}


def write(out, name, architecture, tensors, plain=()):
    """A gguf file of these; what its bytes mean, by its names. plain: what stays in f32, as converters keep what is small."""
    file = Quantised(os.path.join(out, f"{name}.gguf"), architecture)
    for tensor_name, tensor in tensors.items():
        file.add(tensor_name, tensor, "F32" if tensor_name in plain else None)
    file.close()
    return file.state


def forward(name, x, context, velocity):
    steps = torch.stack([velocity(x, level, context) for level in LEVELS])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": steps})


def make_qwen_image(out):
    model = shake(
        QwenImageTransformer2DModel(
            patch_size=2, in_channels=64, out_channels=16, num_layers=1, attention_head_dim=32, num_attention_heads=2, joint_attention_dim=WIDTH, axes_dims_rope=[16, 8, 8]), 1)
    model.load_state_dict(write(out, "qwen_image", "qwen_image", model.state_dict()))
    make_qwen_image_goldens.CHANNELS = 16
    forward("qwen_image", randn(3, 2, 16, 6, 8), randn(4, 2, 5, WIDTH), lambda *told: make_qwen_image_goldens.velocity(model, *told))


def make_z_image(out):
    model = shake(
        ZImageTransformer2DModel(dim=96, n_layers=1, n_refiner_layers=1, n_heads=3, n_kv_heads=3, cap_feat_dim=WIDTH, axes_dims=[8, 12, 12]), 2)
    parts = {}  # queries, keys and values are one tensor of the file
    for name, tensor in model.state_dict().items():
        third = next((part for part in "qkv" if f"attention.to_{part}." in name), None)
        there = make_workflow_goldens.z_name(name) if third is None else name.replace(f"to_{third}.", "qkv.")
        parts.setdefault(there, []).append((name, tensor))
    whole = {there: torch.cat([tensor for _, tensor in found]) for there, found in parts.items()}
    meant = write(out, "z_image", "lumina2", whole, ("x_pad_token", "cap_pad_token"))
    state = {}
    for there, found in parts.items():
        for (name, _), rows in zip(found, meant[there].split([tensor.shape[0] for _, tensor in found])):
            state[name] = rows
    model.load_state_dict(state)
    forward("z_image", randn(5, 2, 16, 6, 8), randn(6, 2, 5, WIDTH), lambda *told: make_workflow_goldens.z_velocity(model, *told))


def make_chroma(out):
    model = shake(
        ChromaTransformer2DModel(
            in_channels=64, num_layers=1, num_single_layers=1, attention_head_dim=32, num_attention_heads=2, joint_attention_dim=WIDTH,
            axes_dims_rope=(16, 8, 8), approximator_num_channels=64, approximator_hidden_dim=256, approximator_layers=1), 3)
    state, parts = model.state_dict(), {}
    for name in state:
        there, part = make_chroma_goldens.original(name)
        parts.setdefault(there, {})[part] = name
    whole = {there: torch.cat([state[names[part]] for part in sorted(names)]) for there, names in parts.items()}
    meant = write(out, "chroma", "chroma", whole)
    for there, names in parts.items():
        rows = meant[there].split([state[names[part]].shape[0] for part in sorted(names)])
        state.update({names[part]: own for part, own in zip(sorted(names), rows)})
    model.load_state_dict(state)
    forward("chroma", randn(7, 2, 16, 6, 8), randn(8, 2, 5, WIDTH), lambda *told: make_chroma_goldens.velocity(model, *told))


def make_flux2(out):
    config = dict(in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=4, joint_attention_dim=WIDTH, axes_dims_rope=(4, 4, 4, 4), guidance_embeds=True)
    model = Flux2Transformer2DModel(**config)
    generator = torch.Generator().manual_seed(4)
    drawn = {
        name: torch.randn(*shape, generator=generator) * (shape[-1] ** -0.5 if len(shape) > 1 else 0.2) + (len(shape) == 1)
        for name, shape in make_flux2_goldens.original_shapes(config).items()
    }
    model.load_state_dict(convert_flux2_transformer_checkpoint_to_diffusers(write(out, "flux2", "flux2", drawn)))
    guidance = torch.tensor([4.0])
    forward("flux2", randn(9, 2, 16, 6, 8), randn(10, 2, 5, WIDTH), lambda *told: make_flux2_goldens.velocity(model.eval(), *told, guidance))
    expected["flux2.guidance"] = guidance


LLAMA = {
    "layers.": "blk.",
    "embed_tokens": "token_embd",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
SIZES = dict(vocab_size=60, hidden_size=WIDTH, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=128)


def llama(name):
    if name == "norm.weight":
        return "output_norm.weight"
    for here, there in LLAMA.items():
        name = name.replace(here, there)
    return name


def language(out, name, architecture, model, seed):
    shake(model, seed)
    state = model.state_dict()
    meant = write(out, name, architecture, {llama(key): tensor for key, tensor in state.items()})
    model.load_state_dict({key: meant[llama(key)] for key in state})
    ids = torch.randint(0, 60, (2, 21), generator=torch.Generator().manual_seed(seed))
    expected.update({f"{name}.ids": ids.int(), f"{name}.last_hidden": model(input_ids=ids, use_cache=False).last_hidden_state})


def make_languages(out):
    rope = {"rope_type": "default", "rope_theta": 1e6}
    language(out, "qwen3", "qwen3", Qwen3Model(Qwen3Config(**SIZES, head_dim=32, rope_parameters=rope)), 5)
    config = Qwen2_5_VLTextConfig(**SIZES | dict(num_hidden_layers=1), rms_norm_eps=1e-6, rope_parameters=rope | {"mrope_section": [16, 24, 24]})
    language(out, "qwen2vl", "qwen2vl", Qwen2_5_VLTextModel(config), 6)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "gguf")
    os.makedirs(out, exist_ok=True)
    for make in (make_qwen_image, make_z_image, make_chroma, make_flux2, make_languages):
        make(out)
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
