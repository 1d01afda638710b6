"""Writes a tiny vision tower of Qwen2.5-VL with random weights, and what transformers makes of pictures with it and of
texts with pictures in them.

    make_vision_goldens.py [OUT]        (default: vision/ beside this file)

Needs torch, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of
their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}} of "vision" and "language"
    configs.json            the config of each
    expected.safetensors    "square.tokens" (1, M, D), and so on of "wide" and "tall", of pictures (1, H, W, 3) whose
                            numbers follow from their names ("square.picture"), too; "text.ids", "text.positions" (S, 3),
                            "text.pictures" and "text.is_text" of a text with "wide" and "tall" in it, and
                            "text.last_hidden"
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

import seeded_weights

torch.set_grad_enabled(False)
PATCH, MERGE, UNIT = 14, 2, 28
VISION = dict(
    depth=3,
    hidden_size=32,
    intermediate_size=44,
    num_heads=2,
    out_hidden_size=32,
    fullatt_block_indexes=[1],
    window_size=112,
)
TEXT = dict(
    vocab_size=60,
    hidden_size=32,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    rms_norm_eps=1e-6,
    max_position_embeddings=512,
    rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [2, 3, 3]},
)
# Heights and widths in pixels: whole windows alone; the lower and the right edge cut off; one row of cut windows.
PICTURES = {"square": (224, 224), "wide": (140, 308), "tall": (252, 56)}
PAD, START, END = 57, 58, 59


def patches(picture):
    """(1, H, W, 3) as transformers' processor has it: units of 2 x 2 patches one after another, both frames alike."""
    _, height, width, colours = picture.shape
    rows, columns = height // UNIT, width // UNIT
    parts = picture[0].permute(2, 0, 1).reshape(colours, rows, MERGE, PATCH, columns, MERGE, PATCH)
    parts = parts.permute(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None].expand(-1, -1, -1, -1, -1, 2, -1, -1)
    return parts.reshape(rows * columns * MERGE * MERGE, -1)


def grid(height, width):
    return [1, height // PATCH, width // PATCH]


def main(out):
    os.makedirs(out, exist_ok=True)
    config = Qwen2_5_VLConfig(
        text_config=TEXT, vision_config=VISION, image_token_id=PAD, vision_start_token_id=START, vision_end_token_id=END
    )
    config._attn_implementation = "eager"
    model = Qwen2_5_VLModel(config).eval()
    shapes = {
        "vision": seeded_weights.load(model.visual, lambda name: f"visual.{name}"),
        "language": seeded_weights.load(model.language_model, lambda name: f"model.{name}"),
    }
    expected, tokens = {}, {}
    for name, (height, width) in PICTURES.items():
        picture = seeded_weights.seeded(f"{name}.picture", (height * width * 3,)).reshape(1, height, width, 3)
        tokens[name] = model.visual(patches(picture), torch.tensor([grid(height, width)])).pooler_output[None]
        expected[f"{name}.tokens"] = tokens[name]
    counts = [tokens[name].shape[1] for name in ("wide", "tall")]
    ids = [3, 9, START] + [PAD] * counts[0] + [END, 7, START] + [PAD] * counts[1] + [END, 11, 4, 2]
    ids = torch.tensor([ids])
    grids = torch.tensor([grid(*PICTURES[name]) for name in ("wide", "tall")])
    is_picture = ids == PAD
    places, _ = model.get_rope_index(input_ids=ids, mm_token_type_ids=is_picture.int(), image_grid_thw=grids)
    embedded = model.language_model.embed_tokens(ids)
    rows = torch.zeros_like(embedded)
    rows[is_picture] = torch.cat([tokens["wide"][0], tokens["tall"][0]])
    embedded[is_picture] = rows[is_picture]
    states = model.language_model(inputs_embeds=embedded, position_ids=places, use_cache=False).last_hidden_state
    expected.update({"text.ids": ids.int(), "text.positions": places[:, 0].T.float()})
    expected.update({"text.pictures": rows, "text.is_text": (~is_picture)[:, :, None].float()})
    expected["text.last_hidden"] = states
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (
            f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in tensors.items()) + "\n }"
            for name, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    with open(os.path.join(out, "configs.json"), "w") as file:
        vision = {key: VISION[key] for key in ("num_heads", "fullatt_block_indexes", "window_size")}
        language = dict(model_type="qwen2_5_vl_text", head_dim=16, rope_scaling={"mrope_section": [2, 3, 3]})
        json.dump({"vision": vision, "language": language}, file, indent=1)
        file.write("\n")
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g} {tensor.float().std():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "vision"))
