"""Writes LoRA files for the tiny quantised models, and what PyTorch makes of both: the weights
widened to float32 (by the gguf package, by PyTorch), the products added to them there.

    make_quantised_lora_goldens.py [OUT]        (default: quantised_loras/ beside this file)

Needs what make_quantised_models.py and make_lora_goldens.py need, and their files. Files:

    gguf_kohya.safetensors      "lora_unet_<module>.lora_down.weight" with the original names for
                                all matrices of the blocks of flux.gguf, each with an alpha
    gguf_diffusers.safetensors  "transformer.<module>.lora_A.weight": queries, keys and values by
                                themselves, of which flux.gguf has one matrix
    t5_kohya.safetensors        "lora_te2_<module>.lora_down.weight" for all matrices of t5.gguf's layers
    expected.safetensors        "t5.last_hidden" at the ids of quantised/; "gguf.<case>.out" at the inputs "flux." of quantised/, "scaled.out",
                                "f8_e4m3.out" and "f8_e5m2.out" at those of "flux_f8." with the
                                kohya file of loras/; a row for each noise level
"""

import os
import sys

import gguf
import numpy as np
import torch
from diffusers import FluxTransformer2DModel
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5EncoderModel

from make_lora_goldens import factors, linears
from make_quantised_models import HERE, call_flux, load_original

torch.set_grad_enabled(False)
QUANTISED, LORAS = os.path.join(HERE, "quantised"), os.path.join(HERE, "loras")
COMMON = dict(patch_size=1, in_channels=16, guidance_embeds=True)
GGUF = dict(
    num_layers=1,
    num_single_layers=1,
    attention_head_dim=32,
    num_attention_heads=2,
    joint_attention_dim=32,
    pooled_projection_dim=64,
    axes_dims_rope=[16, 8, 8],
)
F8 = dict(
    num_layers=2,
    num_single_layers=2,
    attention_head_dim=20,
    num_attention_heads=2,
    joint_attention_dim=24,
    pooled_projection_dim=32,
    axes_dims_rope=[16, 2, 2],
)


def read_gguf(path):
    state = {}
    for tensor in gguf.GGUFReader(path).tensors:
        wide = gguf.dequantize(tensor.data, tensor.tensor_type)
        shape = [int(size) for size in reversed(tensor.shape)]
        state[tensor.name] = torch.from_numpy(np.array(wide, np.float32)).reshape(shape)
    return state


def read_f8(path):
    stored = load_file(path)
    state = {}
    for name, tensor in stored.items():
        if name == "scaled_fp8" or name.endswith(".scale_weight"):
            continue
        scale = stored.get(name.removesuffix(".weight") + ".scale_weight", torch.tensor(1.0))
        state[name] = tensor.float() * scale.float()
    return state


def kohya_lora(state):
    generator, lora = torch.Generator().manual_seed(41), {}
    for name, tensor in state.items():
        if tensor.dim() != 2 or "_blocks." not in name:
            continue
        key = "lora_unet_" + name.removesuffix(".weight").replace(".", "_")
        up, down = factors(generator, *tensor.shape, 3)
        lora[f"{key}.lora_up.weight"], lora[f"{key}.lora_down.weight"] = up.half(), down.half()
        lora[f"{key}.alpha"] = torch.tensor(2.0)
    return lora


def diffusers_lora(model):
    generator, lora = torch.Generator().manual_seed(42), {}
    for name, shape in linears(model).items():
        if "blocks" not in name or ".norm" in name:
            continue
        up, down = factors(generator, *shape, 2)
        lora[f"transformer.{name}.lora_B.weight"] = up.bfloat16()
        lora[f"transformer.{name}.lora_A.weight"] = down.bfloat16()
    return lora


def with_kohya(state, lora, strength):
    """The original names' weights, each with its product in double."""
    changed = dict(state)
    for name, tensor in state.items():
        key = "lora_unet_" + name.removesuffix(".weight").replace(".", "_")
        if f"{key}.lora_up.weight" not in lora:
            continue
        up, down = (lora[f"{key}.lora_{side}.weight"].double() for side in ("up", "down"))
        alpha = lora.get(f"{key}.alpha", torch.tensor(float(len(down)))).item()
        changed[name] = (tensor.double() + strength * alpha / len(down) * (up @ down)).float()
    return changed


