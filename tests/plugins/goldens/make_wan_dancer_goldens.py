"""Writes what PyTorch makes with tiny models of WanDancer, and videos that ComfyUI's nodes would have them draw.

    make_wan_dancer_goldens.py [OUT]        (default: wan_dancer/ beside this file)

Needs torch, torchaudio, diffusers, transformers, scipy and safetensors from PyPI; runs on the CPU in float32. diffusers has no
WanDancer: the module below puts the music between diffusers' layers, written from the publishers' tensors and formulas as
ComfyUI runs them. All weights follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what
comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "plain" has queries, keys and values
                            of its music in one tensor, "parted" in three, "flow" has heads of 128; "{0-3}" stands for each of
                            these numbers
    expected.safetensors    "CLIP.x" and so on are inputs, "CLIP.out" an output with a row for each step, of the clips "plain",
                            "far", whose frames lie apart, "silent" and "parted", and "uneven" inputs that are refused;
                            "in.one.cross_attn" and "in.two.cross_attn" are texts, "pictures" of a person, "first" one of them,
                            "seen" and "kept" what CLIP saw, "tune" (1, 2, N) a music of 8000 points a second; "apart.music" is
                            what is measured of it and "apart.latent" the end of 3 steps of Euler's method with guidance 3 by
                            "flow", of the noise of seed 7, a music that counts 0.8 times and frames that lie apart; "part.I.frames",
                            "part.I.mask" and "part.I.points" are the frames that part I of a film of 13 frames a part is given,
                            which they are, and where its music begins and ends; "film.music" and "film.latent" are those of part 2
"""

import math
import os
import sys

import torch
import torch.nn.functional as F

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_talk_goldens as talk
import make_workflow_goldens
import music_reference
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.125])
BESIDE, HEADS, MOMENTS = 4, 4, 8
BEHIND = (0, 4, 8, 12, 16, 20, 24, 27)


def turned(x, cos, sin):
    """x (B, S, H, d), cos and sin (S, d/2): neighbours are a pair."""
    even, odd = x[..., 0::2], x[..., 1::2]
    cos, sin = cos[None, :, None], sin[None, :, None]
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(3)


def angles(places, numbers):
    """(S, numbers / 2)."""
    waves = 1.0 / 10000 ** (torch.arange(0, numbers, 2).double() / numbers)
    return places.double()[:, None] * waves


class MusicAttention(torch.nn.Module):
    def __init__(self, width, is_fused):
        super().__init__()
        if is_fused:
            self.in_proj_weight = torch.nn.Parameter(torch.empty(3 * width, width))
            self.in_proj_bias = torch.nn.Parameter(torch.empty(3 * width))
        else:
            self.q_proj, self.k_proj, self.v_proj = (torch.nn.Linear(width, width) for _ in range(3))
        self.out_proj = torch.nn.Linear(width, width)

    def forward(self, x):
        if hasattr(self, "in_proj_weight"):
            parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        else:
            parts = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        q, k, v = (part.unflatten(2, (HEADS, -1)) for part in parts)
        turns = angles(torch.arange(x.shape[1]), q.shape[-1])
        cos, sin = turns.cos().float(), turns.sin().float()
        q, k, v = (part.transpose(1, 2) for part in (turned(q, cos, sin), turned(k, cos, sin), v))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class MusicLayer(torch.nn.Module):
    def __init__(self, width, inner, is_fused):
        super().__init__()
        self.self_attn = MusicAttention(width, is_fused)
        self.linear1, self.linear2 = torch.nn.Linear(width, inner), torch.nn.Linear(inner, width)
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x):
        x = x + self.self_attn(self.norm1(x))
        return x + self.linear2(F.gelu(self.linear1(self.norm2(x))))


class Look(torch.nn.Module):
    """Tokens (B, n, D) at a moment (B, 1, D)."""

    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.norm_q, self.norm_k = torch.nn.RMSNorm(width, eps=1e-6), torch.nn.RMSNorm(width, eps=1e-6)

    def forward(self, x, moment, heads):
        split = lambda t: t.unflatten(2, (heads, -1)).transpose(1, 2)  # noqa: E731
        q, k, v = split(self.norm_q(self.q(x))), split(self.norm_k(self.k(moment))), split(self.v(moment))
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Injector(torch.nn.Module):
    def __init__(self, width, looks):
        super().__init__()
        self.injector = torch.nn.ModuleList(Look(width) for _ in range(looks))


