"""Writes what transformers makes of pictures with tiny models of Gemma 4.

    make_gemma4_picture_goldens.py [OUT]        (default: gemma4_pictures/ beside this file)

Needs torch, torchvision, transformers, tokenizers, pillow and safetensors from PyPI; runs on the CPU in float32. All weights
follow from the names of their tensors (seeded_weights.py), but limits around matrices (limit()), so only shapes are written, and
what comes out:

    shapes.json             {model: {name of the tensor as ComfyUI's files have it: shape}}: "told" is E2B with a vision tower whose
                            matrices have limits, "plain" a tower as 31B has it, without, whose tokens have a mean and a deviation,
                            "dense" is 12B, which sees pixels; "{0-3}" stands for each of these numbers
    tokenizer.json          a vocabulary of the kind that Gemma 4 has
    fox.png                 a picture of odd sides
    expected.safetensors    "told.wide.tokens" and so on what is made of a picture whose numbers follow from its name, too. "seen."
                            bytes of such a picture in another size. "told.image" and so on are the bytes of what follows a prompt
                            with pictures, the likeliest token each time; "told.image.prompt" and so on those prompts. "groups." are inputs of
                            "dense" with windows of 8 tokens, and "groups.states" what comes out
"""

import json
import os
import sys

import numpy
import torch
import torchvision.transforms.functional as vision
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import (
    Gemma4Config,
    Gemma4ForConditionalGeneration,
    Gemma4UnifiedConfig,
    Gemma4UnifiedForConditionalGeneration,
    Gemma4UnifiedTextConfig,
    Gemma4VisionConfig,
    Gemma4VisionModel,
)
from transformers.models.gemma4.modeling_gemma4 import Gemma4MultimodalEmbedder

import make_gemma4_goldens as gemma4
import make_ltx25_text_goldens as texts
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
PATCH, POOL, UNIT = 16, 3, 48
IMAGE, VIDEO = "<|image|>", "<|video|>"
MARKS = ["<|image>", "<image|>", IMAGE, VIDEO, "<|audio>", "<audio|>", "<|audio|>"]
expected, shapes = {}, {}


def limit(name):
    """Of what a matrix is given and makes: such that some numbers are cut off."""
    size = 0.25 * (2 + seeded_weights._hash(name) % 8)
    return -size if name.endswith("_min") else size


def file_name(name):
    for before, behind in (
        ("model.language_model.", "model."),
        ("model.vision_tower.", "vision_model."),
        ("model.embed_vision.multimodal_embedder.", "multi_modal_projector."),
        ("model.embed_vision.embedding_", "multi_modal_projector.embedding_"),
        ("model.embed_vision.", "vision_model."),
        ("model.embed_audio.", "audio_projector."),
    ):
        if name.startswith(before):
            return behind + name[len(before) :]
    return name


