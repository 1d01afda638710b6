"""Writes what diffusers and transformers make with tiny models of Lumina 2.

    make_lumina2_goldens.py [OUT]        (default: lumina2/ beside this file)

Needs torch, diffusers, transformers, sentencepiece and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's files: shape}}: "transformer" and "text";
                            "{0-3}" stands for each of these numbers
    expected.safetensors    "square.x" is an input, "square.out" an output with a row for each step; "odd" likewise, with
                            an odd side; "flow.states" are those of a prompt, "flow.latent" is the end of a guided run of
                            3 steps, "flow.picture" what the autoencoder "z_image.vae" of workflows/shapes.json makes of it;
                            the text encoder's tokenizer is ../encoders/tokenizer/data/bpe.model
"""

import json
import os
import sys

import sentencepiece
import torch
from diffusers import Lumina2Transformer2DModel
from safetensors.torch import save_file
from transformers import Gemma2Config, Gemma2Model

import seeded_weights
from make_workflow_goldens import flux_picture_of, make_flux_vae, sample, shifted_levels
from name_patterns import compressed

torch.set_grad_enabled(False)
WIDTH, PROMPT = 24, "a photo of a red fox in the snow"
LEVELS = torch.tensor([0.9, 0.55, 0.125])
TOKENIZER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer/data/bpe.model")
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of Lumina2Transformer2DModel; queries, keys and values are parts of one."""
    for here, there in (
        ("time_caption_embed.timestep_embedder.linear_1", "t_embedder.mlp.0"),
        ("time_caption_embed.timestep_embedder.linear_2", "t_embedder.mlp.2"),
        ("time_caption_embed.caption_embedder", "cap_embedder"),
        ("norm_out.linear_1", "final_layer.adaLN_modulation.1"),
        ("norm_out.linear_2", "final_layer.linear"),
        ("attn.to_out.0", "attention.out"),
        ("attn.norm_q", "attention.q_norm"),
        ("attn.norm_k", "attention.k_norm"),
        ("attn.to_", "attention."),
        ("feed_forward.linear_", "feed_forward.w"),
        (".norm1.linear.", ".adaLN_modulation.1."),
        (".norm1.norm.", ".attention_norm1."),
        (".norm1.", ".attention_norm1."),
        (".norm2.", ".attention_norm2."),
    ):
        name = name.replace(here, there)
    return name


def make_transformer():
    model = Lumina2Transformer2DModel(
        in_channels=16,
        hidden_size=48,
        num_layers=2,
        num_refiner_layers=1,
        num_attention_heads=4,
        num_kv_heads=2,
        multiple_of=16,
        axes_dim_rope=(4, 4, 4),
        cap_feat_dim=WIDTH,
    )
    state, named = model.state_dict(), {}
    for name, tensor in state.items():
        third = next((part for part in "qkv" if f"attn.to_{part}." in name), None)
        if third is None:
            named[original(name)] = list(tensor.shape)
            state[name] = seeded_weights.seeded(original(name), tuple(tensor.shape))
            continue
        sizes = [state[name.replace(f"to_{third}.", f"to_{part}.")].shape[0] for part in "qkv"]
        fused = original(name).replace(f"attention.{third}.", "attention.qkv.")
        named[fused] = [sum(sizes), tensor.shape[1]]
        whole = seeded_weights.seeded(fused, tuple(named[fused]))
        state[name] = whole.split(sizes)["qkv".index(third)]
    named["norm_final.weight"] = [48]  # nobody reads it
    model.load_state_dict(state)
    shapes["transformer"] = named
    return model.eval()


def velocity(model, x, sigma, context):
    """As ComfyUI asks the model: the level counted from the other end, and the result's opposite. Odd sides are
    completed by the first row and column."""
    height, width = x.shape[2:]
    even = torch.nn.functional.pad(x, (0, width % 2, 0, height % 2), mode="circular")
    context = context.expand(len(x), -1, -1)
    mask = torch.ones(context.shape[:2], dtype=torch.long)
    return -model(even, (1 - sigma).expand(len(x)), context, mask).sample[:, :, :height, :width]


def forward(model, name, x, context):
    out = torch.stack([velocity(model, x, sigma, context) for sigma in LEVELS])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": out})


def make_workflow(model):
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=TOKENIZER)
    config = Gemma2Config(
        vocab_size=tokenizer.get_piece_size(),
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=256,
        query_pre_attn_scalar=256,
        attn_implementation="eager",
    )
    text = Gemma2Model(config)
    shapes["text"] = seeded_weights.load(text, lambda name: f"model.{name}")

    def encode(prompt):
        ids = [tokenizer.bos_id(), *tokenizer.encode(prompt)]
        return text(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states[-2]

    positive, negative = encode(PROMPT), encode("")

    def predict(x, sigma):
        with_text, without = velocity(model, x, sigma, positive), velocity(model, x, sigma, negative)
        return without + 4 * (with_text - without)

    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    latent = sample(predict, noise, shifted_levels(6.0, 3))
    vae, _ = make_flux_vae()
    expected.update({"flow.states": positive, "flow.latent": latent, "flow.picture": flux_picture_of(vae, latent)})


def main(out):
    os.makedirs(out, exist_ok=True)
    model = make_transformer()
    forward(model, "square", randn(1, 2, 16, 6, 6), randn(2, 2, 5, WIDTH))
    forward(model, "odd", randn(3, 1, 16, 5, 9), randn(4, 1, 33, WIDTH))
    make_workflow(model)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "lumina2"))
