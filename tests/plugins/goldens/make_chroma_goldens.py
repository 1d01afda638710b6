"""Writes what diffusers and transformers make with a tiny model of Chroma.

    make_chroma_goldens.py [OUT]        (default: chroma/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {"transformer": {name of the tensor in the publisher's file: shape}}; "{0-1}" stands for each
                            of these numbers
    expected.safetensors    "square.x" is an input, "square.out" an output with a row for each step; "wide", "odd" and
                            "told" likewise, "odd" with an odd side, "told" with a guidance, which ComfyUI gives the
                            model and diffusers does not. "flow.states" are those that the encoder "t5xxl" of sd3/ makes
                            of a prompt without padding, "flow.weighted" those with a weight of 1.3 on its last word,
                            "flow.latent" is the end of a guided run of 3 steps, "flow.picture" what the autoencoder
                            "z_image.vae" of workflows/ makes of it
"""

import functools
import json
import os
import sys

import torch
from diffusers import AutoencoderKL, ChromaTransformer2DModel
from safetensors.torch import save_file

import make_sd3_goldens
import seeded_weights
from make_workflow_goldens import sample, shifted_levels
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = make_sd3_goldens.T5_WIDTH
LEVELS = torch.tensor([0.9, 0.55, 0.125])

BEGINNINGS = {
    "x_embedder.": "img_in.",
    "context_embedder.": "txt_in.",
    "proj_out.": "final_layer.linear.",
    "transformer_blocks.": "double_blocks.",
    "single_transformer_blocks.": "single_blocks.",
}
PARTS = {
    ".linear_1.": ".in_layer.",
    ".linear_2.": ".out_layer.",
    ".attn.to_out.0.": ".img_attn.proj.",
    ".attn.to_add_out.": ".txt_attn.proj.",
    ".ff.net.0.proj.": ".img_mlp.0.",
    ".ff.net.2.": ".img_mlp.2.",
    ".ff_context.net.0.proj.": ".txt_mlp.0.",
    ".ff_context.net.2.": ".txt_mlp.2.",
    ".attn.norm_added_q.weight": ".txt_attn.norm.query_norm.scale",
    ".attn.norm_added_k.weight": ".txt_attn.norm.key_norm.scale",
}
JOINED = (  # in the order of their rows
    (".img_attn.qkv.", (".attn.to_q.", ".attn.to_k.", ".attn.to_v.")),
    (".txt_attn.qkv.", (".attn.add_q_proj.", ".attn.add_k_proj.", ".attn.add_v_proj.")),
)
JOINED_OF_SINGLE = (".linear1.", (".attn.to_q.", ".attn.to_k.", ".attn.to_v.", ".proj_mlp."))


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of the tensor that this one is, or is rows of, and which part of it."""
    is_single = name.startswith("single_")
    part = 0
    for here, there in BEGINNINGS.items():
        if name.startswith(here):
            name = there + name[len(here) :]
            break
    for there, heres in (JOINED_OF_SINGLE,) if is_single else JOINED:
        for number, here in enumerate(heres):
            if here in name:
                name, part = name.replace(here, there), number
    for here, there in PARTS.items():
        name = name.replace(here, there)
    if name.startswith("distilled_guidance_layer.norms."):
        name = name.replace(".weight", ".scale")
    norm = ".norm." if is_single else ".img_attn.norm."
    name = name.replace(".attn.norm_q.weight", norm + "query_norm.scale")
    name = name.replace(".attn.norm_k.weight", norm + "key_norm.scale")
    return (name.replace(".proj_out.", ".linear2.") if is_single else name), part


def original_shapes(state):
    """{the publisher's name: shape} of a state dict of diffusers."""
    shapes = {}
    for name, tensor in state.items():
        there, _ = original(name)
        rows = shapes[there][0] if there in shapes else 0
        shapes[there] = [rows + tensor.shape[0], *tensor.shape[1:]]
    return shapes


def tiny_model():
    return ChromaTransformer2DModel(
        in_channels=64,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=24,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        axes_dims_rope=(16, 4, 4),
        approximator_num_channels=64,
        approximator_hidden_dim=32,
        approximator_layers=2,
    ).eval()


def fill(state):
    """Gives tensors of diffusers the weights of the publisher's; returns the shapes of those."""
    shapes, parts = original_shapes(state), {}
    for name in state:
        there, part = original(name)
        parts.setdefault(there, {})[part] = name
    for there, names in parts.items():
        rows = seeded_weights.seeded(there, tuple(shapes[there]))
        for part in sorted(names):
            count = state[names[part]].shape[0]
            state[names[part]], rows = rows[:count], rows[count:]
    return shapes


def make_transformer():
    model = tiny_model()
    state = model.state_dict()
    shapes = fill(state)
    model.load_state_dict(state)
    return model, shapes


class Told(torch.nn.Module):
    """In the place of the waves of diffusers' guidance, which is 0."""

    def __init__(self, waves, guidance):
        super().__init__()
        self.waves, self.guidance = waves, guidance

    def forward(self, zeros):
        return self.waves(torch.full((len(zeros),), 1000 * self.guidance))


def velocity(model, x, sigma, context):
    """All of the text is seen. Odd sides are completed by the first row and column, as ComfyUI does."""
    height, width = x.shape[2:]
    even = torch.nn.functional.pad(x, (0, width % 2, 0, height % 2), mode="circular")
    batch, channels, rows, columns = len(x), x.shape[1], even.shape[2] // 2, even.shape[3] // 2
    packed = even.view(batch, channels, rows, 2, columns, 2).permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)
    places = torch.zeros(rows, columns, 3)
    places[..., 1], places[..., 2] = torch.arange(rows)[:, None], torch.arange(columns)[None]
    out = model(
        packed,
        encoder_hidden_states=context.expand(batch, -1, -1),
        timestep=sigma.expand(batch),
        img_ids=places.reshape(-1, 3),
        txt_ids=torch.zeros(context.shape[1], 3),
    ).sample
    out = out.view(batch, rows, columns, channels, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(even.shape)
    return out[:, :, :height, :width]


def forward(velocity, expected, name, x, context):
    """velocity(x, sigma, context)"""
    out = torch.stack([velocity(x, sigma, context) for sigma in LEVELS])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": out})


def texts():
    """(encode(token ids), the positive text's states, the negative one's)"""
    t5 = make_sd3_goldens.make_t5()
    words, end = make_sd3_goldens.T5_IDS, make_sd3_goldens.T5_END

    def encode(ids):
        return t5(input_ids=torch.tensor([ids])).last_hidden_state

    return encode, encode([*words, end]), encode([end])


def drawn(velocity, positive, negative, *shape):
    """The latent at the end of a guided run of 3 steps."""

    def predict(x, sigma):
        with_text, without = velocity(x, sigma, positive), velocity(x, sigma, negative)
        return without + 3.5 * (with_text - without)

    return sample(predict, randn(7, *shape), shifted_levels(1.0, 3))


def write(out, models, expected):
    """models: {name: {the publisher's name of a tensor: shape}}"""
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        parts = []
        for model, shapes in models.items():
            rows = ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(shapes).items())
            parts.append(f' "{model}": {{\n{rows}\n }}')
        file.write("{\n" + ",\n".join(parts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


def make_workflow(model, expected):
    encode, positive, negative = texts()
    words = make_sd3_goldens.T5_IDS
    empty, weights = encode([0] * (len(words) + 1)), torch.ones(1, len(words) + 1, 1)
    weights[:, len(words) - 1] = 1.3
    latent = drawn(functools.partial(velocity, model), positive, negative, 1, 16, 6, 10)
    vae = AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        block_out_channels=[32] * 4,
        layers_per_block=1,
        latent_channels=16,
        norm_num_groups=32,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    seeded_weights.load(vae)
    picture = ((vae.decode(latent / 0.3611 + 0.1159).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    told = {"states": positive, "weighted": empty + (positive - empty) * weights, "latent": latent, "picture": picture}
    expected.update({f"flow.{key}": tensor for key, tensor in told.items()})


def main(out):
    model, shapes = make_transformer()
    expected, told = {}, functools.partial(velocity, model)
    forward(told, expected, "square", randn(1, 2, 16, 6, 6), randn(2, 2, 5, WIDTH))
    forward(told, expected, "wide", randn(3, 1, 16, 4, 10), randn(4, 1, 9, WIDTH))
    forward(told, expected, "odd", randn(5, 2, 16, 5, 9), randn(6, 1, 3, WIDTH))
    make_workflow(model, expected)
    expected["told.guidance"] = torch.tensor([2.5])
    model.time_text_embed.guidance_proj = Told(model.time_text_embed.guidance_proj, 2.5)
    forward(told, expected, "told", randn(7, 1, 16, 4, 4), randn(8, 1, 3, WIDTH))
    write(out, {"transformer": shapes}, expected)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "chroma"))
