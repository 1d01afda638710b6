"""Writes what PyTorch makes of a style by USO's projector: tiny models of SigLIP's kind, of the projector's and of FLUX.1's.

    make_uso_goldens.py [OUT]        (default: uso/ beside this file)

Needs what ../nodes/make_goldens.py needs; runs on the CPU in float32. The projector is a module of our own, from the
description of SigLIPMultiFeatProjModel: for each of three layers of the tower a linear layer over its tokens, SiLU, a norm
and a linear layer over their numbers. What it makes goes before the text's tokens, behind the model's text projection. The
tower and the projector have weights that follow from their names (seeded_weights.py), FLUX.1's are those of random/. The
pictures are those of edit/. Files:

    shapes.json             {model: {name of the tensor: shape}} of "siglip" and "projector"
    expected.safetensors    "project.hint" and "project.tokens" are of the projector by itself; "states" those of one.png that
                            it reads; "one" is the end of 3 steps with the style of one.png, "two" with those of one.png and
                            then two.png, "shown" with a style and with a picture that lies as "uxo" says
"""

import json
import os
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import SiglipVisionConfig, SiglipVisionModel

import seeded_weights
from name_patterns import compressed
from make_redux_goldens import SIZE, WIDTH, F

HERE = os.path.dirname(os.path.abspath(__file__))
NODES = os.path.join(HERE, "..", "nodes")
sys.path.append(NODES)
import make_goldens  # noqa: E402
import make_reference_goldens  # noqa: E402

torch.set_grad_enabled(False)
TOKENS, HIDDEN, LAYERS = 3, 40, 21
SEEN = (SIZE // 14) ** 2
FROM_END = {"low": 20, "mid": 11, "high": 2}


class Projector(nn.Module):
    def __init__(self, seen, tokens, width, hidden):
        super().__init__()
        inside = {}
        for name in FROM_END:
            inside[f"{name}_embedding_linear"] = nn.Sequential(nn.Linear(seen, tokens), nn.SiLU())
            inside[f"{name}_layer_norm"] = nn.LayerNorm(width)
            inside[f"{name}_projection"] = nn.Linear(width, hidden)
        self.feature_embedder = nn.ModuleDict(inside)

    def forward(self, states):
        """states (3, S, width), those of "low" first."""
        made = []
        for name, one in zip(FROM_END, states):
            at = self.feature_embedder
            mixed = at[f"{name}_embedding_linear"](one.T).T
            made.append(at[f"{name}_projection"](at[f"{name}_layer_norm"](mixed)))
        return torch.cat(made[::-1])[None]


class Styled(nn.Module):
    """A text projection with tokens before what it makes."""

    def __init__(self, plain, styles):
        super().__init__()
        self.plain, self.styles = plain, styles

    def forward(self, text):
        made = self.plain(text)
        return torch.cat([*(style.expand(len(made), -1, -1) for style in self.styles[::-1]), made], 1)


class Model:
    """The tiny FLUX with styles, as make_goldens.velocity and make_reference_goldens.denoised call it."""

    def __init__(self, plain, styles):
        self.plain, self.count = plain, sum(style.shape[1] for style in styles)
        plain.context_embedder = Styled(plain.context_embedder, styles)

    def __call__(self, *, txt_ids, **given):
        return self.plain(txt_ids=torch.zeros(len(txt_ids) + self.count, 3), **given)


def make_siglip():
    config = SiglipVisionConfig(
        hidden_size=WIDTH, intermediate_size=40, num_hidden_layers=LAYERS, num_attention_heads=1, image_size=SIZE, patch_size=14
    )
    config.vision_use_head = False
    config._attn_implementation = "eager"
    model = SiglipVisionModel(config)
    prefix = "" if next(iter(model.state_dict())).startswith("vision_model.") else "vision_model."
    return model, seeded_weights.load(model, lambda name: prefix + name)


def states_of(tower, name):
    """As CLIPVisionEncode shows a picture, cut to a square."""
    pixels = numpy.asarray(Image.open(os.path.join(HERE, "edit", name))).astype(numpy.float32)
    image = (torch.from_numpy(pixels)[None] / 255).permute(0, 3, 1, 2)
    factor = SIZE / min(image.shape[2:])
    image = F.interpolate(image, [round(factor * side) for side in image.shape[2:]], mode="bicubic", antialias=True)
    top, left = ((side - SIZE) // 2 for side in image.shape[2:])
    image = image[:, :, top : top + SIZE, left : left + SIZE]
    image = torch.clip(255 * image, 0, 255).round() / 255
    hidden = tower(pixel_values=(image - 0.5) / 0.5, output_hidden_states=True).hidden_states
    return torch.cat([hidden[-place] for place in FROM_END.values()])


def drawn(styles, shown=()):
    model = Model(make_goldens.flux(False), styles)
    shape, levels = (1, 4, 6, 8), make_goldens.simple(make_goldens.table(1.0), 3)
    given = load_file(os.path.join(NODES, "goldens.safetensors"))
    cond = given["in.one.cross_attn"], given["in.one.pooled_output"]
    if shown:
        make_reference_goldens.model = model
        seen = make_reference_goldens.denoised(shown, "uxo")
    else:
        seen = lambda x, sigma: x - sigma * make_goldens.velocity(model, x, sigma, cond)  # noqa: E731
    return make_goldens.run("euler", levels, shape, 7, seen)


def main(out):
    os.makedirs(out, exist_ok=True)
    tower, siglip = make_siglip()
    projector = Projector(SEEN, TOKENS, WIDTH, HIDDEN)
    shapes = {"siglip": siglip, "projector": seeded_weights.load(projector)}
    hint = torch.randn(3, SEEN, WIDTH, generator=torch.Generator().manual_seed(3))
    one, two = states_of(tower, "one.png"), states_of(tower, "two.png")
    first, second = projector(one), projector(two)
    expected = {
        "project.hint": hint,
        "project.tokens": projector(hint),
        "states": one,
        "one": drawn([first]),
        "two": drawn([first, second]),
        "shown": drawn([first], [make_reference_goldens.first]),
    }
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (
            f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
            for name, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g} {tensor.std():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "uso"))
