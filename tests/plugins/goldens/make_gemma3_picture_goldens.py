"""Writes what transformers makes of pictures with tiny models of Gemma 3.

    make_gemma3_picture_goldens.py [OUT]        (default: gemma3_pictures/ beside this file)

Needs numpy, torch, transformers, sentencepiece, pillow and safetensors from PyPI; runs on the CPU in float32. All weights follow from
the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor as ComfyUI's files have it: shape}}: "seeing" sees pictures of 112 pixels as 4
                            tokens, "larger" is a tower and a projector that sees those of 168 pixels as 9; "{0-3}" stands for each
                            of these numbers
    expected.safetensors    "seeing.tokens" and "larger.tokens" are made of pictures whose numbers follow from their names, too.
                            "image" and so on are the bytes of what follows a prompt with gemma4_pictures/fox.png, the likeliest token
                            each time; "image.prompt" and so on those prompts. The text encoder's tokenizer is
                            ../encoders/tokenizer/data/bpe.model, with one more token, which a picture takes the place of

As ComfyUI has it, and other than in transformers' processor, a picture keeps its aspect, and the tower sees its middle; its tokens see
those before them alone; and no <start_of_image> stands before it.
"""

import json
import math
import os
import sys

import numpy
import sentencepiece
import torch
from PIL import Image
from safetensors.torch import save_file
from torch.nn.functional import interpolate
from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3TextConfig, SiglipVisionConfig

import seeded_weights
from make_ltx2_text_goldens import TOKENIZER
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
IMAGE = "<image_soft_token>"
SYSTEM = "You are a helpful assistant."
expected, shapes = {}, {}


def file_name(name):
    for before, behind in (
        ("model.language_model.", "model."),
        ("model.vision_tower.", "vision_model."),
        ("model.multi_modal_projector.", "multi_modal_projector."),
    ):
        if name.startswith(before):
            return behind + name[len(before) :].removeprefix("vision_model.")
    return name


def make_model(rows, side, tokens, width, heads):
    text = Gemma3TextConfig(
        vocab_size=rows,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=7,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=256,
        query_pre_attn_scalar=256,
        sliding_window=512,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        },
    )
    vision = SiglipVisionConfig(
        hidden_size=width, intermediate_size=96, num_hidden_layers=2, num_attention_heads=heads, image_size=side, patch_size=14, vision_use_head=False
    )
    config = Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=tokens)
    config.image_token_id = rows - 1
    model = Gemma3ForConditionalGeneration._from_config(config, attn_implementation="eager")
    state, told = {}, {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        told[file_name(name)] = list(tensor.shape)
        state[name] = seeded_weights.seeded(file_name(name), tuple(tensor.shape))
    model.load_state_dict(state, strict=False)
    model.tie_weights()
    return model.eval(), told


def see(name, model, side):
    numbers = seeded_weights.seeded(f"{name}.picture", (side * side * 3,)).reshape(1, side, side, 3)
    expected[f"{name}.tokens"] = model.model.get_image_features(numbers.permute(0, 3, 1, 2)).pooler_output


def shown(picture, side, is_even=True, is_cut=True):
    """A picture (1, 3, H, W) from 0 to 1 as ComfyUI shows it: as many pixels as the square by areas, then its middle."""
    height, width = picture.shape[2:]
    if is_even:
        factor = math.sqrt(side * side / (width * height))
        picture = interpolate(picture, (round(height * factor), round(width * factor)), mode="area")
        height, width = picture.shape[2:]
    factor = side / min(height, width)
    size = (round(height * factor), round(width * factor)) if is_cut else (side, side)
    if (height, width) != (side, side):
        picture = interpolate(picture, size, mode="bicubic", antialias=True)
    top, left = (picture.shape[2] - side) // 2, (picture.shape[3] - side) // 2
    picture = picture[:, :, top : top + side, left : left + side]
    return ((255 * picture).clip(0, 255).round() / 255 - 0.5) / 0.5


def follow(model, tokenizer, prompt, pixels, count):
    """Ids of what follows. A picture has the tower's number of tokens in the place of the mark."""
    ids, parts = [tokenizer.bos_id()], prompt.split(IMAGE)
    for part in parts[:-1]:
        ids += tokenizer.encode(part) + [model.config.image_token_id] * model.config.mm_tokens_per_image
    ids = torch.tensor([ids + tokenizer.encode(parts[-1])])
    begin = ids.shape[1]
    for _ in range(count):
        scores = model(input_ids=ids, pixel_values=torch.cat(pixels), use_cache=False).logits[0, -1]
        ids = torch.cat([ids, scores.argmax().reshape(1, 1)], dim=1)
    return ids[0, begin:].tolist()


def write(model, tokenizer, name, prompt, pictures, is_told=False, count=8):
    """is_told: in this text each step counts that a picture takes to the tower."""
    side = model.config.vision_config.image_size
    written = follow(model, tokenizer, prompt, [shown(one, side) for one in pictures], count)
    for other in ({"is_even": False}, {"is_cut": False}) if is_told else ():
        assert follow(model, tokenizer, prompt, [shown(one, side, **other) for one in pictures], count) != written
    assert max(written) < tokenizer.get_piece_size()
    text = tokenizer.decode(written)
    print(name, repr(text), written)
    expected[name] = torch.tensor(list(text.strip().encode()), dtype=torch.uint8)
    expected[f"{name}.prompt"] = torch.tensor(list(prompt.encode()), dtype=torch.uint8)


def main(out):
    os.makedirs(out, exist_ok=True)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=TOKENIZER)
    rows = tokenizer.get_piece_size() + 1
    seeing, shapes["seeing"] = make_model(rows, 112, 4, 144, 2)
    larger, told = make_model(rows, 168, 9, 72, 1)
    shapes["larger"] = {name: shape for name, shape in told.items() if not name.startswith("model.")}
    see("seeing", seeing, 112)
    see("larger", larger, 168)
    image = Image.open(os.path.join(HERE, "gemma4_pictures/fox.png"))
    fox = torch.from_numpy(numpy.array(image)).permute(2, 0, 1)[None].float() / 255
    user, model = "<start_of_turn>user\n\n", "<start_of_turn>model\n"
    system, end = f"<start_of_turn>system\n{SYSTEM}<end_of_turn>\n", "<end_of_turn>\n"
    write(seeing, tokenizer, "image", f"{system}{user}{IMAGE}two trees{end}\n{model}", [fox], is_told=True)
    write(seeing, tokenizer, "tall", f"{system}{user}{IMAGE}a red fox{end}\n{model}", [fox.rot90(-1, (2, 3))])
    write(seeing, tokenizer, "two", f"{system}{user}{IMAGE}{IMAGE}a red fox{end}\n{model}", [fox, fox.flip(3)])
    told = f"<start_of_turn>system\nYou are a poet.{end}{user}{IMAGE}\n\na red fox.{end}{model}"
    write(seeing, tokenizer, "told", told, [fox])
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "gemma3_pictures"))
