"""Writes what diffusers and transformers make with tiny models of FLUX 3.

    make_flux3_goldens.py TOKENIZERS [OUT]        (default: flux3/ beside this file)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them.

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's files: shape}}: "base" and "distilled" are
                            transformers of few channels, "transformer" and "turbo" the same for whole runs; "{0-3}"
                            stands for each of these numbers. The text encoder is krea2/'s, the autoencoder flux2/'s
    expected.safetensors    "base_square.x" is an input, "base_square.out" an output with a row for each step;
                            "base_wide" likewise, "base_shown" is shown two pictures, "distilled_odd" is told the
                            levels that its steps go to, "distilled_shown" is shown a picture besides;
                            "flow.ids", "flow.states" and "flow.negative" are the texts of a guided run of 4 steps,
                            "flow.latent" and "flow.picture" its ends, "flow.edited" the latent of one without guidance
                            that is shown a picture of one colour, "flow.turbo" that of a distilled model
"""

import json
import os
import sys

import numpy
import torch
from diffusers import FlowMatchEulerDiscreteScheduler, Flux3Transformer2DModel
from diffusers.loaders.single_file_utils import convert_flux3_transformer_checkpoint_to_diffusers
from diffusers.modular_pipelines.flux3.before_denoise import Flux3TextRoPEInputsStep, _prepare_image_ids
from diffusers.modular_pipelines.flux3.encoders import Flux3TextEncoderStep
from safetensors.torch import save_file
from transformers import PreTrainedTokenizerFast

import make_flux2_goldens
import make_krea2_goldens
import seeded_weights
from name_patterns import compressed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer"))
import vocabulary_goldens  # noqa: E402

