"""Writes what transformers makes of sounds with tiny encoders: wav2vec 2.0 in both of its forms, and Whisper.

    make_sound_encoder_goldens.py [OUT]        (default: sound_encoders/ beside this file)

Needs torch, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: [shape, its name in older files]}}: "stable" has norms before what its
                            layers do, as the large models, "plain" behind, as the base model, "whisper" one second and 16 bands
    expected.safetensors    "MODEL.sound" or "MODEL.spectrum" is an input, "MODEL.hidden.N" what layer N reads,
                            "MODEL.last_hidden" what comes out. "voice.waveform" is a sound of two items and channels at
                            16 kHz, "voice.MODEL" every 13th number of all states for the mean of
                            its channels, as ComfyUI normalises them.
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers import Wav2Vec2Config, Wav2Vec2Model, WhisperConfig, WhisperFeatureExtractor, WhisperModel

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
RATE, BANDS, FRAMES, STEP = 16000, 16, 100, 13
expected, shapes = {}, {}


def older(name):
    """The name of a tensor in files of older versions, under the model's prefix."""
    name = name.replace("parametrizations.weight.original0", "weight_g").replace("parametrizations.weight.original1", "weight_v")
    return "wav2vec2." + name


def wav2vec2(stable):
    config = Wav2Vec2Config(
        hidden_size=128,
        num_hidden_layers=3 if stable else 2,
        num_attention_heads=2,
        intermediate_size=160,
        feat_extract_norm="layer" if stable else "group",
        conv_bias=stable,
        conv_dim=(24, 20, 28),
        conv_kernel=(10, 3, 2),
        conv_stride=(5, 2, 2),
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        do_stable_layer_norm=stable,
        attn_implementation="eager",
    )
    model = Wav2Vec2Model(config)
    listed = seeded_weights.load(model)
    shapes["stable" if stable else "plain"] = {name: [shape, older(name)] for name, shape in listed.items()}
    return model


def whisper():
    config = WhisperConfig(
        d_model=128,
        encoder_layers=2,
        encoder_attention_heads=2,
        encoder_ffn_dim=160,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=16,
        vocab_size=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
        decoder_start_token_id=1,
        num_mel_bins=BANDS,
        max_source_positions=FRAMES // 2,
        attn_implementation="eager",
    )
    encoder = WhisperModel(config).encoder
    listed = seeded_weights.load(encoder, lambda name: "model.encoder." + name)
    shapes["whisper"] = {name: [shape, name.removeprefix("model.")] for name, shape in listed.items()}
    return encoder


def states(model, given):
    made = model(given, output_hidden_states=True)
    return [*made.hidden_states[:-1], made.last_hidden_state]


def make(name, model, key, given, out):
    expected[f"{name}.{key}"] = given.clone()
    all_states = states(model, given)
    for i, state in enumerate(all_states):
        expected[f"{name}." + (f"hidden.{i}" if i + 1 < len(all_states) else "last_hidden")] = state
    print(name, [f"{state.std():.3g}" for state in all_states])
    expected["voice." + name] = torch.stack(states(model, out)).flatten()[::STEP]


def main(out):
    time = torch.arange(1600) / RATE
    noise = torch.randn(2, 2, 1600, generator=torch.Generator().manual_seed(5))
    tones = torch.stack([torch.sin(6.2831853 * f * time) for f in (220, 555, 1500, 3100)]).reshape(2, 2, 1600)
    voice = 0.1 * noise + 0.3 * tones + 0.05
    expected["voice.waveform"] = voice
    mean = voice.mean(1)
    normed = (mean - mean.mean()) / torch.sqrt(mean.var() + 1e-7)
    extract = WhisperFeatureExtractor(feature_size=BANDS, sampling_rate=RATE, hop_length=160, chunk_length=1, n_fft=400)
    bands = [extract(row.numpy(), sampling_rate=RATE, return_tensors="pt").input_features for row in mean]
    sound = torch.randn(1, 634, generator=torch.Generator().manual_seed(6))
    make("stable", wav2vec2(True), "sound", sound, normed)
    make("plain", wav2vec2(False), "sound", sound, mean)
    encoder = whisper()
    spectrum = torch.randn(1, BANDS, FRAMES, generator=torch.Generator().manual_seed(7))
    make("whisper", encoder, "spectrum", spectrum, torch.cat(bands))
    expected["whisper.spectrum"] = spectrum.transpose(1, 2)
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = []
        for model, tensors in shapes.items():
            rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in tensors.items())
            texts.append(f' "{model}": {{\n{rows}\n }}')
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    for name, tensor in expected.items():
        print(f"{name:22} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "sound_encoders"))
