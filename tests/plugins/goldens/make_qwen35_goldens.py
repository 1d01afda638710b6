"""Writes what transformers makes with tiny models of Qwen3.5: states, scores, what its vision tower sees, and texts.

    make_qwen35_goldens.py [OUT]        (default: qwen35/ beside this file)

Needs torch, transformers, tokenizers and safetensors from PyPI; runs on the CPU in float64, but for what transformers does
in float32 whatever the type: linear attention, by chunks of 64 tokens, and rotary tables.
All weights follow from the names of their tensors (seeded_weights.py), but rows of lm_head from
FIRST_ADDED on, which are 0. Files:

    shapes.json             {model: {name of the tensor: shape}}: "small" has the head of the published models, so that it
                            needs no config; "large" has eight layers, and other sizes throughout
    configs.json            the config of "large"
    tokenizer.json          bytes, a few merges and the added tokens, under the rules that the published tokenizer has
    expected.safetensors    of either "NAME.ids" (2, S), "NAME.last_hidden", "NAME.layer.<i>", "NAME.logits"; of both, too,
                            "NAME.shown.ids" and so on: a text with a picture in it, whose numbers follow from its name,
                            with what the tower makes of it
    expected.json           texts of "small", without white space at their ends, always the likeliest token: "plain",
                            "thinking" with a system prompt, "raw", "picture" of qwen21_pictures/one.png,
                            asked what is in it
"""

import json
import os
import sys

import numpy
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration
from transformers.models.qwen3_5.tokenization_qwen3_5 import PRETOKENIZE_REGEX

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
PATCH, MERGE, UNIT = 16, 2, 32
ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<think>", "</think>"]
MERGES = "t h|th e|i n|e r|a n|o n|Ġ t|Ġ a|Ġt he|Ġ s|r e|i n|in g|Ġ f|o w|Ġs n|Ġsn ow|u s er|us er|a s|s i|e d|Ġ w".split("|")
FIRST_ADDED = 275
PROMPT = "a (red fox:1.2) in the snow, cafe\u0301 \u0915\u093f 2\u00bd 12"
USER, ANSWER = "<|im_start|>user\n{}<|im_end|>\n", "<|im_start|>assistant\n"
WITHOUT_THOUGHT = "<think>\n</think>\n"
expected, shapes, written = {}, {}, {}


