"""Writes what diffusers and transformers make with tiny models of Qwen-Image 2.1 that have to do with pictures: its
autoencoder, Qwen3-VL's vision tower, and the transformer shown pictures.

    make_qwen21_picture_goldens.py [OUT]        (default: qwen21_pictures/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor as ComfyUI's files have it: shape}}; "vae" has [shape, the name in
                            diffusers], which has no axis of frames; "{0-3}" stands for each of these numbers
    expected.safetensors    "vae.z" and so on a decoding and an encoding by themselves
"""

import json
import os
import re
import sys

import torch
from diffusers import AutoencoderKLQwenImage21
from safetensors.torch import save_file

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 64
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def vae_name(name):
    """As ComfyUI's file has it: the original name."""
    for pattern, to in [
        (r"^quant_conv", "conv1"),
        (r"^post_quant_conv", "conv2"),
        (r"\.conv_in\.", ".conv1."),
        (r"\.norm_out\.", ".head.0."),
        (r"\.conv_out\.", ".head.2."),
        (r"mid_block\.attentions\.0", "middle.1"),
        (r"mid_block\.resnets\.(\d)", lambda found: f"middle.{2 * int(found[1])}"),
        (r"down_blocks\.(\d)\.resnets", r"downsamples.\1.downsamples"),
        (r"down_blocks\.(\d)\.downsampler", r"downsamples.\1.downsamples.2"),
        (r"up_blocks\.(\d)\.resnets", r"upsamples.\1.upsamples"),
        (r"up_blocks\.(\d)\.upsampler", r"upsamples.\1.upsamples.3"),
        (r"\.conv_shortcut\.", ".shortcut."),
    ]:
        name = re.sub(pattern, to, name)
    if ".resample." not in name and not name.startswith("conv"):
        for ours, theirs in [("norm1", "0"), ("norm2", "3"), ("conv1", "2"), ("conv2", "6")]:
            name = re.sub(rf"(samples\.\d|middle\.\d)\.{ours}\.", rf"\1.residual.{theirs}.", name)
    return name


def vae_shape(name, tensor):
    """In the original every filter but attention's and those that change the size has an axis of one frame."""
    shape = list(tensor.shape)
    flat = ".to_qkv." in name or ".proj." in name or ".resample." in name or len(shape) != 4 or not name.endswith("weight")
    return shape if flat else [*shape[:2], 1, *shape[2:]]


def make_vae():
    model = AutoencoderKLQwenImage21(base_dim=2, decoder_base_dim=3, z_dim=CHANNELS)
    seeded_weights.load(model, vae_name)
    shapes["vae"] = {vae_name(name): [vae_shape(name, tensor), name] for name, tensor in model.state_dict().items()}
    z, image = randn(1, 1, CHANNELS, 1, 2, 1), randn(2, 1, 4, 1, 16, 48).clamp(-1, 1)
    model.clear_cache()
    decoded = model.decoder(
        model.post_quant_conv(z), feat_cache=model._feat_map, feat_idx=[0], first_chunk=True
    )  # decode() without its clamp
    assert torch.equal(decoded.clamp(-1, 1), model.decode(z).sample)
    posterior = model.encode(image).latent_dist
    expected["vae.z"], expected["vae.image"] = z[:, :, 0], decoded[:, :, 0].permute(0, 2, 3, 1)
    expected["vae_encoder.image"] = image[:, :, 0].permute(0, 2, 3, 1)
    expected["vae_encoder.mean"], expected["vae_encoder.logvar"] = posterior.mean[:, :, 0], posterior.logvar[:, :, 0]
    return model


def main(out):
    os.makedirs(out, exist_ok=True)
    make_vae()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "qwen21_pictures"))
