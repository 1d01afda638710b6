"""Writes what PyTorch makes with tiny causal models of Wan 2.1, and videos that ComfyUI's SamplerARVideo would draw.

    make_wan_causal_goldens.py [OUT]        (default: wan_causal/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. diffusers has no causal Wan: the
function below runs the parts of diffusers' layers over one block of frames, with keys and values of the frames before it. All
weights follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "flow" has heads of 128; "{0-3}"
                            stands for each of these numbers
    expected.safetensors    "CLIP.x" and so on are inputs, "CLIP.out" an output with a row for each step, "CLIP.made.0" and so
                            on the keys and values of the last step, of the clips "begin", which looks at nothing before it,
                            "behind" two frames and "odd" behind one; "in.one.cross_attn" and "in.two.cross_attn" are texts,
                            "pictures" begin a video; "latent" is the end of 3 steps of five frames by "flow", two by two, of
                            the noise of seed 7, "guided.latent" with guidance 3, one by one, "batch.latent" of two videos,
                            "begun.latent" behind a picture, three by three
"""

import os
import sys

import torch
import torch.nn.functional as F

import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.125])
SEED, SHIFT, STEPS = 7, 5.0, 3


def tables(model, x, before):
    """The rotary tables of frames behind others."""
    whole = torch.zeros(1, x.shape[1], before + x.shape[2], *x.shape[3:])
    cell = x.shape[3] * x.shape[4] // 4
    return [table[:, before * cell :] for table in model.rope(whole)]


