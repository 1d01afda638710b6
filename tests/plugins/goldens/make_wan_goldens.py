"""Writes what diffusers makes with tiny models of Wan.

    make_wan_goldens.py [OUT]        (default: wan/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "text" makes a video of a text,
                            and so does "flow", "picture" of a picture, too, "frames" of a first and a last one; "{0-3}" stands for each of
                            these numbers
    expected.safetensors    "MODEL.CLIP.x" is an input, "MODEL.CLIP.out" an output with a row for each step, of the clips
                            "short", "long" and "odd", which has an odd side; "flow.latent" is the end of 3 steps of
                            Euler's method with guidance 3 by "flow", which has heads of 128 as published models have,
                            of the texts "in.one.cross_attn" and "in.two.cross_attn" and the noise of seed 7;
                            "windows.latent" is that of five frames, of which it sees three at a time, and one before them,
                            "skipped.latent" is led away from the model without layer 1, by 2.5
"""

import copy
import json
import os
import sys

import torch
from diffusers import WanTransformer3DModel
from safetensors.torch import save_file

import seeded_weights
from name_patterns import compressed

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "samplers"))
import window_reference  # noqa: E402

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.55, 0.125])
TEXT, VISION, TOKENS, SEEN, CHANNELS = 40, 24, 9, 5, 16
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of WanTransformer3DModel."""
    beginnings = (
        ("condition_embedder.text_embedder.linear_1.", "text_embedding.0."),
        ("condition_embedder.text_embedder.linear_2.", "text_embedding.2."),
        ("condition_embedder.time_embedder.linear_1.", "time_embedding.0."),
        ("condition_embedder.time_embedder.linear_2.", "time_embedding.2."),
        ("condition_embedder.time_proj.", "time_projection.1."),
        ("condition_embedder.image_embedder.norm1.", "img_emb.proj.0."),
        ("condition_embedder.image_embedder.ff.net.0.proj.", "img_emb.proj.1."),
        ("condition_embedder.image_embedder.ff.net.2.", "img_emb.proj.3."),
        ("condition_embedder.image_embedder.norm2.", "img_emb.proj.4."),
        ("condition_embedder.image_embedder.pos_embed", "img_emb.emb_pos"),
        ("proj_out.", "head.head."),
        ("scale_shift_table", "head.modulation"),
    )
    for here, there in beginnings:
        if name.startswith(here):
            return there + name[len(here) :]
    for here, there in (
        (".attn1.", ".self_attn."),
        (".attn2.", ".cross_attn."),
        (".to_q.", ".q."),
        (".to_k.", ".k."),
        (".to_v.", ".v."),
        (".to_out.0.", ".o."),
        (".add_k_proj.", ".k_img."),
        (".add_v_proj.", ".v_img."),
        (".norm_added_k.", ".norm_k_img."),
        (".norm2.", ".norm3."),
        (".ffn.net.0.proj.", ".ffn.0."),
        (".ffn.net.2.", ".ffn.2."),
        (".scale_shift_table", ".modulation"),
    ):
        name = name.replace(here, there)
    return name


def make(kind):
    sees = kind in ("picture", "frames")
    model = WanTransformer3DModel(
        num_attention_heads=2 if kind == "flow" else 3,
        attention_head_dim=128 if kind == "flow" else 16,
        in_channels=CHANNELS + (4 + CHANNELS if sees else 0),
        out_channels=CHANNELS,
        text_dim=TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=2,
        image_dim=VISION if sees else None,
        added_kv_proj_dim=48 if sees else None,
        pos_embed_seq_len=2 * SEEN if kind == "frames" else None,
        rope_max_seq_len=32,
    )
    shapes[kind] = seeded_weights.load(model, original)
    return model


def velocity(model, x, level, context, concat=None, vision=None):
    """Odd sides are completed by the first row and column."""
    whole = x if concat is None else torch.cat([x, concat.expand(len(x), -1, -1, -1, -1)], 1)
    height, width = x.shape[3:]
    flat = torch.nn.functional.pad(whole.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
    even = flat.unflatten(1, whole.shape[1:3])
    out = model(even, (1000 * level).expand(len(x)), context.expand(len(x), -1, -1), vision, return_dict=False)[0]
    return out[..., :height, :width]


def own_processor(model):
    """As many tokens of text as there are: diffusers' processor counts on 512."""

    class Processor:
        def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, rotary_emb=None, **_):
            seen = None
            if encoder_hidden_states is not None and attn.add_k_proj is not None:
                count = encoder_hidden_states.shape[1] - TOKENS
                seen, encoder_hidden_states = encoder_hidden_states[:, :count], encoder_hidden_states[:, count:]
            source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
            heads = lambda t: t.unflatten(2, (attn.heads, -1)).transpose(1, 2)  # noqa: E731
            q, k, v = heads(attn.norm_q(attn.to_q(hidden_states))), heads(attn.norm_k(attn.to_k(source))), heads(attn.to_v(source))
            look = torch.nn.functional.scaled_dot_product_attention
            out = look(q, k, v)
            if seen is not None:
                out = out + look(q, heads(attn.norm_added_k(attn.add_k_proj(seen))), heads(attn.add_v_proj(seen)))
            return attn.to_out[0](out.transpose(1, 2).flatten(2))

    for block in model.blocks:
        block.attn2.set_processor(Processor())


