"""Writes what transformers and diffusers make with a tiny text encoder of LTX 2.5: Gemma 4, and the projection in its file.

    make_ltx25_text_goldens.py [OUT]        (default: ltx25_text/ beside this file)

Needs torch, diffusers, transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's files: shape}}: "text" is Gemma 4 as 12B, of 6 layers, with the
                            projection, "told" as E2B, of 7 layers; "{0-3}" stands for each of these numbers
    tokenizer.json          a vocabulary of the kind that Gemma 4 has
    expected.safetensors    "one.states" is the projection of a prompt that is padded on the left, without the padding, "empty.states"
                            that of an empty one. "written" and "told.written" are the bytes of what follows a prompt in the chat
                            template, the likeliest token each time
"""

import json
import os
import sys

import torch
from diffusers.pipelines.ltx2.connectors import LTX2TextConnectors
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, trainers
from transformers import Gemma4ForCausalLM

import make_gemma4_goldens as gemma4
import make_ltx2_text_goldens as before
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
WIDTH, PADDED = 24, 32
SPECIAL = ["<pad>", "<eos>", "<bos>", "<unk>", "<|think|>", "<|channel>", "<channel|>", "<|turn>", "<turn|>", "<|tool_response>"]
BEGIN, END = "<bos><|turn>system\n", "<turn|>\n<|turn>model\n"
expected, shapes = {}, {}


def make_tokenizer():
    """Pieces of text with marks for spaces, and bytes for what they lack; without a pre-tokenizer, as Gemma 4's has none that counts."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "make_ltx2_text_goldens.py"), encoding="utf-8") as file:
        lines = [line for line in file.read().splitlines() if line.strip()]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=260, special_tokens=SPECIAL, show_progress=False))
    told = json.loads(tokenizer.to_str())
    model = told["model"]
    model["byte_fallback"] = True
    for byte in range(128):  # those that are characters by themselves, so that every text is one
        model["vocab"][f"<0x{byte:02X}>"] = len(model["vocab"])
    told["decoder"] = {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
        ],
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def make_text(kind, rows):
    """Of the sizes in make_gemma4_goldens.py, but with windows that are as published."""
    config = (gemma4.dense if kind == "text" else gemma4.told)(1024 if kind == "text" else 512)
    config.vocab_size = config.vocab_size_per_layer_input = rows
    model = Gemma4ForCausalLM(config)
    shapes[kind] = seeded_weights.load(model.model, lambda name: f"model.{name}")
    model.tie_weights()
    return model.eval()


def encode(model, tokenizer, prompt):
    ids = [tokenizer.token_to_id("<bos>"), *tokenizer.encode(prompt, add_special_tokens=False).ids]
    mask = torch.zeros(1, PADDED, dtype=torch.long)
    mask[:, PADDED - len(ids) :] = 1
    out = model(input_ids=torch.tensor([[0] * (PADDED - len(ids)) + ids]), attention_mask=mask, output_hidden_states=True, use_cache=False)
    return torch.stack(out.hidden_states, dim=-1), mask


def write(model, tokenizer, opened, count=12):
    text = f"{BEGIN}{before.SYSTEM}<turn|>\n<|turn>user\n{before.USER}{END}{opened}"
    ids = torch.tensor([tokenizer.encode(text, add_special_tokens=False).ids])
    begin = ids.shape[1]
    for _ in range(count):
        scores = model(input_ids=ids, use_cache=False).logits[0, -1]
        ids = torch.cat([ids, scores.argmax().reshape(1, 1)], dim=1)
    written = tokenizer.decode(ids[0, begin:].tolist(), skip_special_tokens=True)
    print("written:", repr(written), ids[0, begin:].tolist())
    return torch.tensor(list(written.strip().encode()), dtype=torch.uint8)


def main(out):
    os.makedirs(out, exist_ok=True)
    told = make_tokenizer()
    with open(os.path.join(out, "tokenizer.json"), "w", encoding="utf-8") as file:
        file.write(told)
    tokenizer = Tokenizer.from_str(told)
    rows = tokenizer.get_vocab_size()
    text = make_text("text", rows)
    layers = text.config.num_hidden_layers
    connectors = LTX2TextConnectors(
        caption_channels=WIDTH,
        text_proj_in_factor=layers + 1,
        per_modality_projections=True,
        proj_bias=True,
        video_hidden_dim=32,
        audio_hidden_dim=16,
        video_connector_num_layers=1,
        audio_connector_num_layers=1,
        video_connector_num_attention_heads=2,
        video_connector_attention_head_dim=16,
        audio_connector_num_attention_heads=2,
        audio_connector_attention_head_dim=8,
        rope_type="split",
    )
    projection = seeded_weights.load(connectors, before.original)
    shapes["text"] |= {name: shape for name, shape in projection.items() if name.startswith("text_embedding_projection.")}
    for name, prompt in before.PROMPTS.items():
        expected[f"{name}.states"] = before.project(connectors, *encode(text, tokenizer, prompt))
    expected["written"] = write(text, tokenizer, "<|channel>thought\n<channel|>")
    expected["told.written"] = write(make_text("told", rows), tokenizer, "")
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "ltx25_text"))
