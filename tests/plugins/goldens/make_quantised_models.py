"""Writes tiny models with quantised random weights and what diffusers and transformers make of the weights widened to float32
(by the gguf package, by PyTorch), for tests that need no trained model.

    make_quantised_models.py [OUT]        (default: quantised/ beside this file)

Needs gguf beside what make_random_models.py needs. Files:

    flux.gguf             1 double and 1 single block, hidden 64, guided; original names; every block format that is read
    t5.gguf               2 layers, width 256, llama.cpp's names; the first layer's values in another format than its queries
    flux_scaled.safetensors   the small FLUX of flux_original.safetensors, matrices f8_e4m3 with a scale each
    flux_f8_e4m3.safetensors, flux_f8_e5m2.safetensors   the same, matrices cast without a scale
    flux_int8.safetensors     the same, matrices in int8 as ComfyUI's quantised files have them: with one scale or one for each
                          row, as they are or rotated in groups, told by a tensor beside them, by the metadata, or by nothing
    expected.safetensors  "flux.x" is an input, "flux.out" an output (with a row for each step); names as in the model families
"""

import json
import os
import sys

import gguf
import numpy as np
import torch
from diffusers import FluxPipeline, FluxTransformer2DModel
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5EncoderModel

import original_names
from make_random_models import randn, shake

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
expected = {}

# Where a block's halves stand, and what they are for numbers of a deviation of 1 in random blocks.
BLOCKS = {
    "Q8_0": {0: 1 / 74},
    "Q4_0": {0: 1 / 4.6},
    "Q4_1": {0: 1 / 4.6, 2: -7.5 / 4.6},
    "Q5_0": {0: 1 / 9.2},
    "Q5_1": {0: 1 / 9.2, 2: -15.5 / 9.2},
    "Q4_K": {0: 1 / 200, 2: 7.5 / 200},
    "Q5_K": {0: 1 / 400, 2: 15.5 / 400},
    "Q6_K": {208: 1 / 1400},
}
SMALL, LARGE = ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"], ["Q4_K", "Q5_K", "Q6_K"]


