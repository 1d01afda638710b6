"""Files of LTX-Video 0.9, LTX 2, 2.3 and 2.5 for flux_headers.py: of parts whose shapes are in ltx_files.json (make_ltx_files.py says
where from) and true_files.json. Transformers, autoencoders and vocoders of LTX 2 and later stand in BF16, and the checkpoint of
0.9 in F32, which fits the sizes of the published files. Needs nothing but Python.
"""

import json
import os

import packed_forms
from name_patterns import expanded

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ltx_files.json")) as ltx_files:
    PARTS = json.load(ltx_files)

# What a file's metadata tell of its parts, where weights do not.
STREAMS = {"num_attention_heads": 32, "audio_num_attention_heads": 32}
LATER_STREAMS = STREAMS | {"connector_num_attention_heads": 32, "audio_connector_num_attention_heads": 32}
EARLY_STREAMS = STREAMS | {"connector_num_attention_heads": 30, "audio_connector_num_attention_heads": 30}
STAGES = {
    "vocoder": {"upsample_rates": [5, 2, 2, 2, 2, 2], "apply_final_activation": False},
    "bwe": {"upsample_rates": [6, 5, 2, 2, 2], "apply_final_activation": False, "hop_length": 80}
    | {"input_sampling_rate": 16000, "output_sampling_rate": 48000},
}
AUDIO_VAE = {
    "model": {"params": {"sampling_rate": 16000, "ddconfig": {"mel_bins": 64}}},
    "preprocessing": {"stft": {"filter_length": 1024, "hop_length": 160}},
}
CAMERA = "ltx-2-19b-lora-camera-control-dolly-left"
TEXT = "text_encoders/gemma_3_12B_it"


def part(name, prefix="", dtype="BF16"):
    return {prefix + tensor: what for tensor, what in expanded({n: (dtype, s) for n, s in PARTS[name].items()}).items()}


def packed_but_tower(tensors):
    """fp4_mixed, with what sees pictures in 16 bits."""
    tower = {name: what for name, what in tensors.items() if name.startswith(("vision_model.", "multi_modal_projector."))}
    return packed_forms.in_4_bits({name: what for name, what in tensors.items() if name not in tower}) | tower


def transformer_of(files, dtype):
    plain = files["diffusion_models/ltx-video-2b-v0.9"]()
    return {"model.diffusion_model." + name: (dtype, shape) for name, (_, shape) in plain.items()}


def checkpoint(version):
    """Of LTX 2 or 2.3."""
    return (
        part(f"transformer {version}")
        | part(f"texts {version}")
        | part(f"vae {version}", "vae.")
        | part("audio vae", "audio_vae.")
        | part(f"vocoder {version}", "vocoder.")
    )


def lora(tensors, rank, prefix="", cut="", inside=".transformer_blocks."):
    """A LoRA of all matrices of the layers, by the names that ComfyUI's own files have."""
    out = {}
    for name, (_, shape, *_) in tensors.items():
        if len(shape) == 2 and name.endswith(".weight") and inside in name:
            module = prefix + name.removeprefix(cut).removesuffix(".weight")
            out[module + ".lora_A.weight"] = ("BF16", (rank, shape[1]))
            out[module + ".lora_B.weight"] = ("BF16", (shape[0], rank))
    return out


def of_layers(version, rank):
    return lora(part(f"transformer {version}"), rank, "diffusion_model.", "model.diffusion_model.")


def files(known):
    """{file: what makes its tensors}, and {file: its config}; known: files of the same kind that there are."""
    made = {
        "checkpoints/ltx-video-2b-v0.9": lambda: transformer_of(known, "F32") | part("vae 0.9", "vae.", "F32"),
        "checkpoints/ltx-video-2b-v0.9.5": lambda: transformer_of(known, "BF16") | part("vae 0.9.5", "vae."),
        "checkpoints/ltx-2-19b-dev": lambda: checkpoint("2"),
        "checkpoints/ltx-2-19b-dev-fp8": lambda: packed_forms.in_fp8(checkpoint("2")),
        "latent_upscale_models/ltx-2-spatial-upscaler-x2-1.0": lambda: part("upsampler 2"),
        "latent_upscale_models/ltx-2.3-spatial-upscaler-x2-1.1": lambda: part("upsampler 2.3"),
        "latent_upscale_models/ltx-2.5-latent-spatial-upscaler-x2-bf16-1.0": lambda: part("upsampler 2.3"),
        "vae/ltx-2.5-audio-vae-bf16": lambda: part("audio vae", "audio_vae.") | part("vocoder 2.3", "vocoder."),
        f"{TEXT}_fp4_mixed": lambda: packed_but_tower(known[TEXT]()),
        "loras/gemma-3-12b-it-abliterated_lora_rank64_bf16": lambda: lora(
            known[TEXT](), 64, "text_encoders.transformer.", inside="model.layers."
        ),
    }
    configs = {
        "checkpoints/ltx-2-19b-dev": {"transformer": EARLY_STREAMS, "audio_vae": AUDIO_VAE},
        "vae/ltx-2.5-audio-vae-bf16": {"audio_vae": AUDIO_VAE, "vocoder": STAGES},
        "latent_upscale_models/ltx-2-spatial-upscaler-x2-1.0": {"rational_spatial_scale": 2.0},
    }
    configs["checkpoints/ltx-2-19b-dev-fp8"] = configs["checkpoints/ltx-2-19b-dev"]
    for kind in ("dev", "distilled"):
        name = f"checkpoints/ltx-2.3-22b-{kind}"
        made[name] = lambda: checkpoint("2.3")
        made[f"{name}-fp8"] = lambda: packed_forms.in_fp8(checkpoint("2.3"))
        configs[name] = {"transformer": LATER_STREAMS, "audio_vae": AUDIO_VAE, "vocoder": STAGES}
        configs[f"{name}-fp8"] = configs[name]
        name = f"diffusion_models/ltx-2.5-22b-{kind}-transformer-comfy-int8-convrot"
        made[name] = lambda: packed_forms.in_8_bits(known["diffusion_models/ltx-2.5-22b-distilled-transformer-bf16"]())
        configs[name] = {"transformer": LATER_STREAMS}
    for name, plain in (("gemma4-12b-with-proj-ltx-2.5-comfy", "gemma4-12b-with-proj-ltx-2.5-bf16"), ("gemma4_e2b_it", "gemma4_e2b_it_bf16")):
        ending = "_int8_convrot" if name.endswith("it") else "-int8-convrot"
        made[f"text_encoders/{name}{ending}"] = lambda plain=plain: packed_forms.in_8_bits(known[f"text_encoders/{plain}"]())
    # The name tells a rank of some; the others' are of no published file.
    for name, version, rank in (
        ("ltx-2-19b-distilled-lora-384", "2", 384),
        (CAMERA, "2", 32),
        ("ltx2-squish", "2", 32),
        ("ltx-2.3-22b-ic-lora-ingredients-0.9", "2.3", 128),
        ("ltx-2.3-id-lora-talkvid-3k", "2.3", 128),
        ("ltx2.3-transition", "2.3", 32),
        ("ltx_2.3_22b_distilled_1.1_lora_dynamic_fro09_avg_rank_111_bf16", "2.3", 111),
    ):
        made[f"loras/{name}"] = lambda version=version, rank=rank: of_layers(version, rank)
    return made, configs
