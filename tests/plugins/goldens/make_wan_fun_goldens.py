"""Writes what PyTorch makes with tiny models of Wan Fun, which read a camera or a picture before the video, and videos that
ComfyUI's nodes would have them draw.

    make_wan_fun_goldens.py [OUT]        (default: wan_fun/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. diffusers has no Wan Fun: the modules below are
added to its Wan. All weights follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what
comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "camera" and "reference" have small
                            sizes, "flow_camera" and "flow_reference" those of published models and heads of 128; "{0-3}"
                            stands for each of these numbers
    expected.safetensors    "MODEL.CLIP.x" is an input, "MODEL.CLIP.out" an output with a row for each step, of the clips
                            "short", "long" and "odd", which has an odd side; "MODEL.without.out" is that of "long" without
                            the camera or the picture.
                            "rays.POSE" are cameras of 24 x 16 pixels and five frames, of "tall" 16 x 32.
                            "pictures" are what the nodes are given, five of 20 x 28, resized from their middle to 32 x 48;
                            "in.one.cross_attn" and "in.two.cross_attn" are texts. "camera.concat" is a video that begins
                            with two of them, "reference.concat" one of two latents, of which the first is of all five,
                            "reference.shown" the latent of the first. "flow_camera.latent" and "flow_reference.latent" are
                            the ends of 3 steps of Euler's method with guidance 3 of the noise of seed 7.
"""

import math
import os
import sys

import torch
import torch.nn.functional as F

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_vace_goldens as vace
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
SMALL, CELL, FRAMES = 12, 8, 4
expected, shapes = {}, {}


class Residual(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.conv2 = (torch.nn.Conv2d(width, width, 3, padding=1) for _ in range(2))

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x)))


class Camera(torch.nn.Module):
    """numbers (B, K, F, H, W), of each cell -> (B, D, F, H/2, W/2)."""

    def __init__(self, numbers, width):
        super().__init__()
        self.conv = torch.nn.Conv2d(numbers, width, 2, stride=2)
        self.residual_blocks = torch.nn.Sequential(Residual(width))

    def forward(self, numbers):
        frames = [self.residual_blocks(self.conv(frame)) for frame in numbers.unbind(2)]
        return torch.stack(frames, 2)


class Fun(torch.nn.Module):
    """diffusers' Wan, whose tokens get those of a camera, or a frame more before them."""

    def __init__(self, model, camera, reference):
        super().__init__()
        self.model = model
        width = model.config.num_attention_heads * model.config.attention_head_dim
        if camera:
            self.control_adapter = Camera(camera, width)
        if reference:
            self.ref_conv = torch.nn.Conv2d(reference, width, 2, stride=2)

    def forward(self, x, times, text, camera=None, reference=None):
        def hook(_, __, tokens):
            if camera is not None:
                tokens = tokens + self.control_adapter(camera)
            if reference is not None:
                tokens[:, :, 0] = self.ref_conv(reference[:, :, 0])
            return tokens

        if reference is not None:  # room for its tokens
            x = torch.cat([x[:, :, :1], x], 2)
        hooked = self.model.patch_embedding.register_forward_hook(hook)
        out = self.model(x, times, text, None, return_dict=False)[0]
        hooked.remove()
        return out if reference is None else out[:, :, 1:]


def original(name):
    return wan.original(name.removeprefix("model.")) if name.startswith("model.") else name


def make(kind, beside=0, camera=0, reference=0):
    is_flow = kind.startswith("flow")
    model = wan.WanTransformer3DModel(
        num_attention_heads=2 if is_flow else 3,
        attention_head_dim=128 if is_flow else 16,
        in_channels=wan.CHANNELS + beside,
        out_channels=wan.CHANNELS,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=2,
        rope_max_seq_len=32,
    )
    wan.own_processor(model)
    model = Fun(model, camera, reference)
    shapes[kind] = seeded_weights.load(model, original)
    return model


def velocity(model, x, level, context, concat=None, **given):
    whole = x if concat is None else torch.cat([x, concat], 1)
    items = len(x)
    given = {name: vace.even(tensor).expand(items, -1, -1, -1, -1) for name, tensor in given.items()}
    out = model(vace.even(whole), (1000 * level).expand(items), context.expand(items, -1, -1), **given)
    return out[..., : x.shape[3], : x.shape[4]]


