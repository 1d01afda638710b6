"""Writes what diffusers makes with tiny models of HunyuanVideo 1.5 and 1.0.

    make_hunyuan_goldens.py [OUT]        (default: hunyuan/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in ComfyUI's files: shape}}: "later" is 1.5, "first" 1.0; "{0-3}"
                            stands for each of these numbers
    expected.safetensors    "MODEL.CLIP.x" is an input, "MODEL.CLIP.out" an output with a row for each step. Of "later" the
                            clip "text" is made of a text alone, "words" of one with words to be written, "picture" of a
                            picture, too. The reference gets its texts padded, with masks; the inputs here are the rest.
                            "flow.latent" is the end of 3 steps of Euler's method with guidance 3 by "flow", in the
                            model's units, of the noise of seed 7, of the conditionings "in.one", with all that 1.5
                            reads, and "in.two", a text alone. "sharpened" is a model of super resolution, which is told
                            two timesteps: "sharpened.latent" the end of 2 steps without guidance, of the latents "given"
"""

import json
import os
import sys

import torch
from diffusers import HunyuanVideo15Transformer3DModel, HunyuanVideoTransformer3DModel

import seeded_weights
from make_wan_goldens import write

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
SCALE = 1.03682  # of the latents of 1.5
LEVELS = torch.tensor([0.9, 0.55, 0.125])
TEXT, WRITTEN, VISION, POOLED = 40, 24, 20, 12
TOKENS, GLYPHS, SEEN, PADDING = 9, 5, 6, 3
CHANNELS = {"later": 8, "flow": 32, "first": 4, "sharpened": 8}
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


TOP = (
    ("x_embedder.proj.", "img_in.proj."),
    ("time_embed.timestep_embedder.linear_1.", "time_in.in_layer."),
    ("time_embed.timestep_embedder.linear_2.", "time_in.out_layer."),
    ("time_embed.timestep_embedder_r.linear_1.", "time_r_in.in_layer."),
    ("time_embed.timestep_embedder_r.linear_2.", "time_r_in.out_layer."),
    ("time_text_embed.timestep_embedder.linear_1.", "time_in.in_layer."),
    ("time_text_embed.timestep_embedder.linear_2.", "time_in.out_layer."),
    ("time_text_embed.text_embedder.linear_1.", "vector_in.in_layer."),
    ("time_text_embed.text_embedder.linear_2.", "vector_in.out_layer."),
    ("time_text_embed.guidance_embedder.linear_1.", "guidance_in.in_layer."),
    ("time_text_embed.guidance_embedder.linear_2.", "guidance_in.out_layer."),
    ("context_embedder.proj_in.", "txt_in.input_embedder."),
    ("context_embedder.time_text_embed.timestep_embedder.linear_1.", "txt_in.t_embedder.in_layer."),
    ("context_embedder.time_text_embed.timestep_embedder.linear_2.", "txt_in.t_embedder.out_layer."),
    ("context_embedder.time_text_embed.text_embedder.linear_1.", "txt_in.c_embedder.in_layer."),
    ("context_embedder.time_text_embed.text_embedder.linear_2.", "txt_in.c_embedder.out_layer."),
    ("context_embedder.token_refiner.refiner_blocks.", "txt_in.individual_token_refiner.blocks."),
    ("context_embedder_2.norm.", "byt5_in.layernorm."),
    ("context_embedder_2.linear_", "byt5_in.fc"),
    ("image_embedder.norm_in.", "vision_in.proj.0."),
    ("image_embedder.linear_1.", "vision_in.proj.1."),
    ("image_embedder.linear_2.", "vision_in.proj.3."),
    ("image_embedder.norm_out.", "vision_in.proj.4."),
    ("cond_type_embed.", "cond_type_embedding."),
    ("norm_out.linear.", "final_layer.adaLN_modulation.1."),
    ("proj_out.", "final_layer.linear."),
    ("single_transformer_blocks.", "single_blocks."),
    ("transformer_blocks.", "double_blocks."),
)
REFINER = ((".attn.to_out.0.", ".self_attn.proj."), (".attn.", ".self_attn."), (".ff.net.0.proj.", ".mlp.0."), (".ff.net.2.", ".mlp.2."), (".norm_out.linear.", ".adaLN_modulation.1."))
DOUBLE = (
    (".norm1.linear.", ".img_mod.lin."),
    (".norm1_context.linear.", ".txt_mod.lin."),
    (".attn.norm_q.", ".img_attn.norm.query_norm."),
    (".attn.norm_k.", ".img_attn.norm.key_norm."),
    (".attn.norm_added_q.", ".txt_attn.norm.query_norm."),
    (".attn.norm_added_k.", ".txt_attn.norm.key_norm."),
    (".attn.to_out.0.", ".img_attn.proj."),
    (".attn.to_add_out.", ".txt_attn.proj."),
    (".attn.to_", ".img_attn.to_"),
    (".attn.add_q_proj.", ".txt_attn.to_q."),
    (".attn.add_k_proj.", ".txt_attn.to_k."),
    (".attn.add_v_proj.", ".txt_attn.to_v."),
    (".ff.net.0.proj.", ".img_mlp.0."),
    (".ff.net.2.", ".img_mlp.2."),
    (".ff_context.net.0.proj.", ".txt_mlp.0."),
    (".ff_context.net.2.", ".txt_mlp.2."),
)
SINGLE = ((".norm.linear.", ".modulation.lin."), (".attn.norm_q.", ".norm.query_norm."), (".attn.norm_k.", ".norm.key_norm."), (".proj_out.", ".linear2."))


