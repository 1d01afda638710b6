"""Writes what PyTorch makes with tiny models of Wan 2.1 and a patch of InfiniteTalk, and videos that ComfyUI's node would
have them draw.

    make_wan_talk_goldens.py [OUT]        (default: this folder, in which it writes wan_talk/ and wan_talk_nodes/)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. diffusers has no InfiniteTalk: the
module below looks at the sound between the parts of diffusers' layers, written from the publishers' tensors and formulas as
ComfyUI runs them. All weights follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what
comes out:

    wan_talk/
    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "plain" is a model of Wan for
                            pictures, "patch" its patch; "{0-3}" stands for each of these numbers
    expected.safetensors    "CLIP.x" and so on are inputs, "CLIP.out" an output with a row for each step, of the clips "one",
                            of one speaker, "odd", of one frame with an odd side, "two" and "wide", of two speakers in
                            regions, and "crowd", of two without
    wan_talk_nodes/
    shapes.json             "flow" has the latents of published models and heads of 128, "patch" is its patch
    expected.safetensors    "first.waveform" and "second.waveform" are sounds at 16 kHz, "pictures" six of 8 x 10 pixels,
                            "left" and "right" masks of three colours, which the node is given; "in.one.cross_attn" and
                            "in.two.cross_attn" are texts. "alone.heard" is every 11th number of the moments of the first
                            sound, "both.heard" of both, as "plain" of sound_encoders/ hears them, "both.regions" where the
                            speakers are, "both.begin" the latent of the last five of the pictures. "alone.latent" is the end
                            of 3 steps of Euler's method with guidance 3 by "flow" of the noise of seed 7, of the first
                            picture and the first sound with a scale of 0.7, "free.latent" that of the sound alone,
                            "both.latent" that of a part of the noise of seed 8 that goes on from the six pictures, of both
                            sounds.
"""

import math
import os
import sys

import torch
import torch.nn.functional as F
from diffusers import WanTransformer3DModel

import make_sound_encoder_goldens as sounds
import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.125])
FIRST, LATER, STEP, SIDE, STRIDE = 5, 8, 4, 64, 11
SPAN, SECOND = 4, 20


class Hearing(torch.nn.Module):
    """Moments (P, M, N) -> tokens (F, P T, K)."""

    def __init__(self, numbers, middle, tokens, width):
        super().__init__()
        self.width = width
        self.proj1 = torch.nn.Linear(FIRST * numbers, middle)
        self.proj1_vf = torch.nn.Linear(LATER * numbers, middle)
        self.proj2 = torch.nn.Linear(middle, middle)
        self.proj3 = torch.nn.Linear(middle, tokens * width)
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, moments):
        first = self.proj1(moments[:, None, :FIRST].flatten(2))
        later = [self.proj1_vf(moments[:, None, at : at + LATER].flatten(2)) for at in range(1, moments.shape[1] - FIRST, STEP)]
        made = self.proj3(self.proj2(torch.cat([first, *later], 1).relu()).relu())
        made = self.norm(made.unflatten(2, (-1, self.width)))
        return torch.cat(list(made), 1)


