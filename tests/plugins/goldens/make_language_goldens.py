"""Writes tiny decoder-only language models with random weights and the states that transformers computes with them.

    make_language_goldens.py [OUT]        (default: language/ beside this file)

Needs torch, transformers and safetensors from PyPI; runs on the CPU in float32 over weights rounded to bfloat16, which
is how they are stored. Files:

    qwen2.5.safetensors, qwen3.safetensors, mistral3.safetensors, gemma2.safetensors, qwen3vl.safetensors,
    gemma3.safetensors
                            3 layers of width 24, groups of 2 heads; names as single files have them
    configs.json            the config of each
    expected.safetensors    "qwen3.ids" is an input of 2 rows, "qwen3.last_hidden" what is behind the final norm,
                            "qwen3.layer.2" the states after 2 layers; "gemma3.states" those of all
                            layers side by side, "gemma3.wide.states" with windows longer than the rows
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import Gemma2Config, Gemma2Model, Gemma3TextConfig, Gemma3TextModel, MistralConfig, MistralModel
from transformers import Qwen3Config, Qwen3Model
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLTextModel
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLTextConfig
from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLTextModel

from make_random_models import save, shake

torch.set_grad_enabled(False)
SIZES = dict(
    vocab_size=60,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
)
ROWS, LENGTH = 2, 21


def qwen25():
    # Three parts of a head turn with time, row and column; of a text all three are its position.
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]}
    sizes = SIZES | dict(hidden_size=64)
    config = Qwen2_5_VLTextConfig(**sizes, rms_norm_eps=1e-6, rope_parameters=rope)
    return Qwen2_5_VLTextModel(config), dict(model_type="qwen2_5_vl_text", head_dim=16, rope_theta=1e6)


def qwen3():
    config = Qwen3Config(**SIZES, head_dim=16, rope_parameters={"rope_type": "default", "rope_theta": 1e6})
    return Qwen3Model(config), dict(model_type="qwen3")


def mistral3():
    # The window is shorter than the rows.
    rope = {"rope_type": "default", "rope_theta": 1e9}
    config = MistralConfig(**SIZES, head_dim=16, rms_norm_eps=1e-5, sliding_window=8, rope_parameters=rope)
    return MistralModel(config), dict(model_type="mistral", head_dim=16, sliding_window=8)


def gemma2():
    # Every other layer's window is shorter than the rows; scores reach the cap.
    rope = {"rope_type": "default", "rope_theta": 1e4}
    config = Gemma2Config(
        **SIZES,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=8,
        attn_logit_softcapping=1.5,
        rope_parameters=rope,
        attn_implementation="eager",
    )
    return Gemma2Model(config), dict(
        model_type="gemma2", head_dim=16, sliding_window=8, attn_logit_softcapping=1.5
    )


def qwen3vl():
    # As of Qwen2.5-VL, but time, row and column take turns within a head.
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    config = Qwen3VLTextConfig(**SIZES, head_dim=16, rms_norm_eps=1e-6, rope_parameters=rope)
    return Qwen3VLTextModel(config), dict(model_type="qwen3_vl_text", rope_theta=5e6)


def gemma3(window=8):
    # Two layers with windows shorter than the rows and a rotation of their own, one without, whose positions are scaled.
    rope = {
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
    }
    config = Gemma3TextConfig(
        **SIZES,
        head_dim=16,
        query_pre_attn_scalar=20,
        sliding_window=window,
        sliding_window_pattern=3,
        rope_parameters=rope,
        attn_implementation="eager",
    )
    return Gemma3TextModel(config), dict(
        model_type="gemma3_text",
        head_dim=16,
        query_pre_attn_scalar=20,
        sliding_window=window,
        sliding_window_pattern=3,
        rope_theta=1e6,
        rope_local_base_freq=1e4,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    )


def side_by_side(states):
    return torch.cat(states.hidden_states, dim=-1)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "language")
    os.makedirs(out, exist_ok=True)
    expected, configs = {}, {}
    makers = {"qwen2.5": qwen25, "qwen3": qwen3, "mistral3": mistral3, "gemma2": gemma2, "qwen3vl": qwen3vl, "gemma3": gemma3}
    for seed, (name, make) in enumerate(makers.items()):
        model, configs[name] = make()
        shake(model, 100 + seed)
        save(out, name, {f"model.{key}": tensor for key, tensor in model.state_dict().items()})
        ids = torch.randint(0, SIZES["vocab_size"], (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))
        states = model(input_ids=ids, output_hidden_states=True, use_cache=False)
        expected[f"{name}.ids"] = ids.int()
        expected[f"{name}.last_hidden"] = states.last_hidden_state
        for layer in range(1, SIZES["num_hidden_layers"]):
            expected[f"{name}.layer.{layer}"] = states.hidden_states[layer]
        if name != "gemma3":
            continue
        expected["gemma3.states"] = side_by_side(states)
        wide = gemma3(window=64)[0]
        wide.load_state_dict(model.state_dict())
        expected["gemma3.wide.states"] = side_by_side(wide(input_ids=ids, output_hidden_states=True, use_cache=False))
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    with open(os.path.join(out, "configs.json"), "w") as file:
        json.dump(configs, file, indent=1)
        file.write("\n")
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main()
