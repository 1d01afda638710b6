"""Files of embeddings, and what transformers' CLIP makes of a prompt that names them.

Writes data/embeddings and embedding_goldens.safetensors beside this file. Needs torch,
transformers, safetensors. The model's numbers are those of prompts_test.cpp: one layer, 64 wide,
filled by a generator of numbers that both sides know.

ComfyUI's rules: an embedding is a segment of its own, whose vectors stand for tokens; segments of
eight or more are cut where a window is full, shorter ones move on; weights act token by token
against an empty prompt. https://github.com/comfyanonymous/ComfyUI, sd1_clip.py.
"""
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModel, PreTrainedTokenizerFast

HERE = pathlib.Path(__file__).parent
WIDTH, WORDS, WINDOW, MLP = 64, 60, 77, 128


def tensors():
    yield "embeddings.position_embedding.weight", (WINDOW, WIDTH)
    yield "embeddings.token_embedding.weight", (WORDS, WIDTH)
    layer = "encoder.layers.0."
    yield layer + "mlp.fc1.weight", (MLP, WIDTH)
    yield layer + "mlp.fc1.bias", (MLP,)
    yield layer + "mlp.fc2.weight", (WIDTH, MLP)
    yield layer + "mlp.fc2.bias", (WIDTH,)
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        yield f"{layer}self_attn.{name}.weight", (WIDTH, WIDTH)
        yield f"{layer}self_attn.{name}.bias", (WIDTH,)
    for name in (layer + "layer_norm1", layer + "layer_norm2", "final_layer_norm"):
        yield name + ".weight", (WIDTH,)
        yield name + ".bias", (WIDTH,)


def model():
    state, weights = 1, {}
    for name, shape in tensors():
        numbers = []
        for _ in range(int(np.prod(shape))):
            state = (state * 1664525 + 1013904223) % 2**32
            numbers.append(np.float32((np.float32(state >> 8) / np.float32(1 << 24)
                                       - np.float32(0.5)) * np.float32(0.4)))
        weights[name] = torch.tensor(np.array(numbers, np.float32).reshape(shape))
    clip = CLIPTextModel(CLIPTextConfig(
        vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=MLP, num_hidden_layers=1,
        num_attention_heads=1, max_position_embeddings=WINDOW, hidden_act="quick_gelu",
        eos_token_id=WORDS - 1, attn_implementation="eager")).eval()
    own = clip.state_dict()
    clip.load_state_dict({k: weights[k.removeprefix("text_model.")] for k in own
                          if "position_ids" not in k}, strict=False)
    return clip, weights


def vectors(seed, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * 0.3


FILES = {"one": vectors(1, 1, WIDTH), "many": vectors(2, 9, WIDTH), "pair": vectors(3, 2, WIDTH),
         "plain": vectors(4, WIDTH).half().float()[None]}
PROMPT = [("a b c d e", 1.0), ("one", 1.0), (", f", 1.0), ("g h ", 1.3), ("pair", 1.3),
          (" i" * 55, 1.0), ("many", 1.0), ("plain", 1.0), ("j k l", 1.0)]
# The same as it is written.
TEXT = ("a b c d e embedding:one, f(g h  embedding:pair:1.3)" + " i" * 55 +
        " embedding:many embedding:below/plain j k l")


def write_files():
    folder = HERE / "data/embeddings"
    (folder / "styles/below").mkdir(parents=True, exist_ok=True)
    torch.save({"string_to_token": {"*": 265}, "string_to_param": {"*": FILES["one"]},
                "name": "one", "step": 499, "sd_checkpoint": None}, folder / "one.pt")
    save_file({"emb_params": FILES["many"]}, folder / "many.safetensors")
    save_file({"clip_g": vectors(5, 2, 96), "clip_l": FILES["pair"]}, folder / "pair.safetensors")
    torch.save({"<plain>": FILES["plain"][0].half()}, folder / "styles/below/plain.bin")


def windows(tokenizer):
    start, end = (tokenizer.convert_tokens_to_ids(t) for t in ("<|startoftext|>", "<|endoftext|>"))
    rows, row = [], [(start, 1.0)]

    def close():
        nonlocal row
        row.append((end, 1.0))
        rows.append(row + [(end, 1.0)] * (WINDOW - len(row)))
        row = [(start, 1.0)]

    for text, weight in PROMPT:
        if text in FILES:
            group = [(vector, weight) for vector in FILES[text]]
        else:
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            group = [(i, weight) for i in ids]
        if len(group) < 8 and len(row) + len(group) > WINDOW - 1:
            close()
        for token in group:
            if len(row) == WINDOW - 1:
                close()
            row.append(token)
    close()
    return rows, start, end


@torch.no_grad()
def main():
    write_files()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(HERE / "pipeline/tokenizer/tokenizer.json"))
    clip, weights = model()
    table = weights["embeddings.token_embedding.weight"]
    rows, start, end = windows(tokenizer)
    empty = [(start, 1.0), (end, 1.0)] + [(end, 1.0)] * (WINDOW - 2)

    layer = clip.text_model if hasattr(clip, "text_model") else clip
    positions = weights["embeddings.position_embedding.weight"]

    def states(row):
        hidden = torch.stack([v if torch.is_tensor(v) else table[v] for v, _ in row]) + positions
        mask = torch.full((WINDOW, WINDOW), float("-inf")).triu(1)[None, None]
        out = layer.encoder(inputs_embeds=hidden[None], attention_mask=mask)
        return layer.final_layer_norm(out[0])[0]

    nothing, made = states(empty), []
    for row in rows:
        weight = torch.tensor([w for _, w in row])[:, None]
        hidden = states(row)
        made.append(torch.where(weight == 1, hidden, (hidden - nothing) * weight + nothing))
    first_end = next(i for i, (v, _) in enumerate(rows[0]) if not torch.is_tensor(v) and v == end)
    pooled = states(rows[0])[first_end]
    save_file({"cross_attn": torch.cat(made), "pooled_output": pooled},
              HERE / "embedding_goldens.safetensors", metadata={"text": TEXT})
    print(len(rows), "windows", first_end)


main()