def attention(attn, hidden, rotary, kept):
    """To the tokens before, (k, v) of (B, P, H, d), then to each other."""
    q, k, v = (part.unflatten(2, (attn.heads, -1)) for part in (attn.norm_q(attn.to_q(hidden)), attn.norm_k(attn.to_k(hidden)), attn.to_v(hidden)))
    cos, sin = (table[..., 0::2] for table in rotary)

    def rotated(part):
        even, odd = part[..., 0::2], part[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(3)

    q, k = rotated(q), rotated(k)
    all_k, all_v = (k, v) if kept is None else (torch.cat([kept[0], k], 1), torch.cat([kept[1], v], 1))
    seen = F.scaled_dot_product_attention(*(part.transpose(1, 2) for part in (q, all_k, all_v))).transpose(1, 2).flatten(2)
    return attn.to_out[0](seen), (k, v)


def even(video):
    """Odd sides are completed by the first row and column."""
    height, width = video.shape[3:]
    flat = F.pad(video.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
    return flat.unflatten(1, video.shape[1:3])


def velocity(model, x, level, text, kept=None, before=0):
    """Of a block behind `before` frames, and keys and values of its tokens by layer; kept: those of the frames before."""
    height, width = x.shape[3:]
    x = even(x)
    items, _, frames, rows, columns = x.shape
    rotary = tables(model, x, before)
    hidden = model.patch_embedding(x).flatten(2).transpose(1, 2)
    time, told, text, _ = model.condition_embedder((1000 * level).expand(items), text.expand(items, -1, -1), None)
    told = told.unflatten(1, (6, -1))
    made = []
    for i, block in enumerate(model.blocks):
        shift, scale, gate, last_shift, last_scale, last_gate = (block.scale_shift_table + told).chunk(6, 1)
        seen, own = attention(block.attn1, block.norm1(hidden) * (1 + scale) + shift, rotary, None if kept is None else kept[i])
        made.append(own)
        hidden = hidden + seen * gate
        hidden = hidden + block.attn2(block.norm2(hidden), text)
        hidden = hidden + block.ffn(block.norm3(hidden) * (1 + last_scale) + last_shift) * last_gate
    shift, scale = (model.scale_shift_table + time[:, None]).chunk(2, 1)
    out = model.proj_out(model.norm_out(hidden) * (1 + scale) + shift)
    out = out.reshape(items, frames, rows // 2, columns // 2, 2, 2, -1)
    out = out.permute(0, 6, 1, 2, 4, 3, 5).reshape(items, -1, frames, rows, columns)
    return out[..., :height, :width], made


def grown(kept, made):
    return made if kept is None else [tuple(torch.cat(both, 1) for both in zip(*pair)) for pair in zip(kept, made)]


def flat(pair):
    """Keys, then values, (B, P, 2 D)."""
    return torch.cat([part.flatten(2) for part in pair], 2)


def check(model, text):
    """What is kept of frames that were looked at block by block is what a mask by blocks gives of all at once, and without
    frames before it is diffusers' model."""
    x = wan.randn(3, 1, model.config.in_channels, 4, 4, 6)
    theirs = model(x, 1000 * LEVELS[:1], text, return_dict=False)[0]
    ours = velocity(model, x, LEVELS[0], text)[0]
    assert (theirs - ours).norm() / theirs.norm() < 1e-5, "with nothing before it is diffusers' model"
    zero, kept, cell = torch.zeros(()), None, 6
    for at in (0, 2):
        kept = grown(kept, velocity(model, x[:, :, at : at + 2], zero, text, kept, at)[1])
    block = torch.arange(4 * cell) // (2 * cell)
    plain = F.scaled_dot_product_attention
    mask = block[:, None] >= block[None]
    F.scaled_dot_product_attention = lambda q, k, v: plain(q, k, v, mask if q.shape[2] == k.shape[2] == 4 * cell else None)
    whole = velocity(model, x, zero, text)[1]
    F.scaled_dot_product_attention = plain
    for one, other in zip(kept, whole):
        assert (flat(one) - flat(other)).norm() / flat(other).norm() < 1e-5, "a cache is a mask by blocks"


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


def make_clip(model, expected, clip, seed, frames, height, width, before=0, batch=1):
    channels = model.config.in_channels
    x, text = wan.randn(seed, batch, channels, frames, height, width), wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT)
    kept = None
    if before > 0:
        kept = velocity(model, wan.randn(seed + 2, batch, channels, before, height, width), torch.zeros(()), text)[1]
        expected.update({f"{clip}.kept.{i}": flat(pair) for i, pair in enumerate(kept)})
    expected.update({f"{clip}.x": x, f"{clip}.timestep": 1000 * LEVELS, f"{clip}.context": text})
    outs = [velocity(model, x, level, text, kept, before) for level in LEVELS]
    expected[f"{clip}.out"] = torch.stack([out for out, _ in outs])
    if before > 0:
        expected.update({f"{clip}.made.{i}": flat(pair) for i, pair in enumerate(outs[-1][1])})
        alone = velocity(model, x, LEVELS[0], text)[0]
        print(f"{clip}: the frames before change the velocity by {(alone - outs[0][0]).norm() / alone.norm():.3f}")


def draw(model, x, texts, guidance, each, given=None):
    """Of the texts the first, or with guidance both, of which each has frames of its own."""
    levels = umt5.simple_levels(SHIFT, STEPS)
    kept, result, at = [None] * len(texts), x.clone(), 0

    def seen(part, level):
        made = [velocity(model, part, torch.tensor(level), text, kept[i], at) for i, text in enumerate(texts)]
        out = made[0][0] if len(made) == 1 else made[1][0] + guidance * (made[0][0] - made[1][0])
        return part - level * out, [fresh for _, fresh in made]

    def keep(part):
        kept[:] = [grown(old, fresh) for old, fresh in zip(kept, seen(part, 0.0)[1])]

    if given is not None:
        result[:, :, : given.shape[2]] = given
        keep(given.expand(len(x), -1, -1, -1, -1))
        at = given.shape[2]
    block = 0
    while at < x.shape[2]:
        part = x[:, :, at : at + each]
        for step, (here, there) in enumerate(zip(levels, levels[1:])):
            clean, _ = seen(part, here)
            torch.manual_seed(SEED + 1000 * block + step)
            part = (1 - there) * clean + there * torch.randn_like(clean) if there > 0 else clean
        result[:, :, at : at + each] = part
        keep(part)
        at, block = at + part.shape[2], block + 1
    return result


def main(out):
    expected = {}
    plain, flow = make_model(4, 16, 2, 3), make_model(2, 128, 16, 2)
    texts = [wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93)]
    check(plain[0], texts[0])
    make_clip(plain[0], expected, "begin", 10, 3, 6, 8)
    make_clip(plain[0], expected, "behind", 20, 2, 6, 4, before=2, batch=2)
    make_clip(plain[0], expected, "odd", 30, 1, 5, 7, before=1)

    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = texts
    noise = wan.randn(SEED, 1, wan.CHANNELS, 5, 6, 8)
    expected["latent"] = draw(flow[0], noise, texts[:1], 1, 2)
    expected["guided.latent"] = draw(flow[0], wan.randn(SEED, 1, wan.CHANNELS, 3, 4, 6), texts, 3, 1)
    expected["batch.latent"] = draw(flow[0], wan.randn(SEED, 2, wan.CHANNELS, 3, 4, 6), texts[:1], 1, 2)
    pictures = torch.rand(2, 8, 10, 3, generator=torch.Generator().manual_seed(21))
    expected["pictures"] = pictures
    video = F.interpolate(pictures[:1, :, 1:9].movedim(-1, 1), size=(64, 64), mode="bilinear")
    vae = make_workflow_goldens.make_vae()
    given = umt5.scaled(vae.encode(2 * video.transpose(0, 1)[None] - 1).latent_dist.mean)
    noise = wan.randn(SEED, 1, wan.CHANNELS, 5, 8, 8)
    expected["begun.latent"] = draw(flow[0], noise, texts[:1], 1, 3, given)
    alone = draw(flow[0], noise[:, :, 1:], texts[:1], 1, 3)
    print(f"a picture changes the video by {(expected['begun.latent'][:, :, 1:] - alone).norm() / alone.norm():.3f}")

    wan.write(out, {"plain": plain[1], "flow": flow[1]}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_causal"))
