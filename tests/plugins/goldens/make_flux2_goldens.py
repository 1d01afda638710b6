"""Writes what diffusers makes with tiny FLUX.2 transformers.

    make_flux2_goldens.py TOKENIZERS [OUT]        (default: flux2/ beside this file)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them.

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publisher's files: shape}}: "klein" and "dev" are
                            transformers of few channels, "transformer", "text" and "vae" make a whole, the last two by
                            the names of transformers and diffusers; "{0-3}" stands for each of these numbers
    expected.safetensors    "klein_square.x" is an input, "klein_square.out" an output with a row for each step;
                            "klein_wide" asks for 2 tokens of text at least and has more, "klein_shown" is shown
                            two pictures, "klein_timed" the same with the timestep 0 of their own, "klein_kept" what
                            its blocks made of them in its first step instead ("klein_kept.kept.double.0" and so on);
                            "dev_odd" is told the guidance; "klein_square.double.1.img" is a block's
                            result in the last step; "vae.z" and so on a decoding and an encoding of packed latents;
                            "flow.ids", "flow.states" (of the first tokens) and "flow.negative" are the text of a guided
                            run of 3 steps, "flow.latent" and "flow.picture" its ends, "flow.edited" the latent of
                            one that is shown a picture of one colour besides, "flow.kept" the same where this
                            is looked at in the first step only; "dev_flow" a run of FLUX.2 dev, with the
                            last states of its text
    tokenizer.json          what its text encoder reads: single bytes
"""

import json
import os
import sys

import torch
from diffusers.pipelines.flux2.pipeline_flux2_klein import compute_empirical_mu
from diffusers import AutoencoderKLFlux2, Flux2KleinPipeline, Flux2Transformer2DModel
from diffusers.models.transformers import transformer_flux2
from diffusers.loaders.single_file_utils import convert_flux2_transformer_checkpoint_to_diffusers
from safetensors.torch import save_file
from diffusers.pipelines.flux2.system_messages import SYSTEM_MESSAGE
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import MistralConfig, MistralModel, Qwen3Config, Qwen3Model

import seeded_weights
from name_patterns import compressed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer"))
import vocabulary_goldens  # noqa: E402

torch.set_grad_enabled(False)
LEAST_TOKENS = 512  # of text, as ComfyUI completes it
WIDTH = 72  # of texts: states of three layers
PROMPT = "a photo of a (red fox:1.1) in the snow, soft light"
LEVELS = torch.tensor([0.9, 0.55, 0.125])
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original_shapes(config):
    """{name: shape} as the publisher's files have it."""
    d = config["attention_head_dim"] * config["num_attention_heads"]
    head, mlp, channels = config["attention_head_dim"], 3 * d, config["in_channels"]
    found = {"img_in.weight": [d, channels], "txt_in.weight": [d, config["joint_attention_dim"]]}
    for number in ["time_in"] + ["guidance_in"] * config["guidance_embeds"]:
        found[f"{number}.in_layer.weight"] = [d, 256]
        found[f"{number}.out_layer.weight"] = [d, d]
    for name, parts in (("double_stream_modulation_img", 6), ("double_stream_modulation_txt", 6), ("single_stream_modulation", 3)):
        found[f"{name}.lin.weight"] = [parts * d, d]
    for i in range(config["num_layers"]):
        for stream in ("img", "txt"):
            at = f"double_blocks.{i}.{stream}_"
            found |= {f"{at}attn.qkv.weight": [3 * d, d], f"{at}attn.proj.weight": [d, d]}
            found |= {f"{at}attn.norm.query_norm.scale": [head], f"{at}attn.norm.key_norm.scale": [head]}
            found |= {f"{at}mlp.0.weight": [2 * mlp, d], f"{at}mlp.2.weight": [d, mlp]}
    for i in range(config["num_single_layers"]):
        at = f"single_blocks.{i}."
        found |= {f"{at}linear1.weight": [3 * d + 2 * mlp, d], f"{at}linear2.weight": [d, d + mlp]}
        found |= {f"{at}norm.query_norm.scale": [head], f"{at}norm.key_norm.scale": [head]}
    found |= {"final_layer.adaLN_modulation.1.weight": [2 * d, d], "final_layer.linear.weight": [channels, d]}
    return found


def transformer(name, channels, is_guided):
    """The model, and its shapes under `name`."""
    config = dict(
        in_channels=channels,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=3,
        joint_attention_dim=WIDTH,
        axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=is_guided,
    )
    model = Flux2Transformer2DModel(**config)
    shapes[name] = original_shapes(config)
    state = {key: seeded_weights.seeded(key, tuple(shape)) for key, shape in shapes[name].items()}
    model.load_state_dict(convert_flux2_transformer_checkpoint_to_diffusers(state))
    return model.eval()