torch.set_grad_enabled(False)
WIDTH = 8 * make_krea2_goldens.WIDTH  # of texts: states of eight layers
PROMPT = "a photo of a (red fox:1.1) in the snow, soft light"
LEVELS = torch.tensor([0.9, 0.55, 0.125])
GOALS = torch.tensor([0.55, 0.125, 0.0])
SHIFT, PLACE_SCALE = 6.93, 0.5  # the defaults of the pipeline's steps
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of Flux3Transformer2DModel."""
    beginnings = (
        ("x_embedders.", "emb_in."),
        ("context_embedder.", "txt_in."),
        ("timestep_embedder.linear_1.", "time_in.in_layer."),
        ("timestep_embedder.linear_2.", "time_in.out_layer."),
        ("target_timestep_embedder.linear_1.", "ref_time_in.in_layer."),
        ("target_timestep_embedder.linear_2.", "ref_time_in.out_layer."),
        ("proj_out.", "final_layer.image.linear."),
        ("norm_out.linear.", "final_layer.image.adaLN_modulation.1."),
        ("mode_blocks.", "content_mode_blocks."),
        ("single_transformer_blocks.", "single_blocks."),
    )
    for here, there in beginnings:
        if name.startswith(here):
            name = there + name[len(here) :]
            break
    for here, there in (
        ("attn.to_q.", "q_proj."),
        ("attn.to_k.", "k_proj."),
        ("attn.to_v.", "v_proj."),
        ("attn.to_out.0.", "attn_out."),
        ("attn.norm_q.weight", "norm.query_norm.scale"),
        ("attn.norm_k.weight", "norm.key_norm.scale"),
        ("ff.linear_in.", "mlp_in."),
        ("ff.linear_out.", "mlp_out."),
    ):
        name = name.replace(here, there)
    return name.replace(".linear.", ".lin.") if "_stream_modulations." in name else name


def transformer(name, channels, is_distilled):
    """The model, and its shapes under `name`."""
    model = Flux3Transformer2DModel(
        in_channels=channels,
        cond_in_channels=channels,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=3,
        joint_attention_dim=WIDTH,
        axes_dims_rope=(4, 4, 4, 4),
        flow_map=is_distilled,
    )
    shapes[name] = {original(key): list(tensor.shape) for key, tensor in model.state_dict().items()}
    state = {key: seeded_weights.seeded(key, tuple(shape)) for key, shape in shapes[name].items()}
    model.load_state_dict(convert_flux3_transformer_checkpoint_to_diffusers(state))
    return model.eval()


def pack(latents):
    return latents.flatten(2).transpose(1, 2)


def shown_tokens(references):
    """Tokens of pictures (1, C, h, w), and their places (t, h, w, l)."""
    places = [_prepare_image_ids(*one.shape[2:], PLACE_SCALE, l_coord=-(1 + i)) for i, one in enumerate(references)]
    return torch.cat([pack(one) for one in references], dim=1), torch.cat(places)


def velocity(model, x, sigma, context, references=(), goal=None):
    """x (B, C, H, W), context (B, T, WIDTH); goal: the level that the step goes to, of a distilled model."""
    batch, _, height, width = x.shape
    shown = {}
    if references:
        tokens, places = shown_tokens(references)
        shown = {"image_cond_hidden_states": tokens.expand(batch, -1, -1), "image_cond_ids": places}
    out = model(
        hidden_states=pack(x),
        encoder_hidden_states=context.expand(batch, -1, -1),
        timestep=sigma.expand(batch),
        img_ids=_prepare_image_ids(height, width, PLACE_SCALE),
        txt_ids=Flux3TextRoPEInputsStep._prepare_text_ids(context),
        target_timestep=None if goal is None else goal.expand(batch),
        return_dict=False,
        **shown,
    )[0]
    return out.transpose(1, 2).reshape(x.shape)


def forward(model, name, x, context, references=(), goals=None):
    outputs = [velocity(model, x, sigma, context, references, None if goals is None else goals[i]) for i, sigma in enumerate(LEVELS)]
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": torch.stack(outputs)})
    if goals is not None:
        expected[f"{name}.target_timestep"] = goals
    if references:
        tokens, places = shown_tokens(references)
        # As the model is given them: index, row, column in tokens.
        expected[f"{name}.references"] = tokens
        expected[f"{name}.reference_positions"] = torch.stack([places[:, 3], places[:, 1] / PLACE_SCALE, places[:, 2] / PLACE_SCALE], dim=1)


def make_transformers():
    base, distilled = transformer("base", 16, False), transformer("distilled", 16, True)
    forward(base, "base_square", randn(1, 2, 16, 6, 6), randn(2, 2, 5, WIDTH))
    forward(base, "base_wide", randn(3, 1, 16, 4, 10), randn(4, 1, 9, WIDTH))
    forward(base, "base_shown", randn(5, 2, 16, 5, 3), randn(6, 1, 4, WIDTH), [randn(7, 1, 16, 3, 2), randn(8, 1, 16, 2, 4)])
    forward(distilled, "distilled_odd", randn(9, 1, 16, 5, 7), randn(10, 1, 6, WIDTH), goals=GOALS)
    forward(distilled, "distilled_shown", randn(11, 1, 16, 4, 3), randn(12, 1, 6, WIDTH), [randn(13, 1, 16, 3, 3)], GOALS)


class Processor:
    """What the pipeline's step asks of Qwen3-VL's processor, whose chat template of one message of a user is this."""

    def __init__(self, tokenizer):
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|endoftext|>")

    def apply_chat_template(self, messages, tokenize, add_generation_prompt):
        assert not tokenize and add_generation_prompt and len(messages) == 1
        return f"<|im_start|>user\n{messages[0]['content']}<|im_end|>\n<|im_start|>assistant\n"


def make_workflow(tokenizers, decode, encode):
    processor = Processor(vocabulary_goldens.qwen(os.path.join(tokenizers, "qwen2.5"), vocabulary_goldens.QWEN3_TOKENS))
    text = make_krea2_goldens.make_text()
    positive, negative = (Flux3TextEncoderStep._get_qwen3_vl_prompt_embeds(text, processor, prompt) for prompt in (PROMPT, ""))
    chat = processor.apply_chat_template([{"content": PROMPT}], False, True)
    expected["flow.ids"] = processor.tokenizer(chat, return_tensors="pt")["input_ids"].int()
    # Of the padding, which is all alike, a few tokens.
    expected.update({"flow.states": positive[:, :48], "flow.negative": negative[:, :24]})
    assert positive.shape[1] == negative.shape[1] == 80
    assert (positive[:, expected["flow.ids"].shape[1] :] == positive[:, -1:]).all()
    base, turbo, steps = transformer("transformer", 128, False), transformer("turbo", 128, True), 4
    scheduler = FlowMatchEulerDiscreteScheduler(shift=SHIFT)
    scheduler.set_timesteps(sigmas=numpy.linspace(1.0, 1 / steps, steps))
    sigmas = scheduler.sigmas

    def draw(step):
        x = torch.randn(1, 128, 3, 5, generator=torch.Generator().manual_seed(7))
        for sigma, after in zip(sigmas, sigmas[1:]):
            x = x + step(x, sigma, after) * (after - sigma)
        return x

    def guided(x, sigma, _):
        with_text, without = (velocity(base, x, sigma, c) for c in (positive, negative))
        return without + 3.5 * (with_text - without)

    latent = draw(guided)
    expected.update({"flow.latent": latent, "flow.picture": ((decode(latent) + 1) / 2).clamp(0, 1)})
    colour = (torch.tensor([64.0, 128.0, 192.0]) / 255).expand(1, 32, 48, 3)
    references = [encode(2 * colour - 1)[0]]
    expected["flow.edited"] = draw(lambda x, sigma, _: velocity(base, x, sigma, positive, references))
    expected["flow.turbo"] = draw(lambda x, sigma, after: velocity(turbo, x, sigma, positive, goal=after))


def main(tokenizers, out):
    os.makedirs(out, exist_ok=True)
    make_transformers()
    make_workflow(tokenizers, *make_flux2_goldens.make_vae())
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (f' "{model}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(what)}' for name, what in compressed(tensors).items()) + "\n }"
                  for model, tensors in shapes.items())
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:32} {tuple(tensor.shape)} {tensor.float().norm():.4g} {tensor.abs().max():.4g}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "flux3"))
