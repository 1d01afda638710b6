"""Writes what PyTorch makes with tiny models of SCAIL 2, the pictures and channels that ComfyUI's nodes make of masks, and videos
that they would have such a model draw.

    make_wan_scail_goldens.py [OUT]        (default: wan_scail/ beside this file)

Needs torch, diffusers, transformers, numpy and safetensors from PyPI; runs on the CPU in float32. diffusers has no SCAIL: the
functions below put its tokens before and behind those of diffusers' model and turn them, written from the publishers' tensors and
formulas as ComfyUI runs them. All weights follow from the names of their tensors (seeded_weights.py), so only shapes are written,
and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "plain" is small, "flow" has the latents
                            of published models and heads of 128; "{0-3}" stands for each of these numbers
    expected.safetensors    "CLIP.x" and so on are inputs, "CLIP.out" an output with a row for each step, of the clips "plain" (two
                            references, poses, masks of both), "apart" (the same in replacement mode), "odd" (odd sides, no masks),
                            "alone" (nothing is shown) and "pictures" (references and their masks alone).
                            "tracks" (T, N, 8, 2) u8 are things that were followed in pictures of 12 x 20, "shown" (1, N, 8, 2) in
                            one; "pose_masks.ORDER" and "shown_masks.ORDER" what ComfyUI paints, and with ".replaced" behind it in
                            replacement mode, "chosen" for the numbers "2, 0, 7, x"; "mask" is a MASK and "painted" what it becomes.
                            "pictures" are references, "poses" a video, "colours" its masks and "shapes" those of the references,
                            "before" frames of an earlier part; "driving" and "reference" are channels of 4 colours. "latent" and
                            "replaced.latent" are the ends of 3 steps of Euler's method with guidance 3 by "flow" of the noise of
                            seed 7, of the texts "in.one.cross_attn" and "in.two.cross_attn", "on.latent" that of a part that goes
                            on from "before", whose poses end at half of the way
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
SIDE, ROWS = 64, 32
KEPT = 4
PALETTE = torch.tensor([[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0]]).float()


class Filters(torch.nn.Module):
    def __init__(self, channels, masks, width):
        super().__init__()
        self.patch_embedding_pose = torch.nn.Conv3d(channels, width, (1, 2, 2), (1, 2, 2))
        self.patch_embedding_mask = torch.nn.Conv3d(masks, width, (1, 2, 2), (1, 2, 2))


def even(video):
    """Odd sides are completed by the first row and column."""
    height, width = video.shape[3:]
    flat = F.pad(video.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
    return flat.unflatten(1, video.shape[1:3])


def places(frames, rows, columns, first=(0, 0, 0), step=(1, 1)):
    grid = torch.zeros(frames, rows, columns, 3)
    grid[..., 0] = first[0] + torch.arange(frames)[:, None, None]
    grid[..., 1] = first[1] + step[0] * torch.arange(rows)[None, :, None]
    grid[..., 2] = first[2] + step[1] * torch.arange(columns)[None, None, :]
    return grid.reshape(-1, 3)


def rotary_of(at, head):
    """Angles of all pairs of a head, twice each, as diffusers keeps them: cos and sin (1, L, 1, d)."""
    side = head // 6 * 2
    angles = []
    for axis, dim in enumerate((head - 2 * side, side, side)):
        turns = 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        angles.append(at[:, axis, None].double() * turns)
    angles = torch.cat(angles, 1).repeat_interleave(2, 1)[None, :, None]
    return angles.cos().float(), angles.sin().float()


def through(model, hidden, rotary, level, text, vision):
    """Tokens through all layers and the last one."""
    time, told, text, seen = model.condition_embedder((1000 * level)[None], text, vision)
    told = told.unflatten(1, (6, -1))
    text = text if seen is None else torch.cat([seen, text], 1)
    for block in model.blocks:
        shift, scale, gate, last_shift, last_scale, last_gate = (block.scale_shift_table + told).chunk(6, 1)
        made, _, _ = talk.attention(block.attn1, block.norm1(hidden) * (1 + scale) + shift, rotary)
        hidden = hidden + made * gate
        hidden = hidden + block.attn2(block.norm2(hidden), text)
        hidden = hidden + block.ffn(block.norm3(hidden) * (1 + last_scale) + last_shift) * last_gate
    shift, scale = (model.scale_shift_table + time[:, None]).chunk(2, 1)
    return model.proj_out(model.norm_out(hidden) * (1 + scale) + shift)


def pictures_of(out, frames, height, width):
    out = out.reshape(1, frames, height // 2, width // 2, 2, 2, -1)
    return out.permute(0, 6, 1, 2, 4, 3, 5).reshape(1, -1, frames, height, width)


def known(latent):
    return torch.cat([latent, torch.ones_like(latent[:, :1]).expand(-1, KEPT, -1, -1, -1)], 1)


def one_velocity(model, filters, x, level, text, vision=None, kept=None, reference=None, pose=None, masks=None, pose_masks=None, apart=False):
    """Of one item; masks (1, T, K, h, w). The references are before the video, the poses behind it."""
    height, width = x.shape[3:]
    if kept is None:
        kept = torch.zeros_like(x[:, :1]).expand(-1, KEPT, -1, -1, -1)
    whole = even(torch.cat([x, kept], 1))
    frames, rows, columns = whole.shape[2], whole.shape[3] // 2, whole.shape[4] // 2
    before = 0
    if reference is not None:
        before = reference.shape[2]
        whole = torch.cat([even(known(reference)), whole], 2)
    hidden = model.patch_embedding(whole)
    if masks is not None:
        hidden = hidden + filters.patch_embedding_mask(even(masks.movedim(1, 2)))
    hidden = hidden.flatten(2).transpose(1, 2)
    count = hidden.shape[1]
    first = max(before - 1, 0) if apart else before  # apart: in the frame of the last reference
    at = [places(before, rows, columns, (0, 120 if apart else 0, 0)), places(frames, rows, columns, (first, 0, 0))]
    if pose is not None:
        shown = even(known(pose))
        made = filters.patch_embedding_pose(shown)
        if pose_masks is not None:
            made = made + filters.patch_embedding_mask(even(pose_masks.movedim(1, 2)))
        hidden = torch.cat([hidden, made.flatten(2).transpose(1, 2)], 1)
        step = height / shown.shape[3], width / shown.shape[4]
        begin = first, (step[0] - 1) / 2, 120 + (step[1] - 1) / 2
        at.append(places(shown.shape[2], shown.shape[3] // 2, shown.shape[4] // 2, begin, step))
    out = through(model, hidden, rotary_of(torch.cat(at), model.config.attention_head_dim), level, text, vision)
    out = pictures_of(out[:, :count], before + frames, 2 * rows, 2 * columns)
    return out[:, :, before:, :height, :width]


def velocity(made, x, level, text, **given):
    rows = lambda i: {name: what if isinstance(what, bool) else what[i if len(what) > 1 else 0][None] for name, what in given.items()}  # noqa: E731
    return torch.cat([one_velocity(*made[:2], item, level, text, **rows(i)) for i, item in enumerate(x.split(1))])


def make_model(heads, head, channels, masks, layers):
    model = wan.WanTransformer3DModel(
        num_attention_heads=heads,
        attention_head_dim=head,
        in_channels=channels + KEPT,
        out_channels=channels,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=layers,
        image_dim=wan.VISION,
        added_kv_proj_dim=heads * head,
        rope_max_seq_len=32,
    )
    listed = seeded_weights.load(model, wan.original)
    wan.own_processor(model)
    filters = Filters(channels + KEPT, masks, heads * head)
    return model, filters, listed | seeded_weights.load(filters)


def make_clip(made, expected, clip, seed, frames, height, width, batch=1, references=0, poses=0, masks=(), apart=False, seen=True):
    model, filters, _ = made
    channels, kinds = model.config.out_channels, filters.patch_embedding_mask.in_channels
    x = wan.randn(seed, batch, channels, frames, height, width)
    given = {}
    if seen:
        given["vision"] = wan.randn(seed + 3, 1, wan.SEEN, wan.VISION)
    if references:
        given["reference"] = wan.randn(seed + 4, batch, channels, references, height, width)
    half = (height + 1) // 2, (width + 1) // 2
    if poses:
        given["pose"] = wan.randn(seed + 5, 1, channels, poses, *half)
    share = lambda *shape: torch.rand(shape, generator=torch.Generator().manual_seed(seed + 6)).round()  # noqa: E731
    if "video" in masks:
        given["masks"] = share(1, references + frames, kinds, height, width)
    if "poses" in masks:
        given["pose_masks"] = share(1, poses, kinds, *half)
    given["kept"] = share(1, 1, frames, 1, 1).expand(-1, KEPT, -1, height, width).clone()
    names = {"kept": "concat", "masks": "reference_masks", "pose": "half_pose"}
    expected.update({f"{clip}.{names.get(name, name)}": tensor for name, tensor in given.items()})
    if apart:
        expected[f"{clip}.apart"] = torch.ones(1)
    text = wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT)
    expected.update({f"{clip}.x": x, f"{clip}.timestep": 1000 * LEVELS, f"{clip}.context": text})
    out = torch.stack([velocity(made, x, level, text, apart=apart, **given) for level in LEVELS])
    expected[f"{clip}.out"] = out
    if not references and not poses and height % 2 == 0 and width % 2 == 0:
        whole = torch.cat([x[:1], given["kept"]], 1)
        theirs = model(whole, 1000 * LEVELS[:1], text, given.get("vision"), return_dict=False)[0]
        assert (theirs - out[0][:1]).norm() / theirs.norm() < 1e-5, "of nothing it is diffusers' model"
    for name in [name for name in given if name != "kept"]:
        less = torch.stack([velocity(made, x, level, text, apart=apart, **{k: v for k, v in given.items() if k != name and (name != "reference" or k != "masks")}) for level in LEVELS])
        print(f"{clip}: {name} changes the velocity by {(out - less).norm() / less.norm():.3f}")


# What ComfyUI's nodes make of masks.


def unpacked(bits):
    return (bits[..., None] >> torch.arange(8, dtype=torch.uint8) & 1).flatten(-2).bool()


def packed(masks):
    return (masks.unflatten(-1, (-1, 8)).to(torch.uint8) << torch.arange(8, dtype=torch.uint8)).sum(-1).to(torch.uint8)


def order_of(masks, sort_by):
    if sort_by == "none":
        return list(range(masks.shape[1]))
    keys = []
    for thing in range(masks.shape[1]):
        seen = [t for t in range(len(masks)) if masks[t, thing].any()]
        if not seen:
            keys.append((len(masks), 0.0))
            continue
        one = masks[seen[0], thing]
        column = (one * torch.arange(one.shape[1])).sum() / one.sum()
        keys.append((seen[0], -float(one.sum()) if sort_by == "area" else float(column)))
    return sorted(range(len(keys)), key=lambda i: keys[i])


def painted(bits, size, ground, sort_by="left_to_right", chosen=None):
    masks = unpacked(bits)
    order = order_of(masks, sort_by)
    if chosen is not None:
        order = [order[i] for i in chosen]
    out = torch.full((len(masks), *size, 3), ground)
    large = F.interpolate(masks[:, order].float(), size=size, mode="nearest") > 0.5
    for k in reversed(range(len(order))):
        out[large[:, k]] = PALETTE[k % len(PALETTE)]
    return out


def resized(pictures, height, width, mode):
    """ComfyUI's common_upscale from the middle: (B, H, W, C)."""
    x = pictures.movedim(-1, 1)
    old, new = x.shape[3] / x.shape[2], width / height
    cut_x = round((x.shape[3] - x.shape[3] * (new / old)) / 2) if old > new else 0
    cut_y = round((x.shape[2] - x.shape[2] * (old / new)) / 2) if old < new else 0
    x = x[:, :, cut_y : x.shape[2] - cut_y, cut_x : x.shape[3] - cut_x]
    return F.interpolate(x, size=(height, width), mode=mode).movedim(1, -1)


