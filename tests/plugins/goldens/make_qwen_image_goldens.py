"""Writes a tiny Qwen-Image transformer with random weights and what diffusers makes of it.

    make_qwen_image_goldens.py [OUT]        (default: qwen_image/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32 over weights
rounded to bfloat16, which is how they are stored. Files:

    transformer/            a diffusers folder: 2 blocks, hidden 48, 2 heads of 24, 4 latent channels
    expected.safetensors    "square.x" is an input, "square.out" an output with a row for each step; the
                            text of "square" is shorter than that of "wide", whose sides differ;
                            "square.double.0.img" is a block's result in the last step. "in.*" and
                            "sampled" are a guided run of Euler's method over ComfyUI's noise levels;
                            "latent.raw" and "latent.scaled" are one latent in both units. "lora.out" is
                            the last row of "wide.out" with lora.safetensors at 0.5. "shown", "several" and
                            "timed" have reference pictures, too
    lora.safetensors        factors of rank 3 for modules of three kinds, by the names of diffusers
"""

import json
import math
import os
import sys

import torch
from diffusers import AutoencoderKLQwenImage, QwenImagePipeline, QwenImageTransformer2DModel
from safetensors.torch import save_file

from make_random_models import randn, shake

torch.set_grad_enabled(False)
CONFIG = dict(
    patch_size=2,
    in_channels=16,
    out_channels=4,
    num_layers=2,
    attention_head_dim=24,
    num_attention_heads=2,
    joint_attention_dim=24,
    axes_dims_rope=[16, 4, 4],
)
CHANNELS, TEXT_WIDTH = CONFIG["out_channels"], CONFIG["joint_attention_dim"]
expected = {}