def velocity(model, x, sigma, context, guidance=None, references=(), least=LEAST_TOKENS):
    """x (B, C, H, W), context (B, T, WIDTH), references: pictures (1, C, h, w)."""
    batch, _, height, width = x.shape
    context = torch.nn.functional.pad(context, (0, 0, max(0, least - context.shape[1]), 0))
    tokens, ids = Flux2KleinPipeline._pack_latents(x), Flux2KleinPipeline._prepare_latent_ids(x)[:1]
    if references:
        shown = torch.cat([Flux2KleinPipeline._pack_latents(one) for one in references], dim=1)
        tokens = torch.cat([tokens, shown.expand(batch, -1, -1)], dim=1)
        ids = torch.cat([ids, Flux2KleinPipeline._prepare_image_ids(list(references))], dim=1)
    out = model(
        hidden_states=tokens,
        timestep=sigma.expand(batch),
        guidance=None if guidance is None else guidance.expand(batch),
        encoder_hidden_states=context,
        txt_ids=Flux2KleinPipeline._prepare_text_ids(context[:1]),
        img_ids=ids,
        return_dict=False,
    )[0]
    return out[:, : height * width].transpose(1, 2).reshape(x.shape)


def forward(model, name, x, context, guidance=None, references=(), least=LEAST_TOKENS):
    """All steps, and the blocks' results in the last one."""
    kept, hooks = [], []
    for block in [*model.transformer_blocks, *model.single_transformer_blocks]:
        hooks.append(block.register_forward_hook(lambda _module, _inputs, result: kept.append(result)))
    outputs = [velocity(model, x, sigma, context, guidance, references, least) for sigma in LEVELS]
    for hook in hooks:
        hook.remove()
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": torch.stack(outputs)})
    if guidance is not None:
        expected[f"{name}.guidance"] = guidance
    if references:
        ids = Flux2KleinPipeline._prepare_image_ids(list(references))[0]
        expected[f"{name}.references"] = torch.cat([Flux2KleinPipeline._pack_latents(one) for one in references], dim=1)
        expected[f"{name}.reference_positions"] = ids[:, :3].float()
    return kept[-4:]


def see_all(query, key, value, _text, _references, kv_cache=None, backend=None):
    """diffusers lets tokens of references see themselves alone; ComfyUI, as here, lets all tokens see all."""
    if kv_cache is not None:
        key, value = (torch.cat([own, kept], dim=1) for own, kept in zip((key, value), kv_cache.get()))
    return transformer_flux2.dispatch_attention_fn(query, key, value, backend=backend)


transformer_flux2._flux2_kv_causal_attention = see_all


def timed_velocity(model, x, sigma, context, references=(), kept=None, least=LEAST_TOKENS):
    """With references at the timestep 0, or what an earlier call has kept of them: the velocity, and what is kept."""
    batch, _, height, width = x.shape
    for block in model.transformer_blocks:
        block.attn.set_processor(transformer_flux2.Flux2KVAttnProcessor())
    for block in model.single_transformer_blocks:
        block.attn.set_processor(transformer_flux2.Flux2KVParallelSelfAttnProcessor())
    context = torch.nn.functional.pad(context, (0, 0, max(0, least - context.shape[1]), 0))
    tokens, ids, count = Flux2KleinPipeline._pack_latents(x), Flux2KleinPipeline._prepare_latent_ids(x)[:1], 0
    if references:
        shown = torch.cat([Flux2KleinPipeline._pack_latents(one) for one in references], dim=1)
        count = shown.shape[1]
        tokens = torch.cat([shown.expand(batch, -1, -1), tokens], dim=1)
        ids = torch.cat([Flux2KleinPipeline._prepare_image_ids(list(references)), ids], dim=1)
    out = model(
        hidden_states=tokens,
        timestep=sigma.expand(batch),
        encoder_hidden_states=context,
        txt_ids=Flux2KleinPipeline._prepare_text_ids(context[:1]),
        img_ids=ids,
        kv_cache=kept,
        kv_cache_mode="extract" if references else "cached",
        num_ref_tokens=count,
        return_dict=False,
    )
    return out[0].transpose(1, 2).reshape(x.shape), out[1] if references else kept