def original(name):
    """ComfyUI's name of a tensor; queries, keys, values and a single block's MLP are rows of one, joined by load()."""
    for here, there in TOP:
        if name.startswith(here):
            name = there + name[len(here) :]
            break
    table = REFINER if "token_refiner" in name else DOUBLE if name.startswith("double") else SINGLE if name.startswith("single") else ()
    for here, there in table:
        name = name.replace(here, there)
    return name


def join(name):
    """The tensor of ComfyUI's file that a tensor is rows of, and its place there."""
    if name.startswith("single_blocks."):
        for place, part in enumerate((".attn.to_q.", ".attn.to_k.", ".attn.to_v.", ".proj_mlp.")):
            if part in name:
                return name.replace(part, ".linear1."), place
    for place, part in enumerate((".to_q.", ".to_k.", ".to_v.")):
        if part in name:
            return name.replace(part, ".qkv."), place
    return name, 0


def load(model, kind):
    parts = {}
    for name, tensor in model.state_dict().items():
        file_name, place = join(original(name))
        parts.setdefault(file_name, {})[place] = (name, tensor.shape)
    state, listed = {}, {}
    for file_name, found in parts.items():
        rows = [found[place][1][0] for place in sorted(found)]
        shape = [sum(rows), *found[0][1][1:]]
        listed[file_name] = shape
        whole = seeded_weights.seeded(file_name, tuple(shape))
        if file_name.startswith("final_layer.adaLN"):  # diffusers has the halves the other way round
            whole = torch.cat(whole.chunk(2)[::-1])
        for place, piece in zip(sorted(found), whole.split(rows)):
            state[found[place][0]] = piece.clone()
    model.load_state_dict(state)
    model.eval()
    shapes[kind] = listed
    return model


def make_later(kind, more=None):
    """more: channels beside the point, of a model of two timesteps."""
    return load(
        HunyuanVideo15Transformer3DModel(
            in_channels=CHANNELS[kind] + (more or CHANNELS[kind] + 1), use_meanflow=more is not None, out_channels=CHANNELS[kind], num_attention_heads=3, attention_head_dim=16, num_layers=2, num_refiner_layers=2,
            mlp_ratio=2.0, text_embed_dim=TEXT, text_embed_2_dim=WRITTEN, image_embed_dim=VISION, rope_axes_dim=(4, 6, 6)), kind)


def make_first():
    return load(
        HunyuanVideoTransformer3DModel(
            in_channels=CHANNELS["first"], out_channels=CHANNELS["first"], num_attention_heads=3, attention_head_dim=16, num_layers=2, num_single_layers=2,
            num_refiner_layers=2, mlp_ratio=2.0, text_embed_dim=TEXT, pooled_projection_dim=POOLED, guidance_embeds=True, rope_axes_dim=(4, 6, 6)), "first")


def padded(states, batch):
    """With tokens behind them that nothing may read, and the mask that says so."""
    whole = torch.cat([states, 5 * randn(3, 1, PADDING, states.shape[2])], 1).expand(batch, -1, -1)
    return whole, torch.tensor([1] * states.shape[1] + [0] * PADDING).expand(batch, -1)


def velocity(model, x, level, context, concat, byt5=None, vision=None, target=None):
    batch = len(x)
    text, text_mask = padded(context, batch)
    written, written_mask = padded(torch.zeros(1, 0, WRITTEN) if byt5 is None else byt5, batch)
    seen = torch.zeros(1, SEEN, VISION) if vision is None else vision
    to = None if target is None else torch.as_tensor(1000.0 * target).expand(batch)
    return model(torch.cat([x, concat.expand(batch, -1, -1, -1, -1)], 1), (1000 * level).expand(batch), text, text_mask, to, written, written_mask,
                 seen.expand(batch, -1, -1), return_dict=False)[0]


def make_clip(model, clip, seed, frames, height, width, batch=1):
    channels = CHANNELS["later"]
    x = randn(seed, batch, channels, frames, height, width)
    inputs = {"x": x, "timestep": 1000 * LEVELS, "context": randn(seed + 1, 1, TOKENS, TEXT), "concat": randn(seed + 2, 1, channels + 1, frames, height, width)}
    if clip != "text":
        inputs["byt5"] = randn(seed + 3, 1, GLYPHS, WRITTEN)
    if clip == "picture":
        inputs["vision"] = randn(seed + 4, 1, SEEN, VISION)
    for name, tensor in inputs.items():
        expected[f"later.{clip}.{name}"] = tensor.clone()
    out = [velocity(model, x, level, inputs["context"], inputs["concat"], inputs.get("byt5"), inputs.get("vision")) for level in LEVELS]
    expected[f"later.{clip}.out"] = torch.stack(out)


