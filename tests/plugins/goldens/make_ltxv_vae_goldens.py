"""Writes what diffusers makes with a tiny autoencoder of LTX-Video 0.9.0.

    make_ltxv_vae_goldens.py [OUT]        (default: ltxv_vae/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), the deviations of latents from the name "std.norm.weight", so only shapes are written, and
what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: [shape, name in diffusers]}}: "vae", and
                            "flow", whose latents have 128 channels
    expected.safetensors    "pictures.z" and "video.z" are latents in the diffusion model's units, "pictures.out" and "video.out"
                            what is decoded, of the video three of its frames; "still.image" and "clip.image" are a picture
                            and a video, "still.mean" and "clip.mean" their latents; "flow.first" is that of a picture of
                            128 x 96 pixels (64, 128, 192), and "flow.latent" what becomes of it as the first frame, kept by
                            0.75, in the run of make_ltxv_goldens.py; "flow.pictures" are frames of what that run itself ends
                            with, from 0 to 1, of 16 x 16 pixels
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLLTXVideo
from safetensors.torch import save_file

import make_ltxv_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 8
FRAMES = [0, 7, 16]
UP = ("mid_block", "up_blocks.0", "up_blocks.1.upsamplers.0", "up_blocks.1", "up_blocks.2.conv_in") + (
    "up_blocks.2.upsamplers.0", "up_blocks.2", "up_blocks.3.conv_in", "up_blocks.3.upsamplers.0", "up_blocks.3")
DOWN = ("down_blocks.0", "down_blocks.0.downsamplers.0", "down_blocks.0.conv_out", "down_blocks.1", "down_blocks.1.downsamplers.0") + (
    "down_blocks.1.conv_out", "down_blocks.2", "down_blocks.2.downsamplers.0", "down_blocks.3", "mid_block")


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of AutoencoderKLLTXVideo."""
    statistics = {"latents_mean": "mean-of-means", "latents_std": "std-of-means"}
    if name in statistics:
        return "per_channel_statistics." + statistics[name]
    side, inside = name.split(".", 1)
    blocks, there = (UP, "up_blocks") if side == "decoder" else (DOWN, "down_blocks")
    # The longest name that fits: "up_blocks.1" is the beginning of another.
    fitting = [block for block in blocks if inside.startswith(block + ".")]
    if fitting:
        block = max(fitting, key=len)
        inside = f"{there}.{blocks.index(block)}{inside[len(block):]}"
    inside = inside.replace(".resnets.", ".res_blocks.").replace(".conv_shortcut.conv.", ".conv_shortcut.")
    return f"{side}.{inside.replace('.norm3.', '.norm3.norm.')}"


def make(channels):
    sizes, layers = (8, 12, 16, 16), (2, 1, 1, 1, 2)
    model = AutoencoderKLLTXVideo(
        latent_channels=channels,
        block_out_channels=sizes,
        decoder_block_out_channels=sizes,
        layers_per_block=layers,
        decoder_layers_per_block=layers,
    )
    state = {name: seeded_weights.seeded(original(name), tuple(tensor.shape)) for name, tensor in model.state_dict().items()}
    state["latents_std"] = seeded_weights.seeded("std.norm.weight", (channels,))
    model.load_state_dict(state)
    model.eval()
    return model, {original(name): [list(tensor.shape), name] for name, tensor in state.items()}


def by_channel(numbers):
    return numbers[None, :, None, None, None]


def decode(model, z):
    """As heddle has pictures: (frames, height, width, 3)."""
    raw = z * by_channel(model.latents_std) + by_channel(model.latents_mean)
    return model.decode(raw, return_dict=False)[0].permute(0, 2, 3, 4, 1).flatten(0, 1).contiguous()


def encode(model, pictures):
    mean = model.encode(pictures.permute(3, 0, 1, 2)[None], return_dict=False)[0].mode()
    return ((mean - by_channel(model.latents_mean)) / by_channel(model.latents_std)).contiguous()


def make_flow(vae, model):
    """ComfyUI's way: what the mask keeps is seen without noise, by tokens that are told so."""
    colour = torch.tensor([64.0, 128.0, 192.0]) / 255
    first = encode(vae, (2 * colour - 1).expand(1, 96, 128, 3))
    latent, mask = torch.zeros(1, 128, 3, 3, 4), torch.tensor([0.25, 1.0, 1.0])
    latent[:, :, :1] = first
    m = mask[None, None, :, None, None]
    x = make_ltxv_goldens.randn(7, 1, 128, 3, 3, 4)
    texts = [make_ltxv_goldens.randn(92, 1, 9, 40), make_ltxv_goldens.randn(93, 1, 5, 40)]
    sigmas = make_ltxv_goldens.scheduled(3, 36)
    for here, there in zip(sigmas, sigmas[1:]):
        seen = x * m + latent * (1 - m)
        yes, no = (make_ltxv_goldens.velocity(model, seen, torch.tensor(here), text, 24, frame_noise=mask) for text in texts)
        denoised = (seen - here * (no + 3 * (yes - no))) * m + latent * (1 - m)
        x = x + (x - denoised) / here * (there - here)
    return first, x


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltxv_vae")
    os.makedirs(out, exist_ok=True)
    (model, shapes), (wide, wide_shapes) = make(CHANNELS), make(128)
    pictures, video = randn(3, 2, CHANNELS, 1, 2, 1), randn(4, 1, CHANNELS, 3, 1, 2)
    still, clip = randn(5, 1, 32, 64, 3).clamp(-1, 1), randn(6, 9, 32, 32, 3).clamp(-1, 1)
    expected = {
        "pictures.z": pictures,
        "pictures.out": decode(model, pictures),
        "video.z": video,
        "video.out": decode(model, video)[FRAMES].contiguous(),
        "still.image": still,
        "still.mean": encode(model, still),
        "clip.image": clip,
        "clip.mean": encode(model, clip),
    }
    transformer = make_ltxv_goldens.make("flow")
    expected["flow.first"], expected["flow.latent"] = make_flow(wide, transformer)
    make_ltxv_goldens.make_flow(transformer)
    decoded = decode(wide, make_ltxv_goldens.expected["flow.latent"])
    expected["flow.pictures"] = (decoded / 2 + 0.5).clamp(0, 1)[FRAMES, :16, :16].contiguous()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({"vae": shapes, "flow": wide_shapes}, file, indent=1)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