def make_kept(model, least=2):
    x, context, references = randn(5, 1, 16, 5, 3), randn(6, 1, 4, WIDTH), [randn(7, 1, 16, 3, 2), randn(8, 1, 16, 2, 4)]
    forward(model, "klein_shown", x, context, references=references)
    calls = [timed_velocity(model, x, sigma, context, references, least=least) for sigma in LEVELS]
    kept = calls[0][1]
    later = [timed_velocity(model, x, sigma, context, kept=kept, least=least)[0] for sigma in LEVELS]
    for name, outputs in (("klein_timed", [out for out, _ in calls]), ("klein_kept", later)):
        expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": torch.stack(outputs)})
    for name in ("references", "reference_positions"):
        expected[f"klein_timed.{name}"] = expected[f"klein_shown.{name}"]
    expected["klein_timed.reference_timestep"] = torch.zeros(1)
    for kind, layers in (("double", kept.double_block_caches), ("single", kept.single_block_caches)):
        for i, layer in enumerate(layers):
            expected[f"klein_kept.kept.{kind}.{i}"] = torch.cat([one.flatten(2) for one in layer.get()], dim=-1)


def make_transformers():
    klein, dev = transformer("klein", 16, False), transformer("dev", 16, True)
    blocks = forward(klein, "klein_square", randn(1, 2, 16, 6, 6), randn(2, 2, 5, WIDTH))
    for i, (_, image) in enumerate(blocks[:2]):
        expected[f"klein_square.double.{i}.img"] = image
    forward(klein, "klein_wide", randn(3, 1, 16, 4, 10), randn(4, 1, 9, WIDTH), least=2)
    make_kept(klein)
    forward(dev, "dev_odd", randn(9, 1, 16, 5, 7), randn(10, 1, 6, WIDTH), torch.tensor([4.0]))


def make_vae():
    """The autoencoder, whose decoder is smaller than its encoder; decode(z) and encode(image) of packed latents."""
    model = AutoencoderKLFlux2(
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        block_out_channels=[32, 32, 32, 64],
        decoder_block_out_channels=[32] * 4,
        layers_per_block=1,
    )
    shapes["vae"] = {name: list(tensor.shape) for name, tensor in model.state_dict().items() if not name.endswith("num_batches_tracked")}
    model.load_state_dict({name: seeded_weights.seeded(name, tuple(shape)) for name, shape in shapes["vae"].items()}, strict=False)
    model.eval()
    mean = model.bn.running_mean.view(1, -1, 1, 1)
    deviation = torch.sqrt(model.bn.running_var.view(1, -1, 1, 1) + model.config.batch_norm_eps)

    def decode(z):
        return model.decode(Flux2KleinPipeline._unpatchify_latents(z * deviation + mean)).sample.permute(0, 2, 3, 1)

    def encode(image):
        posterior = model.encode(image.permute(0, 3, 1, 2)).latent_dist
        return (Flux2KleinPipeline._patchify_latents(posterior.mean) - mean) / deviation, posterior.logvar

    z, image = randn(20, 1, 128, 2, 3), randn(21, 1, 32, 48, 3).clamp(-1, 1)
    expected.update({"vae.z": z, "vae.image": decode(z), "vae_encoder.image": image})
    expected["vae_encoder.mean"], expected["vae_encoder.logvar"] = encode(image)
    return decode, encode


def make_text_encoder():
    """Of as many layers as are read at least."""
    config = Qwen3Config(
        vocab_size=151936,
        hidden_size=WIDTH // 3,
        intermediate_size=32,
        num_hidden_layers=28,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )
    model = Qwen3Model(config)
    shapes["text"] = seeded_weights.load(model, lambda name: f"model.{name}")
    return model