def make_first_clip(model, clip, seed, frames, height, width, batch=1):
    x, context, y = randn(seed, batch, CHANNELS["first"], frames, height, width), randn(seed + 1, 1, TOKENS, TEXT), randn(seed + 2, batch, POOLED)
    guidance = torch.tensor([4.5])
    for name, tensor in {"x": x, "timestep": 1000 * LEVELS, "context": context, "y": y, "guidance": guidance}.items():
        expected[f"first.{clip}.{name}"] = tensor.clone()
    text, mask = padded(context, batch)
    out = [model(x, (1000 * level).expand(batch), text, mask, y, (1000 * guidance).expand(batch), return_dict=False)[0] for level in LEVELS]
    expected[f"first.{clip}.out"] = torch.stack(out)


def make_flow(model):
    x, context, other = randn(7, 1, CHANNELS["flow"], 2, 3, 4), randn(92, 1, TOKENS, TEXT), randn(93, 1, TOKENS, TEXT)
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = context, other
    nothing = torch.zeros(1, CHANNELS["flow"] + 1, *x.shape[2:])
    byt5, vision = randn(94, 1, GLYPHS, WRITTEN), randn(95, 1, SEEN, VISION)
    # In the autoencoder's units; of the mask 0 is given, as in ComfyUI.
    shown, mask = randn(96, 1, CHANNELS["flow"], *x.shape[2:]), torch.ones(1, 1, *x.shape[2:])
    shown[:, :, 1:], mask[:, :, :1] = 0, 0
    for name, tensor in {"conditioning_byt5small": byt5, "last_hidden": vision, "concat_latent_image": shown, "concat_mask": mask}.items():
        expected["in.one." + name] = tensor.clone()
    concat = torch.cat([SCALE * shown, 1 - mask], 1)
    # ComfyUI's `simple` schedule of 3 steps over 1000 levels of shift 7.
    levels = [7 * t / (1 + 6 * t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / 3))] for i in range(3)] + [0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        level = torch.tensor(here)
        yes, no = velocity(model, x, level, context, concat, byt5, vision), velocity(model, x, level, other, nothing)
        x = x + (no + 3 * (yes - no)) * (there - here)
    expected["flow.latent"] = x


def make_sharpened(model):
    """The super resolution of 1.5, as ComfyUI runs it: two latents beside the point, of which the second is mixed with noise
    of the seed - 10; two timesteps."""
    channels, context = CHANNELS["sharpened"], randn(93, 1, TOKENS, TEXT)
    x = randn(60, 2, channels, 2, 3, 4)
    inputs = {"x": x, "timestep": 1000 * LEVELS, "target_timestep": 1000 * LEVELS.roll(-1), "context": context, "concat": randn(61, 2, 2 * channels + 2, 2, 3, 4)}
    for name, tensor in inputs.items():
        expected[f"sharpened.{name}"] = tensor.clone()
    expected["sharpened.out"] = torch.stack([velocity(model, x, level, context, inputs["concat"], target=to) for level, to in zip(LEVELS, LEVELS.roll(-1))])

    given = randn(62, 2, channels, 2, 3, 4)
    expected["sharpened.given"] = given
    noise = torch.randn(given.shape, generator=torch.Generator().manual_seed(7 - 10))
    mixed = 0.4 * noise + 0.6 * given
    one = torch.ones(2, 1, 2, 3, 4)
    concat = torch.cat([0 * given, 0 * one, mixed, one], 1)
    # ComfyUI's `simple` schedule of 2 steps over 1000 levels of shift 2.
    levels = [2 * t / (1 + t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / 2))] for i in range(2)] + [0.0]
    x = torch.randn(2, channels, 2, 3, 4, generator=torch.Generator().manual_seed(7))
    for here, there in zip(sigmas, sigmas[1:]):
        x = x + velocity(model, x, torch.tensor(here), context, concat, target=torch.tensor(there)) * (there - here)
    expected["sharpened.latent"] = x


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "hunyuan")
    later = make_later("later")
    make_clip(later, "text", 10, 1, 4, 5, batch=2)
    make_clip(later, "words", 20, 3, 3, 4)
    make_clip(later, "picture", 30, 2, 5, 6, batch=2)
    first = make_first()
    make_first_clip(first, "short", 40, 1, 4, 6, batch=2)
    make_first_clip(first, "long", 50, 3, 6, 4)
    make_flow(make_later("flow"))
    make_sharpened(make_later("sharpened", 2 * CHANNELS["sharpened"] + 2))
    write(out, shapes, expected)


if __name__ == "__main__":
    main()
