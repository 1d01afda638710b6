"""Writes what diffusers and transformers make with tiny models of Krea 2.

    make_krea2_goldens.py [OUT]        (default: krea2/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "transformer" and "text", which
                            is Qwen3-VL with its vision tower; "{0-3}" stands for each of these numbers
    expected.safetensors    "square.x" is an input, "square.out" an output with a row for each step; "wide" and "odd"
                            likewise, "odd" with an odd side; "flow.states" are those of the prompt of
                            workflows/expected.safetensors ("qwen_image.ids": the template is the same), "flow.latent" is
                            the end of 3 steps without guidance, "flow.picture" what Qwen-Image's autoencoder of
                            workflows/ makes of it
"""

import json
import math
import os
import sys

import torch
from diffusers import Krea2Pipeline, Krea2Transformer2DModel
from safetensors.torch import load_file, save_file
from transformers import Qwen3VLConfig, Qwen3VLModel

import seeded_weights
from make_workflow_goldens import make_vae, picture_of, sample
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LEVELS = 24, torch.tensor([0.9, 0.55, 0.125])
LAYERS = (2, 5, 8, 11, 14, 17, 20, 23, 26, 29, 32, 35)  # those that Krea2Pipeline takes
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of Krea2Transformer2DModel."""
    beginnings = (
        ("img_in.", "first."),
        ("time_embed.linear_1.", "tmlp.0."),
        ("time_embed.linear_2.", "tmlp.2."),
        ("time_mod_proj.", "tproj.1."),
        ("txt_in.norm.weight", "txtmlp.0.scale"),
        ("txt_in.linear_1.", "txtmlp.1."),
        ("txt_in.linear_2.", "txtmlp.3."),
        ("text_fusion.", "txtfusion."),
        ("transformer_blocks.", "blocks."),
        ("final_layer.linear.", "last.linear."),
        ("final_layer.norm.weight", "last.norm.scale"),
        ("final_layer.scale_shift_table", "last.modulation.lin"),
    )
    for here, there in beginnings:
        if name.startswith(here):
            name = there + name[len(here) :]
            break
    for here, there in (
        ("attn.to_q.", "attn.wq."),
        ("attn.to_k.", "attn.wk."),
        ("attn.to_v.", "attn.wv."),
        ("attn.to_out.0.", "attn.wo."),
        ("attn.to_gate.", "attn.gate."),
        ("attn.norm_q.weight", "attn.qknorm.qnorm.scale"),
        ("attn.norm_k.weight", "attn.qknorm.knorm.scale"),
        (".ff.", ".mlp."),
        (".norm1.weight", ".prenorm.scale"),
        (".norm2.weight", ".postnorm.scale"),
        (".scale_shift_table", ".mod.lin"),
    ):
        name = name.replace(here, there)
    return name


def original_shape(name, shape):
    """A block's six modulations stand in one row."""
    return [math.prod(shape)] if name.endswith(".mod.lin") else list(shape)


def make_transformer():
    model = Krea2Transformer2DModel(
        in_channels=64,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=96,
        text_hidden_dim=WIDTH,
        num_text_layers=len(LAYERS),
        text_num_attention_heads=2,
        text_num_key_value_heads=1,
        text_intermediate_size=40,
        num_layerwise_text_blocks=1,
        num_refiner_text_blocks=2,
        axes_dims_rope=(4, 6, 6),
    )
    state = {}
    for name, tensor in model.state_dict().items():
        there = original(name)
        shape = original_shape(there, tensor.shape)
        shapes.setdefault("transformer", {})[there] = shape
        state[name] = seeded_weights.seeded(there, tuple(shape)).reshape(tensor.shape)
    model.load_state_dict(state)
    return model.eval()


def velocity(model, x, sigma, context):
    """context: the states of the layers side by side. Odd sides are completed by the first row and column."""
    height, width = x.shape[2:]
    even = torch.nn.functional.pad(x, (0, width % 2, 0, height % 2), mode="circular")
    batch, channels, rows, columns = len(x), x.shape[1], even.shape[2] // 2, even.shape[3] // 2
    packed = even.view(batch, channels, rows, 2, columns, 2).permute(0, 2, 4, 1, 3, 5).reshape(batch, rows * columns, -1)
    out = model(
        packed,
        context.unflatten(-1, (len(LAYERS), WIDTH)).expand(batch, -1, -1, -1),
        sigma.expand(batch),
        Krea2Pipeline.prepare_position_ids(context.shape[1], rows, columns, "cpu"),
    ).sample
    out = out.view(batch, rows, columns, channels, 2, 2).permute(0, 3, 1, 4, 2, 5).reshape(even.shape)
    return out[:, :, :height, :width]


def forward(model, name, x, context):
    out = torch.stack([velocity(model, x, sigma, context) for sigma in LEVELS])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": out})


def make_text():
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    model = Qwen3VLModel(
        Qwen3VLConfig(
            text_config=dict(
                vocab_size=151936,
                hidden_size=WIDTH,
                intermediate_size=32,
                num_hidden_layers=36,
                num_attention_heads=2,
                num_key_value_heads=1,
                head_dim=16,
                rms_norm_eps=1e-6,
                rope_parameters=rope,
            ),
            vision_config=dict(
                depth=1,
                hidden_size=64,
                intermediate_size=24,
                num_heads=16,
                patch_size=4,
                out_hidden_size=WIDTH,
                num_position_embeddings=16,
                deepstack_visual_indexes=[0],
            ),
        )
    )
    shapes["text"] = seeded_weights.load(model, lambda name: f"model.{name}")
    return model


def flow_levels(mu, steps):
    """KSampler's "simple" over ComfyUI's ten thousand levels of an exponential shift."""
    t = torch.arange(1, 10001, dtype=torch.float64) / 10000
    levels = (math.exp(mu) / (math.exp(mu) + (1 / t - 1))).float()
    return [levels[-1 - int(k * (10000 / steps))] for k in range(steps)] + [torch.tensor(0.0)]


def make_workflow(model):
    ids = load_file(os.path.join(HERE, "workflows/expected.safetensors"))["qwen_image.ids"].long()
    # As the pipeline does without its padding, which nobody sees and which takes no places.
    hidden = make_text()(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
    states = torch.cat([hidden[layer] for layer in LAYERS], dim=2)[:, 34:]
    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    latent = sample(lambda x, sigma: velocity(model, x, sigma, states), noise, flow_levels(1.15, 3))
    expected.update({"flow.states": states, "flow.latent": latent, "flow.picture": picture_of(make_vae(), latent)})


def main(out):
    os.makedirs(out, exist_ok=True)
    model = make_transformer()
    width = WIDTH * len(LAYERS)
    forward(model, "square", randn(1, 2, 16, 6, 6), randn(2, 2, 5, width))
    forward(model, "wide", randn(3, 1, 16, 4, 10), randn(4, 1, 9, width))
    forward(model, "odd", randn(5, 2, 16, 5, 9), randn(6, 1, 3, width))
    make_workflow(model)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "krea2"))
