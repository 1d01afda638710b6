"""Writes what PyTorch makes with tiny models of HuMo, and videos that ComfyUI's node would have them draw.

    make_wan_humo_goldens.py [OUT]        (default: wan_humo/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. diffusers has no HuMo: the module
below looks at the sound between the parts of diffusers' layers, written from the publishers' tensors and formulas as ComfyUI
runs them. All weights follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes
out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "plain" reads nothing beside the
                            latent, "beside" a latent of black frames, "flow" and "silent" have heads of 128; "{0-3}" stands
                            for each of these numbers
    expected.safetensors    "CLIP.x" and so on are inputs, "CLIP.out" an output with a row for each step, of the clips "plain",
                            "odd", "alone" (without a reference, of one frame) and "beside";
                            "in.one.cross_attn" and "in.two.cross_attn" are texts, "pictures" of a person, "states" (33, 1, T, K)
                            what an encoder heard of 4700 points; "windows" is what frames hear of it, "latent" the end of 3
                            steps of Euler's method with guidance 3 by "flow", of the noise of seed 7, "silent.latent" that by
                            "silent" without a picture and a sound
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_talk_goldens as talk
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.125])
WINDOW, MEANS, LAYERS, SIDE = 8, 5, 33, 64
# What ComfyUI has for black frames, in the model's units: the first, the second, all others.
BLACK = torch.tensor(
    [
        [0.8660, -0.4326, -0.0017, -0.4884, -0.5283, 0.9207, -0.9896, 0.4433, -0.5543, -0.0113, 0.5753, -0.6000, -0.8346, -0.3497, -0.1926, -0.6938],
        [1.0869, -1.2370, 0.0206, -0.4357, -0.6411, 2.0307, -1.5972, 1.2659, -0.8595, -0.4654, 0.9638, -1.6330, -1.4310, -0.1098, -0.3856, -1.4583],
        [0.8642, -1.8583, 0.1577, 0.1350, -0.3641, 2.5863, -1.9670, 1.6065, -1.0475, -0.8678, 1.1734, -1.8138, -1.5933, -0.7721, -0.3289, -1.3745],
    ]
)


class Layer(torch.nn.Module):
    """A name between, as in the publishers' files."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)


class Hearing(torch.nn.Module):
    """Windows (1, F, W, S, N) -> tokens (1, F, M, K)."""

    def __init__(self, numbers, middle, tokens, width):
        super().__init__()
        self.audio_proj_glob_1 = Layer(torch.nn.Linear(WINDOW * MEANS * numbers, middle))
        self.audio_proj_glob_2 = Layer(torch.nn.Linear(middle, middle))
        self.audio_proj_glob_3 = Layer(torch.nn.Linear(middle, tokens * width))
        self.audio_proj_glob_norm = Layer(torch.nn.LayerNorm(width))
        self.width = width

    def forward(self, windows):
        made = self.audio_proj_glob_2(self.audio_proj_glob_1(windows.flatten(2)).relu()).relu()
        return self.audio_proj_glob_norm(self.audio_proj_glob_3(made).unflatten(2, (-1, self.width)))