def byte_characters():
    """The characters that stand for the 256 bytes, printable ASCII first."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in kept] + [chr(256 + i) for i in range(256 - len(kept))]


def make_tokenizer(out):
    vocabulary = {character: i for i, character in enumerate(byte_characters())}
    merges = []
    for merge in MERGES:
        left, *right = merge.split(" ")
        if len(right) != 1 or left + right[0] in vocabulary or left not in vocabulary or right[0] not in vocabulary:
            continue
        vocabulary[left + right[0]] = len(vocabulary)
        merges.append((left, right[0]))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRETOKENIZE_REGEX), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    assert len(vocabulary) == FIRST_ADDED, len(vocabulary)
    tokenizer.add_special_tokens([AddedToken(name, special="think" not in name) for name in ADDED[:6]])
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in ADDED[6:]])
    tokenizer.save(os.path.join(out, "tokenizer.json"))
    return tokenizer


def make_model(name, text, vision, pad):
    config = Qwen3_5Config(
        text_config=text | dict(vocab_size=320, rms_norm_eps=1e-6, max_position_embeddings=1024, tie_word_embeddings=False),
        vision_config=vision | dict(patch_size=PATCH, out_hidden_size=text["hidden_size"]),
        image_token_id=pad,
        tie_word_embeddings=False,
    )
    config._attn_implementation = "eager"
    model = Qwen3_5ForConditionalGeneration(config)
    shapes[name] = seeded_weights.load(model)
    model.lm_head.weight[FIRST_ADDED:] = 0  # nobody writes added tokens, pictures among them
    return model.double()


def patches_of(picture):
    """(H, W, 3) as it is normalised: units of 2 x 2 patches one after another, both frames alike."""
    height, width, colours = picture.shape
    rows, columns = height // UNIT, width // UNIT
    parts = picture.permute(2, 0, 1).reshape(colours, rows, MERGE, PATCH, columns, MERGE, PATCH)
    parts = parts.permute(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None].expand(-1, -1, -1, -1, -1, 2, -1, -1)
    return parts.reshape(rows * columns * MERGE * MERGE, -1).double(), torch.tensor([[1, height // PATCH, width // PATCH]])


def tell_states(name, model):
    ids = torch.randint(0, 300, (2, 70), generator=torch.Generator().manual_seed(5))
    told = model(input_ids=ids, output_hidden_states=True, use_cache=False)
    states = told.hidden_states
    expected.update({f"{name}.ids": ids.int(), f"{name}.last_hidden": states[-1], f"{name}.logits": told.logits[:1, -1]})
    for layer in range(3, min(5, len(states) - 1)):
        expected[f"{name}.layer.{layer}"] = states[layer]


def tell_shown(name, model, height, width):
    pad = model.config.image_token_id
    picture = seeded_weights.seeded(f"{name}.picture", (height * width * 3,)).reshape(height, width, 3)
    patches, grid = patches_of(picture)
    tokens = model.model.visual(patches, grid_thw=grid).pooler_output
    ids = torch.tensor([[3, 9, 11] + [pad] * tokens.shape[0] + [7, 4, 2, 200, 31]])
    is_picture = ids == pad
    places, _ = model.model.get_rope_index(input_ids=ids, mm_token_type_ids=is_picture.int(), image_grid_thw=grid)
    told = model(
        input_ids=ids,
        pixel_values=patches,
        image_grid_thw=grid,
        mm_token_type_ids=is_picture.int(),
        output_hidden_states=True,
        use_cache=False,
    )
    rows = torch.zeros(1, ids.shape[1], tokens.shape[1], dtype=tokens.dtype)
    rows[is_picture] = tokens
    expected.update({f"{name}.shown.tokens": tokens[None], f"{name}.shown.pictures": rows, f"{name}.shown.ids": ids.int()})
    expected[f"{name}.shown.is_text"] = (~is_picture)[:, :, None].float()
    expected[f"{name}.shown.positions"] = places[-3:, 0].T.float()
    expected[f"{name}.shown.last_hidden"] = told.hidden_states[-1]


def likeliest(model, ids, count, **pictures):
    more = []
    for _ in range(count):
        told = torch.tensor([ids + more])
        if pictures:
            pictures["mm_token_type_ids"] = (told == model.config.image_token_id).int()
        more.append(int(model(input_ids=told, use_cache=False, **pictures).logits[0, -1].argmax()))
    return more


def write_texts(model, tokenizer):
    def encode(text):
        return tokenizer.encode(text).ids

    plain = encode(USER.format(PROMPT) + ANSWER + WITHOUT_THOUGHT)
    thinking = encode("<|im_start|>system\nBe short.<|im_end|>\n" + USER.format(PROMPT) + ANSWER)
    image = Image.open(os.path.join(HERE, "qwen21_pictures/one.png")).convert("RGB")
    picture = torch.from_numpy(numpy.array(image)).float() / 127.5 - 1
    patches, grid = patches_of(picture)
    pads = "<|image_pad|>" * (picture.shape[0] // UNIT * (picture.shape[1] // UNIT))
    shown = encode(USER.format(f"<|vision_start|>{pads}<|vision_end|>what is in it?") + ANSWER + WITHOUT_THOUGHT)
    for name, ids in {
        "plain": likeliest(model, plain, 40),
        "thinking": likeliest(model, thinking, 10),
        "raw": likeliest(model, encode(PROMPT), 10),
        "picture": likeliest(model, shown, 10, pixel_values=patches, image_grid_thw=grid),
    }.items():
        written[name] = tokenizer.decode(ids).strip(" \t\r\n")
        print(name, len(ids), len(set(ids)), ids[:12])


def main(out):
    os.makedirs(out, exist_ok=True)
    tokenizer = make_tokenizer(out)
    pad = tokenizer.token_to_id("<|image_pad|>")
    rope = dict(rope_type="default", rope_theta=1e7, partial_rotary_factor=0.25, mrope_section=[11, 11, 10], mrope_interleaved=True)
    small = make_model(
        "small",
        dict(
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=4,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=256,
            linear_key_head_dim=16,
            linear_value_head_dim=16,
            linear_num_key_heads=2,
            linear_num_value_heads=4,
            rope_parameters=rope,
        ),
        dict(depth=2, hidden_size=64, intermediate_size=48, num_heads=16, num_position_embeddings=25),
        pad,
    )
    large_rope = rope | dict(rope_theta=1e6, partial_rotary_factor=0.5, mrope_section=[3, 3, 2])
    text = dict(
        hidden_size=48,
        intermediate_size=72,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        linear_conv_kernel_dim=6,
        linear_key_head_dim=24,
        linear_value_head_dim=20,
        linear_num_key_heads=2,
        linear_num_value_heads=6,
        rope_parameters=large_rope,
    )
    vision = dict(depth=3, hidden_size=32, intermediate_size=44, num_heads=2, num_position_embeddings=16)
    large = make_model("large", text, vision, pad)
    config = {key: text[key] for key in ("head_dim", "linear_key_head_dim", "rope_parameters")}
    configs = {"large": {"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text"} | config, "vision_config": {"num_heads": 2}}}
    for name, model, size in [("small", small, (64, 96)), ("large", large, (96, 32))]:
        tell_states(name, model)
        tell_shown(name, model, *size)
    write_texts(small, tokenizer)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (
            f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
            for name, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    for name, what in [("configs", configs), ("expected", written)]:
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(what, file, indent=1)
            file.write("\n")
    narrow = {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in expected.items()}
    save_file({name: tensor.clone().contiguous() for name, tensor in narrow.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "qwen35"))
