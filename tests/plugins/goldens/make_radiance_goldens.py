"""Writes what PyTorch makes with tiny models of Chroma Radiance.

    make_radiance_goldens.py [OUT]        (default: radiance/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. diffusers has no Chroma Radiance: its
blocks are those of diffusers' Chroma, and what reads and draws pixels is written down here. All weights follow from the names of
their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's file: shape}}; "{0-1}" stands for each of these numbers.
                            "filter" and "finest" have a filter for a last layer and make the picture ("__x0__"), "linear" has a
                            matrix for one and makes the velocity; "finest" has squares of 2x2 pixels
    expected.safetensors    "square.x" is an input, "square.out" an output of "filter" with a row for each step; "wide" and "odd"
                            likewise, "odd" with sides that are no multiples of a square's; "linear.out" is of "linear",
                            "sequential.out" is, too, with text tokens one after another, "finest.out" of
                            "finest", of 306 squares, more than are drawn at once. "flow.latent" is the end of a guided run
                            of "filter" in 3 steps, "flow.picture" the same from 0 to 1
"""

import functools
import os
import sys

import torch
from torch import nn

import seeded_weights
from make_chroma_goldens import WIDTH, drawn, fill, forward, randn, texts, tiny_model, write

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
HIDDEN, NETWORKS, EPS = 48, 2, 1e-6


class Tokens(nn.Module):
    """In the place of a last layer: the picture's tokens as they are."""

    def forward(self, tokens, *_):
        return tokens


class Squares(nn.Module):
    """A picture as tokens, a square of pixels each: what diffusers' model begins with."""

    def __init__(self, side):
        super().__init__()
        self.filter = nn.Conv2d(3, HIDDEN, side, side)

    def forward(self, picture):
        return self.filter(picture).flatten(2).mT


def places(side, count):
    """(pixels of a square, count^2): products of cosines across (slow) and down (fast), less of what is quick in both."""
    rows = []
    for down in range(side):
        for across in range(side):
            y, x = down / (side - 1), across / (side - 1)
            rows.append(
                [
                    torch.cos(torch.tensor(torch.pi * i * x, dtype=torch.float64)) * torch.cos(torch.tensor(torch.pi * j * y, dtype=torch.float64)) / (1 + i * j)
                    for i in range(count)
                    for j in range(count)
                ]
            )
    return torch.tensor(rows, dtype=torch.float32)


def scaled_rms(x, scale):
    return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt() * scale


def unit_columns(matrix):
    """Columns of the length 1."""
    return matrix / matrix.norm(dim=-2, keepdim=True).clamp(min=1e-12)


