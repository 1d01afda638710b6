"""Writes a tiny UNet of Stable Diffusion 1.x quantised in several ways and what diffusers makes of the weights widened to float32.

    make_quantised_unets.py [OUT]        (default: quantised_unets/ beside this file)

Needs gguf, torch, diffusers and safetensors from PyPI. All have the original names, without a prefix. Files:

    blocks.gguf             as ComfyUI-GGUF's script converts UNets: what has 512 numbers or more and no rows of 256 is stored in rows
                            of 256, filters, too, and an entry says its shape; in blocks of every format that is read
    scaled.safetensors      matrices in f8_e4m3 with a scale each, all else in f16
    f8_e4m3.safetensors     all but vectors cast without a scale, filters, too
    expected.safetensors    "unet.x" and so on are inputs, "blocks.out" an output with a row for each step;
                            "blocks.sampled" is what three steps of Euler's method make of the noise of seed 7
"""

import os
import sys

import torch
from diffusers import UNet2DConditionModel
from safetensors.torch import save_file

import make_unet_files
import make_unet_goldens
from make_quantised_models import Quantised
from make_random_models import randn, shake

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
TIMES = torch.tensor([431.0, 7.0])
ROW, LEAST = 256, 512


def make_unet():
    return UNet2DConditionModel(
        sample_size=16,
        block_out_channels=(32, 32),
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        layers_per_block=1,
        attention_head_dim=8,
        cross_attention_dim=64,
    )


def original(model):
    """{the original name: diffusers'}"""
    names = model.state_dict()
    return {make_unet_files.original(name, names, layers=1): name for name in names}


def load(model, names, meant):
    model.load_state_dict({here: meant[there].reshape(model.state_dict()[here].shape).float() for there, here in names.items()})


def in_blocks(path, state):
    file = Quantised(path, "sd1")
    for name, tensor in state.items():
        if tensor.dim() > 1 and tensor.numel() >= LEAST and tensor.numel() % ROW == 0 and tensor.shape[-1] % ROW != 0:
            file.writer.add_array(f"comfy.gguf.orig_shape.{name}", list(tensor.shape))
            file.add(name, tensor.reshape(-1, ROW), deviation=tensor[0].numel() ** -0.5)
        else:
            file.add(name, tensor, "F32" if tensor.dim() == 1 else "F16")
    file.close()
    return file.state


def scaled(state):
    stored, meant = {"scaled_fp8": torch.empty(0, dtype=torch.float8_e4m3fn)}, {}
    for name, tensor in state.items():
        stored[name] = tensor.half()
        if tensor.dim() == 2:
            scale = tensor.abs().max() / 448
            stored[name] = (tensor / scale).to(torch.float8_e4m3fn)
            stored[name.removesuffix("weight") + "scale_weight"] = scale
            meant[name] = stored[name].float() * scale
        else:
            meant[name] = stored[name].float()
    return stored, meant


def cast(state, kind):
    stored = {name: tensor.to(kind) if tensor.dim() > 1 else tensor.half() for name, tensor in state.items()}
    return stored, {name: tensor.float() for name, tensor in stored.items()}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "quantised_unets")
    os.makedirs(out, exist_ok=True)
    model = shake(make_unet(), 1)
    names = original(model)
    state = {there: model.state_dict()[here].clone() for there, here in names.items()}
    x, context = randn(2, 2, 4, 6, 10), randn(3, 1, 7, 64)
    expected = {"unet.x": x, "unet.context": context, "unet.timestep": TIMES}

    def run(name, meant):
        load(model, names, meant)
        expected[f"{name}.out"] = torch.stack([model(x, time, encoder_hidden_states=context.expand(2, -1, -1)).sample for time in TIMES])

    def made(name, stored, meant):
        path = os.path.join(out, f"{name}.safetensors")
        save_file({key: tensor.contiguous() for key, tensor in stored.items()}, path)
        os.chmod(path, 0o644)
        run(name, meant)

    run("blocks", in_blocks(os.path.join(out, "blocks.gguf"), state))
    expected["unet.cross_attn"] = context
    levels = make_unet_goldens.normal(3)

    def clean(x, level):
        time = torch.tensor(make_unet_goldens.time_of(level))
        return x - level * model(x * (level**2 + 1) ** -0.5, time, encoder_hidden_states=context).sample

    expected["blocks.sampled"] = make_unet_goldens.euler(clean, make_unet_goldens.noised(levels), levels)
    made("scaled", *scaled(state))
    made("f8_e4m3", *cast(state, torch.float8_e4m3fn))
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
