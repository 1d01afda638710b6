"""Writes what tiny models make of latents of HunyuanVideo 1.5 that were resized. diffusers has none of these models: they
are PyTorch modules of our own, by ComfyUI's description of the published files.

    make_hunyuan15_upsampler_goldens.py [OUT]        (default: hunyuan15_upsamplers/ beside this file)

Needs torch and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}: "to_720" and "to_1080"
    expected.safetensors    of each "z", a latent in the autoencoder's units, and "larger"; "node.samples" are two videos, and
                            "node.larger" what "to_1080" makes of them for 96x160 pixels by bilinear means, the middle cut out
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

import seeded_weights
from control_references import centre_cropped

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 16


class Causal(nn.Module):
    """A filter over a frame, the two before it, and edges that go on."""

    def __init__(self, given, made):
        super().__init__()
        self.conv = nn.Conv3d(given, made, 3)

    def forward(self, x):
        return self.conv(F.pad(x, (1, 1, 1, 1, 2, 0), mode="replicate"))


class Norm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, 1, 1, 1))

    def forward(self, x):
        return F.normalize(x, dim=1) * x.shape[1] ** 0.5 * self.gamma


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.block = nn.Sequential(*(part for i in range(3) for part in ([nn.SiLU()] if i else []) + [Causal(channels, channels)]))

    def forward(self, x):
        return x + self.block(x)


class To720(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.in_conv, self.out_conv = Causal(CHANNELS, width), Causal(width, CHANNELS)
        self.blocks = nn.ModuleList(Residual(width) for _ in range(count))

    def forward(self, z):
        x = self.in_conv(z)
        for block in self.blocks:
            x = block(x)
        return self.out_conv(x)


class Resnet(nn.Module):
    def __init__(self, given, made):
        super().__init__()
        self.norm1, self.conv1 = Norm(given), Causal(given, made)
        self.norm2, self.conv2 = Norm(made), Causal(made, made)
        if given != made:
            self.nin_shortcut = nn.Conv3d(given, made, 1)

    def forward(self, x):
        made = self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))
        return made + (self.nin_shortcut(x) if hasattr(self, "nin_shortcut") else x)


class To1080(nn.Module):
    def __init__(self, widths, count):
        super().__init__()
        self.conv_in, self.conv_out = Causal(CHANNELS, widths[0]), Causal(widths[-1], CHANNELS)
        self.norm_out, self.up = Norm(widths[-1]), nn.ModuleList()
        for before, width in zip([widths[0], *widths], widths):
            level = nn.Module()
            level.block = nn.ModuleList(Resnet(before if i == 0 else width, width) for i in range(count))
            self.up.append(level)

    def forward(self, z):
        x = self.conv_in(z)
        x = x + z.repeat_interleave(x.shape[1] // z.shape[1], dim=1)
        for level in self.up:
            for block in level.block:
                x = block(x)
        return self.conv_out(F.silu(self.norm_out(x)))


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "hunyuan15_upsamplers")
    os.makedirs(out, exist_ok=True)
    models = {"to_720": To720(16, 2), "to_1080": To1080((32, 16), 2)}
    shapes, expected = {}, {}
    for number, (name, model) in enumerate(models.items()):
        shapes[name] = seeded_weights.load(model)
        z = torch.randn(1, CHANNELS, 3 + number, 3, 5, generator=torch.Generator().manual_seed(number))
        expected[f"{name}.z"], expected[f"{name}.larger"] = z, model(z).contiguous()
    samples = torch.randn(2, CHANNELS, 3, 4, 5, generator=torch.Generator().manual_seed(9))
    frames = samples.movedim(2, 1).flatten(0, 1)
    sized = F.interpolate(centre_cropped(frames, 6, 10), (6, 10), mode="bilinear")
    sized = sized.unflatten(0, (2, 3)).movedim(1, 2)
    expected["node.samples"], expected["node.larger"] = samples, models["to_1080"](sized).contiguous()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main()