def channels_of(pictures):
    on = (pictures > 225 / 255).float()
    red, green, blue = on.unbind(-1)
    no = [1 - part for part in (red, green, blue)]
    seven = torch.stack(
        [red * green * blue, red * no[1] * no[2], no[0] * green * no[2], no[0] * no[1] * blue,
         red * green * no[2], red * no[1] * blue, no[0] * green * blue], 1)  # fmt: skip
    height, width = seven.shape[2:]
    for _ in range(3):
        height, width = (height + 1) // 2, (width + 1) // 2
    small = F.interpolate(seven, size=(height, width), mode="area")
    small = torch.cat([small[:1].repeat(4, 1, 1, 1), small[1:]])
    return small.view(1, (len(pictures) - 1) // 4 + 1, 28, height, width)


def make_masks(expected):
    generator = torch.Generator().manual_seed(5)
    tracks = torch.zeros(3, 4, 8, 16, dtype=torch.bool)
    tracks[0, 1, 1:4, 9:13] = tracks[1, 1, 2:4, 10:12] = True
    tracks[0, 2, 2:7, 2:9] = True  # of which a part is behind another
    tracks[0, 0, 4:6, 7:9] = True
    tracks[1:, 3, 0:2, 0:3] = True
    tracks[2] |= torch.rand(4, 8, 16, generator=generator) > 0.8
    shown = torch.zeros(1, 3, 8, 16, dtype=torch.bool)
    shown[0, 0, 1:7, 10:14] = shown[0, 1, 2:5, 1:4] = shown[0, 2, 5:8, 6:9] = True
    expected["tracks"], expected["shown"] = packed(tracks), packed(shown)
    size = 12, 20
    for sort_by in ("none", "left_to_right", "area"):
        for replaced in (False, True) if sort_by == "left_to_right" else (False,):
            tail = sort_by + (".replaced" if replaced else "")
            expected["pose_masks." + tail] = painted(expected["tracks"], size, float(replaced), sort_by)
            expected["shown_masks." + tail] = painted(expected["shown"], size, float(not replaced), sort_by)
    expected["chosen"] = painted(expected["tracks"], size, 0.0, chosen=[2, 0])
    mask = torch.rand(2, 5, 7, generator=generator)
    expected["mask"] = mask
    expected["painted"] = torch.where((mask > 0.5)[..., None], PALETTE[0], torch.ones(3))


def draw(made, x, texts, given, levels, ends=None, start=None):
    """given: of the model; ends: from this level on without poses. start: what is kept, and where."""
    for here, there in zip(levels, levels[1:]):
        level = torch.tensor(here)
        fields = dict(given)
        if ends is not None and here < ends:
            fields.pop("pose")
        if start is not None:
            x = torch.where(start[1], start[0], x)
        yes, no = (velocity(made, x, level, text, **fields) for text in texts)
        made_of_it = no + 3 * (yes - no)
        if start is not None:
            made_of_it = torch.where(start[1], (x - start[0]) / level, made_of_it)
        x = x + made_of_it * (there - here)
    return x


def make_videos(made, expected):
    texts = [wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93)]
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = texts
    generator = torch.Generator().manual_seed(21)
    pictures, poses, before = (torch.rand(count, *size, 3, generator=generator) for count, size in ((2, (16, 36)), (11, (15, 33)), (7, (12, 20))))
    blocks = lambda count, height, width: (PALETTE[torch.randint(0, 6, (count, height, width), generator=generator)] * (torch.rand(count, height, width, 1, generator=generator) > 0.3)).repeat_interleave(3, 1).repeat_interleave(3, 2)  # noqa: E731, E501
    colours, shapes = blocks(10, 5, 11), blocks(2, 5, 10)
    expected.update(pictures=pictures, poses=poses, colours=colours, shapes=shapes, before=before)
    height, width, length = ROWS, SIDE, 9
    frames = 1 + (length - 1) // 4
    vae = make_workflow_goldens.make_vae()
    encoded = lambda video: vae.encode(2 * video.movedim(-1, 0)[None] - 1).latent_dist.mean  # noqa: E731
    driving = channels_of(resized(colours[:length], height // 2, width // 2, "area"))
    full = resized(shapes, height, width, "nearest-exact")
    reference_masks = torch.cat([channels_of(full[1:]), channels_of(full[:1]), torch.zeros(1, frames, 28, height // 8, width // 8)], 1)
    expected["driving"], expected["reference"] = driving, reference_masks
    pose = encoded(resized(poses[:length], height // 2, width // 2, "area"))
    large = resized(pictures, height, width, "bicubic")
    alone = large * (full.amax(-1, keepdim=True) > 0.1)
    stacked = lambda of: torch.cat([umt5.scaled(encoded(of[i : i + 1])) for i in (1, 0)], 2)  # noqa: E731
    x = wan.randn(7, 1, wan.CHANNELS, frames, height // 8, width // 8)
    levels = umt5.simple_levels(8.0, 3)
    given = {"reference": stacked(large), "masks": reference_masks, "pose": umt5.scaled(0.5 * pose), "pose_masks": driving}
    expected["latent"] = draw(made, x, texts, given, levels)
    given["reference"], given["pose"] = stacked(alone), umt5.scaled(pose)
    expected["replaced.latent"] = draw(made, x, texts, given | {"apart": True}, levels)

    # A part that goes on from five frames, two of the latent, and whose poses begin that much before the offset.
    first = 6 - 5
    later = encoded(resized(poses[first : first + length], height // 2, width // 2, "area"))
    anchors = encoded(resized(before[-5:], height, width, "bicubic"))
    kept = torch.zeros_like(x[:, :1])
    kept[:, :, : anchors.shape[2]] = 1
    begin = torch.zeros_like(x)
    begin[:, :, : anchors.shape[2]] = umt5.scaled(anchors)
    given = {"reference": stacked(large)[:, :, 1:], "pose": umt5.scaled(later), "kept": kept.expand(-1, KEPT, -1, -1, -1)}
    # Half of the way in timesteps: of the levels that of shift 8 at 0.5.
    expected["on.latent"] = draw(made, x, texts, given, levels, 8 * 0.5 / (1 + 7 * 0.5), (begin, kept.bool()))
    for name in ("pose", "reference"):
        less = {k: v for k, v in given.items() if k != name}
        other = draw(made, x, texts, less, levels, None, (begin, kept.bool()))
        print(f"{name} changes a video by {(expected['on.latent'] - other).norm() / other.norm():.3f}")


def main(out):
    expected = {}
    plain, flow = make_model(3, 16, 2, 5, 2), make_model(2, 128, wan.CHANNELS, 28, 1)
    make_clip(plain, expected, "plain", 10, 3, 8, 12, batch=2, references=2, poses=3, masks=("video", "poses"))
    make_clip(plain, expected, "apart", 10, 3, 8, 12, batch=2, references=2, poses=3, masks=("video", "poses"), apart=True)
    make_clip(plain, expected, "odd", 20, 2, 5, 7, references=1, poses=2)
    make_clip(plain, expected, "alone", 30, 1, 4, 6)
    make_clip(plain, expected, "pictures", 40, 2, 6, 4, references=1, masks=("video",), seen=False)
    make_masks(expected)
    make_videos(flow, expected)
    wan.write(out, {"plain": plain[2], "flow": flow[2]}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_scail"))
