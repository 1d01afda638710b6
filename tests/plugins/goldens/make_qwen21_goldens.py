"""Writes what diffusers and transformers make with tiny models of Qwen-Image 2.1, of a text alone.

    make_qwen21_goldens.py [OUT]        (default: qwen21/ beside this file)

Needs torch, diffusers, transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. All weights
follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "transformer" and "text", which
                            is Qwen3-VL with its vision tower; "{0-3}" stands for each of these numbers
    expected.safetensors    "square.x" is an input, "square.out" an output with a row for each step; "wide" and "odd"
                            likewise; "flow.states" are those of a prompt, "flow.latent" is the end of 3 steps
"""

import json
import os
import sys

import torch
from diffusers import QwenImage21Transformer2DModel
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import Qwen3VLConfig, Qwen3VLModel

import seeded_weights
from make_krea2_goldens import flow_levels
from make_workflow_goldens import sample
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = "a photo of a (red fox:1.1) in the snow, soft light"
WIDTH, CHANNELS, LEVELS = 24, 8, torch.tensor([0.9, 0.55, 0.125])
IM_START, IM_END, LINE = 151644, 151645, 198
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def shipped_tokenizer():
    """Qwen's, out of the merges of plugins/encoders/vocabularies; it knows no special tokens."""
    with open(os.path.join(HERE, "../../../plugins/encoders/vocabularies/qwen2.5.bin"), "rb") as file:
        data = file.read()
    plain = set(range(33, 127)) | set(range(161, 173)) | set(range(174, 256))
    tokens = [chr(c) for c in sorted(plain)] + [chr(256 + i) for i in range(256 - len(plain))]
    numbers, at = [], 0
    while at < len(data):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                break
        numbers.append(value)
    merges = []
    for left, right in zip(numbers[::2], numbers[1::2]):
        merges.append((tokens[left], tokens[right]))
        tokens.append(tokens[left] + tokens[right])
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    words = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"""
             r"""\s*[\r\n]+|\s+(?!\S)|\s+""")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(words), behavior="isolated", invert=False),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    return tokenizer


def make_transformer():
    model = QwenImage21Transformer2DModel(
        in_channels=CHANNELS,
        out_channels=CHANNELS,
        num_layers=2,
        attention_head_dim=32,
        num_attention_heads=2,
        context_in_dim=WIDTH,
        axes_dims_rope=(4, 14, 14),
    )
    shapes["transformer"] = seeded_weights.load(model)
    return model


def velocity(model, x, sigma, context):
    batch, channels, height, width = x.shape
    count = height * width
    assert count % 4 == 0  # each slot of a picture stands for four tokens
    mask = torch.zeros(batch, context.shape[1] + count // 4, dtype=torch.bool)
    mask[:, context.shape[1] :] = True
    out = model(
        x.permute(0, 2, 3, 1).reshape(batch, count, channels),
        context.expand(batch, -1, -1),
        sigma.expand(batch),
        img_shapes=[[(1, height, width)]] * batch,
        img_mask=mask,
    ).sample[:, -count:]
    return out.view(batch, height, width, channels).permute(0, 3, 1, 2)


def forward(model, name, x, context):
    out = torch.stack([velocity(model, x, sigma, context) for sigma in LEVELS])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": out})


def make_text():
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    text = dict(
        vocab_size=151936,
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        rms_norm_eps=1e-6,
        rope_parameters=rope,
    )
    vision = dict(
        depth=1,
        hidden_size=64,
        intermediate_size=24,
        num_heads=16,
        patch_size=4,
        out_hidden_size=WIDTH,
        num_position_embeddings=16,
        deepstack_visual_indexes=[0],
    )
    model = Qwen3VLModel(Qwen3VLConfig(text_config=text, vision_config=vision))
    shapes["text"] = seeded_weights.load(model, lambda name: f"model.{name}")
    return model


def encode(model, prompt):
    """The states behind the last layer, before the final norm, without those of the system's turn."""
    tokenizer = shipped_tokenizer()

    def turn(text):
        return [IM_START, *tokenizer.encode(text).ids]

    system = turn("system\nComprehend and analyze the provided prompt.") + [IM_END, LINE]
    ids = system + turn(f"user\n{prompt}") + [IM_END, LINE] + turn("assistant\n")
    kept = []
    handle = model.language_model.layers[-1].register_forward_hook(lambda module, given, made: kept.append(made))
    model(input_ids=torch.tensor([ids]), use_cache=False)
    handle.remove()
    made = kept[0]
    return (made[0] if isinstance(made, tuple) else made)[:, len(system) :]


def main(out):
    os.makedirs(out, exist_ok=True)
    model = make_transformer()
    forward(model, "square", randn(1, 2, CHANNELS, 6, 6), randn(2, 2, 5, WIDTH))
    forward(model, "wide", randn(3, 1, CHANNELS, 4, 10), randn(4, 1, 17, WIDTH))
    forward(model, "odd", randn(5, 2, CHANNELS, 3, 8), randn(6, 1, 3, WIDTH))
    states = encode(make_text(), PROMPT)
    noise = torch.randn(1, CHANNELS, 4, 6, generator=torch.Generator().manual_seed(7))
    latent = sample(lambda x, sigma: velocity(model, x, sigma, states), noise, flow_levels(0.69, 3))
    expected.update({"flow.states": states, "flow.latent": latent})
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "qwen21"))
