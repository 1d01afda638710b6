"""Writes what diffusers makes with tiny models of Stable Diffusion 3 medium and 3.5 large and medium.

    make_sd3_goldens.py [OUT]        (default: sd3/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), those of norms of queries and keys around 1, so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's files: shape}}: "first" is 3's transformer,
                            "large" and "medium" are 3.5's; "{0-1}" stands for each of these numbers
    expected.safetensors    "large_square.x" is an input, "large_square.out" an output with a row for each step;
                            "large_odd" likewise, with an odd side, and the same of "medium" and "first". "flow.states"
                            and "flow.pooled" are what the encoders "clip_l", "clip_g" and "t5xxl" make of a prompt, of every 11th token,
                            "flow.latent" is the end of a guided run of 3 steps of "drawn", "flow.picture" the picture,
                            "flow.skipped" the latent with skip-layer guidance by block 1
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKL, SD3Transformer2DModel
from safetensors.torch import save_file

from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel

import seeded_weights
from make_workflow_goldens import sample, shifted_levels
from name_patterns import compressed

torch.set_grad_enabled(False)
WIDTH, POOLED, HIDDEN, T5_WIDTH = 24, 20, 128, 160
LEVELS = torch.tensor([0.9, 0.55, 0.125])
KINDS = {
    "first": {},
    "large": {"qk_norm": "rms_norm"},
    "medium": {"qk_norm": "rms_norm", "dual_attention_layers": (0, 1)},
}
# "a photo of a cat", and no words, as the tokenizers of CLIP and T5 cut them.
CLIP_IDS, T5_IDS = [320, 1125, 539, 320, 2368], [3, 9, 1202, 13, 3, 9, 1712]
CLIP_START, CLIP_END, T5_END, LENGTH = 49406, 49407, 1, 77
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of SD3Transformer2DModel; queries, keys and values are parts of one."""
    for here, there in (
        ("pos_embed.pos_embed", "pos_embed"),
        ("pos_embed.proj", "x_embedder.proj"),
        ("time_text_embed.timestep_embedder.linear_1", "t_embedder.mlp.0"),
        ("time_text_embed.timestep_embedder.linear_2", "t_embedder.mlp.2"),
        ("time_text_embed.text_embedder.linear_1", "y_embedder.mlp.0"),
        ("time_text_embed.text_embedder.linear_2", "y_embedder.mlp.2"),
        ("norm_out.linear", "final_layer.adaLN_modulation.1"),
        ("proj_out", "final_layer.linear"),
        ("transformer_blocks.", "joint_blocks."),
        ("norm1.linear", "x_block.adaLN_modulation.1"),
        ("norm1_context.linear", "context_block.adaLN_modulation.1"),
        ("attn.add_q_proj", "context_block.attn.to_q"),
        ("attn.add_k_proj", "context_block.attn.to_k"),
        ("attn.add_v_proj", "context_block.attn.to_v"),
        ("attn.norm_added_", "context_block.attn.ln_"),
        ("attn.to_add_out", "context_block.attn.proj"),
        ("ff_context.net.0.proj", "context_block.mlp.fc1"),
        ("ff_context.net.2", "context_block.mlp.fc2"),
        (".ff.net.0.proj", ".x_block.mlp.fc1"),
        (".ff.net.2", ".x_block.mlp.fc2"),
        (".attn.", ".x_block.attn."),
        (".attn2.", ".x_block.attn2."),
        ("context_block.x_block.", "context_block."),
        (".norm_", ".ln_"),
        (".to_out.0", ".proj"),
    ):
        name = name.replace(here, there)
    return name


def seeded(name, shape):
    tensor = seeded_weights.seeded(name, tuple(shape))
    return tensor + 1 if ".ln_" in name else tensor


def swapped(tensor):
    first, second = tensor.chunk(2)
    return torch.cat([second, first])


def make_transformer(kind, context=WIDTH, pooled=POOLED):
    """Shapes by the publisher's names go to shapes[kind]."""
    layers = 3
    model = SD3Transformer2DModel(
        sample_size=16,
        in_channels=16,
        num_layers=layers,
        attention_head_dim=64,
        num_attention_heads=HIDDEN // 64,
        joint_attention_dim=context,
        caption_projection_dim=HIDDEN,
        pooled_projection_dim=pooled,
        out_channels=16,
        pos_embed_max_size=8,
        **KINDS.get(kind, KINDS["medium"]),
    )
    state, named = model.state_dict(), {}
    turned = ("final_layer.adaLN_modulation.1", f"joint_blocks.{layers - 1}.context_block.adaLN_modulation.1")
    for name, tensor in state.items():
        there, shape = original(name), list(tensor.shape)
        third = next((part for part in "qkv" if f".to_{part}." in there), None)
        if third is None:
            named[there] = shape
            value = seeded(there, shape)
            state[name] = swapped(value) if there.startswith(turned) else value
            continue
        fused = there.replace(f".to_{third}.", ".qkv.")
        named[fused] = [3 * shape[0]] + shape[1:]
        state[name] = seeded(fused, named[fused]).chunk(3)["qkv".index(third)]
    model.load_state_dict(state)
    shapes[kind] = named
    return model.eval()