class AudioLook(torch.nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.q_linear = torch.nn.Linear(width, width)
        self.kv_linear = torch.nn.Linear(context, 2 * width)
        self.proj = torch.nn.Linear(width, width)


class Look(torch.nn.Module):
    def __init__(self, width, context):
        super().__init__()
        self.audio_cross_attn = AudioLook(width, context)
        self.norm_x = torch.nn.LayerNorm(width)

    def forward(self, hidden, heard, heads, places):
        """hidden (1, L, D); places (L) of the queries, or None."""
        look, frames = self.audio_cross_attn, len(heard)
        q = look.q_linear(self.norm_x(hidden)).unflatten(2, (heads, -1))
        k, v = look.kv_linear(heard).chunk(2, 2)
        k, v = (part.unflatten(2, (heads, -1)).transpose(1, 2) for part in (k, v))
        if places is not None:
            q = turned(q, places)
            middles = torch.tensor([SPAN / 2, SECOND + SPAN / 2]).repeat_interleave(heard.shape[1] // 2)
            k = turned(k.transpose(1, 2), middles).transpose(1, 2)
        q = q.reshape(frames, -1, *q.shape[2:]).transpose(1, 2)
        seen = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(hidden.shape)
        return look.proj(seen)


class Patch(torch.nn.Module):
    def __init__(self, layers, width, numbers, middle, tokens, context):
        super().__init__()
        self.audio_proj = Hearing(numbers, middle, tokens, context)
        self.blocks = torch.nn.ModuleList(Look(width, context) for _ in range(layers))


def turned(x, places):
    """Heads of x (n, L, H, d), pairs of numbers by angles of the places (L)."""
    dim = x.shape[3]
    angles = places[:, None].double() * 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    turn = torch.polar(torch.ones_like(angles), angles)[None, :, None]
    return torch.view_as_real(torch.view_as_complex(x.double().unflatten(3, (-1, 2))) * turn).flatten(3).float()


gaps = []


def places_of(q, k, regions):
    """Of queries and keys (1, L, H, d), rotated, and regions (2, S): the place of each token."""
    cells = regions.shape[1]
    weights = (torch.einsum("lhd,shd->hls", q[0], k[0, :cells]) / math.sqrt(q.shape[3])).softmax(-1)
    looks = torch.stack([(weights * region).sum(-1).mean(0) / region.sum() for region in regions])
    least, most = looks.amin(1, keepdim=True), looks.amax(1, keepdim=True)
    within = SPAN * (looks - least) / (most - least + 1e-8)
    gaps.append(((looks[1] - looks[0]).abs() / looks.mean()).min().item())
    return torch.where(looks[1] > looks[0], SECOND + within[1], within[0])


def attention(attn, x, rotary):
    """Self-attention of diffusers' Wan, with its queries and keys."""
    q, k, v = (part.unflatten(2, (attn.heads, -1)) for part in (attn.norm_q(attn.to_q(x)), attn.norm_k(attn.to_k(x)), attn.to_v(x)))
    cos, sin = (table[..., 0::2] for table in rotary)

    def rotated(part):
        even, odd = part[..., 0::2], part[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(3)

    q, k = rotated(q), rotated(k)
    seen = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, k, v))).transpose(1, 2).flatten(2)
    return attn.to_out[0](seen), q, k


