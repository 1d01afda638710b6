"""Writes what diffusers makes with a tiny audio autoencoder and a tiny vocoder of LTX 2.

    make_ltx2_audio_goldens.py [OUT]        (default: ltx2_audio/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), the deviations of latents from the name "std.norm.weight", so only shapes are written, and
what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: [shape, name in diffusers]}}: "vae", "vocoder"
    expected.safetensors    "latent.z" are two latents in the diffusion model's units, "latent.mel" the spectra they become, and
                            "latent.waveform" the sound of these; "sound.mel" is a spectrum, "sound.mean" its latent
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLLTX2Audio
from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS, BANDS = 4, 16


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def vae_name(name):
    return {"latents_mean": "per_channel_statistics.mean-of-means", "latents_std": "per_channel_statistics.std-of-means"}.get(name, name)


def vocoder_name(name):
    for here, there in (("conv_in.", "conv_pre."), ("conv_out.", "conv_post."), ("upsamplers.", "ups."), ("resnets.", "resblocks.")):
        if name.startswith(here):
            return there + name[len(here) :]
    return name


def seed(model, original):
    shapes, state = {}, {}
    for name, tensor in model.state_dict().items():
        from_name = "std.norm.weight" if name == "latents_std" else original(name)
        shapes[original(name)] = [list(tensor.shape), name]
        state[name] = seeded_weights.seeded(from_name, tuple(tensor.shape))
    model.load_state_dict(state)
    model.eval()
    return shapes


def by_number(vae, latents):
    """The statistics of each number of a latent's frame: its channels, band by band."""
    return (numbers.reshape(1, latents.shape[1], 1, latents.shape[3]) for numbers in (vae.latents_mean, vae.latents_std))


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltx2_audio")
    os.makedirs(out, exist_ok=True)
    vae = AutoencoderKLLTX2Audio(base_channels=CHANNELS * BANDS // 4, num_res_blocks=1, latent_channels=CHANNELS, mel_bins=BANDS)
    vocoder = LTX2Vocoder(in_channels=2 * BANDS, hidden_channels=64)
    shapes = {"vae": seed(vae, vae_name), "vocoder": seed(vocoder, vocoder_name)}
    z, sound = randn(1, 2, CHANNELS, 4, BANDS // 4), randn(2, 1, 2, 13, BANDS)
    mean, deviation = by_number(vae, z)
    mel = vae.decode(z * deviation + mean, return_dict=False)[0]
    latent = vae.encode(sound, return_dict=False)[0].mode()
    mean, deviation = by_number(vae, latent)
    expected = {
        "latent.z": z,
        "latent.mel": mel.contiguous(),
        "latent.waveform": vocoder(mel).contiguous(),
        "sound.mel": sound,
        "sound.mean": ((latent - mean) / deviation).contiguous(),
    }
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)


if __name__ == "__main__":
    main()
