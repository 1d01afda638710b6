"""Writes what transformers and diffusers make of two prompts with a tiny LTX 2 and a tiny 2.3: a video and its sound.

    make_ltx2_whole_goldens.py [OUT]        (default: ltx2_whole/ beside this file)

Needs torch, diffusers, transformers, sentencepiece and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py). The text encoder, its projection and the connectors are those of
make_ltx2_text_goldens.py, the audio autoencoder and the vocoder those of make_ltx2_audio_goldens.py; written are

    shapes.json             {model: {name of the tensor in the publishers' files: [shape, name in diffusers]}}: "transformer", which
                            reads what the connectors make, and "vae" of 128 channels; "transformer23" and "vae23" those of 2.3,
                            whose vocoder is that of two stages
    expected.safetensors    3 steps of Euler's method with guidance 3 from the noise of seed 7, drawn for the video, then for the sound,
                            at 24 pictures a second: "video" and "audio" are the latents, "pictures" the pictures from 0 to 1, of
                            which each 2nd, and of these each 8th row and column, "waveform" each 4th point of the sound;
                            "23.video" and so on those of 2.3, "23.waveform" the whole sound
"""

import json
import os
import sys

import sentencepiece
import torch
from diffusers import AutoencoderKLLTX2Audio
from diffusers.models.transformers.transformer_ltx2 import LTX2VideoTransformer3DModel
from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder
from safetensors.torch import save_file

import make_ltx2_audio_goldens
import make_ltx2_goldens
import make_ltx2_text_goldens
import make_ltxv_later_vae_goldens
import seeded_weights
from make_ltxv_vae_goldens import by_channel

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
PROMPTS, SIGMAS, SCALE, RATE = ("a photo of a red fox in the snow", ""), (1.0, 0.75, 0.5, 0.0), 3, 24
CHANNELS, SOUND_CHANNELS, BANDS = 128, 4, 16
PREFIX = "model.diffusion_model."


def transformer_name(name):
    return PREFIX + make_ltx2_goldens.original(name)


def texts(connectors):
    """Of each prompt what the connectors make for the video, and for the sound, as the pipeline pads it."""
    make_ltx2_text_goldens.PADDED = 1024
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=make_ltx2_text_goldens.TOKENIZER)
    model = make_ltx2_text_goldens.make_text(tokenizer)
    return [connectors(*make_ltx2_text_goldens.encode(model, tokenizer, prompt))[:2] for prompt in PROMPTS]


def make_connectors(is_later):
    if is_later:
        return make_ltx2_text_goldens.make_later()
    return make_ltx2_text_goldens.make_connectors(
        "projected", video_connector_attention_head_dim=12, audio_connector_attention_head_dim=12
    )


def make_transformer(is_later):
    heads, more = 4, {}
    if is_later:  # both read a context of their own width
        heads = 2
        more = dict(gated_attn=True, cross_attn_mod=True, audio_gated_attn=True, audio_cross_attn_mod=True, use_prompt_embeddings=False)
    model = LTX2VideoTransformer3DModel(
        in_channels=CHANNELS,
        out_channels=CHANNELS,
        num_attention_heads=heads,
        attention_head_dim=16,
        cross_attention_dim=16 * heads,
        audio_in_channels=SOUND_CHANNELS * BANDS // 4,
        audio_out_channels=SOUND_CHANNELS * BANDS // 4,
        audio_num_attention_heads=heads,
        audio_attention_head_dim=8,
        audio_cross_attention_dim=8 * heads,
        num_layers=2,
        caption_channels=make_ltx2_text_goldens.WIDTH,
        rope_type="split",
        **more,
    )
    listed = {transformer_name(name): [list(tensor.shape), name] for name, tensor in model.state_dict().items()}
    seeded_weights.load(model, transformer_name)
    return model, listed


def make_vocoder(is_later):
    if is_later:
        model = make_ltx2_audio_goldens.make_stages()
        make_ltx2_audio_goldens.seed(model, make_ltx2_audio_goldens.stages_name)
        return model
    model = LTX2Vocoder(in_channels=2 * BANDS, hidden_channels=64)
    make_ltx2_audio_goldens.seed(model, make_ltx2_audio_goldens.vocoder_name)
    return model


def draw(model, contexts):
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(1, CHANNELS, 2, 2, 3, generator=generator)
    point = [x, torch.randn(1, SOUND_CHANNELS, 10, BANDS // 4, generator=generator)]
    for here, there in zip(SIGMAS, SIGMAS[1:]):
        clean = []
        for context in contexts:
            made = make_ltx2_goldens.velocity(model, *point, torch.tensor(here), context, RATE)
            clean.append([p - here * v for p, v in zip(point, made)])
        mixed = [no + SCALE * (yes - no) for yes, no in zip(*clean)]
        point = [p + (p - d) / here * (there - here) for p, d in zip(point, mixed)]
    return point


def make(is_later):
    """The shapes of the transformer and the autoencoder, and what they make."""
    model, listed = make_transformer(is_later)
    make_ltxv_later_vae_goldens.CHANNELS = CHANNELS
    vae = make_ltxv_later_vae_goldens.make_23() if is_later else make_ltxv_later_vae_goldens.make_2()
    shapes = {"transformer": listed, "vae": make_ltxv_later_vae_goldens.seed(vae, {"encoder": True, "decoder": True})}
    hearing = AutoencoderKLLTX2Audio(
        base_channels=SOUND_CHANNELS * BANDS // 4, num_res_blocks=1, latent_channels=SOUND_CHANNELS, mel_bins=BANDS
    )
    make_ltx2_audio_goldens.seed(hearing, make_ltx2_audio_goldens.vae_name)
    vocoder = make_vocoder(is_later)
    video, audio = draw(model, texts(make_connectors(is_later)))
    made = vae.decode(video * by_channel(vae.latents_std) + by_channel(vae.latents_mean), return_dict=False)[0]
    mean, deviation = make_ltx2_audio_goldens.by_number(hearing, audio)
    waveform = vocoder(hearing.decode(audio * deviation + mean, return_dict=False)[0])
    pictures = (made[0].permute(1, 2, 3, 0) / 2 + 0.5).clamp(0, 1)
    return shapes, {
        "video": video.contiguous(),
        "audio": audio.contiguous(),
        "pictures": pictures[::2, ::8, ::8].contiguous(),
        "waveform": waveform[..., :: 1 if is_later else 4].contiguous(),
    }


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltx2_whole")
    os.makedirs(out, exist_ok=True)
    shapes, expected = make(False)
    later_shapes, later = make(True)
    shapes.update({f"{name}23": listed for name, listed in later_shapes.items()})
    expected.update({f"23.{name}": tensor for name, tensor in later.items()})
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:10} {tuple(tensor.shape)} {tensor.abs().mean():.4g} {tensor.min():.4g} {tensor.max():.4g}")


if __name__ == "__main__":
    main()