class AudioLook(torch.nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.q, self.o = torch.nn.Linear(width, width), torch.nn.Linear(width, width)
        self.k, self.v = torch.nn.Linear(context, width), torch.nn.Linear(context, width)
        self.norm_q, self.norm_k = torch.nn.RMSNorm(width, eps=1e-6), torch.nn.RMSNorm(width, eps=1e-6)


class Wrapper(torch.nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.audio_cross_attn = AudioLook(width, context)
        self.norm1_audio = torch.nn.LayerNorm(width, eps=1e-6)

    def forward(self, hidden, heard, heads):
        """hidden (1, F S, D), heard (1, F, M, K): each frame's tokens look at theirs."""
        look, frames = self.audio_cross_attn, heard.shape[1]
        split = lambda x: x.reshape(frames, -1, heads, x.shape[-1] // heads).transpose(1, 2)  # noqa: E731
        q = split(look.norm_q(look.q(self.norm1_audio(hidden))))
        k, v = split(look.norm_k(look.k(heard))), split(look.v(heard))
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(hidden.shape)
        return hidden + look.o(seen)


class Block(torch.nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.audio_cross_attn_wrapper = Wrapper(width, context)


class Sound(torch.nn.Module):
    def __init__(self, layers, width, numbers, middle, tokens, context):
        super().__init__()
        self.audio_proj = Hearing(numbers, middle, tokens, context)
        self.blocks = torch.nn.ModuleList(Block(width, context) for _ in range(layers))


def one_velocity(model, sound, x, level, text, windows=None, reference=None):
    """Of one item whose sides are even, with what is read beside it; reference (1, C, 1, H, W), of as many channels."""
    _, _, frames, height, width = x.shape
    whole = x if reference is None else torch.cat([x, reference], 2)
    rotary = model.rope(whole)
    hidden = model.patch_embedding(whole).flatten(2).transpose(1, 2)
    time, told, text, _ = model.condition_embedder((1000 * level)[None], text, None)
    told = told.unflatten(1, (6, -1))
    heard = None
    if windows is not None:
        if reference is not None:
            windows = F.pad(windows, (0, 0, 0, 0, 0, 0, 0, 1))
        heard = sound.audio_proj(windows)
    for block, more in zip(model.blocks, sound.blocks):
        shift, scale, gate, last_shift, last_scale, last_gate = (block.scale_shift_table + told).chunk(6, 1)
        made, _, _ = talk.attention(block.attn1, block.norm1(hidden) * (1 + scale) + shift, rotary)
        hidden = hidden + made * gate
        hidden = hidden + block.attn2(block.norm2(hidden), text)
        if heard is not None:
            hidden = more.audio_cross_attn_wrapper(hidden, heard, block.attn1.heads)
        hidden = hidden + block.ffn(block.norm3(hidden) * (1 + last_scale) + last_shift) * last_gate
    shift, scale = (model.scale_shift_table + time[:, None]).chunk(2, 1)
    out = model.proj_out(model.norm_out(hidden) * (1 + scale) + shift)[:, : frames * height * width // 4]
    out = out.reshape(1, frames, height // 2, width // 2, 2, 2, -1)
    return out.permute(0, 6, 1, 2, 4, 3, 5).reshape(1, -1, frames, height, width)


def even(video):
    """Odd sides are completed by the first row and column."""
    height, width = video.shape[3:]
    flat = F.pad(video.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
    return flat.unflatten(1, video.shape[1:3])


def black(channels, frames, height, width):
    rows = BLACK[torch.arange(frames).clamp(max=2)].T[None, :, :, None, None].expand(1, -1, -1, height, width)
    return torch.cat([torch.zeros(1, 4, frames, height, width), rows], 1)


def velocity(model, sound, x, level, text, windows=None, reference=None):
    channels, height, width = x.shape[1], *x.shape[3:]
    is_beside = model.config.in_channels > channels
    if reference is not None and is_beside:
        reference = torch.cat([torch.zeros_like(reference), torch.ones_like(reference[:, :4]), reference], 1)
    made = []
    for item in x.split(1):
        if is_beside:
            item = torch.cat([item, black(channels, *x.shape[2:])], 1)
        given = None if reference is None else even(reference)
        made.append(one_velocity(model, sound, even(item), level, text, windows, given)[..., :height, :width])
    return torch.cat(made)


def make_model(heads, head, channels, beside, layers, numbers, middle, tokens, context):
    model = wan.WanTransformer3DModel(
        num_attention_heads=heads,
        attention_head_dim=head,
        in_channels=channels + beside,
        out_channels=channels,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=layers,
        rope_max_seq_len=32,
    )
    listed = seeded_weights.load(model, wan.original)
    wan.own_processor(model)
    sound = Sound(layers, heads * head, numbers, middle, tokens, context)
    return model, sound, listed | seeded_weights.load(sound)


def make_clip(made, expected, clip, seed, frames, height, width, batch=1, has_reference=True):
    model, sound, _ = made
    channels, numbers = model.config.out_channels, sound.audio_proj.audio_proj_glob_1.layer.in_features // WINDOW // MEANS
    x = wan.randn(seed, batch, channels, frames, height, width)
    given = {"context": wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT), "heard": wan.randn(seed + 2, 1, frames, WINDOW, MEANS, numbers)}
    if has_reference:
        given["reference"] = wan.randn(seed + 3, 1, channels, 1, height, width)
    if model.config.in_channels > channels:
        given["concat"] = black(channels, frames, height, width)
    expected.update({f"{clip}.{name}": tensor for name, tensor in given.items()})
    expected.update({f"{clip}.x": x, f"{clip}.timestep": 1000 * LEVELS})
    told = given["context"], given["heard"], given.get("reference")
    out = torch.stack([velocity(model, sound, x, level, *told) for level in LEVELS])
    silent = torch.stack([velocity(model, sound, x, level, told[0], None, told[2]) for level in LEVELS])
    expected[f"{clip}.out"] = out
    print(f"{clip}: the sound changes the velocity by {(out - silent).norm() / silent.norm():.3f}")
    if not has_reference and height % 2 == 0 and width % 2 == 0 and model.config.in_channels == channels:
        theirs = model(x[:1], 1000 * LEVELS[:1], told[0], return_dict=False)[0]
        assert (theirs - silent[0][:1]).norm() / theirs.norm() < 1e-5, "without a sound this is diffusers' model"


def windows_of(states, points, frames):
    """As ComfyUI: means of eight layers' states, 50 a second as 25, and eight moments about each frame's first."""
    count = min(points // 640 * 2, states.shape[2])
    rows = [states[8 * i : 8 * i + 8, 0, :count].mean(0) for i in range(4)] + [states[32, 0, :count]]
    stepped = [F.interpolate(row.T[None], size=int(count / 50 * 25), align_corners=True, mode="linear")[0].T for row in rows]
    heard = torch.stack(stepped, 1)  # (moments, 5, K)
    at = lambda i: heard[i] if 0 <= i < len(heard) else torch.zeros_like(heard[0])  # noqa: E731
    silence = torch.zeros_like(heard[0])
    made = [[silence] * 3 + [at(i) for i in range(-2, 3)]]
    made += [[at(i) for i in range(1 + 4 * (t - 1) - 2, 1 + 4 * t + 2)] for t in range(1, frames)]
    return torch.stack([torch.stack(window) for window in made])[None]


def draw(made, x, texts, positive, negative):
    model, sound, _ = made
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(model, sound, x, torch.tensor(here), text, *given) for text, given in zip(texts, (positive, negative)))
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def main(out):
    expected = {}
    plain = make_model(4, 16, 2, 0, 3, 6, 20, 4, 10)
    beside = make_model(2, 16, 16, 20, 2, 4, 12, 3, 24)
    flow = make_model(2, 128, 16, 20, 2, 12, 12, 16, 24)
    silent = make_model(2, 128, 16, 0, 1, 1280, 2, 16, 8)
    make_clip(plain, expected, "plain", 10, 3, 6, 8, batch=2)
    make_clip(plain, expected, "odd", 20, 2, 5, 7)
    make_clip(plain, expected, "alone", 30, 1, 8, 6, has_reference=False)
    make_clip(beside, expected, "beside", 40, 4, 4, 6, batch=2)

    texts = [wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93)]
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = texts
    pictures = torch.rand(2, 8, 10, 3, generator=torch.Generator().manual_seed(21))
    expected["pictures"] = pictures
    length, points = 9, 4700
    frames, cells = 1 + (length - 1) // 4, SIDE // 8
    states = wan.randn(50, LAYERS, 1, 20, 12)
    expected["states"] = states
    windows = windows_of(states, points, frames)
    expected["windows"] = windows
    video = F.interpolate(pictures[:1, :, 1:9].movedim(-1, 1), size=(SIDE, SIDE), mode="bilinear")
    vae = make_workflow_goldens.make_vae()
    reference = umt5.scaled(vae.encode(2 * video.transpose(0, 1)[None] - 1).latent_dist.mean)
    nothing = umt5.scaled(torch.zeros_like(reference))
    x = wan.randn(7, 1, wan.CHANNELS, frames, cells, cells)
    expected["latent"] = draw(flow, x, texts, (windows, reference), (torch.zeros_like(windows), nothing))
    zeros = torch.zeros(1, frames, WINDOW, MEANS, 1280)
    expected["silent.latent"] = draw(silent, x, texts, (zeros, nothing), (zeros, nothing))
    mute = draw(flow, x, texts, (torch.zeros_like(windows), reference), (torch.zeros_like(windows), nothing))
    print(f"a sound changes a video by {(expected['latent'] - mute).norm() / mute.norm():.3f}")

    wan.write(out, {"plain": plain[2], "beside": beside[2], "flow": flow[2], "silent": silent[2]}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_humo"))
