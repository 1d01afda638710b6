"""Writes the texts that transformers generates with tiny language models.

    make_generate_goldens.py TOKENIZERS [OUT]        (default: generate/ beside this file)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them. Needs numpy, torch,
transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. The models are the text encoders
"z_image.text" of workflows/ and "text" of qwen21_pictures/, whose weights follow from the names of their tensors
(seeded_weights.py). expected.json has, without white space at their ends, the texts of

    greedy      50 tokens, always the likeliest, by a matrix "lm_head.weight", whose numbers follow from its name
    tied        4 tokens, by the table of tokens
    system      10 tokens, to a system prompt and with room to think
    raw         10 tokens, behind the prompt alone
    sampled     24 tokens, drawn by the rules of plugins/encoders/token_sampling.h
    narrow      12 tokens, drawn of fewer
    pictures    10 tokens, of the picture qwen21_pictures/one.png and a prompt
"""

import json
import os
import sys

import numpy
import torch
from PIL import Image
from tokenizers import decoders
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    Qwen3Config,
    Qwen3ForCausalLM,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

import make_qwen21_picture_goldens as shown
import seeded_weights

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer"))
import vocabulary_goldens  # noqa: E402

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
USER, ANSWER = "<|im_start|>user\n{}<|im_end|>\n", "<|im_start|>assistant\n"
WITHOUT_THOUGHT = "<think>\n\n</think>\n\n"
PROMPT = "a (red fox:1.2) in the snow"  # what looks like a weight is none


def make_model(is_tied):
    config = Qwen3Config(
        vocab_size=151936,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        tie_word_embeddings=is_tied,
    )
    model = Qwen3ForCausalLM(config)
    state = {name: seeded_weights.seeded(name, tuple(tensor.shape)) for name, tensor in model.state_dict().items()}
    if is_tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state)
    model.generation_config.eos_token_id = [151645, 151643]
    model.generation_config.pad_token_id = 151643
    return model.eval()


def greedy(model, ids, count):
    out = model.generate(torch.tensor([ids]), max_new_tokens=count, do_sample=False)
    return out[0, len(ids) :].tolist()


def sampled(model, ids, count, seed, repetition, presence, temperature, top_k, top_p, min_p):
    """Penalties and warpers of transformers; presence as vLLM and others count it: of what was generated."""
    warpers = LogitsProcessorList()
    if repetition != 1:
        warpers.append(RepetitionPenaltyLogitsProcessor(repetition))
    after = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k > 0:
        after.append(TopKLogitsWarper(top_k))
    after.append(TopPLogitsWarper(top_p))
    after.append(MinPLogitsWarper(min_p))
    draws = torch.Generator().manual_seed(seed)
    told, written = torch.tensor([ids]), []
    while len(written) < count:
        scores = warpers(told, model(told).logits[:, -1])
        scores[:, sorted(set(written))] -= presence
        shares = torch.softmax(after(told, scores).double(), dim=-1)[0]
        drawn = torch.rand((), generator=draws, dtype=torch.float64)
        token = int((shares.cumsum(0) <= drawn * shares.sum()).sum())
        if token in model.generation_config.eos_token_id:
            break
        written.append(token)
        told = torch.cat([told, torch.tensor([[token]])], dim=1)
    return written


def with_picture(tokenizer, count):
    model = shown.make_text()
    head = seeded_weights.seeded("lm_head.weight", (151936, shown.WIDTH))
    image = Image.open(os.path.join(HERE, "qwen21_pictures/one.png")).convert("RGB")
    picture = torch.from_numpy(numpy.array(image)).float() / 255
    patches, grid = shown.patches_of([picture])
    pads = "<|image_pad|>" * (picture.shape[0] // 32 * (picture.shape[1] // 32))
    text = USER.format(f"<|vision_start|>{pads}<|vision_end|>{PROMPT}") + ANSWER
    ids, written = tokenizer.encode(text).ids, []
    for _ in range(count):
        told = torch.tensor([ids + written])
        states = model(
            input_ids=told,
            pixel_values=patches,
            image_grid_thw=grid,
            mm_token_type_ids=(told == shown.IMAGE_PAD).int(),
            use_cache=False,
        ).last_hidden_state[:, -1]
        written.append(int((states @ head.T).argmax()))
    return written


def main(tokenizers, out):
    os.makedirs(out, exist_ok=True)
    tokenizer = vocabulary_goldens.qwen(os.path.join(tokenizers, "qwen2.5"), vocabulary_goldens.QWEN3_TOKENS)
    tokenizer.decoder = decoders.ByteLevel()
    tied, head = make_model(True), make_model(False)

    def encode(text):
        return tokenizer.encode(text).ids

    plain = encode(USER.format(PROMPT) + ANSWER + WITHOUT_THOUGHT)
    system = encode("<|im_start|>system\nBe short.<|im_end|>\n" + USER.format(PROMPT) + ANSWER)
    written = {
        "greedy": greedy(head, plain, 50),
        "tied": greedy(tied, plain, 4),
        "system": greedy(head, system, 10),
        "raw": greedy(head, encode(PROMPT), 10),
        "sampled": sampled(head, plain, 24, 2**40 + 5, 1.3, 0.5, 0.8, 30, 0.9, 0.02),
        "narrow": sampled(head, plain, 12, 7, 1.0, 0.0, 1.5, 0, 0.3, 0.2),
        "pictures": with_picture(tokenizer, 10),
    }
    with open(os.path.join(out, "expected.json"), "w") as file:
        json.dump({name: tokenizer.decode(ids).strip(" \t\r\n") for name, ids in written.items()}, file, indent=1)
        file.write("\n")
    for name, ids in written.items():
        print(name, len(ids), len(set(ids)), ids[:12])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "generate"))