class Seeing(torch.nn.Module):
    def __init__(self, given, width):
        super().__init__()
        norm, linear = torch.nn.LayerNorm, torch.nn.Linear
        self.proj = torch.nn.Sequential(norm(given), linear(given, given), torch.nn.GELU(), linear(given, width), norm(width))


class ApartHead(torch.nn.Module):
    def __init__(self, width, numbers):
        super().__init__()
        self.head = torch.nn.Linear(width, numbers)
        self.modulation = torch.nn.Parameter(torch.empty(1, 2, width))


class Dance(torch.nn.Module):
    """What the publishers' files have besides; of: the configuration of the model."""

    def __init__(self, of, numbers, width, inner, looks, is_fused=True, seen=wan.VISION):
        super().__init__()
        wide = of.num_attention_heads * of.attention_head_dim
        self.music_projection = torch.nn.Linear(numbers, width)
        self.music_encoder = torch.nn.ModuleList(MusicLayer(width, inner, is_fused) for _ in range(2))
        self.music_injector = Injector(wide, looks)
        self.patch_embedding_global = torch.nn.Conv3d(of.in_channels, wide, (1, 2, 2), (1, 2, 2))
        self.img_emb_refimage = Seeing(seen, wide)
        self.head_global = ApartHead(wide, 4 * of.out_channels)
        self.ref_conv = torch.nn.Conv2d(of.out_channels, wide, 2, 2)

    def moments(self, music, frames, wide):
        music = self.music_projection(music)
        for layer in self.music_encoder:
            music = layer(music)
        return F.interpolate(music[:, None], size=(MOMENTS * frames, wide), mode="bilinear")[:, 0]

    def after(self, i, hidden, moments, heads, strength):
        if i not in BEHIND[: len(self.music_injector.injector)]:
            return hidden
        count = moments.shape[1]
        groups = F.layer_norm(hidden, hidden.shape[-1:], eps=1e-6).unflatten(1, (count, -1)).flatten(0, 1)
        seen = self.music_injector.injector[BEHIND.index(i)](groups, moments.flatten(0, 1)[:, None], heads)
        return hidden + strength * seen.reshape(hidden.shape)


def rotary(model, frames, height, width, places):
    """As diffusers' table, of frames at these places."""
    head = model.config.attention_head_dim
    side = head // 6 * 2
    lines = [angles(at, n) for at, n in zip((places, torch.arange(height), torch.arange(width)), (head - 2 * side, side, side))]
    shape = (frames, height, width, -1)
    turns = torch.cat([lines[0][:, None, None].expand(shape), lines[1][None, :, None].expand(shape), lines[2][None, None].expand(shape)], -1)
    turns = turns.reshape(1, frames * height * width, 1, -1)
    return tuple(table.float().repeat_interleave(2, -1) for table in (turns.cos(), turns.sin()))


