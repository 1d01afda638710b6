"""Writes what diffusers makes with a tiny audio autoencoder and tiny vocoders of LTX 2 and 2.3.

    make_ltx2_audio_goldens.py [OUT]        (default: ltx2_audio/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), the deviations of latents from the name "std.norm.weight", the bands of the
second vocoder from "bands.norm.weight"; so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: [shape, name in diffusers]}}: "vae", "vocoder", "stages"
    expected.safetensors    "latent.z" are two latents in the diffusion model's units, "latent.mel" the spectra they become, and
                            "latent.waveform" the sound of these; "sound.mel" is a spectrum, "sound.mean" its latent;
                            "stages.mel" is a spectrum, "stages.waveform" the sound that the vocoder of two stages makes of it, and
                            "latent.wide" what it makes of "latent.mel"; "filter" (1, 1, 12) is that around its activations;
                            "voice.waveform" is a sound of 16000 points a second, "voice.mean" its latent by way of its spectrum,
                            "short.waveform" its begin
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLLTX2Audio
from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder, LTX2VocoderWithBWE
from safetensors.torch import save_file
from transformers.audio_utils import mel_filter_bank

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


def stages_name(name):
    for here, there in (
        ("conv_in.", "conv_pre."),
        ("conv_out.", "conv_post."),
        ("upsamplers.", "ups."),
        ("resnets.", "resblocks."),
        ("act_out.", "act_post."),
        ("downsample.filter", "downsample.lowpass.filter"),
    ):
        name = name.replace("." + here if here.endswith(".") else here, "." + there if here.endswith(".") else there)
    return name


# What is drawn around 1, so that it is positive.
AROUND_ONE = {"latents_std": "std.norm.weight", "mel_stft.mel_basis": "bands.norm.weight"}


def seed(model, original):
    shapes, state = {}, {}
    for name, tensor in model.state_dict().items():
        from_name = AROUND_ONE.get(name, original(name))
        if name.endswith(".filter"):  # symmetric
            shapes[original(name)] = [list(tensor.shape), name]
            state[name] = tensor
            continue
        shapes[original(name)] = [list(tensor.shape), name]
        state[name] = seeded_weights.seeded(from_name, tuple(tensor.shape))
    model.load_state_dict(state)
    model.eval()
    return shapes


def by_number(vae, latents):
    """The statistics of each number of a latent's frame: its channels, band by band."""
    return (numbers.reshape(1, latents.shape[1], 1, latents.shape[3]) for numbers in (vae.latents_mean, vae.latents_std))


def spectrum(sound, window=256, hop=40, rate=16000):
    """Logarithms of bands on Slaney's mel scale, of sounds (B, S, T): (B, S, frames, BANDS)."""
    filters = torch.from_numpy(mel_filter_bank(window // 2 + 1, BANDS, 0.0, rate / 2, rate, norm="slaney", mel_scale="slaney"))
    spectra = torch.stft(
        sound.flatten(0, 1), window, hop, window=torch.hann_window(window), center=True, pad_mode="reflect", return_complex=True
    )
    bands = spectra.abs().transpose(1, 2) @ filters.float()
    return bands.clamp(min=1e-5).log().unflatten(0, sound.shape[:2])


def make_stages():
    return LTX2VocoderWithBWE(
        in_channels=2 * BANDS,
        hidden_channels=32,
        upsample_kernel_sizes=[11, 4],
        upsample_factors=[5, 2],
        resnet_kernel_sizes=[3, 7],
        resnet_dilations=[[1, 3], [1, 3]],
        final_act_fn="clamp",
        bwe_in_channels=16,
        bwe_hidden_channels=16,
        bwe_upsample_kernel_sizes=[11, 7],
        bwe_upsample_factors=[5, 3],
        bwe_resnet_kernel_sizes=[3, 5],
        bwe_resnet_dilations=[[1, 3], [1, 3]],
        filter_length=32,
        hop_length=5,
        window_length=32,
        num_mel_channels=8,
    )


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltx2_audio")
    os.makedirs(out, exist_ok=True)
    vae = AutoencoderKLLTX2Audio(base_channels=CHANNELS * BANDS // 4, num_res_blocks=1, latent_channels=CHANNELS, mel_bins=BANDS)
    vocoder = LTX2Vocoder(in_channels=2 * BANDS, hidden_channels=64)
    stages = make_stages()
    shapes = {"vae": seed(vae, vae_name), "vocoder": seed(vocoder, vocoder_name), "stages": seed(stages, stages_name)}
    spectra = randn(3, 2, 2, 7, BANDS)
    z, sound = randn(1, 2, CHANNELS, 4, BANDS // 4), randn(2, 1, 2, 13, BANDS)
    mean, deviation = by_number(vae, z)
    mel = vae.decode(z * deviation + mean, return_dict=False)[0]
    latent = vae.encode(sound, return_dict=False)[0].mode()
    mean, deviation = by_number(vae, latent)
    voice = randn(4, 1, 2, 500) * 0.2
    heard = vae.encode(spectrum(voice), return_dict=False)[0].mode()
    its_mean, its_deviation = by_number(vae, heard)
    expected = {
        "voice.waveform": voice,
        "short.waveform": voice[..., :128].contiguous(),
        "voice.mean": ((heard - its_mean) / its_deviation).contiguous(),
        "latent.z": z,
        "latent.mel": mel.contiguous(),
        "latent.waveform": vocoder(mel).contiguous(),
        "latent.wide": stages(mel).contiguous(),
        "stages.mel": spectra,
        "stages.waveform": stages(spectra).contiguous(),
        "filter": stages.vocoder.act_out.upsample.filter.clone(),
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
