"""Writes what transformers' LLaVA makes of a text and a picture for HunyuanVideo 1.0, with a tiny model.

    make_hunyuan_llava_goldens.py [OUT]        (default: hunyuan_llava/ beside this file)

Needs torch, diffusers, transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. The language model and
its tokenizer are those of hunyuan_first/. All weights follow from the names of their tensors (seeded_weights.py), so only
shapes are written, and what comes out:

    shapes.json             {"tower": {name of the tensor in ComfyUI's file: shape}}: CLIP's tower and LLaVA's projector
    expected.safetensors    "picture" (1, H, W, 3) is from 0 to 1, of the tower's size; of each of the following each 16th
                            number: "tokens", what the projector makes of it, "states.EACH" what HunyuanVideo reads of TEXT and
                            the picture in the publisher's template, of whose states each EACH-th comes before those of the text
"""

import os
import sys

import torch
from diffusers.pipelines.hunyuan_video.pipeline_hunyuan_video_image2video import DEFAULT_PROMPT_TEMPLATE
from tokenizers import Tokenizer
from transformers import CLIPVisionConfig, LlamaConfig, LlavaConfig, LlavaModel

import make_hunyuan_first_goldens as first
import make_wan_goldens as wan
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = first.TEXT
SIDE, PATCH, WIDTH, MARK = 42, 14, 64, 265  # MARK: an id that no token has
MEANS, DEVIATIONS = torch.tensor([0.48145466, 0.4578275, 0.40821073]), torch.tensor([0.26862954, 0.26130258, 0.27577711])


def file_name(name):
    """ComfyUI's name: the tower's and the projector's are in one file, the language model's in another."""
    if name.startswith("vision_tower."):
        name = name.removeprefix("vision_tower.")
        return name if name.startswith("vision_model.") else "vision_model." + name
    return name.replace("language_model.", "model.", 1)


def make_model():
    text = LlamaConfig(vocab_size=272, hidden_size=first.WIDTH, intermediate_size=16, num_hidden_layers=4, num_attention_heads=1, num_key_value_heads=1,
                       head_dim=128, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    tower = CLIPVisionConfig(hidden_size=WIDTH, intermediate_size=80, num_hidden_layers=3, num_attention_heads=16, image_size=SIDE, patch_size=PATCH, hidden_act="quick_gelu")
    config = LlavaConfig(vision_config=tower, text_config=text, image_token_index=MARK, vision_feature_layer=-2, vision_feature_select_strategy="default", projector_hidden_act="gelu")
    config.image_token_id = MARK
    model = LlavaModel(config)
    return model, seeded_weights.load(model, file_name)


def main(out):
    model, shapes = make_model()
    picture = (255 * torch.rand(1, SIDE, SIDE, 3, generator=torch.Generator().manual_seed(21))).round() / 255
    pixels = ((picture - MEANS) / DEVIATIONS).movedim(-1, 1)
    count = (SIDE // PATCH) ** 2
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "hunyuan_first", "tokenizer.json"))
    ids_of = lambda text: tokenizer.encode(text, add_special_tokens=False).ids  # noqa: E731
    template = "<|begin_of_text|>" + DEFAULT_PROMPT_TEMPLATE["template"]
    before, behind = template.split("<image>")
    start, end = behind.index("{}"), behind.index("<|eot_id|>", behind.index("{}")) + len("<|eot_id|>")
    head, text, tail = (ids_of(part) for part in (behind[:start], behind[start:end].format(TEXT), behind[end:]))
    ids = torch.tensor([[*ids_of(before), *[MARK] * count, *head, *text, *tail]])
    made = model(input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids), output_hidden_states=True)
    states = made.hidden_states[-3]
    at = len(ids_of(before))
    said = at + count + len(head)
    expected = {"picture": picture}
    tower = [model.vision_tower(pixels, output_hidden_states=True).hidden_states[-2][:, 1:]]
    expected["tokens"] = model.multi_modal_projector(tower[0])[..., ::16]
    for each in (1, 2, 4):
        expected[f"states.{each}"] = torch.cat([states[:, at : at + count : each], states[:, said : said + len(text)]], 1)[..., ::16]
    blind = model.language_model(input_ids=ids, output_hidden_states=True).hidden_states[-3][:, said : said + len(text), ::16]
    seeing = expected["states.1"][:, count:]
    print(f"the picture changes the text's states by {(blind - seeing).norm() / blind.norm():.3f}")
    tower = {name: shape for name, shape in shapes.items() if not name.startswith("model.")}
    wan.write(out, {"tower": tower}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:12} {tuple(tensor.shape)} {tensor.norm():.4g}")
    print(repr(template))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "hunyuan_llava"))
