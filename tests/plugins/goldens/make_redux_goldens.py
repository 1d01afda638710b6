"""Writes what PyTorch makes of pictures with tiny models of SigLIP's kind and of FLUX.1 Redux's.

    make_redux_goldens.py [OUT]        (default: redux/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py). The pictures are those of edit/. Files:

    shapes.json             {model: {name of the tensor: shape}} of "siglip" and "redux"
    expected.safetensors    "seen.picture" and "seen.last_hidden" are of the tower by itself; "center.last_hidden" and
                            "none.last_hidden" what CLIPVisionEncode makes of one.png, "two.last_hidden" of two.png;
                            "in.text.cross_attn" is a text, "style" the tokens behind it of "center" at 0.5
"""

import json
import os
import sys

import numpy
import torch
from diffusers.pipelines.flux.modeling_flux import ReduxImageEncoder
from PIL import Image
from safetensors.torch import save_file
from transformers import SiglipVisionConfig, SiglipVisionModel

import seeded_weights

torch.set_grad_enabled(False)
F = torch.nn.functional
SIZE, WIDTH, TEXT = 28, 72, 24


def make_siglip():
    config = SiglipVisionConfig(
        hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=2, num_attention_heads=1, image_size=SIZE, patch_size=14
    )
    config.vision_use_head = False
    config._attn_implementation = "eager"
    model = SiglipVisionModel(config)
    prefix = "" if next(iter(model.state_dict())).startswith("vision_model.") else "vision_model."
    return model, seeded_weights.load(model, lambda name: prefix + name)


def encode(model, picture, cut):
    """As ComfyUI: picture (1, H, W, 3) from 0 to 1."""
    image = picture.permute(0, 3, 1, 2)
    if cut:
        factor = SIZE / min(image.shape[2:])
        size = [round(factor * side) for side in image.shape[2:]]
    else:
        size = [SIZE, SIZE]
    image = F.interpolate(image, size, mode="bicubic", antialias=True)
    top, left = ((side - SIZE) // 2 for side in image.shape[2:])
    image = image[:, :, top : top + SIZE, left : left + SIZE]
    image = torch.clip(255 * image, 0, 255).round() / 255
    return model(pixel_values=(image - 0.5) / 0.5).last_hidden_state


def main(out):
    os.makedirs(out, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    tower, siglip = make_siglip()
    redux = ReduxImageEncoder(redux_dim=WIDTH, txt_in_features=TEXT)
    shapes = {"siglip": siglip, "redux": seeded_weights.load(redux)}
    one, two = (
        torch.from_numpy(numpy.asarray(Image.open(os.path.join(here, "edit", name))).astype(numpy.float32))[None] / 255
        for name in ("one.png", "two.png")
    )
    picture = torch.randn(2, SIZE, SIZE, 3, generator=torch.Generator().manual_seed(1))
    expected = {
        "seen.picture": picture,
        "seen.last_hidden": tower(pixel_values=picture.permute(0, 3, 1, 2)).last_hidden_state,
        "center.last_hidden": encode(tower, one, True),
        "none.last_hidden": encode(tower, one, False),
        "two.last_hidden": encode(tower, two, True),
        "in.text.cross_attn": torch.randn(1, 5, TEXT, generator=torch.Generator().manual_seed(2)),
    }
    style = redux(expected["center.last_hidden"]).image_embeds
    expected["style"] = 0.5 * style
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (
            f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in tensors.items()) + "\n }"
            for name, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g} {tensor.std():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "redux"))