def make_clip(model, kind, clip, seed, frames, height, width, batch=1, rows=1):
    x = wan.randn(seed, batch, wan.CHANNELS, frames, height, width)
    context = wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT)
    given = wan.randn(seed + 2, rows, SMALL if kind == "camera" else wan.CHANNELS, frames if kind == "camera" else 1, height, width)
    inputs = {"x": x, "timestep": 1000 * wan.LEVELS, "context": context, kind: given}
    expected.update({f"{kind}.{clip}.{name}": tensor for name, tensor in inputs.items()})
    expected[f"{kind}.{clip}.out"] = torch.stack([velocity(model, x, level, context, **{kind: given}) for level in wan.LEVELS])
    if clip == "long":
        expected[f"{kind}.without.out"] = torch.stack([velocity(model, x, level, context) for level in wan.LEVELS])


def rays(width, height, length, moves, turns, speed=1.0, fx=0.5, fy=0.5, cx=0.5, cy=0.5):
    """Plücker coordinates of the rays through the middles of pixels, (1, 24, T, height, width). Focal lengths are of a
    picture of 16:9 that covers this one."""
    wide = max(width, height * 16 / 9)
    high = wide * 9 / 16
    lens = torch.tensor([[fx * wide, 0, cx * width], [0, fy * high, cy * height], [0, 0, 1]], dtype=torch.float64)
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    seen = torch.stack([x, y, torch.ones_like(x)], -1).double() @ torch.linalg.inv(lens).T
    seen = F.normalize(seen, dim=-1)
    frames = []
    for i in range(length):
        share = speed * i / length
        angle = share * math.pi / 3 * turns
        c, s = math.cos(angle), math.sin(angle)
        turned = seen @ torch.tensor([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=torch.float64).T
        place = (share * 1.5 * torch.tensor(moves, dtype=torch.float64)).expand_as(turned)
        frames.append(torch.cat([torch.linalg.cross(place, turned), turned], -1).permute(2, 0, 1))
    frames = torch.stack([frames[0]] * (FRAMES - 1) + frames)  # (4 T, 6, H, W)
    return frames.unflatten(0, (-1, FRAMES)).permute(2, 1, 0, 3, 4).flatten(0, 1)[None].float()


def by_cells(camera):
    """A channel for each pixel of a cell."""
    return torch.stack([F.pixel_unshuffle(frame, CELL) for frame in camera.unbind(2)], 2)


def draw(model, beside, **given):
    x = wan.randn(7, 1, wan.CHANNELS, 3, 4, 6)
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(model, x, torch.tensor(here), text, beside, **given) for text in texts)
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_videos():
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    expected["pictures"] = torch.rand(5, 20, 28, 3, generator=torch.Generator().manual_seed(17))
    video = vace.resized(expected["pictures"].movedim(-1, 1), 32, 48)
    vae = make_workflow_goldens.make_vae()
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean  # noqa: E731
    grid = (-1, -1, 3, 4, 6)
    nothing = umt5.MEANS.expand(1, *grid[1:])

    begun = nothing.clone()
    begun[:, :, :1] = encode(video[:1])
    expected["camera.concat"] = begun
    given = torch.zeros(1, 12, 4, 6)
    given[:, :5] = 1  # of two pictures, and three more of the first frame
    given = given.unflatten(1, (3, 4)).transpose(1, 2)
    camera = by_cells(rays(48, 32, 9, (0, 0, 2), 0))
    model = make("flow_camera", 4 + wan.CHANNELS, camera=camera.shape[1])
    expected["flow_camera.latent"] = draw(model, torch.cat([given, umt5.scaled(begun)], 1), camera=camera)

    followed = torch.cat([nothing, nothing], 1)
    followed[:, : wan.CHANNELS, :2] = encode(video)
    expected["reference.concat"], expected["reference.shown"] = followed, encode(video[:1])
    first, second = umt5.scaled(followed).split(wan.CHANNELS, 1)
    model = make("flow_reference", 4 + 2 * wan.CHANNELS, reference=wan.CHANNELS)
    beside = torch.cat([first, torch.zeros(1, 4, 3, 4, 6), second], 1)
    expected["flow_reference.latent"] = draw(model, beside, reference=umt5.scaled(expected["reference.shown"]))


def main(out):
    for kind, seed in (("camera", 10), ("reference", 40)):
        model = make(kind, **{kind: SMALL if kind == "camera" else wan.CHANNELS})
        make_clip(model, kind, "short", seed, 1, 4, 6, batch=2)
        make_clip(model, kind, "long", seed + 5, 3, 6, 4)
        make_clip(model, kind, "odd", seed + 9, 2, 5, 7, batch=2, rows=2)
    expected["rays.out"] = rays(24, 16, 5, (0, 0, -2), 0, speed=1.5, fx=0.7, fy=0.4, cx=0.45, cy=0.6)
    expected["rays.clockwise"] = rays(24, 16, 5, (0, 0, 0), 1, speed=2.0)
    expected["rays.tall"] = rays(16, 32, 5, (0, -1, 0), 0)
    make_videos()
    wan.write(out, shapes, expected)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_fun"))