def one_velocity(model, dance, x, level, text, seen=None, kept=None, music=None, strength=1.0, places=None):
    """Of one item whose sides are even; x with what is read beside it."""
    _, _, frames, height, width = x.shape
    table = rotary(model, frames, height // 2, width // 2, torch.arange(frames) if places is None else places)
    if places is None:
        assert all((here - there).abs().max() < 1e-5 for here, there in zip(table, model.rope(x)))
    hidden = (model.patch_embedding if places is None else dance.patch_embedding_global)(x).flatten(2).transpose(1, 2)
    wide, heads = hidden.shape[-1], model.config.num_attention_heads
    time, told, text, _ = model.condition_embedder((1000 * level)[None], text, None)
    told = told.unflatten(1, (6, -1))
    pictures = [] if kept is None else [dance.img_emb_refimage.proj(kept)]
    pictures += [] if seen is None else [model.condition_embedder.image_embedder(seen)]
    text = torch.cat([*pictures, text], 1)
    moments = None if music is None else dance.moments(music, frames, wide)
    for i, block in enumerate(model.blocks):
        shift, scale, gate, last_shift, last_scale, last_gate = (block.scale_shift_table + told).chunk(6, 1)
        made, _, _ = talk.attention(block.attn1, block.norm1(hidden) * (1 + scale) + shift, table)
        hidden = hidden + made * gate
        hidden = hidden + block.attn2(block.norm2(hidden), text)
        hidden = hidden + block.ffn(block.norm3(hidden) * (1 + last_scale) + last_shift) * last_gate
        if moments is not None:
            hidden = dance.after(i, hidden, moments, heads, strength)
    table, head = (model.scale_shift_table, model.proj_out) if places is None else (dance.head_global.modulation, dance.head_global.head)
    shift, scale = (table + time[:, None]).chunk(2, 1)
    out = head(model.norm_out(hidden) * (1 + scale) + shift)
    out = out.reshape(1, frames, height // 2, width // 2, 2, 2, -1)
    return out.permute(0, 6, 1, 2, 4, 3, 5).reshape(1, -1, frames, height, width)


def even(video):
    """Odd sides are completed by the first row and column."""
    height, width = video.shape[3:]
    flat = F.pad(video.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
    return flat.unflatten(1, video.shape[1:3])


def velocity(made, x, level, text, concat, music=None, **given):
    model, dance, _ = made
    height, width = x.shape[3:]
    rows = []
    for i, item in enumerate(x.split(1)):
        own = music if music is None or len(music) == 1 else music[i : i + 1]
        rows.append(one_velocity(model, dance, even(torch.cat([item, concat], 1)), level, text, music=own, **given)[..., :height, :width])
    return torch.cat(rows)


def make_model(heads, head, channels, layers, numbers, width, inner, looks, is_fused=True):
    model = wan.WanTransformer3DModel(
        num_attention_heads=heads,
        attention_head_dim=head,
        in_channels=2 * channels + BESIDE,
        out_channels=channels,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=layers,
        image_dim=wan.VISION,
        added_kv_proj_dim=heads * head,
        rope_max_seq_len=64,
    )
    listed = seeded_weights.load(model, wan.original)
    wan.own_processor(model)
    dance = Dance(model.config, numbers, width, inner, looks, is_fused)
    return model, dance, listed | seeded_weights.load(dance)


def make_clip(made, expected, clip, seed, frames, height, width, moments, batch=1, sounds=1, strength=None, places=None, has_kept=True):
    model, dance, _ = made
    channels = model.config.out_channels
    x = wan.randn(seed, batch, channels, frames, height, width)
    given = {"context": wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT), "concat": wan.randn(seed + 2, 1, channels + BESIDE, frames, height, width)}
    given["vision"] = wan.randn(seed + 3, 1, wan.SEEN, wan.VISION)
    if has_kept:
        given["reference_vision"] = wan.randn(seed + 4, 1, wan.SEEN + 2, wan.VISION)
    if moments:
        given["music"] = wan.randn(seed + 5, sounds, moments, dance.music_projection.in_features)
    if strength is not None:
        given["music_strength"] = torch.tensor([strength])
    if places is not None:
        given["frame_places"] = places
    expected.update({f"{clip}.{name}": tensor for name, tensor in given.items()})
    expected.update({f"{clip}.x": x, f"{clip}.timestep": 1000 * LEVELS})
    told = dict(seen=given["vision"], kept=given.get("reference_vision"), strength=1.0 if strength is None else strength, places=places)
    of = lambda level, music: velocity(made, x, level, given["context"], given["concat"], music, **told)  # noqa: E731
    expected[f"{clip}.out"] = torch.stack([of(level, given.get("music")) for level in LEVELS])
    if moments:
        silent = torch.stack([of(level, None) for level in LEVELS])
        print(f"{clip}: the music changes the velocity by {(expected[f'{clip}.out'] - silent).norm() / silent.norm():.3f}")
    if not moments and not has_kept and places is None:
        whole = torch.cat([x, given["concat"].expand(batch, -1, -1, -1, -1)], 1)
        theirs = model(whole, (1000 * LEVELS[:1]).expand(batch), given["context"].expand(batch, -1, -1), given["vision"].expand(batch, -1, -1), return_dict=False)[0]
        assert (theirs - expected[f"{clip}.out"][0]).norm() / theirs.norm() < 1e-5, "without a music this is diffusers' model"


def apart(frames, fps):
    """Places among the frames of a film of 30 a second."""
    step = 30.0 / fps
    places = torch.arange(frames) * step
    places[-1] = int(step * frames + 0.5) - 1
    return places


def draw(made, x, texts, concat, **given):
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(made, x, torch.tensor(here), text, concat, **given) for text in texts)
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def keyframes(pictures, length, index, points, rate):
    """As WanDancerPadKeyframes: which pictures a part of a film shows, and where: [(frame, picture)]."""
    part = length / 30
    parts = int((points / rate - 0.2) / part) + 1
    step = parts * length / pictures
    last = lambda i: parts * length - length * i - 1 if i == parts - 1 else length - 1  # noqa: E731

    def count(i):
        n = 0
        while n * step < last(i) - step:
            n += 1
        return n

    before = sum(count(i) for i in range(index))
    places = [(math.ceil(step * k), before + k) for k in range(count(index))] + [(last(index), before + count(index))]
    return [(at, picture) for at, picture in places if picture < pictures and at < length]


def make_videos(flow, expected):
    texts = [wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93)]
    pictures = torch.rand(18, 8, 10, 3, generator=torch.Generator().manual_seed(21))
    seen, kept = wan.randn(22, 1, wan.SEEN, wan.VISION), wan.randn(23, 1, wan.SEEN, wan.VISION)
    rate, waveform = music_reference.tune(2.5)
    expected.update({"in.one.cross_attn": texts[0], "in.two.cross_attn": texts[1], "seen": seen, "kept": kept})
    expected.update({"pictures": pictures, "first": pictures[:1], "tune": waveform[None]})
    vae = make_workflow_goldens.make_vae()
    side, length = 64, 13
    frames, cells = 1 + (length - 1) // 4, side // 8
    x = wan.randn(7, 1, wan.CHANNELS, frames, cells, cells)
    told = dict(seen=seen, kept=kept)

    def beside(video, mask):
        """video (n, 8, 10, 3), black behind it."""
        whole = torch.zeros(length, 3, side, side)
        whole[: len(video)] = F.interpolate(video[:, :, 1:9].movedim(-1, 1), size=(side, side), mode="bilinear")
        latent = umt5.scaled(vae.encode(2 * whole.transpose(0, 1)[None] - 1).latent_dist.mean)
        return torch.cat([mask, latent], 1)

    # All frames but the first are drawn, far apart.
    mask = torch.zeros(1, 4, frames, cells, cells)
    mask[:, :, 0] = 1
    features = music_reference.features(waveform, rate)
    fps = music_reference.fps(len(features), length)
    expected["apart.music"] = features[None]
    print(f"{features[:, 33].sum():.0f} sounds begin, {features[:, 34].sum():.0f} beats, {fps} frames a second")
    assert int(fps + 0.5) != 30
    given = dict(music=features[None], strength=0.8, places=apart(frames, fps), **told)
    expected["apart.latent"] = draw(flow, x, texts, beside(pictures[:1], mask), **given)
    plain = draw(flow, x, texts, beside(pictures[:1], mask), **(given | {"music": None}))
    print(f"a music changes a video by {(expected['apart.latent'] - plain).norm() / plain.norm():.3f}")
    # Some frames are given, of a part of a film.
    for index in (0, 2, 5):
        video, shown = torch.zeros(length, 8, 10, 3), torch.zeros(length, 8, 10)
        places = keyframes(len(pictures), length, index, waveform.shape[1], rate)
        print(f"part {index}: {places}")
        for at, picture in places:
            video[at], shown[at] = pictures[picture], 1
        begin, end = (int(min(i * (length / 30), waveform.shape[1] / rate) * rate) for i in (index, index + 1))
        expected[f"part.{index}.frames"], expected[f"part.{index}.mask"] = video, shown
        expected[f"part.{index}.points"] = torch.tensor([float(begin), float(end)])
        if index != 2:
            continue
        cell = F.interpolate(1 - shown[None], size=(cells, cells), mode="nearest-exact")[0]
        mask = torch.cat([cell[:1].repeat(4, 1, 1), cell[1:]]).reshape(1, frames, 4, cells, cells).transpose(1, 2)
        features = music_reference.features(waveform[:, begin:end], rate)
        assert int(music_reference.fps(len(features), length) + 0.5) == 30
        expected["film.music"] = features[None]
        expected["film.latent"] = draw(flow, x, texts, beside(video, 1 - mask), music=features[None], **told)


def main(out):
    expected = {}
    plain = make_model(3, 16, 4, 5, 6, 16, 20, 2)
    parted = make_model(4, 16, 2, 1, 5, 32, 24, 1, is_fused=False)
    flow = make_model(2, 128, 16, 2, 35, 64, 48, 1)
    make_clip(plain, expected, "plain", 10, 3, 8, 4, 7, batch=2)
    make_clip(plain, expected, "far", 20, 2, 5, 15, 40, batch=2, sounds=2, strength=0.7, places=apart(2, 7.5))
    make_clip(plain, expected, "silent", 30, 2, 6, 4, 0, has_kept=False)
    # A frame has no eighths.
    for name in ("context", "concat", "vision", "x", "timestep"):
        expected[f"uneven.{name}"] = expected[f"silent.{name}"]
    expected["uneven.music"] = expected["plain.music"]
    make_clip(parted, expected, "parted", 40, 1, 8, 8, 3)
    make_videos(flow, expected)
    wan.write(out, {"plain": plain[2], "parted": parted[2], "flow": flow[2]}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_dancer"))
