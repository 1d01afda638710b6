"""Writes what diffusers makes with tiny models of Wan Animate 2, and videos that ComfyUI's node would have it draw.

    make_wan_animate2_goldens.py [OUT]        (default: wan_animate2/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. Its attention with a block mask is computed
densely, by the mask that the model itself makes. All weights follow from the names of their tensors (seeded_weights.py), so
only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in ComfyUI's files: shape}}: "animate2" has small sizes, "flow" heads of
                            128; "{0-3}" stands for each of these numbers
    expected.safetensors    "animate2.CLIP.x" is an input, "animate2.CLIP.out" an output with a row for each step, of the clips
                            "short", "long" and "odd", which has an odd side.
                            "bare.out" is that of "long" without poses. "pictures" is what the node is given, of 20 x 28;
                            "in.one", "in.two" and "in.pose" ".cross_attn" are texts. "all.concat", "all.mask" and "all.pose"
                            are what it makes of them, "bare.concat" and "bare.mask" of nothing. "all.latent" and
                            "bare.latent" are the ends of 3 steps of Euler's method with guidance 3 by "flow" of the noise of
                            seed 7, "part.latent" where only steps from 0.2 to 0.6 follow poses.
"""

import os
import sys

import torch
import torch.nn.functional as F
from diffusers import WanAnimate2Transformer3DModel
from diffusers.models.transformers import transformer_wan_animate_2 as animate2

import make_umt5_goldens as umt5
import make_wan_animate_goldens as animate
import make_wan_goldens as wan
import make_wan_vace_goldens as vace
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
HEIGHT, WIDTH = animate.HEIGHT, animate.WIDTH
expected, shapes = {}, {}
dispatch = animate2.dispatch_attention_fn
follows = True


def dense_mask(mask, B, H, Q_LEN, KV_LEN, device, _compile):
    return mask(None, None, torch.arange(Q_LEN)[:, None], torch.arange(KV_LEN)[None])


def attention(query, key, value, attn_mask=None, backend=None, parallel_config=None):
    """Tokens that pad answer to nothing, and nobody reads what they find."""
    if attn_mask is not None:
        attn_mask = attn_mask.clone()
        if not follows:
            attn_mask[:, query.shape[1] :] = False
        attn_mask[~attn_mask.any(1), 0] = True
    heads = lambda t: t.transpose(1, 2)  # noqa: E731
    return heads(F.scaled_dot_product_attention(heads(query), heads(key), heads(value), attn_mask=attn_mask))


animate2.create_block_mask = dense_mask
animate2.dispatch_attention_fn = attention


def original(name):
    for here, there in (
        (".to_q.", ".q."),
        (".to_k.", ".k."),
        (".to_v.", ".v."),
        (".to_out.0.", ".o."),
        (".add_k_proj.", ".k_img."),
        (".add_v_proj.", ".v_img."),
        (".norm_added_k.", ".norm_k_img."),
    ):
        name = name.replace(here, there)
    return name


def make(kind):
    heads, head = (2, 128) if kind == "flow" else (3, 16)
    model = WanAnimate2Transformer3DModel(
        text_len=wan.TOKENS,
        in_dim=2 * wan.CHANNELS + 4,
        dim=heads * head,
        ffn_dim=80,
        freq_dim=32,
        text_dim=wan.TEXT,
        out_dim=wan.CHANNELS,
        num_heads=heads,
        num_layers=2 if kind == "flow" else 3,
    )
    model.img_emb = animate2.MLPProj(wan.VISION, heads * head)  # 1280 in published ones
    shapes[kind] = seeded_weights.load(model, original)
    return model