def make_clip(model, kind, clip, seed, frames, height, width, batch=1):
    sees = kind in ("picture", "frames")
    at = f"{kind}.{clip}."
    x = randn(seed, batch, CHANNELS, frames, height, width)
    inputs = {"x": x, "timestep": 1000 * LEVELS, "context": randn(seed + 1, 1, TOKENS, TEXT)}
    vision = None
    if sees:
        inputs["concat"] = randn(seed + 2, 1, 4 + CHANNELS, frames, height, width)
        # Of a first and a last frame each has its states.
        inputs["vision"] = randn(seed + 3, 2 if kind == "frames" else 1, SEEN, VISION)
        vision = inputs["vision"].expand(batch if kind == "picture" else 2, -1, -1)
    for name, tensor in inputs.items():
        # ComfyUI joins what was seen of both frames; diffusers takes them one after another.
        is_joined = name == "vision" and kind == "frames"
        expected[at + name] = tensor.reshape(1, 2 * SEEN, VISION).clone() if is_joined else tensor.clone()
    out = [velocity(model, x, level, inputs["context"], inputs.get("concat"), vision) for level in LEVELS]
    expected[at + "out"] = torch.stack(out)


def draw_flow(x, seen, less=None, scale=0.0):
    """seen(x, level, text): the velocity; less: that without a layer, from which guidance leads away (SkipLayerGuidanceDiT).
    ComfyUI's `simple` schedule of 3 steps over 1000 levels of shift 8."""
    context, other = expected["in.one.cross_attn"], expected["in.two.cross_attn"]
    levels = [8 * t / (1 + 7 * t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / 3))] for i in range(3)] + [0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        level = torch.tensor(here)
        yes, no = seen(x, level, context), seen(x, level, other)
        guided = no + 3 * (yes - no)
        if less is not None:
            guided = guided + scale * (yes - less(x, level, context))
        x = x + guided * (there - here)
    return x


class Passing(torch.nn.Module):
    """In the place of a layer that is left out."""

    def forward(self, hidden, *_):
        return hidden


def make_flow(model):
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = randn(92, 1, TOKENS, TEXT), randn(93, 1, TOKENS, TEXT)
    expected["flow.latent"] = draw_flow(randn(7, 1, CHANNELS, 3, 6, 8), lambda *given: velocity(model, *given))
    frames, length, overlap = 5, 3, 1
    windows = window_reference.windows_at("standard_static", frames, length, overlap, 1, False, 0)
    parts = window_reference.shares(windows, "pyramid", frames, overlap)

    def seen(x, level, text):
        return window_reference.predict(lambda _, part: velocity(model, part, level, text), x, 2, windows, parts)

    expected["windows.latent"] = draw_flow(randn(7, 1, CHANNELS, frames, 4, 6), seen)
    rest = copy.deepcopy(model)
    rest.blocks[1] = Passing()
    expected["skipped.latent"] = draw_flow(
        randn(7, 1, CHANNELS, 3, 6, 8), lambda *given: velocity(model, *given), lambda *given: velocity(rest, *given), 2.5
    )


def write(out, listed, tensors):
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(names) for kind, names in listed.items()}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, os.path.join(out, "expected.safetensors"))


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "wan")
    for kind, seed in (("text", 10), ("picture", 40), ("frames", 70)):
        model = make(kind)
        own_processor(model)
        make_clip(model, kind, "short", seed, 1, 4, 6, batch=2 if kind != "frames" else 1)
        make_clip(model, kind, "long", seed + 5, 3, 6, 4)
        make_clip(model, kind, "odd", seed + 9, 2, 5, 7)
    make_flow(make("flow"))
    write(out, shapes, expected)


if __name__ == "__main__":
    main()