class Radiance(nn.Module):
    def __init__(self, side, width, ratio, waves, head, makes_picture):
        super().__init__()
        self.side, self.width, self.ratio, self.waves, self.head, self.makes_picture = side, width, ratio, waves, head, makes_picture
        self.chroma = tiny_model()
        self.chroma.x_embedder, self.chroma.norm_out, self.chroma.proj_out = Squares(side), Tokens(), Tokens()
        self.shapes, self.own = {}, {}
        self.load()

    def shape(self, name, *shape):
        self.shapes[name] = list(shape)
        self.own[name] = seeded_weights.seeded(name, shape)

    def load(self):
        state = self.chroma.state_dict()
        first = {name: state.pop(name) for name in list(state) if name.startswith("x_embedder.")}
        self.shapes.update(fill(state))
        made = 3 * self.width**2 * self.ratio
        self.shape("img_in_patch.weight", HIDDEN, 3, self.side, self.side)
        self.shape("img_in_patch.bias", HIDDEN)
        self.shape("nerf_image_embedder.embedder.0.weight", self.width, 3 + self.waves**2)
        self.shape("nerf_image_embedder.embedder.0.bias", self.width)
        for i in range(NETWORKS):
            self.shape(f"nerf_blocks.{i}.param_generator.weight", made, HIDDEN)
            self.shape(f"nerf_blocks.{i}.param_generator.bias", made)
            self.shape(f"nerf_blocks.{i}.norm.scale", self.width)
        last, layer = ("nerf_final_layer_conv", "conv") if self.head == "filter" else ("nerf_final_layer", "linear")
        self.shape(f"{last}.norm.scale", self.width)
        self.shape(f"{last}.{layer}.weight", *((3, self.width, 3, 3) if self.head == "filter" else (3, self.width)))
        self.shape(f"{last}.{layer}.bias", 3)
        if self.makes_picture:
            self.shapes["__x0__"] = [0]
        assert len(first) == 2
        state["x_embedder.filter.weight"], state["x_embedder.filter.bias"] = self.own["img_in_patch.weight"], self.own["img_in_patch.bias"]
        self.chroma.load_state_dict(state)

    def network(self, index, pixels, token):
        """pixels (P, X) of one square."""
        at = f"nerf_blocks.{index}."
        made = self.own[at + "param_generator.weight"] @ token + self.own[at + "param_generator.bias"]
        gate, value, back = made.chunk(3)
        wide = self.width * self.ratio
        gate, value = unit_columns(gate.view(self.width, wide)), unit_columns(value.view(self.width, wide))
        normed = scaled_rms(pixels, self.own[at + "norm.scale"])
        between = nn.functional.silu(normed @ gate) * (normed @ value)
        return pixels + between @ unit_columns(back.view(wide, self.width))

    def forward(self, x, sigma, context, sequential=False):
        """All of the text is seen. Sides are completed by the first rows and columns, as ComfyUI does."""
        batch, _, height, width = x.shape
        side = self.side
        whole = nn.functional.pad(x, (0, -width % side, 0, -height % side), mode="circular")
        rows, columns = whole.shape[2] // side, whole.shape[3] // side
        ids = torch.zeros(rows, columns, 3)
        ids[..., 1], ids[..., 2] = torch.arange(rows)[:, None], torch.arange(columns)[None]
        of_text = torch.zeros(context.shape[1], 3)
        if sequential:
            of_text[:, 0] = torch.arange(context.shape[1])
        tokens = self.chroma(
            whole, encoder_hidden_states=context.expand(batch, -1, -1), timestep=sigma.expand(batch), img_ids=ids.reshape(-1, 3), txt_ids=of_text
        ).sample
        waves, embed = places(side, self.waves), "nerf_image_embedder.embedder.0."
        drawn = torch.zeros(batch, whole.shape[2], whole.shape[3], self.width)
        for item in range(batch):
            for square in range(rows * columns):
                top, left = square // columns * side, square % columns * side
                colours = whole[item, :, top : top + side, left : left + side].flatten(1).T
                pixels = torch.cat((colours, waves), 1) @ self.own[embed + "weight"].T + self.own[embed + "bias"]
                for i in range(NETWORKS):
                    pixels = self.network(i, pixels, tokens[item, square])
                drawn[item, top : top + side, left : left + side] = pixels.view(side, side, self.width)
        if self.head == "filter":
            normed = scaled_rms(drawn, self.own["nerf_final_layer_conv.norm.scale"]).permute(0, 3, 1, 2)
            out = nn.functional.conv2d(normed, self.own["nerf_final_layer_conv.conv.weight"], self.own["nerf_final_layer_conv.conv.bias"], padding=1)
        else:
            normed = scaled_rms(drawn, self.own["nerf_final_layer.norm.scale"])
            out = (normed @ self.own["nerf_final_layer.linear.weight"].T + self.own["nerf_final_layer.linear.bias"]).permute(0, 3, 1, 2)
        out = out[:, :, :height, :width]
        return (x - out) / sigma if self.makes_picture else out


def main(out):
    expected = {}
    filtered = Radiance(16, 8, 2, 3, "filter", True)
    linear = Radiance(4, 4, 4, 2, "linear", False)
    finest = Radiance(2, 4, 4, 2, "filter", True)
    forward(filtered, expected, "square", randn(1, 2, 3, 32, 32), randn(2, 2, 5, WIDTH))
    forward(filtered, expected, "wide", randn(3, 1, 3, 16, 64), randn(4, 1, 9, WIDTH))
    forward(filtered, expected, "odd", randn(5, 2, 3, 21, 37), randn(6, 1, 3, WIDTH))
    forward(functools.partial(linear, sequential=True), expected, "sequential", randn(7, 1, 3, 12, 16), randn(8, 1, 6, WIDTH))
    forward(linear, expected, "linear", randn(9, 1, 3, 10, 16), randn(10, 1, 4, WIDTH))
    forward(finest, expected, "finest", randn(11, 1, 3, 34, 35), randn(12, 1, 4, WIDTH))
    _, positive, negative = texts()
    latent = drawn(filtered, positive, negative, 1, 3, 32, 48)
    expected["flow.latent"] = latent
    expected["flow.picture"] = ((latent + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    write(out, {"filter": filtered.shapes, "linear": linear.shapes, "finest": finest.shapes}, expected)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "radiance"))