def velocity(model, x, sigma, context, pooled, **options):
    """Odd sides are completed by the first row and column, as ComfyUI does."""
    height, width = x.shape[2:]
    even = torch.nn.functional.pad(x, (0, width % 2, 0, height % 2), mode="circular")
    told = (tensor.expand(len(x), *tensor.shape[1:]) for tensor in (context, pooled))
    return model(even, *told, 1000 * sigma.expand(len(x)), **options).sample[:, :, :height, :width]


def forward(model, name, x, context, pooled):
    out = torch.stack([velocity(model, x, sigma, context, pooled) for sigma in LEVELS])
    told = {"x": x, "context": context, "y": pooled, "timestep": 1000 * LEVELS, "out": out}
    expected.update({f"{name}.{key}": tensor for key, tensor in told.items()})


def make_clip(name, layers, activation):
    config = CLIPTextConfig(
        vocab_size=49408,
        hidden_size=64,
        intermediate_size=16,
        projection_dim=64,
        num_hidden_layers=layers,
        num_attention_heads=1,
        hidden_act=activation,
        eos_token_id=CLIP_END,
    )
    model = CLIPTextModelWithProjection(config)
    shapes[name] = seeded_weights.load(model)
    return model


def make_t5():
    config = T5Config(
        vocab_size=32128,
        d_model=T5_WIDTH,
        d_kv=8,
        d_ff=16,
        num_layers=2,
        num_heads=2,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=False,
    )
    model = T5EncoderModel(config)
    shapes["t5xxl"] = seeded_weights.load(model)
    del shapes["t5xxl"]["encoder.embed_tokens.weight"]  # "shared.weight", by another name
    model.shared.weight.data = seeded_weights.seeded("shared.weight", tuple(model.shared.weight.shape))
    model.encoder.embed_tokens.weight = model.shared.weight
    return model


def encode(clips, t5, words):
    """As ComfyUI joins it: the states before the last layer, CLIP-L's vector before its projection."""
    states, pooled = [], []
    for model, padding in zip(clips, (CLIP_END, 0)):
        ids = [CLIP_START, *(CLIP_IDS if words else []), CLIP_END]
        end = len(ids) - 1
        out = model.text_model(input_ids=torch.tensor([ids + [padding] * (LENGTH - len(ids))]), output_hidden_states=True)
        states.append(out.hidden_states[-2])
        pooled.append(out.last_hidden_state[:, end])
    pooled[1] = model.text_projection(pooled[1])
    ids = [*(T5_IDS if words else []), T5_END]
    text = t5(input_ids=torch.tensor([ids + [0] * (LENGTH - len(ids))])).last_hidden_state
    beside = torch.nn.functional.pad(torch.cat(states, dim=-1), (0, T5_WIDTH - 128))
    return torch.cat([beside, text], dim=1), torch.cat(pooled, dim=-1)


def make_workflow():
    clips = make_clip("clip_l", 3, "quick_gelu"), make_clip("clip_g", 32, "gelu")
    t5, model = make_t5(), make_transformer("drawn", T5_WIDTH, 128)
    positive, negative = encode(clips, t5, True), encode(clips, t5, False)

    def predict(x, sigma):
        with_text, without = velocity(model, x, sigma, *positive), velocity(model, x, sigma, *negative)
        return without + 4.5 * (with_text - without)

    def predict_skipping(x, sigma):
        difference = velocity(model, x, sigma, *positive) - velocity(model, x, sigma, *positive, skip_layers=[1])
        return predict(x, sigma) + 3 * difference

    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    skipped = sample(predict_skipping, noise, shifted_levels(3.0, 3))
    latent = sample(predict, noise, shifted_levels(3.0, 3))
    vae = AutoencoderKL(
        block_out_channels=(32, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=32,
        layers_per_block=1,
        latent_channels=16,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    shapes["vae"] = seeded_weights.load(vae)
    picture = ((vae.eval().decode(latent / 1.5305 + 0.0609).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    told = {"states": positive[0][:, ::11], "pooled": positive[1], "latent": latent, "skipped": skipped, "picture": picture}
    expected.update({f"flow.{key}": tensor for key, tensor in told.items()})


def main(out):
    os.makedirs(out, exist_ok=True)
    for kind in KINDS:
        model = make_transformer(kind)
        forward(model, f"{kind}_square", randn(1, 2, 16, 6, 6), randn(2, 2, 5, WIDTH), randn(3, 2, POOLED))
        forward(model, f"{kind}_odd", randn(4, 1, 16, 5, 9), randn(5, 1, 7, WIDTH), randn(6, 1, POOLED))
    make_workflow()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "sd3"))