def load(model, named=file_name):
    """As seeded_weights.load(), with limits. Returns shapes."""
    told, state = {}, {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        other = named(name)
        told[other] = list(tensor.shape)
        if other.endswith(("_min", "_max")):
            state[name] = torch.tensor(limit(other))
        else:
            state[name] = seeded_weights.seeded(other, tuple(tensor.shape))
    model.load_state_dict(state, strict=False)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    model.eval()
    return told


def tower(**more):
    return Gemma4VisionConfig(
        hidden_size=24,
        intermediate_size=40,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=3,
        head_dim=8,
        position_embedding_size=64,
        **more,
    )


def picture_of(name, height, width):
    """From 0 to 1, (3, H, W)."""
    numbers = seeded_weights.seeded(f"{name}.picture", (height * width * 3,)).reshape(height, width, 3)
    return numbers.permute(2, 0, 1)


def patches_of(pixels):
    """(1, S, 3 * 16 * 16) of (3, H, W), and the column and row of each."""
    rows, columns = pixels.shape[1] // PATCH, pixels.shape[2] // PATCH
    patches = pixels.reshape(3, rows, PATCH, columns, PATCH).permute(1, 3, 2, 4, 0).reshape(1, rows * columns, -1)
    places = torch.stack([torch.arange(columns).repeat(rows), torch.arange(rows).repeat_interleave(columns)], dim=-1)
    return patches, places[None]


def squares_of(pixels):
    """The same of squares of 48 pixels."""
    rows, columns = pixels.shape[1] // UNIT, pixels.shape[2] // UNIT
    squares = pixels.reshape(3, rows, UNIT, columns, UNIT).permute(1, 3, 2, 4, 0).reshape(1, rows * columns, -1)
    places = torch.stack([torch.arange(columns).repeat(rows), torch.arange(rows).repeat_interleave(columns)], dim=-1)
    return squares, places[None]


def size_in_tokens(height, width, tokens):
    factor = (tokens * UNIT * UNIT / (height * width)) ** 0.5
    return int(factor * height // UNIT) * UNIT, int(factor * width // UNIT) * UNIT


def resized(picture, tokens):
    """(3, H, W) from 0 to 1, as ComfyUI has pictures for Gemma 4."""
    pixels = (picture.clamp(0, 1) * 255).to(torch.uint8)
    to = list(size_in_tokens(*pixels.shape[1:], tokens))
    if to != list(pixels.shape[1:]):
        pixels = vision.resize(pixels, to, interpolation=vision.InterpolationMode.BICUBIC, antialias=True)
    return pixels


def make_resized():
    for name, height, width, tokens in (("up", 37, 91, 4), ("down", 150, 131, 2), ("even", 96, 48, 2)):
        expected[f"seen.{name}.bytes"] = resized((picture_of(f"seen.{name}", height, width) + 1) / 2, tokens).permute(1, 2, 0)


def make_told(rows):
    """E2B, with its tower."""
    text = gemma4.told(512)
    text.vocab_size = text.vocab_size_per_layer_input = rows
    config = Gemma4Config(text_config=text, vision_config=tower(use_clipped_linears=True), audio_config=None)
    return Gemma4ForConditionalGeneration._from_config(config, attn_implementation="eager")


def make_dense(rows, window=1024):
    """12B, which has none."""
    told = gemma4.dense(window).to_dict()
    told = {key: told[key] for key in told if key not in ("model_type", "architectures", "per_layer_config")}
    told |= {"vocab_size": rows, "head_dim": 16, "global_head_dim": 32, "num_global_key_value_heads": 1}
    text = Gemma4UnifiedTextConfig(**{key: value for key, value in told.items() if hasattr(Gemma4UnifiedTextConfig, key) or key in ("global_head_dim", "num_global_key_value_heads")})
    text.use_bidirectional_attention = "vision"
    config = Gemma4UnifiedConfig(
        text_config=text,
        vision_config={"mm_embed_dim": 32, "mm_posemb_size": 40, "output_proj_dims": 32},
        audio_config=None,
    )
    return Gemma4UnifiedForConditionalGeneration._from_config(config, attn_implementation="eager")


def see_tower(name, model, embedder, height, width):
    patches, places = patches_of((picture_of(name, height, width) + 1) / 2)
    seen = model(pixel_values=patches, pixel_position_ids=places).last_hidden_state
    expected[f"{name}.tokens"] = embedder(inputs_embeds=seen)[None]


def see_pixels(name, model, height, width):
    squares, places = squares_of(picture_of(name, height, width))
    expected[f"{name}.tokens"] = model.model.embed_vision(pixel_values=squares, image_position_ids=places).pooler_output


def make_plain():
    vision_config = tower(standardize=True)
    model = Gemma4VisionModel._from_config(vision_config, attn_implementation="eager")
    embedder = Gemma4MultimodalEmbedder(vision_config, gemma4.told())
    shapes["plain"] = load(model, lambda name: f"vision_model.{name}") | load(embedder, lambda name: f"multi_modal_projector.{name}")
    see_tower("plain.tall", model, embedder, 192, 48)


def write(model, tokenizer, name, prompt, pictures, mark, tokens, count=8):
    """Pictures (3, H, W) in uint8 in the places of the mark."""
    expected[f"{name}.prompt"] = torch.tensor(list(prompt.encode()), dtype=torch.uint8)
    special, seen, kinds, ids, at = tokenizer.token_to_id(mark), [], [], [], 0
    is_tower = isinstance(model, Gemma4ForConditionalGeneration)
    made = [(patches_of if is_tower else squares_of)(resized(picture, tokens).float() * (1 / 255)) for picture in pictures]
    for one in tokenizer.encode(prompt, add_special_tokens=False).ids:
        is_picture = one == special
        many = made[at][0].shape[1] // (POOL * POOL if is_tower else 1) if is_picture else 1
        ids += [one] * many
        kinds += [int(is_picture)] * many
        at += int(is_picture)
    longest = max(patches.shape[1] for patches, _ in made)
    pad = lambda x, value: torch.nn.functional.pad(x, (0, 0, 0, longest - x.shape[1]), value=value)
    config = model.config
    config.image_token_id, config.video_token_id, config.audio_token_id = special, -7, -8
    inputs = {
        "pixel_values": torch.cat([pad(patches, 0.0) for patches, _ in made]),
        "image_position_ids": torch.cat([pad(places, -1) for _, places in made]),
    }
    ids, kinds, begin = torch.tensor([ids]), torch.tensor([kinds]), len(ids)
    written = []
    for _ in range(count):
        scores = model(input_ids=ids, mm_token_type_ids=kinds, use_cache=False, **inputs).logits[0, -1]
        ids = torch.cat([ids, scores.argmax().reshape(1, 1)], dim=1)
        kinds = torch.cat([kinds, torch.zeros(1, 1, dtype=kinds.dtype)], dim=1)
        written.append(int(ids[0, -1]))
    text = tokenizer.decode(written, skip_special_tokens=True)
    print(name, begin, repr(text), written)
    expected[name] = torch.tensor(list(text.strip().encode()), dtype=torch.uint8)


def see_each_other(rows):
    """A picture's tokens see each other, as far back as windows let them, which are shorter than it is: as in ComfyUI."""
    model = make_dense(rows, window=8)
    load(model)
    squares, places = squares_of(picture_of("groups", 144, 192))
    text = [5, 17, 60, 8, 100]
    ids = torch.tensor([text + [rows - 1] * squares.shape[1] + [9, 200, 31]])
    model.config.image_token_id, model.config.video_token_id, model.config.audio_token_id = rows - 1, -7, -8
    is_picture = ids[0] == rows - 1
    query, key = torch.arange(ids.shape[1])[:, None], torch.arange(ids.shape[1])[None]
    seen = (key <= query) | (is_picture[:, None] & is_picture[None])
    hidden = lambda seen: torch.where(seen, 0.0, torch.finfo(torch.float32).min)[None, None]
    masks = {"full_attention": hidden(seen), "sliding_attention": hidden(seen & (key > query - 8))}
    out = model.model(input_ids=ids, attention_mask=masks, pixel_values=squares, image_position_ids=places, use_cache=False)
    pictures = torch.zeros(1, ids.shape[1], model.config.text_config.hidden_size)
    pictures[0, is_picture] = model.model.embed_vision(squares, places).pooler_output[0]
    expected["groups.ids"] = torch.where(is_picture, 0, ids[0])[None].int()
    expected["groups.pictures"] = pictures
    expected["groups.is_text"] = (~is_picture).float()[None, :, None]
    expected["groups.groups"] = torch.where(is_picture, 0.0, -1.0 - torch.arange(ids.shape[1]))
    expected["groups.states"] = out.last_hidden_state


def make_fox(out):
    """Of colours that change slowly, and some noise."""
    y, x = numpy.mgrid[0:45, 0:70]
    noise = seeded_weights.seeded("fox", (45 * 70 * 3,)).numpy().reshape(45, 70, 3)
    colours = numpy.stack([3 * x, 5 * y, 255 - 3 * x], axis=-1) + 30 * noise
    Image.fromarray(colours.clip(0, 255).astype(numpy.uint8)).save(os.path.join(out, "fox.png"))
    return torch.from_numpy(numpy.array(Image.open(os.path.join(out, "fox.png")))).permute(2, 0, 1).float() / 255


def main(out):
    os.makedirs(out, exist_ok=True)
    texts.SPECIAL = texts.SPECIAL + MARKS
    vocabulary = texts.make_tokenizer()
    with open(os.path.join(out, "tokenizer.json"), "w", encoding="utf-8") as file:
        file.write(vocabulary)
    tokenizer = Tokenizer.from_str(vocabulary)
    fox = make_fox(out)
    rows = tokenizer.get_vocab_size()
    make_resized()
    make_plain()
    told, dense = make_told(rows), make_dense(rows)
    shapes["told"], shapes["dense"] = load(told), load(dense)
    for name, height, width in (("wide", 96, 240), ("tall", 144, 48)):
        see_tower(f"told.{name}", told.model.vision_tower, told.model.embed_vision, height, width)
        see_pixels(f"dense.{name}", dense, height, width)
    see_each_other(rows)
    user, model = "<bos><|turn>user\n", "<turn|>\n<|turn>model\n"
    image, frame = f"<|image>{IMAGE}<image|>", f"<|image>{VIDEO}<image|>"
    thought = "<|channel>thought\n<channel|>"
    write(told, tokenizer, "told.image", f"{user}a red fox\n\n{image}\n\n{model}", [fox], IMAGE, 280)
    write(told, tokenizer, "told.two", f"{user}a red fox\n\n{image}\n\n\n\n{image}\n\n{model}", [fox, fox.flip(2)], IMAGE, 280)
    times = f"00:00 {frame} 00:01 {frame}"
    write(told, tokenizer, "told.video", f"{user}a red fox\n\n{times}\n\n{model}", [fox, fox.flip(2)], VIDEO, 70)
    write(dense, tokenizer, "dense.image", f"{user}a red fox\n\n{image}\n\n{model}{thought}", [fox], IMAGE, 280)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        parts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(parts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "gemma4_pictures"))
