"""Names of single files for weights that have diffusers' and transformers' names.

The inverse of what the model families read, written independently of them: every function takes a
state dict as diffusers or transformers saves it and returns one as the models' first publishers
did.
"""

import re

import torch

FLUX_TOP = {
    "x_embedder": "img_in",
    "context_embedder": "txt_in",
    "time_text_embed.timestep_embedder.linear_1": "time_in.in_layer",
    "time_text_embed.timestep_embedder.linear_2": "time_in.out_layer",
    "time_text_embed.text_embedder.linear_1": "vector_in.in_layer",
    "time_text_embed.text_embedder.linear_2": "vector_in.out_layer",
    "time_text_embed.guidance_embedder.linear_1": "guidance_in.in_layer",
    "time_text_embed.guidance_embedder.linear_2": "guidance_in.out_layer",
    "proj_out": "final_layer.linear",
}
FLUX_DOUBLE = {
    "norm1.linear": "img_mod.lin",
    "norm1_context.linear": "txt_mod.lin",
    "attn.to_out.0": "img_attn.proj",
    "attn.to_add_out": "txt_attn.proj",
    "ff.net.0.proj": "img_mlp.0",
    "ff.net.2": "img_mlp.2",
    "ff_context.net.0.proj": "txt_mlp.0",
    "ff_context.net.2": "txt_mlp.2",
}
FLUX_NORMS = {
    "norm_q": "img_attn.norm.query_norm",
    "norm_k": "img_attn.norm.key_norm",
    "norm_added_q": "txt_attn.norm.query_norm",
    "norm_added_k": "txt_attn.norm.key_norm",
}


def flux(state):
    """FluxTransformer2DModel -> img_in, double_blocks.N, single_blocks.N, final_layer."""
    left, out = dict(state), {}

    def move(old, new):
        out[new] = left.pop(old)

    def stack(olds, new):
        out[new] = torch.cat([left.pop(old) for old in olds])

    for old, new in FLUX_TOP.items():
        for kind in ("weight", "bias"):
            if f"{old}.{kind}" in left:
                move(f"{old}.{kind}", f"{new}.{kind}")
    for kind in ("weight", "bias"):  # (scale, shift) becomes (shift, scale)
        scale, shift = left.pop(f"norm_out.linear.{kind}").chunk(2)
        out[f"final_layer.adaLN_modulation.1.{kind}"] = torch.cat([shift, scale])
    depth = 1 + max(
        int(re.match(r"transformer_blocks\.(\d+)\.", name)[1])
        for name in state
        if name.startswith("transformer_blocks.")
    )
    for i in range(depth):
        old, new = f"transformer_blocks.{i}.", f"double_blocks.{i}."
        for kind in ("weight", "bias"):
            for a, b in FLUX_DOUBLE.items():
                move(f"{old}{a}.{kind}", f"{new}{b}.{kind}")
            stack(
                [f"{old}attn.{a}.{kind}" for a in ("to_q", "to_k", "to_v")],
                f"{new}img_attn.qkv.{kind}",
            )
            stack(
                [f"{old}attn.{a}.{kind}" for a in ("add_q_proj", "add_k_proj", "add_v_proj")],
                f"{new}txt_attn.qkv.{kind}",
            )
        for a, b in FLUX_NORMS.items():
            move(f"{old}attn.{a}.weight", f"{new}{b}.scale")
    depth = 1 + max(
        int(name.split(".")[1]) for name in state if name.startswith("single_transformer_blocks.")
    )
    for i in range(depth):
        old, new = f"single_transformer_blocks.{i}.", f"single_blocks.{i}."
        for kind in ("weight", "bias"):
            move(f"{old}norm.linear.{kind}", f"{new}modulation.lin.{kind}")
            stack(
                [f"{old}{a}.{kind}" for a in ("attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp")],
                f"{new}linear1.{kind}",
            )
            move(f"{old}proj_out.{kind}", f"{new}linear2.{kind}")
        move(f"{old}attn.norm_q.weight", f"{new}norm.query_norm.scale")
        move(f"{old}attn.norm_k.weight", f"{new}norm.key_norm.scale")
    assert not left, sorted(left)
    return out


def autoencoder(state):
    """AutoencoderKL -> encoder.down.N.block.M, decoder.up.N.block.M, mid.attn_1, ..."""
    levels = 1 + max(
        int(m[1]) for m in (re.match(r"decoder\.up_blocks\.(\d+)\.", name) for name in state) if m
    )
    out = {}
    for name, tensor in state.items():
        new = name
        new = re.sub(r"down_blocks\.(\d+)\.resnets\.(\d+)", r"down.\1.block.\2", new)
        new = re.sub(r"down_blocks\.(\d+)\.downsamplers\.0", r"down.\1.downsample", new)
        new = re.sub(
            r"up_blocks\.(\d+)\.resnets\.(\d+)",
            lambda m: f"up.{levels - 1 - int(m[1])}.block.{m[2]}",
            new,
        )
        new = re.sub(
            r"up_blocks\.(\d+)\.upsamplers\.0",
            lambda m: f"up.{levels - 1 - int(m[1])}.upsample",
            new,
        )
        new = re.sub(r"mid_block\.resnets\.(\d+)", lambda m: f"mid.block_{int(m[1]) + 1}", new)
        new = new.replace("mid_block.attentions.0.group_norm", "mid.attn_1.norm").replace(
            "mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out"
        )
        new = re.sub(r"mid_block\.attentions\.0\.to_([qkv])\.", r"mid.attn_1.\1.", new)
        new = new.replace("conv_norm_out", "norm_out").replace("conv_shortcut", "nin_shortcut")
        if ".attn_1." in new and tensor.dim() == 2:  # matrices are 1x1 filters there
            tensor = tensor[:, :, None, None]
        out[new] = tensor
    return out


def clip(state):
    """CLIPTextModel -> text_model.*, a prefix that not every version of transformers writes."""
    keep = lambda name: name.startswith("text_model.") or name == "text_projection.weight"
    return {name if keep(name) else f"text_model.{name}": tensor for name, tensor in state.items()}


def t5(state):
    """T5EncoderModel: the names are the same; the token table stands there twice."""
    out = dict(state)
    out["encoder.embed_tokens.weight"] = out["shared.weight"].clone()
    return out
