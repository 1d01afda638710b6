"""Writes what PyTorch makes with tiny models of Wan that look at videos and pictures beside the one that they draw, as Bernini
does, and what ComfyUI's node would have such a model draw.

    make_wan_sources_goldens.py [OUT]        (default: wan_sources/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. diffusers has no such tokens: they are
put behind those of diffusers' model, and turned, by the formulas of ComfyUI. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "plain" is small, "flow" has the latents
                            of published models and heads of 128; "{0-3}" stands for each of these numbers
    expected.safetensors    "CLIP.x" and so on are inputs, "CLIP.out" an output with a row for each step, of the clips "plain", with
                            a video and two pictures of other sizes, "odd" with odd sides, and "alone" without sources.
                            "source" and "inserted" are videos, "first" and "others" pictures, which the node is given;
                            "latents.0" to "latents.4" are what it makes of them. "latent" is the end of 3 steps of Euler's method
                            with guidance 3 by "flow", of the noise of seed 7 and the texts "in.one.cross_attn" and
                            "in.two.cross_attn"; "edited.latent" that of a single frame that looks at "source" alone
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_scail_goldens as scail
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = scail.LEVELS
WIDTH, HEIGHT, LENGTH, LONGEST = 64, 32, 9, 48


def turned(rotary, source, head):
    """A further turn of all of a head."""
    angles = source * 10000.0 ** -(torch.arange(0, head, 2, dtype=torch.float64) / head)
    angles = angles.repeat_interleave(2)[None, None, None]
    cos, sin = (part.double() for part in rotary)
    return (cos * angles.cos() - sin * angles.sin()).float(), (sin * angles.cos() + cos * angles.sin()).float()


def one_velocity(model, x, level, text, sources):
    head = model.config.attention_head_dim
    height, width = x.shape[3:]
    hidden, tables = [], []
    for number, latent in enumerate([x, *sources]):
        whole = scail.even(latent)
        frames, rows, columns = whole.shape[2], whole.shape[3] // 2, whole.shape[4] // 2
        hidden.append(model.patch_embedding(whole).flatten(2).transpose(1, 2))
        tables.append(turned(scail.rotary_of(scail.places(frames, rows, columns), head), number, head))
    rotary = tuple(torch.cat(parts, 1) for parts in zip(*tables))
    out = scail.through(model, torch.cat(hidden, 1), rotary, level, text, None)
    whole = scail.even(x)
    return scail.pictures_of(out[:, : hidden[0].shape[1]], *whole.shape[2:])[..., :height, :width]


def velocity(model, x, level, text, sources):
    rows = lambda i: [latent[i % len(latent)][None] for latent in sources]  # noqa: E731
    return torch.cat([one_velocity(model, item, level, text, rows(i)) for i, item in enumerate(x.split(1))])


def make_model(heads, head, channels, layers):
    model = wan.WanTransformer3DModel(
        num_attention_heads=heads,
        attention_head_dim=head,
        in_channels=channels,
        out_channels=channels,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=layers,
        rope_max_seq_len=32,
    )
    listed = seeded_weights.load(model, wan.original)
    wan.own_processor(model)
    return model, listed


def tokens_of(latent):
    """Cells row by row, of each its channels, as the model's input has them; and their places."""
    whole = scail.even(latent)
    rows, frames = len(whole), whole.shape[2]
    cells = whole.unflatten(4, (-1, 2)).unflatten(3, (-1, 2))  # (B, C, F, h, 2, w, 2)
    tokens = cells.permute(0, 2, 3, 5, 4, 6, 1).reshape(rows, -1, 4 * whole.shape[1])
    return tokens, scail.places(frames, whole.shape[3] // 2, whole.shape[4] // 2)


def make_clip(made, expected, clip, seed, frames, height, width, batch=1, sizes=()):
    model, channels = made[0], made[0].config.out_channels
    x = wan.randn(seed, batch, channels, frames, height, width)
    text = wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT)
    sources = [wan.randn(seed + 2 + i, 1, channels, *size) for i, size in enumerate(sizes)]
    expected.update({f"{clip}.x": x, f"{clip}.timestep": 1000 * LEVELS, f"{clip}.context": text})
    if sources:
        packed = [tokens_of(latent) for latent in sources]
        expected[f"{clip}.sources"] = torch.cat([tokens for tokens, _ in packed], 1)
        places = [F.pad(at, (0, 1), value=float(i + 1)) for i, (_, at) in enumerate(packed)]
        expected[f"{clip}.source_places"] = torch.cat(places)
    out = torch.stack([velocity(model, x, level, text, sources) for level in LEVELS])
    expected[f"{clip}.out"] = out
    less = torch.stack([velocity(model, x, level, text, sources[:-1]) for level in LEVELS])
    print(f"{clip}: the last source changes the velocity by {(out - less).norm() / less.norm():.3f}")
    if not sources:
        theirs = model(x[:1], 1000 * LEVELS[:1], text, return_dict=False)[0]
        assert (theirs - out[0][:1]).norm() / theirs.norm() < 1e-5, "without sources it is diffusers' model"


