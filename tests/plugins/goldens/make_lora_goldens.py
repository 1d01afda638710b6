"""Writes small LoRA files in the key schemes that people meet, and what diffusers and PEFT make of
them on the tiny models of make_random_models.py.

    make_lora_goldens.py [RANDOM] [OUT]     (default: random/ and loras/ beside this file)

Needs torch, diffusers, transformers, peft and safetensors from PyPI; runs on the CPU in float32.
Files, for the tiny FLUX and its text encoders:

    diffusers.safetensors  "transformer.<module>.lora_A.weight", every kind of module, no alpha
    peft.safetensors       "base_model.model.<module>.lora_A.default.weight", some modules
    kohya.safetensors      "lora_unet_<module>.lora_down.weight" with the original names, each with
                           an alpha that is not the rank; "lora_te1_..." and "lora_te2_..."
    kohya_bf16.safetensors the same in bf16
    difference.safetensors "diffusion_model.<module>.diff" and ".diff_b"
    expected.safetensors   "<case>.out": one evaluation at the inputs of flux.* and a noise level of
                           0.55; "clip.<output>" and "t5.last_hidden" with kohya at 0.75;
                           "merged.<type>": W + the stacked products of "merge.up", "merge.down"
"""

import inspect
import json
import os
import sys

import torch
from diffusers import FluxPipeline, FluxTransformer2DModel
from diffusers.loaders import FluxLoraLoaderMixin, lora_conversion_utils
from safetensors.torch import load_file, save_file
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel

torch.set_grad_enabled(False)
RANK = 4
HIDDEN, MLP = 40, 160
STRENGTH = 0.75

# diffusers' converter has FLUX.1's sizes written into it.
namespace = vars(lora_conversion_utils)
source = inspect.getsource(lora_conversion_utils._convert_kohya_flux_lora_to_diffusers)
sizes = "dims=[3072, 3072, 3072, 12288]"
assert sizes in source
exec(source.replace(sizes, f"dims=[{HIDDEN}, {HIDDEN}, {HIDDEN}, {MLP}]"), namespace)
from diffusers.loaders import lora_pipeline  # noqa: E402

lora_pipeline._convert_kohya_flux_lora_to_diffusers = namespace[
    "_convert_kohya_flux_lora_to_diffusers"
]


def factors(generator, rows, columns, rank=RANK):
    """B and A, of a product about a third as large as a weight of these models."""
    up = torch.randn(rows, rank, generator=generator)
    down = torch.randn(rank, columns, generator=generator)
    return up * 0.3 * rank**-0.5, down * columns**-0.5


def linears(model):
    return {
        name: tuple(module.weight.shape)
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear)
    }


def diffusers_lora(model):
    generator, state = torch.Generator().manual_seed(21), {}
    for name, (rows, columns) in linears(model).items():
        up, down = factors(generator, rows, columns)
        state[f"transformer.{name}.lora_B.weight"] = up
        state[f"transformer.{name}.lora_A.weight"] = down
    return state


def peft_lora(model):
    generator, state = torch.Generator().manual_seed(22), {}
    for name, (rows, columns) in linears(model).items():
        if not any(part in name for part in ("attn.to_", "attn.add_", "proj_mlp")):
            continue
        up, down = factors(generator, rows, columns, 3)
        state[f"base_model.model.{name}.lora_B.default.weight"] = up
        state[f"base_model.model.{name}.lora_A.default.weight"] = down
    return state


def kohya_lora(original, clip, t5):
    generator, state = torch.Generator().manual_seed(23), {}

    def add(key, shape):
        up, down = factors(generator, *shape)
        state[f"{key}.lora_up.weight"], state[f"{key}.lora_down.weight"] = up, down
        if "final_layer" not in key:  # whose alpha diffusers does not read
            state[f"{key}.alpha"] = torch.tensor(6.0)

    for name, tensor in original.items():
        if name.endswith(".weight") and "_blocks." in name or "final_layer" in name:
            if name.endswith(".weight"):
                add("lora_unet_" + name[: -len(".weight")].replace(".", "_"), tensor.shape)
    for prefix, model in (("lora_te1_", clip), ("lora_te2_", t5)):
        for name, shape in linears(model).items():
            if "text_projection" in name:
                continue
            if prefix == "lora_te1_" and not name.startswith("text_model."):
                name = "text_model." + name
            add(prefix + name.replace(".", "_"), shape)
    return state