def velocity(model, x, sigma, context):
    """x (B, 4, H, W), context (B, T, 24)."""
    batch, _, height, width = x.shape
    out = model(
        hidden_states=QwenImagePipeline._pack_latents(x, batch, CHANNELS, height, width),
        timestep=sigma.expand(batch),
        encoder_hidden_states=context,
        encoder_hidden_states_mask=torch.ones(context.shape[:2], dtype=torch.bool),
        img_shapes=[[(1, height // 2, width // 2)]] * batch,
        return_dict=False,
    )[0]
    return QwenImagePipeline._unpack_latents(out, height * 8, width * 8, 8)[:, :, 0]


def forward(model, name, x, context):
    """All steps, and the blocks' results in the last one."""
    levels = torch.tensor([0.9, 0.55, 0.125])
    kept = []
    hooks = [
        block.register_forward_hook(lambda _module, _inputs, result: kept.append(result))
        for block in model.transformer_blocks
    ]
    outputs = torch.stack([velocity(model, x, sigma, context) for sigma in levels])
    for hook in hooks:
        hook.remove()
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": levels})
    expected[f"{name}.out"] = outputs
    for i, (text, image) in enumerate(kept[-len(model.transformer_blocks) :]):
        expected[f"{name}.double.{i}.txt"], expected[f"{name}.double.{i}.img"] = text, image


def sample(model):
    """KSampler with euler and simple: 3 steps, cfg 2.5, seed 7, a picture of 64 x 48 pixels."""
    short, long = randn(20, 1, 5, TEXT_WIDTH), randn(21, 1, 9, TEXT_WIDTH)
    expected["in.short.cross_attn"], expected["in.long.cross_attn"] = short, long
    t = torch.arange(1, 10001, dtype=torch.float32) / 10000
    levels = math.exp(1.15) / (math.exp(1.15) + (1 / t - 1))
    steps = 3
    sigmas = [levels[-1 - int(k * (len(levels) / steps))] for k in range(steps)] + [torch.tensor(0.0)]
    x = torch.randn(1, CHANNELS, 6, 8, generator=torch.Generator().manual_seed(7)) * sigmas[0]
    for sigma, after in zip(sigmas, sigmas[1:]):
        positive, negative = (velocity(model, x, sigma, text) for text in (long, short))
        x = x + (negative + 2.5 * (positive - negative)) * (after - sigma)
    expected["sampled"] = x


def scale_latent():
    """With the numbers of the autoencoder's own config."""
    config = AutoencoderKLQwenImage().config
    mean, deviation = (
        torch.tensor(numbers).view(1, -1, 1, 1) for numbers in (config.latents_mean, config.latents_std)
    )
    raw = randn(30, 2, 16, 2, 4)
    expected["latent.raw"], expected["latent.scaled"] = raw, (raw - mean) / deviation


def places(index, height, width):
    """Of a picture's tokens, whose middle is the origin."""
    rows, columns = (torch.arange(side) - (side - side // 2) for side in (height, width))
    axes = torch.meshgrid(torch.tensor([index]), rows, columns, indexing="ij")
    return torch.stack(axes, -1).reshape(-1, 3).float()


def show(model, name, x, context, pictures):
    """As QwenImageEditPlusPipeline calls the model with pictures (1, 4, H, W) behind its own."""
    batch, _, height, width = x.shape
    sizes = [(picture.shape[2] // 2, picture.shape[3] // 2) for picture in pictures]
    tokens = torch.cat([QwenImagePipeline._pack_latents(p, 1, CHANNELS, *p.shape[2:]) for p in pictures], dim=1)
    own = QwenImagePipeline._pack_latents(x, batch, CHANNELS, height, width)
    levels = torch.tensor([0.9, 0.55, 0.125])
    outputs = []
    for sigma in levels:
        out = model(
            hidden_states=torch.cat([own, tokens.expand(batch, -1, -1)], dim=1),
            timestep=sigma.expand(batch),
            encoder_hidden_states=context,
            encoder_hidden_states_mask=torch.ones(context.shape[:2], dtype=torch.bool),
            img_shapes=[[(1, height // 2, width // 2)] + [(1, *size) for size in sizes]] * batch,
            return_dict=False,
        )[0][:, : own.shape[1]]
        outputs.append(QwenImagePipeline._unpack_latents(out, height * 8, width * 8, 8)[:, :, 0])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": levels})
    expected[f"{name}.references"] = tokens
    expected[f"{name}.reference_positions"] = torch.cat([places(1 + i, *size) for i, size in enumerate(sizes)])
    sides = [side for size in [(height // 2, width // 2), *sizes] for side in size]
    expected[f"{name}.text_start"] = torch.tensor([float(max(sides) // 2)])
    expected[f"{name}.out"] = torch.stack(outputs)


def show_all(model):
    """One picture that is larger; two of odd sizes; and the same with the timestep 0 for these, as of 2511."""
    one, two, three = randn(60, 1, CHANNELS, 12, 6), randn(61, 1, CHANNELS, 6, 10), randn(62, 1, CHANNELS, 2, 14)
    show(model, "shown", randn(63, 2, CHANNELS, 6, 6), randn(64, 2, 5, TEXT_WIDTH), [one])
    x, context = randn(65, 1, CHANNELS, 4, 10), randn(66, 1, 9, TEXT_WIDTH)
    show(model, "several", x, context, [two, three])
    timed = QwenImageTransformer2DModel(**CONFIG, zero_cond_t=True).eval()
    timed.load_state_dict(model.state_dict())
    show(timed, "timed", x, context, [two, three])
    expected["timed.reference_timestep"] = torch.zeros(1)


def patch(model, out):
    """Adds the LoRA to the model's weights."""
    factors = {}
    for i, module in enumerate(("0.attn.to_k", "1.txt_mlp.net.0.proj", "1.img_mod.1")):
        name = f"transformer_blocks.{module}"
        weight = model.get_submodule(name).weight
        down, up = 0.2 * randn(40 + i, 3, weight.shape[1]), 0.2 * randn(50 + i, weight.shape[0], 3)
        factors[f"transformer.{name}.lora_A.weight"], factors[f"transformer.{name}.lora_B.weight"] = down, up
        weight += 0.5 * up @ down
    save_file(factors, os.path.join(out, "lora.safetensors"), {"format": "pt"})
    last = expected["wide.timestep"][-1]
    expected["lora.out"] = velocity(model, expected["wide.x"], last, expected["wide.context"])


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "qwen_image")
    os.makedirs(os.path.join(out, "transformer"), exist_ok=True)
    model = shake(QwenImageTransformer2DModel(**CONFIG), 12)
    with open(os.path.join(out, "transformer/config.json"), "w") as file:
        json.dump({"_class_name": "QwenImageTransformer2DModel", **CONFIG}, file, indent=1)
        file.write("\n")
    save_file(
        {name: tensor.bfloat16().contiguous() for name, tensor in model.state_dict().items()},
        os.path.join(out, "transformer/diffusion_pytorch_model.safetensors"),
        {"format": "pt"},
    )
    forward(model, "square", randn(13, 2, CHANNELS, 6, 6), randn(14, 2, 5, TEXT_WIDTH))
    forward(model, "wide", randn(15, 1, CHANNELS, 4, 10), randn(16, 1, 9, TEXT_WIDTH))
    sample(model)
    scale_latent()
    show_all(model)
    patch(model, out)
    save_file(
        {name: tensor.float().clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main()
