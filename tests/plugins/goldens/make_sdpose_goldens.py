"""Writes what PyTorch makes with a small SDPose: a UNet of Lotus and a head that makes heatmaps of its states, and what ComfyUI's
SDPoseKeypointExtractor makes of them (pose_reference.py).

    make_sdpose_goldens.py [OUT]        (default: sdpose/ beside this file)

Needs torch, diffusers, numpy, scipy, pillow and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of
their tensors (seeded_weights.py). Files:

    shapes.json             {"unet", "head", "vae": {name of the tensor: shape}}; the head has POINTS points, of which KEPT are compared
    expected.safetensors    "square.x" and so on are inputs, "square.heatmaps" (B, H, W, KEPT) an output; "odd" with odd sides. "text" is
                            what a file of a conditioning holds, "picture" (1, H, W, 3) is looked at: "whole" and "box" (136, 3) are
                            what is found in all of it, and in BOX
"""

import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, UNet2DConditionModel
from safetensors.torch import save_file
from torch import nn

import pose_reference as pose
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
TEXT = ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D")
POINTS, KEPT, SCALE = 133, 6, 0.18215
BOX = (7, 3, 41, 45)  # left, top, right, bottom


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class Head(nn.Module):
    def __init__(self, read, made):
        super().__init__()
        norm = lambda: nn.InstanceNorm2d(made)
        self.deconv_layers = nn.Sequential(nn.ConvTranspose2d(read, made, 4, 2, 1, bias=False), norm(), nn.SiLU())
        self.conv_layers = nn.Sequential(nn.Conv2d(made, made, 1), norm(), nn.SiLU())
        self.final_layer = nn.Conv2d(made, POINTS, 1)

    def forward(self, x):
        return self.final_layer(self.conv_layers(self.deconv_layers(x)))


class SdPose:
    def __init__(self):
        self.unet = UNet2DConditionModel(
            sample_size=16, cross_attention_dim=64, block_out_channels=(64, 128), down_block_types=TEXT,
            up_block_types=("CrossAttnUpBlock2D",) * 2, attention_head_dim=(1, 2), layers_per_block=1, use_linear_projection=True,
            class_embed_type="projection", projection_class_embeddings_input_dim=4)
        self.head = Head(128, 64)
        self.vae = AutoencoderKL(
            block_out_channels=(32,) * 4, down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
            norm_num_groups=32, layers_per_block=1, latent_channels=4)
        named = lambda name: "heatmap_head." + name
        self.shapes = {"unet": seeded_weights.load(self.unet), "head": seeded_weights.load(self.head, named), "vae": seeded_weights.load(self.vae)}
        # What the last block of the way up reads: what the one before it made, in the latent's size.
        self.unet.up_blocks[-1].register_forward_pre_hook(lambda block, told, named: setattr(self, "states", named["hidden_states"]), with_kwargs=True)

    def heatmaps(self, x, text):
        task = torch.tensor([[1.0, 0.0]])
        task = torch.cat([task.sin(), task.cos()], dim=-1).expand(len(x), -1)
        self.unet(x, torch.tensor(999.0), encoder_hidden_states=text.expand(len(x), -1, -1), class_labels=task)
        return self.head(self.states), task[:1]

    def look(self, picture, text):
        """A part (H, W, 3) -> points and scores."""
        height, width = picture.shape[:2]
        seen = F.interpolate(picture.permute(2, 0, 1)[None], (1024, 768), mode="bilinear")
        maps = self.heatmaps(SCALE * self.vae.encode(2 * seen - 1).latent_dist.mode(), text)[0][0]
        best = maps.flatten(1).topk(2, -1).values
        print("least lead of a peak", (best[:, 0] - best[:, 1]).min().item(), "seen", int((best[:, 0] > 0).sum()))
        points, scores = pose.keypoints(maps.numpy(), (768, 1024))
        lost = points[:, 0] < 0
        points = points / np.array([768 / width, 1024 / height], np.float32)
        points[lost] = -1
        return points, scores


def listed(points, scores):
    return torch.tensor([number for part in pose.person(points, scores).values() for number in part]).reshape(-1, 3)


def main(out):
    model, expected = SdPose(), {}
    for name, x, text in (("square", randn(1, 2, 4, 8, 8), randn(2, 1, 2, 64)), ("odd", randn(3, 1, 4, 6, 14), randn(4, 1, 2, 64))):
        maps, task = model.heatmaps(x, text)
        told = {"x": x, "context": text, "y": task, "timestep": torch.tensor([999.0]), "heatmaps": maps[:, :KEPT].permute(0, 2, 3, 1)}
        expected |= {f"{name}.{key}": tensor for key, tensor in told.items()}
    text = randn(5, 1, 4, 64)
    picture = F.interpolate(torch.rand(1, 3, 9, 7, generator=torch.Generator().manual_seed(6)), (60, 50), mode="bilinear").permute(0, 2, 3, 1)
    expected |= {"text": text, "picture": picture}
    left, top, right, bottom = BOX
    expected["whole"] = listed(*model.look(picture[0], text[:, :2]))
    points, scores = model.look(picture[0, top:bottom, left:right], text[:, :2])
    points[points[:, 0] >= 0] += np.array([left, top], np.float32)
    expected["box"] = listed(points, scores)
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in model.shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdpose"))
