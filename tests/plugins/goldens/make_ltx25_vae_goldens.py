"""Writes what diffusers makes with a tiny decoder of videos of LTX 2.5.

    make_ltx25_vae_goldens.py [OUT]       (default: ltx25_vae/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {"decoder": {name of the tensor in the publishers' files: shape}}; "{0-1}" stands for each of these numbers
    expected.safetensors    "CLIP.z" is a latent in the diffusion model's units, "CLIP.cell_noise" the noise of its pixels cell by
                            cell, as heddle draws it, "CLIP.image" the frames: of "video", and of "pair", two videos
"""

import json
import os
import sys

import torch
from diffusers.models.autoencoders import ltx2_diffusion_decoder as source
from safetensors.torch import save_file

import make_ltxv_later_vae_goldens
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
CHANNELS, PATCH, SIDE, RATIO = 8, 2, 8, 2
SIZES = dict(
    in_channels=CHANNELS,
    patch_size=PATCH,
    head_dim=16,
    stage_channels=(32, 16, 16),
    stage_depths=(2, 1, 2),
    stage_kernels=((3, 3, 3), (3, 5, 5)),
    upsample_strides=((1, 2, 2), (2, 2, 2)),
    upsample_channel_reductions=(2, 1),
    stage5_kernel=(3, 5, 5),
    t_emb_dim=24,
    temporal_compression_ratio=RATIO,
)
expected, shapes = {}, {}


def original(name):
    """The publishers' name of a tensor of LTX2VideoDiffusionDecoder3d."""
    for here, there in (
        ("t_embedder.timestep_embedder.linear_1", "t_embedder.mlp.0"),
        ("t_embedder.timestep_embedder.linear_2", "t_embedder.mlp.2"),
        ("attn.to_out.0", "attn.proj"),
        ("attn.norm_q", "attn.q_norm"),
        ("attn.norm_k", "attn.k_norm"),
    ):
        name = name.replace(here, there)
    return "decoder." + name


def load(model):
    """Queries, keys and values are one tensor in the publishers' files."""
    state, listed = {}, {}
    for name, tensor in model.state_dict().items():
        if ".attn.to_q." in name:
            joined, shape = original(name.replace("to_q", "qkv")), (3 * tensor.shape[0], *tensor.shape[1:])
            listed[joined] = list(shape)
            for part, values in zip("qkv", seeded_weights.seeded(joined, shape).chunk(3)):
                state[name.replace("to_q", f"to_{part}")] = values
        elif ".attn.to_k." not in name and ".attn.to_v." not in name:
            listed[original(name)] = list(tensor.shape)
            state[name] = seeded_weights.seeded(original(name), tuple(tensor.shape))
    model.load_state_dict(state)
    return listed


def main(out):
    os.makedirs(out, exist_ok=True)
    model = source.LTX2VideoDiffusionDecoder3d(**SIZES).eval()
    listed = load(model)
    statistics = {}
    for name in ("mean-of-means", "std-of-means"):
        at = f"per_channel_statistics.{name}"
        listed[at] = [CHANNELS]
        statistics[name] = seeded_weights.seeded(at, (CHANNELS,))
    shapes["decoder"] = listed
    for seed, (clip, shape) in enumerate({"video": (1, 3, 5, 3), "pair": (2, 2, 3, 3)}.items()):
        batch, frames, height, width = shape
        generator = torch.Generator().manual_seed(seed)
        z = torch.randn(batch, CHANNELS, frames, height, width, generator=generator)
        raw = z * statistics["std-of-means"].reshape(1, -1, 1, 1, 1) + statistics["mean-of-means"].reshape(1, -1, 1, 1, 1)
        cells = (batch, RATIO * (frames - 1) + 1, SIDE // PATCH * height, SIDE // PATCH * width, 3 * PATCH * PATCH)
        noise = source._unpatchify(make_ltxv_later_vae_goldens.numbers(0, 0, cells).permute(0, 4, 1, 2, 3), PATCH)
        context = model.forward_stage_4(model.forward_stages_1_to_3(raw))
        image = model.denoise(context, noise, 1)
        expected[f"{clip}.z"] = z
        expected[f"{clip}.cell_noise"] = source._patchify(noise, PATCH).permute(0, 2, 3, 4, 1)
        expected[f"{clip}.image"] = image.permute(0, 2, 3, 4, 1).flatten(0, 1)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(told) for kind, told in shapes.items()}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "ltx25_vae"))