def encode_text(tokenizer, model, prompt):
    """The ids without padding, and states (1, 512, 3 D), as Flux2KleinPipeline takes them."""
    ids = tokenizer.encode(f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n").ids
    padded = ids + [tokenizer.token_to_id("<|endoftext|>")] * (LEAST_TOKENS - len(ids))
    mask = torch.tensor([[1] * len(ids) + [0] * (LEAST_TOKENS - len(ids))])
    states = model(input_ids=torch.tensor([padded]), attention_mask=mask, output_hidden_states=True, use_cache=False).hidden_states
    return torch.tensor([ids]).int(), torch.cat([states[layer] for layer in (9, 18, 27)], dim=-1)


def make_workflow(tokenizers, decode, encode):
    tokenizer = vocabulary_goldens.qwen(os.path.join(tokenizers, "qwen2.5"), vocabulary_goldens.QWEN3_TOKENS)
    model, text = transformer("transformer", 128, False), make_text_encoder()
    ids, positive = encode_text(tokenizer, text, PROMPT)
    _, negative = encode_text(tokenizer, text, "")
    expected.update({"flow.ids": ids, "flow.states": positive[:, :48], "flow.negative": negative[:, :24]})
    height, width, steps = 48, 80, 3
    mu = torch.tensor(compute_empirical_mu(round(height * width / 256), steps))
    t = torch.linspace(1, 0, steps + 1)
    sigmas = torch.exp(mu) / (torch.exp(mu) + 1 / t - 1)

    def draw(references):
        x = torch.randn(1, 128, height // 16, width // 16, generator=torch.Generator().manual_seed(7))
        for sigma, after in zip(sigmas, sigmas[1:]):
            with_text, without = (velocity(model, x, sigma, c, references=references) for c in (positive, negative))
            x = x + (without + 2.5 * (with_text - without)) * (after - sigma)
        return x

    def picture(latent):
        return ((decode(latent) + 1) / 2).clamp(0, 1)

    latent = draw([])
    expected.update({"flow.latent": latent, "flow.picture": picture(latent)})
    shown = (torch.tensor([64.0, 128.0, 192.0]) / 255).expand(1, 32, 48, 3)
    references = [encode(2 * shown - 1)[0]]
    expected["flow.edited"] = draw(references)
    x, kept = torch.randn(1, 128, height // 16, width // 16, generator=torch.Generator().manual_seed(7)), [None, None]
    for sigma, after in zip(sigmas, sigmas[1:]):
        seen = [timed_velocity(model, x, sigma, c, references if k is None else (), k) for c, k in zip((positive, negative), kept)]
        kept = [k for _, k in seen]
        (with_text, _), (without, _) = seen
        x = x + (without + 2.5 * (with_text - without)) * (after - sigma)
    expected["flow.kept"] = x


DEV_TEMPLATE = "<s>[SYSTEM_PROMPT]{system}[/SYSTEM_PROMPT][INST]{prompt}[/INST]"
SPECIALS = ["<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"]


def byte_tokenizer(out):
    """A tokenizer of special tokens and single bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(SPECIALS + letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    tokenizer.save(os.path.join(out, "tokenizer.json"), pretty=False)
    return tokenizer


def make_dev(out):
    """Flux2Pipeline's folder: two steps with guidance 4. Of a text's 512 tokens those that are lacking are zeros before
    it, as ComfyUI has it."""
    tokenizer = byte_tokenizer(out)
    config = MistralConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=WIDTH // 3,
        intermediate_size=32,
        num_hidden_layers=30,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        rms_norm_eps=1e-5,
        sliding_window=None,
        rope_parameters={"rope_type": "default", "rope_theta": 1e9},
    )
    text = MistralModel(config)
    shapes["dev.text"] = seeded_weights.load(text, lambda name: f"language_model.model.{name}")
    ids = tokenizer.encode(DEV_TEMPLATE.format(system=SYSTEM_MESSAGE, prompt=PROMPT)).ids
    # The last state is normed, and this is layer 30 of 30.
    kept = []
    text.layers[29].register_forward_hook(lambda _module, _inputs, result: kept.append(result))
    states = text(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
    context = torch.cat([states[10], states[20], kept[0]], dim=-1)
    model = transformer("dev.transformer", 128, True)
    height, width, steps = 32, 48, 2
    mu = torch.tensor(compute_empirical_mu(round(height * width / 256), steps))
    sigmas = torch.exp(mu) / (torch.exp(mu) + 1 / torch.linspace(1, 0, steps + 1) - 1)
    x = torch.randn(1, 128, height // 16, width // 16, generator=torch.Generator().manual_seed(7))
    for sigma, after in zip(sigmas, sigmas[1:]):
        x = x + velocity(model, x, sigma, context, torch.tensor([4.0])) * (after - sigma)
    expected.update({"dev_flow.states": context[:, -40:], "dev_flow.latent": x})


def main(tokenizers, out):
    os.makedirs(out, exist_ok=True)
    make_transformers()
    make_workflow(tokenizers, *make_vae())
    make_dev(out)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (f' "{model}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(what)}' for name, what in compressed(tensors).items()) + "\n }"
                  for model, tensors in shapes.items())
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    kept = {name: tensor if name == "flow.ids" else tensor.float() for name, tensor in expected.items()}
    save_file({name: tensor.clone().contiguous() for name, tensor in kept.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:32} {tuple(tensor.shape)} {tensor.float().norm():.4g} {tensor.abs().max():.4g}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "flux2"))
