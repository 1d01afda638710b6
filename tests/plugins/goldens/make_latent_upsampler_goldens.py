"""Writes what diffusers makes with tiny models that make latents of LTX-Video larger.

    make_latent_upsampler_goldens.py [OUT]        (default: latent_upsamplers/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}: "plain" doubles the sides, "rational" makes them one and a half
                            times as large, "frames" doubles the frames
    expected.safetensors    of each "z", a latent in the autoencoder's units, and "larger"; "node.samples" and "node.larger" are a
                            latent in the diffusion model's units, of the autoencoder "0.9.1" of
                            make_ltxv_later_vae_goldens.py, and what "plain" makes of it
"""

import json
import os
import sys

import torch
from diffusers.pipelines.ltx.modeling_latent_upsampler import LTXLatentUpsamplerModel
from diffusers.pipelines.ltx2.latent_upsampler import LTX2LatentUpsamplerModel
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 8


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "latent_upsamplers")
    os.makedirs(out, exist_ok=True)
    sizes = {"in_channels": CHANNELS, "mid_channels": 32, "num_blocks_per_stage": 1}
    models = {
        "plain": LTXLatentUpsamplerModel(**sizes),
        "rational": LTX2LatentUpsamplerModel(rational_spatial_scale=1.5, **sizes),
        "frames": LTXLatentUpsamplerModel(spatial_upsample=False, temporal_upsample=True, **sizes),
    }
    shapes, expected = {}, {}
    for number, (name, model) in enumerate(models.items()):
        constants = {key: tensor for key, tensor in model.state_dict().items() if key.endswith("kernel")}
        state = {key: seeded_weights.seeded(key, tuple(tensor.shape)) for key, tensor in model.state_dict().items() if key not in constants}
        shapes[name] = {key: list(tensor.shape) for key, tensor in state.items()}
        model.load_state_dict({**state, **constants})
        z = torch.randn(2, CHANNELS, 3, 3, 5, generator=torch.Generator().manual_seed(number))
        expected[f"{name}.z"], expected[f"{name}.larger"] = z, model(z).contiguous()
    means = seeded_weights.seeded("per_channel_statistics.mean-of-means", (CHANNELS,))[None, :, None, None, None]
    deviations = seeded_weights.seeded("std.norm.weight", (CHANNELS,))[None, :, None, None, None]
    samples = torch.randn(1, CHANNELS, 2, 3, 4, generator=torch.Generator().manual_seed(9))
    expected["node.samples"] = samples
    expected["node.larger"] = ((models["plain"](samples * deviations + means) - means) / deviations).contiguous()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)


if __name__ == "__main__":
    main()