def difference_file(original):
    generator, state = torch.Generator().manual_seed(24), {}
    for name in ("double_blocks.1.img_attn.qkv", "single_blocks.0.linear1"):
        for kind, suffix in (("weight", "diff"), ("bias", "diff_b")):
            tensor = original[f"{name}.{kind}"]
            state[f"diffusion_model.{name}.{suffix}"] = 0.1 * torch.randn(
                tensor.shape, generator=generator
            )
    return state


def to_transformer_keys(state):
    """What FluxTransformer2DModel.load_lora_adapter() takes, by diffusers' own converters."""
    state = {
        key.replace("base_model.model.", "transformer.").replace(".default.", "."): tensor.clone()
        for key, tensor in state.items()
        if not key.startswith("lora_te")
    }
    converted = FluxLoraLoaderMixin.lora_state_dict(state)
    converted = converted[0] if isinstance(converted, tuple) else converted
    return {
        key if key.startswith("transformer.") else f"transformer.{key}": tensor
        for key, tensor in converted.items()
    }


def make_model(random, guided):
    config = json.load(open(os.path.join(random, "configs.json")))["flux"]
    config = {k: v for k, v in config.items() if k not in ("_class_name", "guidance_embeds")}
    model = FluxTransformer2DModel(**config, guidance_embeds=guided).eval()
    state = load_file(os.path.join(random, "flux_diffusers.safetensors"))
    if guided:
        original = load_file(os.path.join(random, "flux_original.safetensors"))
        for kind in ("weight", "bias"):
            for ours, theirs in (("in_layer", "linear_1"), ("out_layer", "linear_2")):
                name = f"time_text_embed.guidance_embedder.{theirs}.{kind}"
                state[name] = original[f"guidance_in.{ours}.{kind}"]
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    return model


def evaluate(model, inputs, guided):
    x, context, y = inputs["flux.x"], inputs["flux.context"], inputs["flux.y"]
    batch, _, height, width = x.shape
    packed = FluxPipeline._pack_latents(x, batch, 4, height, width)
    out = model(
        hidden_states=packed,
        timestep=torch.tensor([0.55]).expand(batch),
        guidance=inputs["flux.guidance"].expand(batch) if guided else None,
        pooled_projections=y,
        encoder_hidden_states=context,
        txt_ids=torch.zeros(context.shape[1], 3),
        img_ids=FluxPipeline._prepare_latent_image_ids(
            batch, height // 2, width // 2, "cpu", torch.float32
        ),
        return_dict=False,
    )[0]
    return FluxPipeline._unpack_latents(out, height * 8, width * 8, 8)


def with_loras(random, inputs, loras, guided=False):
    """loras: (state, strength), kept apart from the weights as PEFT runs them."""
    model = make_model(random, guided)
    names = []
    for number, (state, _) in enumerate(loras):
        names.append(f"lora{number}")
        state = to_transformer_keys(state)
        if not guided:
            state = {k: v for k, v in state.items() if "guidance" not in k}
        model.load_lora_adapter(state, prefix="transformer", adapter_name=names[-1])
    model.set_adapters(names, [strength for _, strength in loras])
    return evaluate(model, inputs, guided)


def add_products(model, state, prefix, strength):
    """Adds kohya's products to the linear layers of a text encoder."""
    modules = dict(model.named_modules())
    for name in linears(model):
        long = name if name.startswith(("text_model.", "encoder.")) else f"text_model.{name}"
        key = prefix + long.replace(".", "_")
        if f"{key}.alpha" not in state:
            continue
        up, down = state[f"{key}.lora_up.weight"], state[f"{key}.lora_down.weight"]
        scale = strength * state[f"{key}.alpha"].item() / down.shape[0]
        modules[name].weight += scale * (up @ down)