def one_velocity(model, x, level, text, vision=None, patch=None, moments=None, regions=None, strength=1.0):
    """Of one item whose sides are even."""
    rotary = model.rope(x)
    _, _, frames, height, width = x.shape
    hidden = model.patch_embedding(x).flatten(2).transpose(1, 2)
    time, told, text, seen = model.condition_embedder((1000 * level)[None], text, vision)
    told = told.unflatten(1, (6, -1))
    text = text if seen is None else torch.cat([seen, text], 1)
    heard = None if moments is None else patch.audio_proj(moments)
    for i, block in enumerate(model.blocks):
        shift, scale, gate, last_shift, last_scale, last_gate = (block.scale_shift_table + told).chunk(6, 1)
        made, q, k = attention(block.attn1, block.norm1(hidden) * (1 + scale) + shift, rotary)
        hidden = hidden + made * gate
        hidden = hidden + block.attn2(block.norm2(hidden), text)
        if heard is not None:
            places = None if regions is None else places_of(q, k, regions)
            hidden = hidden + strength * patch.blocks[i](hidden, heard, block.attn1.heads, places)
        hidden = hidden + block.ffn(block.norm3(hidden) * (1 + last_scale) + last_shift) * last_gate
    shift, scale = (model.scale_shift_table + time[:, None]).chunk(2, 1)
    out = model.proj_out(model.norm_out(hidden) * (1 + scale) + shift)
    out = out.reshape(1, frames, height // 2, width // 2, 2, 2, -1)
    return out.permute(0, 6, 1, 2, 4, 3, 5).reshape(1, -1, frames, height, width)


def velocity(model, x, level, text, concat, vision=None, **given):
    """Odd sides are completed by the first row and column."""
    made = []
    for item in x.split(1):
        whole = torch.cat([item, concat], 1)
        height, width = whole.shape[3:]
        flat = F.pad(whole.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
        made.append(one_velocity(model, flat.unflatten(1, whole.shape[1:3]), level, text, vision, **given)[..., :height, :width])
    return torch.cat(made)


def make_model(heads, head, channels, layers, sees):
    model = WanTransformer3DModel(
        num_attention_heads=heads,
        attention_head_dim=head,
        in_channels=2 * channels + 4,
        out_channels=channels,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=layers,
        image_dim=wan.VISION if sees else None,
        added_kv_proj_dim=heads * head if sees else None,
        rope_max_seq_len=32,
    )
    listed = seeded_weights.load(model, wan.original)
    wan.own_processor(model)
    return model, listed


def with_count(regions):
    """As the model reads them: behind each region 1 over its tokens."""
    return torch.cat([regions, 1 / regions.sum(1, keepdim=True)], 1)


def make_clip(model, patch, expected, clip, seed, frames, height, width, speakers=1, batch=1, has_regions=False):
    channels, numbers = 2, 12
    x = wan.randn(seed, batch, channels, frames, height, width)
    given = {
        "context": wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT),
        "concat": wan.randn(seed + 2, 1, channels + 4, frames, height, width),
        "vision": wan.randn(seed + 3, 1, wan.SEEN, wan.VISION),
        "patch.0.hint": wan.randn(seed + 4, speakers, STEP * frames + 1, numbers),
    }
    regions = None
    if has_regions:
        generator = torch.Generator().manual_seed(seed + 5)
        regions = (torch.rand(2, height * width // 4, generator=generator) > 0.6).float()
        given["patch.0.regions"] = with_count(regions)
    expected.update({f"{clip}.{name}": tensor for name, tensor in given.items()})
    expected.update({f"{clip}.x": x, f"{clip}.timestep": 1000 * LEVELS})
    told = [given[name] for name in ("context", "concat", "vision")]
    out = torch.stack(
        [velocity(model, x, level, *told, patch=patch, moments=given["patch.0.hint"], regions=regions, strength=0.8) for level in LEVELS]
    )
    plain = torch.stack([velocity(model, x, level, *told) for level in LEVELS])
    if height % 2 == 0 and width % 2 == 0:
        whole = torch.cat([x[:1], told[1]], 1)
        theirs = model(whole, 1000 * LEVELS[:1], told[0], told[2], return_dict=False)[0]
        assert (theirs - plain[0][:1]).norm() / theirs.norm() < 1e-5, "without a patch this is diffusers' model"
    print(f"{clip} changes the velocity by {(out - plain).norm() / plain.norm():.3f}, least difference of looks {min(gaps, default=1):.2g}")
    expected[f"{clip}.out"] = out


def moments_of(states, first, count):
    """ComfyUI's: of each sound (S, T, K) all states but the first layer's, 50 a second as 25; one behind the other."""
    stepped = []
    for one in states:
        steps = int(one.shape[1] / 50 * 25)
        stepped.append(F.interpolate(one[1:].transpose(1, 2), size=steps, align_corners=True, mode="linear").permute(2, 0, 1).flatten(1))
    total, at, speakers = sum(map(len, stepped)), 0, []
    for one in stepped:
        whole = torch.zeros(total, one.shape[1])
        whole[at : at + len(one)] = one
        at += len(one)
        filled = torch.cat([whole, whole[:1].expand(max(first + count - total, 0), -1)])
        places = torch.arange(first - 2, first + count + 2).clamp(0, len(filled) - 1)
        speakers.append(filled[places])
    return torch.stack(speakers)


def draw(model, expected, concat, begin, stays=False, seed=7, **given):
    """The model sees the beginning without noise, and what it makes of it counts from there."""
    x = wan.randn(seed, 1, wan.CHANNELS, *concat.shape[2:])
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    levels = umt5.simple_levels(8.0, 3)
    count = begin.shape[2]
    for here, there in zip(levels, levels[1:]):
        seen = torch.cat([begin, x[:, :, count:]], 2)
        yes, no = (velocity(model, seen, torch.tensor(here), text, concat, **given) for text in texts)
        clean = seen - here * (no + 3 * (yes - no))
        x = x + (x - clean) / here * (there - here)
    return torch.cat([begin, x[:, :, count:]], 2) if stays else x


def sound(seed, count):
    time = torch.arange(count) / 16000
    return 0.4 * torch.sin(2 * math.pi * (310 + 90 * seed) * time) + 0.2 * torch.sin(2 * math.pi * (97 + seed) * time * (1 + 9 * time))


def heard_by(encoder, wave):
    """As ComfyUI hears with the base model: not normalised."""
    made = encoder(wave[None], output_hidden_states=True)
    layers = list(made.hidden_states)
    layers[-1] = made.last_hidden_state
    return torch.cat(layers)


def make_nodes(expected):
    """Parts of nine frames."""
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    expected["pictures"] = torch.rand(6, 8, 10, 3, generator=torch.Generator().manual_seed(21))
    left = torch.zeros(1, 8, 10, 3)
    left[:, 2:7, :4] = 1
    right = torch.zeros(1, 8, 10, 3)
    right[:, 1:6, 5:9] = 0.5
    expected |= {"left": left, "right": right}
    encoder = sounds.wav2vec2(False)
    waves = [sound(0, 300), sound(1, 220)]
    expected |= {"first.waveform": waves[0][None, None], "second.waveform": waves[1][None, None]}
    states = [heard_by(encoder, wave) for wave in waves]
    print("states", [tuple(one.shape) for one in states])
    length, earlier, motion = 9, 6, 5
    alone, both = moments_of(states[:1], 0, length), moments_of(states, earlier - motion, length)
    expected |= {"alone.heard": alone.flatten()[::STRIDE], "both.heard": both.flatten()[::STRIDE]}

    pictures = expected["pictures"].movedim(-1, 1)
    video = F.interpolate(pictures[..., 1:9], size=(SIDE, SIDE), mode="bilinear")
    vae = make_workflow_goldens.make_vae()
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean  # noqa: E731
    cells, frames = SIDE // 8, 1 + (length - 1) // 4

    def shown(count):
        """What the model reads beside the point: pictures, and grey behind them."""
        grey = torch.full((length, 3, SIDE, SIDE), 0.5)
        grey[:count] = video[:count]
        known = torch.zeros(1, 4, frames, cells, cells)
        known[:, :, : (count - 1) // 4 + 1] = 1
        latent = umt5.scaled(encode(grey))
        return torch.cat([known, latent], 1), latent[:, :, :1]

    concat, begin = shown(1)
    goes_on = encode(video[earlier - motion :])
    expected["both.begin"] = goes_on
    masks = torch.cat([left[..., 0], right[..., 0]])
    regions = (F.interpolate(masks[None], size=(cells // 2, cells // 2), mode="nearest")[0] > 0).float().flatten(1)
    expected["both.regions"] = with_count(regions)
    model, listed = make_model(2, 128, wan.CHANNELS, 2, False)
    patch = Patch(2, 256, alone.shape[2], 16, 4, 24)
    patch_listed = seeded_weights.load(patch)
    nothing = torch.zeros(1, 4 + wan.CHANNELS, frames, cells, cells)
    zeros = umt5.scaled(torch.zeros(1, wan.CHANNELS, 1, cells, cells))
    expected["alone.latent"] = draw(model, expected, concat, begin, patch=patch, moments=alone, strength=0.7)
    expected["free.latent"] = draw(model, expected, nothing, zeros, patch=patch, moments=alone)
    expected["both.latent"] = draw(
        model, expected, concat, umt5.scaled(goes_on), stays=True, seed=8, patch=patch, moments=both, regions=regions
    )
    silent = draw(model, expected, concat, begin)
    print(f"a sound changes a video by {(expected['alone.latent'] - silent).norm() / silent.norm():.3f}")
    return {"flow": listed, "patch": patch_listed}


def main(out):
    model, listed = make_model(4, 16, 2, 3, True)
    patch = Patch(3, 64, 12, 20, 4, 10)
    talk, nodes = {}, {}
    shapes = {"plain": listed, "patch": seeded_weights.load(patch)}
    make_clip(model, patch, talk, "one", 10, 3, 6, 8, batch=2)
    make_clip(model, patch, talk, "odd", 20, 1, 5, 7)
    make_clip(model, patch, talk, "two", 30, 2, 8, 6, speakers=2, batch=2, has_regions=True)
    make_clip(model, patch, talk, "wide", 34, 3, 4, 10, speakers=2, has_regions=True)
    make_clip(model, patch, talk, "crowd", 50, 2, 4, 6, speakers=2)
    wan.write(os.path.join(out, "wan_talk"), shapes, talk)
    wan.write(os.path.join(out, "wan_talk_nodes"), make_nodes(nodes), nodes)
    # Where two looks were nearly the same, their last digits would tell whose a token is.
    print(f"least difference of two looks: {min(gaps):.2g}")
    assert min(gaps) > 1e-5
    for name, tensor in (talk | nodes).items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else HERE)
