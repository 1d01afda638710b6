"""Writes tiny models of Gemma 4 with random weights and what transformers computes with them.

    make_gemma4_goldens.py [OUT]        (default: gemma4/ beside this file)

Needs torch, transformers and safetensors from PyPI; runs on the CPU in float32 over weights rounded to bfloat16, which
is how they are stored. Files:

    dense.safetensors       6 layers of width 24 as 12B and 31B have them: windows of 8 tokens, but in the last two layers
                            of three, whose heads are larger and whose keys are values
    told.safetensors        7 layers of width 40 as E2B and E4B have them: layers are told of tokens, the last four share
                            keys and values, the MLPs of which are wider
    configs.json            the config of each
    expected.safetensors    "dense.ids" is an input of 2 rows, "dense.states" the states of all layers side by side, the
                            last under the final norm; "dense.wide.states" with a window longer than the rows
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import Gemma4TextConfig, Gemma4TextModel

from make_random_models import save, shake

torch.set_grad_enabled(False)
ROWS, LENGTH, VOCABULARY = 2, 21, 60
NEAR, FULL = "sliding_attention", "full_attention"
ROPES = {
    NEAR: {"rope_type": "default", "rope_theta": 1e4},
    FULL: {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
}
KEPT = ("layer_types", "num_kv_shared_layers", "sliding_window", "rope_parameters")


def config(window, **sizes):
    return Gemma4TextConfig(
        vocab_size=VOCABULARY,
        vocab_size_per_layer_input=VOCABULARY,
        max_position_embeddings=128,
        sliding_window=window,
        rope_parameters=ROPES,
        final_logit_softcapping=30.0,
        attn_implementation="eager",
        **sizes,
    )


def dense(window=8):
    return config(
        window,
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        global_head_dim=32,
        num_global_key_value_heads=1,
        attention_k_eq_v=True,
        hidden_size_per_layer_input=0,
        layer_types=[NEAR, NEAR, FULL] * 2,
    )


def told(window=8):
    return config(
        window,
        hidden_size=40,
        intermediate_size=48,
        num_hidden_layers=7,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=8,
        global_head_dim=24,
        hidden_size_per_layer_input=12,
        num_kv_shared_layers=4,
        use_double_wide_mlp=True,
        layer_types=[NEAR, FULL, NEAR, NEAR, FULL, NEAR, FULL],
    )


def randomised(model, seed):
    shake(model, seed)
    generator = torch.Generator().manual_seed(1000 + seed)
    for layer in model.layers:
        layer.layer_scalar.copy_((0.7 + 0.5 * torch.rand(1, generator=generator)).bfloat16().float())
    return model


def side_by_side(model, ids):
    return torch.cat(model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states, dim=-1)


def main(out):
    os.makedirs(out, exist_ok=True)
    expected, configs = {}, {}
    for seed, (name, make) in enumerate({"dense": dense, "told": told}.items()):
        model = randomised(Gemma4TextModel(make()), 300 + seed)
        state = {f"model.{key}": tensor for key, tensor in model.state_dict().items()}
        save(out, name, state)
        told_config = make().to_dict()
        configs[name] = {"model_type": "gemma4_text"} | {key: told_config[key] for key in KEPT if key in told_config}
        ids = torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))
        expected[f"{name}.ids"] = ids.int()
        expected[f"{name}.states"] = side_by_side(model, ids)
        wide = Gemma4TextModel(make(64)).eval()
        wide.load_state_dict(model.state_dict())
        expected[f"{name}.wide.states"] = side_by_side(wide, ids)
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "configs.json"), "w") as file:
        json.dump(configs, file, indent=1)
        file.write("\n")
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "gemma4"))