class Quantised:
    """A gguf file, and the state dict that its bytes mean."""

    def __init__(self, path, architecture):
        self.writer, self.state = gguf.GGUFWriter(path, architecture), {}
        self.random, self.count = np.random.default_rng(30), 0

    def add(self, name, tensor, kind=None, deviation=None):
        shape, width = tensor.shape, tensor.shape[-1]
        if kind is None:
            # In turn what fits; single numbers and narrow rows stay floats, as converters keep them.
            fitting = LARGE + SMALL if width % 256 == 0 else SMALL if width % 32 == 0 else ["F16", "BF16"]
            kind = "F32" if len(shape) == 1 else fitting[self.count % len(fitting)]
            self.count += len(shape) > 1
        if kind == "F32":
            data, raw = tensor.numpy().astype(np.float32), None
        elif kind == "F16":
            data, raw = tensor.numpy().astype(np.float16), None
        elif kind == "BF16":
            data = gguf.quantize(tensor.numpy().astype(np.float32), gguf.GGMLQuantizationType.BF16)
            raw = gguf.GGMLQuantizationType.BF16
        else:
            raw = gguf.GGMLQuantizationType[kind]
            size, block_bytes = gguf.GGML_QUANT_SIZES[raw]
            data = self.random.integers(0, 256, (tensor.numel() // size, block_bytes), dtype=np.uint8)
            varied = self.random.uniform(0.5, 1.5, len(data)) * (deviation or width**-0.5)
            for at, scale in BLOCKS[kind].items():
                data[:, at : at + 2] = (scale * varied).astype(np.float16).view(np.uint8).reshape(-1, 2)
            data = data.reshape(shape[0], -1)
        self.writer.add_tensor(name, data, raw_dtype=raw)
        wide = data.astype(np.float32) if raw is None else gguf.dequantize(data, raw)
        self.state[name] = torch.from_numpy(np.ascontiguousarray(wide, np.float32)).reshape(shape)

    def close(self):
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()


def call_flux(model, inputs, guided):
    x, context, y, timestep, guidance = inputs
    batch, channels, height, width = x.shape
    ids = FluxPipeline._prepare_latent_image_ids(batch, height // 2, width // 2, "cpu", torch.float32)

    def run(sigma):
        v = model(
            hidden_states=FluxPipeline._pack_latents(x, batch, channels, height, width),
            timestep=sigma.expand(batch),
            guidance=guidance.expand(batch) if guided else None,
            pooled_projections=y,
            encoder_hidden_states=context,
            txt_ids=torch.zeros(context.shape[1], 3),
            img_ids=ids,
            return_dict=False,
        )[0]
        return FluxPipeline._unpack_latents(v, height * 8, width * 8, 8)

    return torch.stack([run(sigma) for sigma in timestep])


def load_original(model, state):
    """The original names' weights into diffusers' model: by where each of its own numbers goes under the original names."""
    own = model.state_dict()
    numbered, at = {}, 0
    for name, tensor in own.items():
        numbered[name] = torch.arange(at, at + tensor.numel(), dtype=torch.float64).reshape(tensor.shape)
        at += tensor.numel()
    flat = torch.empty(at)
    for name, places in original_names.flux(numbered).items():
        flat[places.long().flatten()] = state[name].flatten().float()
    model.load_state_dict({name: flat[places.long()] for name, places in numbered.items()})
    return model


def inputs_of(prefix, pooled, context, channels, sigmas=(0.9, 0.125), guidance=3.5):
    made = (
        randn(3, 2, channels, 6, 8),
        randn(4, 2, 5, context),
        randn(5, 2, pooled),
        torch.tensor(sigmas),
        torch.tensor([guidance]),
    )
    expected.update(zip((f"{prefix}.{n}" for n in ("x", "context", "y", "timestep", "guidance")), made))
    return made


def make_flux(out):
    config = dict(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=32,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=64,
        axes_dims_rope=[16, 8, 8],
    )
    model = shake(FluxTransformer2DModel(**config, guidance_embeds=True), 1)
    file = Quantised(os.path.join(out, "flux.gguf"), "flux")
    for name, tensor in original_names.flux(model.state_dict()).items():
        file.add(name, tensor)
    file.close()
    load_original(model, file.state)
    inputs = inputs_of("flux", 64, 32, 4)
    expected["flux.out"] = call_flux(model, inputs, True)

    # A whole run of three steps, from a seed: Euler's, with one of the conditionings.
    context, y, guidance = inputs[1][:1], inputs[2][:1], inputs[4]
    expected["flux.cross_attn"], expected["flux.pooled_output"] = context, y
    t = torch.arange(1, 10001, dtype=torch.float32) / 10000
    table = np.exp(1.15) / (np.exp(1.15) + (1 / t - 1))
    levels = [float(table[-1 - int(k * len(table) / 3)]) for k in range(3)] + [0.0]
    x = randn(7, 1, 4, 6, 8)
    for level, following in zip(levels, levels[1:]):
        step = x, context, y, torch.tensor([level]), guidance
        x = x + (following - level) * call_flux(model, step, True)[0]
    expected["flux.sampled"] = x


def small_flux():
    return FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=20,
        num_attention_heads=2,
        joint_attention_dim=24,
        pooled_projection_dim=32,
        axes_dims_rope=[16, 2, 2],
        guidance_embeds=True,
    ).eval()


def make_flux_f8(out):
    original = load_file(os.path.join(HERE, "random", "flux_original.safetensors"))
    model = small_flux()
    inputs = inputs_of("flux_f8", 32, 24, 4)
    scaled, meant = {"scaled_fp8": torch.empty(0, dtype=torch.float8_e4m3fn)}, {}
    for name, tensor in original.items():
        meant[name] = tensor.float()
        scaled[name] = tensor.clone()
        if tensor.dim() == 2:
            scale = tensor.float().abs().max() / 448
            scaled[name] = (tensor.float() / scale).to(torch.float8_e4m3fn)
            scaled[name.removesuffix(".weight") + ".scale_weight"] = scale
            meant[name] = scaled[name].float() * scale
    save_file(scaled, os.path.join(out, "flux_scaled.safetensors"))
    expected["flux_f8.out_scaled"] = call_flux(load_original(model, meant), inputs, True)
    for name, kind in (("f8_e4m3", torch.float8_e4m3fn), ("f8_e5m2", torch.float8_e5m2)):
        cast = {n: (t.to(kind) if t.dim() == 2 else t.clone()) for n, t in original.items()}
        save_file(cast, os.path.join(out, f"flux_{name}.safetensors"))
        expected[f"flux_f8.out_{name}"] = call_flux(
            load_original(model, {n: t.float() for n, t in cast.items()}), inputs, True
        )


def hadamard(order):
    seed = torch.tensor([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], dtype=torch.float64)
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < order:
        matrix = torch.kron(matrix, seed)
    return matrix / order**0.5


def make_flux_int8(out):
    original = load_file(os.path.join(HERE, "random", "flux_original.safetensors"))
    # So small that f32 knows the sines of what is a thousand times as much: of others PyTorch makes numbers that differ by 3e-5
    # from processor to processor.
    inputs = inputs_of("flux_int8", 32, 24, 4, (0.002, 0.0005), 0.001)
    stored, meant, layers = {}, {}, {}
    for number, (name, tensor) in enumerate(original.items()):
        stored[name], meant[name] = tensor.clone(), tensor.float()
        if tensor.dim() != 2:
            continue
        module = name.removesuffix(".weight")
        group = max(4**k for k in range(1, 5) if tensor.shape[1] % 4**k == 0)
        rotation = torch.kron(torch.eye(tensor.shape[1] // group, dtype=torch.float64), hadamard(group))
        told = {"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": group}
        if number % 3 == 0:
            rotation, told = torch.eye(tensor.shape[1], dtype=torch.float64), {"format": "int8_tensorwise"}
        turned = tensor.double() @ rotation.T
        scale = (turned.abs().amax(1, keepdim=True) if number % 2 else turned.abs().max().reshape(1)).float() / 127
        stored[name] = (turned / scale.double()).round().to(torch.int8)
        stored[module + ".weight_scale"] = scale
        meant[name] = (stored[name].double() * scale.double() @ rotation).float()
        if number % 6 == 3:
            continue  # as older files: a scale beside it is all
        if number % 5 == 0:
            layers[module] = told
        else:
            stored[module + ".comfy_quant"] = torch.frombuffer(bytearray(json.dumps(told).encode()), dtype=torch.uint8)
    metadata = {"_quantization_metadata": json.dumps({"format_version": "1.0", "layers": layers})}
    save_file(stored, os.path.join(out, "flux_int8.safetensors"), metadata)
    expected["flux_int8.out"] = call_flux(load_original(small_flux(), meant), inputs, True)


def make_t5(out):
    config = T5Config(
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
    model = shake(T5EncoderModel(config), 7)
    kinds = {"q": "Q4_K", "k": "Q4_K", "v": "Q6_K", "o": "Q8_0", "wi_0": "Q5_K", "wi_1": "Q5_K", "wo": "Q5_0"}
    names = {
        "SelfAttention.q": "attn_q",
        "SelfAttention.k": "attn_k",
        "SelfAttention.v": "attn_v",
        "SelfAttention.o": "attn_o",
        "SelfAttention.relative_attention_bias": "attn_rel_b",
        "DenseReluDense.wi_0": "ffn_gate",
        "DenseReluDense.wi_1": "ffn_up",
        "DenseReluDense.wo": "ffn_down",
    }
    file, places = Quantised(os.path.join(out, "t5.gguf"), "t5encoder"), {}

    def add(old, new, *more):
        file.add(new, model.state_dict()[old], *more)
        places[old] = new

    add("shared.weight", "token_embd.weight", "Q6_K", 0.5)
    for i in range(2):
        old, new = f"encoder.block.{i}.layer.", f"enc.blk.{i}."
        add(old + "0.layer_norm.weight", new + "attn_norm.weight")
        add(old + "1.layer_norm.weight", new + "ffn_norm.weight")
        for a, b in names.items():
            which = a.split(".")[1]
            if which == "relative_attention_bias":
                if i == 0:
                    add(old + "0." + a + ".weight", new + b + ".weight", "F16")
                continue
            kind = "Q4_K" if which == "v" and i == 1 else kinds[which]
            add(old + ("0." if a.startswith("Self") else "1.") + a + ".weight", new + b + ".weight", kind)
    add("encoder.final_layer_norm.weight", "enc.output_norm.weight")
    file.close()
    state = {old: file.state[new] for old, new in places.items()}
    state["encoder.embed_tokens.weight"] = state["shared.weight"]
    model.load_state_dict(state)
    ids = torch.cat([torch.arange(2, 32)[None], torch.cat([torch.arange(40, 20, -1), torch.zeros(10, dtype=torch.long)])[None]])
    expected.update({"t5.ids": ids.int(), "t5.last_hidden": model(ids).last_hidden_state})


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "quantised")
    os.makedirs(out, exist_ok=True)
    for make in (make_flux, make_flux_f8, make_flux_int8, make_t5):
        make(out)
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
