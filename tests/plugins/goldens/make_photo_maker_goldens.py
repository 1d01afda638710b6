"""Writes what a small PhotoMaker (version 1) makes of a picture and of texts.

    make_photo_maker_goldens.py [OUT]        (default: photo_maker/ beside this file)

Needs torch, diffusers, transformers, numpy, Pillow and safetensors from PyPI; runs on the CPU in float32. No library has
the model: its two projections and its fusion are written down here from the paper (Li et al. 2023), over transformers'
vision tower. All weights follow from the names of their tensors (seeded_weights.py); the texts' encoders are those of
make_unet_goldens.py, the picture that of edit/. Files:

    shapes.json             {"photomaker": {name of the tensor: shape}}
    expected.safetensors    "fused.5": the row of a text at its fifth token with the person in it; "fused.2" likewise;
                            "states.5" and "states.2" what stood there
"""

import json
import os
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

import make_unclip_goldens as unclip
import make_unet_goldens as unets
import seeded_weights

torch.set_grad_enabled(False)
WIDTH, TEXT = 64, 128  # of the tower, and of SDXL's texts


class Mlp(nn.Module):
    def __init__(self, inside, hidden, outside):
        super().__init__()
        self.layernorm = nn.LayerNorm(inside)
        self.fc1, self.fc2 = nn.Linear(inside, hidden), nn.Linear(hidden, outside)

    def forward(self, x):
        return self.fc2(nn.functional.gelu(self.fc1(self.layernorm(x))))


class Fusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp1, self.mlp2 = Mlp(2 * TEXT, TEXT, TEXT), Mlp(TEXT, TEXT, TEXT)
        self.layer_norm = nn.LayerNorm(TEXT)

    def forward(self, row, person):
        both = self.mlp1(torch.cat([row, person], dim=-1)) + row
        return self.layer_norm(both + self.mlp2(both))


class Beside(nn.Module):
    """What the file has beside the tower."""

    def __init__(self):
        super().__init__()
        self.visual_projection_2 = nn.Linear(WIDTH, TEXT - WIDTH, bias=False)
        self.fuse_module = Fusion()


def main(out):
    os.makedirs(out, exist_ok=True)
    here = os.path.dirname(os.path.abspath(__file__))
    tower, shapes = unclip.make_tower()
    beside = Beside()
    shapes = dict(shapes) | seeded_weights.load(beside)
    picture = numpy.asarray(Image.open(os.path.join(here, "edit", "one.png")).convert("RGB")).astype(numpy.float32)
    kept = {}
    layer = tower.visual_projection.register_forward_pre_hook(lambda _, given: kept.update(pooled=given[0]))
    first = unclip.seen(tower, torch.from_numpy(picture)[None] / 255).image_embeds
    layer.remove()
    person = torch.cat([first, beside.visual_projection_2(kept["pooled"])], dim=-1)
    clips = unets.make_clip("clip_l", 3, "quick_gelu"), unets.make_clip("clip_g", 32, "gelu")
    states = torch.cat([unets.encode(clip, end, True, -2, False)[0] for clip, end in zip(clips, (unets.CLIP_END, 0))], dim=-1)
    expected = {}
    for row in (5, 2):
        expected[f"states.{row}"] = states[:, row]
        expected[f"fused.{row}"] = beside.fuse_module(states[:, row], person)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        text = ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in shapes.items())
        file.write(f'{{\n "photomaker": {{\n{text}\n }}\n}}\n')
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "photo_maker"))
