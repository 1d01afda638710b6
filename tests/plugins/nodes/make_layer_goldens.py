"""Writes what transformers makes of a prompt with the tiny random T5, layer by layer.

    make_layer_goldens.py        (needs torch, transformers, tokenizers, safetensors)

layer_goldens.safetensors: "t5.last", "t5.first" (1, 16, 24): the states behind the second and the
first of its two layers, under the norm behind the last one; "t5.padded" and "t5.bare": the last
states with two padding tokens behind the text, and with none.
"""

import json
import os

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import T5Config, T5EncoderModel

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = os.path.join(HERE, "../goldens/random")
PROMPT, LENGTH, END, PADDING = "a red house by the sea", 16, 1, 0


def main():
    with open(os.path.join(RANDOM, "configs.json")) as file:
        config = json.load(file)["t5"]
    config |= dict(vocab_size=50, d_model=24, d_kv=16, d_ff=40, num_heads=2)
    model = T5EncoderModel(T5Config(**config, relative_attention_num_buckets=8)).eval()
    weights = {name: w.float() for name, w in load_file(os.path.join(RANDOM, "t5.safetensors")).items()}
    missing, unknown = model.load_state_dict(weights, strict=False)
    assert not unknown and all("embed_tokens" in name for name in missing), (missing, unknown)
    tokenizer = Tokenizer.from_file(os.path.join(HERE, "pipeline/tokenizer_2/tokenizer.json"))
    ids = tokenizer.encode(PROMPT, add_special_tokens=False).ids + [END]

    def states(count):
        row = torch.tensor([ids + [PADDING] * (count - len(ids))])
        return model(row, output_hidden_states=True)

    whole = states(LENGTH)
    save_file(
        {
            "t5.last": whole.last_hidden_state,
            "t5.first": model.encoder.final_layer_norm(whole.hidden_states[-2]),
            "t5.padded": states(len(ids) + 2).last_hidden_state,
            "t5.bare": states(len(ids)).last_hidden_state,
        },
        os.path.join(HERE, "layer_goldens.safetensors"),
    )


if __name__ == "__main__":
    main()