def velocity(model, x, level, context, concat, vision=None, pose=None, pose_context=None, pose_vision=None):
    """What was seen may be nothing. Without poses the model sees others, to which no token looks."""
    global follows
    follows, items, (height, width) = pose is not None, len(x), x.shape[3:]
    if pose is None:
        pose, pose_context, pose_vision = torch.zeros_like(x[:1, :, 1:]), context, vision
    whole = lambda t: None if t is None else t.expand(items, *t.shape[1:])  # noqa: E731
    x, concat, pose = (vace.even(whole(t)) for t in (x, concat, pose))
    embed = model.img_emb
    if vision is None:
        model.img_emb = torch.nn.Identity()  # which makes nothing of nothing
    grid = torch.tensor([[pose.shape[2], pose.shape[3] // 2, pose.shape[4] // 2]] * items)
    cache = animate2.WanAnimate2KVCache(len(model.blocks))
    model(
        list(pose),
        (1000 * level).expand(items),
        list(whole(pose_context)),
        [torch.cat([torch.ones(4, *p.shape[1:]), p]) for p in pose],
        cache,
        "extract",
        int(grid[0].prod()),
        encoder_hidden_states_image=whole(pose_vision if vision is not None else None),
        offset_grid_sizes=grid,
    )
    frames = max(pose.shape[2], x.shape[2] - 1)  # of the whole video, which the mask is made for
    out = model(
        list(x),
        (1000 * level).expand(items),
        list(whole(context)),
        list(concat),
        cache,
        "cached",
        x[0, 0].numel() // 4,
        encoder_hidden_states_image=whole(vision),
        reference_grid_sizes=grid,
        origin_len=4 * (frames - 1),
        origin_area=[8 * x.shape[3], 8 * x.shape[4]],
        return_dict=False,
    )[0]
    model.img_emb = embed
    return torch.stack(out)[..., :height, :width]


def make_clip(model, clip, seed, frames, height, width, poses, batch=1, rows=1):
    inputs = {
        "x": wan.randn(seed, batch, wan.CHANNELS, frames, height, width),
        "context": wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT),
        "concat": wan.randn(seed + 2, 1, 4 + wan.CHANNELS, frames, height, width),
        "vision": wan.randn(seed + 3, 1, wan.SEEN, wan.VISION),
        "pose": wan.randn(seed + 4, rows, wan.CHANNELS, poses, height, width),
        "pose_context": wan.randn(seed + 5, 1, wan.TOKENS, wan.TEXT),
        "pose_vision": wan.randn(seed + 6, 1, wan.SEEN, wan.VISION),
    }

    def out(given):
        return torch.stack([velocity(model, level=level, **given) for level in wan.LEVELS])

    at = f"animate2.{clip}."
    expected.update({at + name: tensor for name, tensor in inputs.items()})
    expected[at + "timestep"] = 1000 * wan.LEVELS
    expected[at + "out"] = out(inputs)
    if clip == "long":
        made = out({key: tensor for key, tensor in inputs.items() if not key.startswith("pose")})
        expected["bare.out"] = made
        print(f"without poses it differs by {(made - expected[at + 'out']).norm() / made.norm():.3f}")


def draw(model, concat, poses, ranges=(0, 1)):
    """Steps whose share of 1000 levels lies in the range follow poses."""
    x = wan.randn(7, 1, wan.CHANNELS, concat.shape[2], HEIGHT // 8, WIDTH // 8)
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    levels = umt5.simple_levels(8.0, 3)
    level_of = lambda share: 1.0 if share <= 0 else 8 * (1 - share) / (1 + 7 * (1 - share))  # noqa: E731
    for here, there in zip(levels, levels[1:]):
        posed = poses if level_of(ranges[1]) < here <= level_of(ranges[0]) or ranges == (0, 1) else {}
        yes, no = (velocity(model, x, torch.tensor(here), text, concat, **posed) for text in texts)
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_videos():
    """Nine frames. Of a video that goes on: one frame of six is known, so that it begins at frame 6 - 1 of what is followed."""
    for seed, name in enumerate(("one", "two", "pose"), 92):
        expected[f"in.{name}.cross_attn"] = wan.randn(seed, 1, wan.TOKENS, wan.TEXT)
    expected["pictures"] = torch.rand(11, 20, 28, 3, generator=torch.Generator().manual_seed(18))
    video = animate.fitted(expected["pictures"].movedim(-1, 1), HEIGHT, WIDTH, "area")
    vae = make_workflow_goldens.make_vae()
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean  # noqa: E731
    length, begin = 9, 5
    drawn = torch.full((length, 3, HEIGHT, WIDTH), 0.5)
    bare = encode(drawn)
    drawn[0] = video[5]  # the last of six
    concat = torch.cat([encode(video[10:]), encode(drawn)], 2)
    mask = torch.ones(1, 4, 4, HEIGHT // 8, WIDTH // 8)
    mask[:, :, :2] = 0
    posed = video[begin:10]
    pose = encode(torch.cat([posed, posed[-1:].expand(length - len(posed), -1, -1, -1)]))
    expected.update({"all.concat": concat, "all.mask": mask, "all.pose": pose})
    expected.update({"bare.concat": bare, "bare.mask": torch.ones(1, 4, 3, HEIGHT // 8, WIDTH // 8)})
    model = make("flow")
    beside = torch.cat([1 - mask, umt5.scaled(concat)], 1)
    given = {"pose": umt5.scaled(pose), "pose_context": expected["in.pose.cross_attn"]}
    expected["all.latent"] = draw(model, beside, given)
    expected["part.latent"] = draw(model, beside, given, (0.2, 0.6))
    expected["bare.latent"] = draw(model, torch.cat([1 - expected["bare.mask"], umt5.scaled(bare)], 1), {})


def main(out):
    model = make("animate2")
    make_clip(model, "short", 10, 2, 4, 6, 1, batch=2)
    make_clip(model, "long", 20, 4, 6, 4, 3)
    make_clip(model, "odd", 30, 3, 5, 7, 2, batch=2, rows=2)
    make_videos()
    wan.write(out, shapes, expected)
    for name, tensor in expected.items():
        print(f"{name:28} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan_animate2"))