def load_into(model, path, rename=lambda name: name):
    state = {rename(name): tensor.float() for name, tensor in load_file(path).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected, unexpected
    assert all("embed_tokens" in name or "position_ids" in name for name in missing), missing
    return model.eval()


def make_encoders(random):
    clip = CLIPTextModelWithProjection(
        CLIPTextConfig(
            vocab_size=60,
            hidden_size=32,
            intermediate_size=80,
            projection_dim=24,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=12,
            hidden_act="gelu",
            eos_token_id=59,
            bos_token_id=58,
            pad_token_id=0,
        )
    )
    names = set(clip.state_dict())
    short = lambda name: name if name in names else name.removeprefix("text_model.")
    load_into(clip, os.path.join(random, "clip.safetensors"), short)
    t5 = T5EncoderModel(
        T5Config(
            vocab_size=50,
            d_model=24,
            d_kv=16,
            d_ff=40,
            num_layers=2,
            num_heads=2,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=20,
            feed_forward_proj="gated-gelu",
            is_encoder_decoder=False,
            use_cache=False,
        )
    )
    load_into(t5, os.path.join(random, "t5.safetensors"))
    return clip, t5


def merge_case(expected):
    """One matrix in three types and two products, for the merging alone."""
    generator = torch.Generator().manual_seed(25)
    rows, columns, rank = 70, 45, 5
    weight = torch.randn(rows, columns, generator=generator) * columns**-0.5
    ups, downs = zip(*(factors(generator, rows, columns, rank) for _ in range(2)))
    scales = (0.8, -1.25)
    expected["merge.up"], expected["merge.down"] = torch.stack(ups), torch.stack(downs)
    for name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        expected[f"merge.{name}"] = weight.to(dtype)
        merged = weight.to(dtype).double()
        for scale, up, down in zip(scales, ups, downs):
            merged += scale * (up.double() @ down.double())
        expected[f"merged.{name}"] = merged.float()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    random = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "random")
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.join(here, "loras")
    os.makedirs(out, exist_ok=True)
    inputs = load_file(os.path.join(random, "expected.safetensors"))
    original = load_file(os.path.join(random, "flux_original.safetensors"))
    clip, t5 = make_encoders(random)

    guided = make_model(random, True)
    diffusers, peft = diffusers_lora(guided), peft_lora(guided)
    kohya, difference = kohya_lora(original, clip, t5), difference_file(original)
    kohya_bf16 = {key: tensor.bfloat16() for key, tensor in kohya.items()}
    files = dict(
        diffusers=diffusers, peft=peft, kohya=kohya, kohya_bf16=kohya_bf16, difference=difference
    )
    for name, state in files.items():
        state = {key: tensor.contiguous() for key, tensor in state.items()}
        save_file(state, os.path.join(out, f"{name}.safetensors"), {"format": "pt"})

    expected = {}
    rounded = {key: tensor.float() for key, tensor in kohya_bf16.items()}
    cases = dict(
        plain=[],
        diffusers=[(diffusers, STRENGTH)],
        peft=[(peft, 1.0)],
        kohya=[(kohya, STRENGTH)],
        kohya_bf16=[(rounded, STRENGTH)],
        negative=[(kohya, -0.5)],
        stacked=[(diffusers, STRENGTH), (kohya, -0.5)],
    )
    for layout in (False, True):
        for name, loras in cases.items():
            if loras:
                result = with_loras(random, inputs, loras, layout)
            else:
                result = evaluate(make_model(random, layout), inputs, layout)
            expected[f"{'original' if layout else 'diffusers'}.{name}.out"] = result

    model = make_model(random, False)
    for module, suffix in (("weight", "diff"), ("bias", "diff_b")):
        qkv = difference[f"diffusion_model.double_blocks.1.img_attn.qkv.{suffix}"].chunk(3)
        attention = model.transformer_blocks[1].attn
        for layer, part in zip((attention.to_q, attention.to_k, attention.to_v), qkv):
            getattr(layer, module).add_(STRENGTH * part)
        fused = difference[f"diffusion_model.single_blocks.0.linear1.{suffix}"]
        block = model.single_transformer_blocks[0]
        layers = (block.attn.to_q, block.attn.to_k, block.attn.to_v, block.proj_mlp)
        for layer, part in zip(layers, fused.split([HIDDEN, HIDDEN, HIDDEN, MLP])):
            getattr(layer, module).add_(STRENGTH * part)
    expected["diffusers.difference.out"] = evaluate(model, inputs, False)

    add_products(clip, kohya, "lora_te1_", STRENGTH)
    add_products(t5, kohya, "lora_te2_", STRENGTH)
    ids, eos = inputs["clip.ids"].long(), inputs["clip.eos"].long()
    result = clip(ids, output_hidden_states=True)
    expected["clip.penultimate"] = result.hidden_states[-2]
    expected["clip.pooled"] = result.last_hidden_state[torch.arange(2), eos]
    expected["t5.last_hidden"] = t5(inputs["t5.ids"].long()).last_hidden_state
    merge_case(expected)

    plain = expected["diffusers.plain.out"]
    for name, tensor in expected.items():
        if name.startswith("diffusers."):
            change = (tensor - plain).norm() / plain.norm()
            print(f"{name}: differs from the plain model by {change:.3f}")
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