T5_NAMES = {
    "attn_q": "layer.0.SelfAttention.q",
    "attn_k": "layer.0.SelfAttention.k",
    "attn_v": "layer.0.SelfAttention.v",
    "attn_o": "layer.0.SelfAttention.o",
    "attn_norm": "layer.0.layer_norm",
    "attn_rel_b": "layer.0.SelfAttention.relative_attention_bias",
    "ffn_gate": "layer.1.DenseReluDense.wi_0",
    "ffn_up": "layer.1.DenseReluDense.wi_1",
    "ffn_down": "layer.1.DenseReluDense.wo",
    "ffn_norm": "layer.1.layer_norm",
}


def make_t5(out, expected, ids):
    """The first layer's queries, keys and values are in several formats, the second one's in one."""
    state, lora, generator = {}, {}, torch.Generator().manual_seed(43)
    for name, tensor in read_gguf(os.path.join(QUANTISED, "t5.gguf")).items():
        if name == "token_embd.weight":
            state["shared.weight"] = state["encoder.embed_tokens.weight"] = tensor
        elif name == "enc.output_norm.weight":
            state["encoder.final_layer_norm.weight"] = tensor
        else:
            _, _, layer, module, _ = name.split(".")
            module = f"encoder.block.{layer}.{T5_NAMES[module]}"
            if tensor.dim() == 2 and "relative" not in module:
                up, down = factors(generator, *tensor.shape, 2)
                key = "lora_te2_" + module.replace(".", "_")
                lora[f"{key}.lora_up.weight"], lora[f"{key}.lora_down.weight"] = up.half(), down.half()
                tensor = tensor + 0.75 * (up.half().float() @ down.half().float())
            state[f"{module}.weight"] = tensor
    save_file(lora, os.path.join(out, "t5_kohya.safetensors"), {"format": "pt"})
    model = T5EncoderModel(
        T5Config(
            vocab_size=50,
            d_model=256,
            d_kv=16,
            d_ff=64,
            num_layers=2,
            num_heads=2,
            relative_attention_num_buckets=32,
            relative_attention_max_distance=128,
            feed_forward_proj="gated-gelu",
            is_encoder_decoder=False,
            use_cache=False,
        )
    ).eval()
    model.load_state_dict(state)
    expected["t5.last_hidden"] = model(ids.long()).last_hidden_state


def evaluate(config, state, inputs, lora=None, strength=0.0):
    """`lora` by diffusers' names, added to the layers of its model."""
    model = load_original(FluxTransformer2DModel(**COMMON, **config).eval(), state)
    for name, module in model.named_modules():
        if lora is not None and f"transformer.{name}.lora_A.weight" in lora:
            up = lora[f"transformer.{name}.lora_B.weight"].double()
            down = lora[f"transformer.{name}.lora_A.weight"].double()
            module.weight.copy_((module.weight.double() + strength * (up @ down)).float())
    return call_flux(model, inputs, True)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "quantised_loras")
    os.makedirs(out, exist_ok=True)
    given = load_file(os.path.join(QUANTISED, "expected.safetensors"))
    fields = ("x", "context", "y", "timestep", "guidance")
    inputs = {p: [given[f"{p}.{f}"] for f in fields] for p in ("flux", "flux_f8")}

    state = read_gguf(os.path.join(QUANTISED, "flux.gguf"))
    plain = evaluate(GGUF, state, inputs["flux"])
    assert torch.allclose(plain, given["flux.out"], atol=1e-5)
    kohya = kohya_lora(state)
    diffusers = diffusers_lora(FluxTransformer2DModel(**COMMON, **GGUF))
    for name, lora in (("gguf_kohya", kohya), ("gguf_diffusers", diffusers)):
        lora = {key: tensor.contiguous() for key, tensor in lora.items()}
        save_file(lora, os.path.join(out, f"{name}.safetensors"), {"format": "pt"})
    expected = {
        "gguf.kohya.out": evaluate(GGUF, with_kohya(state, kohya, 0.75), inputs["flux"]),
        "gguf.diffusers.out": evaluate(GGUF, state, inputs["flux"], diffusers, 0.75),
        "gguf.stacked.out": evaluate(
            GGUF, with_kohya(state, kohya, -0.5), inputs["flux"], diffusers, 0.75
        ),
    }
    for name, result in expected.items():
        print(f"{name}: differs from the plain model by {(result - plain).norm() / plain.norm():.3f}")
    small = load_file(os.path.join(LORAS, "kohya.safetensors"))
    for name in ("scaled", "f8_e4m3", "f8_e5m2"):
        state = read_f8(os.path.join(QUANTISED, f"flux_{name}.safetensors"))
        expected[f"{name}.out"] = evaluate(F8, with_kohya(state, small, 0.75), inputs["flux_f8"])
    make_t5(out, expected, given["t5.ids"])
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
