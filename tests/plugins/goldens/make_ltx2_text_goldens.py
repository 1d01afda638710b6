"""Writes what transformers and diffusers make with a tiny text encoder of LTX 2: Gemma 3, projection, connectors.

    make_ltx2_text_goldens.py [OUT]        (default: ltx2_text/ beside this file)

Needs torch, diffusers, transformers, sentencepiece and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's files: shape}}: "text" is Gemma 3 of 13 layers, "projected"
                            a checkpoint's projection and connectors as LTX 2 has them, "projected23" as 2.3 does;
                            "{0-3}" stands for each of these numbers
    expected.safetensors    "one.states" is the projection of a prompt that is padded on the left, without the padding, of "projected",
                            "empty.states" that of an empty one; "one.video" and "one.audio" what the connectors make of it,
                            "one.interleaved.video" with pairs that are neighbours; "one23.", "empty23." of "projected23".
                            "written" are the bytes of what follows a prompt in Gemma 3's chat template, the likeliest token each
                            time. The text encoder's tokenizer is ../encoders/tokenizer/data/bpe.model
"""

import json
import os
import sys

import sentencepiece
import torch
from diffusers.pipelines.ltx2.connectors import LTX2TextConnectors, per_layer_masked_mean_norm, per_token_rms_norm
from safetensors.torch import save_file
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
WIDTH, LAYERS, REGISTERS, PADDED = 24, 13, 8, 32
PROMPTS = {"one": "a photo of a red fox in the snow", "empty": ""}
SYSTEM, USER = "You are a poet.", "a fox"
TOKENIZER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer/data/bpe.model")
expected, shapes = {}, {}


def original(name):
    """The publisher's name of a tensor of LTX2TextConnectors."""
    for here, there in (
        ("video_text_proj_in", "text_embedding_projection.video_aggregate_embed"),
        ("audio_text_proj_in", "text_embedding_projection.audio_aggregate_embed"),
        ("text_proj_in", "text_embedding_projection.aggregate_embed"),
        ("video_connector", "model.diffusion_model.video_embeddings_connector"),
        ("audio_connector", "model.diffusion_model.audio_embeddings_connector"),
        ("transformer_blocks", "transformer_1d_blocks"),
        ("norm_q", "q_norm"),
        ("norm_k", "k_norm"),
    ):
        if here in name:
            name = name.replace(here, there)
            if "aggregate" in name:
                return name
    return name


def make_text(tokenizer):
    config = Gemma3TextConfig(
        vocab_size=tokenizer.get_piece_size(),
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=256,
        query_pre_attn_scalar=256,
        sliding_window=512,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            "full_attention": {"rope_type": "default", "rope_theta": 1e6},
        },
        attn_implementation="eager",
    )
    model = Gemma3ForCausalLM(config)
    shapes["text"] = seeded_weights.load(model.model, lambda name: f"model.{name}")
    model.tie_weights()
    return model.eval()


def make_connectors(name, **more):
    sizes = dict(
        caption_channels=WIDTH,
        text_proj_in_factor=LAYERS + 1,
        video_connector_num_learnable_registers=REGISTERS,
        audio_connector_num_learnable_registers=REGISTERS,
        video_connector_num_attention_heads=2,
        audio_connector_num_attention_heads=2,
        rope_type="split",
    )
    model = LTX2TextConnectors(**(sizes | more))
    shapes[name] = seeded_weights.load(model, original)
    return model


def make_later():
    """As LTX 2.3 has them: gated, and a context of its own for each of both."""
    return make_connectors(
        "projected23",
        per_modality_projections=True,
        proj_bias=True,
        video_hidden_dim=32,
        audio_hidden_dim=16,
        video_connector_attention_head_dim=16,
        audio_connector_attention_head_dim=8,
        video_gated_attn=True,
        audio_gated_attn=True,
    )


def encode(model, tokenizer, prompt):
    """States of all layers (1, PADDED, WIDTH, LAYERS + 1), padding on the left, and the mask of what is no padding."""
    ids = [tokenizer.bos_id(), *tokenizer.encode(prompt)]
    mask = torch.zeros(1, PADDED, dtype=torch.long)
    mask[:, PADDED - len(ids) :] = 1
    padded = torch.tensor([[tokenizer.pad_id()] * (PADDED - len(ids)) + ids]).clamp(min=0)
    out = model(input_ids=padded, attention_mask=mask, output_hidden_states=True, use_cache=False)
    return torch.stack(out.hidden_states, dim=-1), mask


def project(connectors, states, mask):
    """What the pipelines' connectors read, without the padding."""
    count = int(mask.sum())
    if not connectors.config.per_modality_projections:
        rows = per_layer_masked_mean_norm(states, mask.sum(dim=-1), states.device)
        return connectors.text_proj_in(rows)[:, -count:]
    rows = per_token_rms_norm(states).flatten(2, 3)[:, -count:]
    both = []
    for matrix, width in (
        (connectors.video_text_proj_in, connectors.config.video_hidden_dim),
        (connectors.audio_text_proj_in, connectors.config.audio_hidden_dim),
    ):
        both.append(matrix(rows * (width / connectors.config.caption_channels) ** 0.5))
    return torch.cat(both, dim=-1)


def write(model, tokenizer, count):
    """The likeliest tokens that follow, one by one."""
    text = f"<start_of_turn>user\n{SYSTEM}\n\n{USER}<end_of_turn>\n<start_of_turn>model\n"
    ids = torch.tensor([[tokenizer.bos_id(), *tokenizer.encode(text)]])
    begin = ids.shape[1]
    for _ in range(count):
        scores = model(input_ids=ids, use_cache=False).logits[0, -1]
        ids = torch.cat([ids, scores.argmax().reshape(1, 1)], dim=1)
    return ids[0, begin:]


def main(out):
    os.makedirs(out, exist_ok=True)
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=TOKENIZER)
    text = make_text(tokenizer)
    plain = make_connectors("projected", video_connector_attention_head_dim=12, audio_connector_attention_head_dim=12)
    later = make_later()
    turned = make_connectors(
        "projected", video_connector_attention_head_dim=12, audio_connector_attention_head_dim=12, rope_type="interleaved"
    )
    for name, prompt in PROMPTS.items():
        states, mask = encode(text, tokenizer, prompt)
        for end, connectors in (("", plain), ("23", later), (".interleaved", turned)):
            if end != ".interleaved":
                expected[f"{name}{end}.states"] = project(connectors, states, mask)
            video, audio, _ = connectors(states, mask)
            if end != ".interleaved" or name == "one":
                expected[f"{name}{end}.video"] = video
                expected[f"{name}{end}.audio"] = audio
    written = tokenizer.decode(write(text, tokenizer, 12).tolist())
    expected["written"] = torch.tensor(list(written.encode()), dtype=torch.uint8)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")
    print("written:", repr(written))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "ltx2_text"))
