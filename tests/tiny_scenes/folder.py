"""Writes a trained model in the layout of a diffusers pipeline folder."""

import copy
import json
import os
import shutil

import torch

INDEX = {
    "_class_name": "FluxPipeline", "_diffusers_version": "0.36.0",
    "feature_extractor": [None, None], "image_encoder": [None, None],
    "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
    "text_encoder": ["transformers", "CLIPTextModel"],
    "text_encoder_2": ["transformers", "T5EncoderModel"],
    "tokenizer": ["transformers", "CLIPTokenizer"],
    "tokenizer_2": ["transformers", "T5TokenizerFast"],
    "transformer": ["diffusers", "FluxTransformer2DModel"], "vae": ["diffusers", "AutoencoderKL"],
}


def write(model, source, out):
    """Writes the model in bfloat16 to `out`, with `source`'s tokenizers and autoencoder."""
    from diffusers import FlowMatchEulerDiscreteScheduler
    os.makedirs(out, exist_ok=True)
    for name in ("tokenizer", "tokenizer_2", "vae"):
        shutil.copytree(os.path.join(source, name), os.path.join(out, name), dirs_exist_ok=True)
    half = copy.deepcopy(model).to(torch.bfloat16)
    half.clip.save_pretrained(os.path.join(out, "text_encoder"))
    half.t5.save_pretrained(os.path.join(out, "text_encoder_2"))
    half.dit.save_pretrained(os.path.join(out, "transformer"), max_shard_size="14MB")
    FlowMatchEulerDiscreteScheduler(shift=2.0).save_pretrained(os.path.join(out, "scheduler"))
    with open(os.path.join(out, "model_index.json"), "w") as file:
        json.dump(INDEX, file, indent=2)