def within(pictures, longest):
    """ComfyUI's size of a reference, not cut."""
    height, width = pictures.shape[1:3]
    scale = min(longest / max(height, width), 1.0)
    size = [max(16, round(side * scale / 16) * 16) for side in (height, width)]
    return F.interpolate(pictures.movedim(-1, 1), size=size, mode="area").movedim(1, -1)


def draw(model, x, texts, sources):
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(model, x, torch.tensor(here), text, sources) for text in texts)
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_videos(model, expected):
    texts = [wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93)]
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = texts
    generator = torch.Generator().manual_seed(33)
    shapes = {"source": (7, 20, 30), "inserted": (11, 26, 18), "first": (1, 36, 90), "others": (2, 20, 12)}
    given = {name: torch.rand(*shape, 3, generator=generator) for name, shape in shapes.items()}
    expected.update(given)
    vae = make_workflow_goldens.make_vae()

    def encoded(video):
        whole = 1 + (len(video) - 1) // 4 * 4
        return vae.encode(2 * video[:whole].movedim(-1, 0)[None] - 1).latent_dist.mean

    pictures = [within(given["first"], LONGEST), *within(given["others"], LONGEST).split(1)]
    videos = [scail.resized(given["source"][:LENGTH], HEIGHT, WIDTH, "area"), within(given["inserted"][:LENGTH], LONGEST)]
    latents = [encoded(video) for video in videos + pictures]
    expected.update({f"latents.{i}": latent for i, latent in enumerate(latents)})
    sources = [umt5.scaled(latent) for latent in latents]
    frames = 1 + (LENGTH - 1) // 4
    x = wan.randn(7, 1, wan.CHANNELS, frames, HEIGHT // 8, WIDTH // 8)
    expected["latent"] = draw(model, x, texts, sources)
    x = wan.randn(7, 1, wan.CHANNELS, 1, HEIGHT // 8, WIDTH // 8)
    one = scail.resized(given["source"][:1], HEIGHT, WIDTH, "area")
    expected["edited.latent"] = draw(model, x, texts, [umt5.scaled(encoded(one))])
    blind = draw(model, x, texts, [])
    print(f"a source changes a picture by {(expected['edited.latent'] - blind).norm() / blind.norm():.3f}")


def main(out):
    expected = {}
    plain, flow = make_model(3, 16, 3, 2), make_model(2, 128, wan.CHANNELS, 1)
    make_clip(plain, expected, "plain", 10, 2, 6, 8, batch=2, sizes=((2, 6, 8), (1, 4, 10), (1, 8, 2)))
    make_clip(plain, expected, "odd", 20, 1, 5, 7, sizes=((3, 3, 5),))
    make_clip(plain, expected, "alone", 30, 2, 4, 6)
    make_videos(flow[0], expected)
    wan.write(out, {"plain": plain[1], "flow": flow[1]}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_sources"))
