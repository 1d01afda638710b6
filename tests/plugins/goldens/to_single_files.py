"""Saves a diffusers pipeline folder of the FLUX kind as ComfyUI-style single files.

    to_single_files.py FOLDER OUT [--name tiny] [--checkpoint]

writes OUT/diffusion_models/NAME.safetensors, OUT/text_encoders/NAME_clip_l.safetensors,
OUT/text_encoders/NAME_t5xxl.safetensors and OUT/vae/NAME_ae.safetensors; with --checkpoint also
OUT/checkpoints/NAME.safetensors, which holds all four. The latent's scale and shift go
into the autoencoder's metadata (scaling_factor, shift_factor).
"""

import argparse
import glob
import json
import os

from safetensors import safe_open
from safetensors.torch import save_file

import original_names


def read_part(folder):
    """All tensors of a part of the pipeline, sharded or not."""
    state = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.safetensors"))):
        with safe_open(path, "pt") as file:
            state.update({name: file.get_tensor(name) for name in file.keys()})
    if not state:
        raise SystemExit(f"{folder}: no .safetensors files")
    return state


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--name", default="tiny")
    parser.add_argument("--checkpoint", action="store_true")
    args = parser.parse_args()

    parts = {
        "model.diffusion_model.": original_names.flux(
            read_part(os.path.join(args.folder, "transformer"))
        ),
        "text_encoders.clip_l.transformer.": original_names.clip(
            read_part(os.path.join(args.folder, "text_encoder"))
        ),
        "text_encoders.t5xxl.transformer.": original_names.t5(
            read_part(os.path.join(args.folder, "text_encoder_2"))
        ),
        "vae.": original_names.autoencoder(read_part(os.path.join(args.folder, "vae"))),
    }
    with open(os.path.join(args.folder, "vae", "config.json")) as file:
        config = json.load(file)
    latent = {
        key: repr(float(config[key]))
        for key in ("scaling_factor", "shift_factor")
        if config.get(key) is not None
    }

    def save(kind, name, state, metadata):
        os.makedirs(os.path.join(args.out, kind), exist_ok=True)
        path = os.path.join(args.out, kind, f"{name}.safetensors")
        save_file(
            {key: tensor.contiguous() for key, tensor in state.items()},
            path,
            {"format": "pt", **metadata},
        )
        print(f"{path}: {len(state)} tensors")

    save("diffusion_models", args.name, parts["model.diffusion_model."], {})
    save("text_encoders", f"{args.name}_clip_l", parts["text_encoders.clip_l.transformer."], {})
    save("text_encoders", f"{args.name}_t5xxl", parts["text_encoders.t5xxl.transformer."], {})
    save("vae", f"{args.name}_ae", parts["vae."], latent)
    if args.checkpoint:
        whole = {
            prefix + key: tensor for prefix, state in parts.items() for key, tensor in state.items()
        }
        save("checkpoints", args.name, whole, latent)


if __name__ == "__main__":
    main()
