"""Writes what PyTorch makes of prompts with tiny models of Qwen-Image and Z-Image: texts, latents and pictures.

    make_workflow_goldens.py TOKENIZERS [OUT]        (default: workflows/ beside this file)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them. Needs torch,
diffusers, transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor as ComfyUI's files have it: shape}}; "qwen_image.vae" has
                            [shape, the name in diffusers]
    expected.safetensors    "qwen_image.ids" are the tokens of the prompt in its template, "qwen_image.cross_attn" what
                            is kept of their states, "qwen_image.negative" that of " ", "qwen_image.latent" the end of
                            3 guided steps, "qwen_image.picture" the picture; "qwen_vae.z" and so on a decoding and an
                            encoding by themselves; "z_image." and so on the same of Z-Image, without guidance;
                            "z_square", "z_wide" and "z_odd" its transformer by itself, "out" with a row for each step
"""

import json
import os
import sys

import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderKLQwenImage,
    QwenImagePipeline,
    QwenImageTransformer2DModel,
    ZImageTransformer2DModel,
)
from safetensors.torch import save_file
from transformers import Qwen2Config, Qwen2Model, Qwen3Config, Qwen3Model

import seeded_weights

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer"))
import vocabulary_goldens  # noqa: E402

torch.set_grad_enabled(False)
PROMPT = "a photo of a (red fox:1.1) in the snow, soft light"
WIDTH = 24  # of the states of texts
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def vae_names(name):
    """The original name of a tensor of AutoencoderKLQwenImage."""
    parts = name.split(".")
    if parts[0] in ("quant_conv", "post_quant_conv"):
        return ".".join([{"quant_conv": "conv1", "post_quant_conv": "conv2"}[parts[0]]] + parts[1:])
    side, rest = parts[0], parts[1:]
    resnet = {"norm1": "residual.0", "conv1": "residual.2", "norm2": "residual.3", "conv2": "residual.6"}
    resnet["conv_shortcut"] = "shortcut"

    def inside(tail):
        return [resnet.get(tail[0], tail[0])] + tail[1:]

    if rest[0] in ("conv_in", "norm_out", "conv_out"):
        return ".".join([side, {"conv_in": "conv1", "norm_out": "head.0", "conv_out": "head.2"}[rest[0]]] + rest[1:])
    if rest[0] == "mid_block":
        number = "1" if rest[1] == "attentions" else str(2 * int(rest[2]))
        return ".".join([side, "middle", number] + inside(rest[3:]))
    if rest[0] == "down_blocks":
        return ".".join([side, "downsamples", rest[1]] + inside(rest[2:]))
    level = int(rest[1])
    each = VAE["num_res_blocks"] + 2  # residual blocks of a level, and the change of size
    number = level * each + (each - 1 if rest[2] == "upsamplers" else int(rest[3]))
    return ".".join([side, "upsamples", str(number)] + inside(rest[4:]))


VAE = dict(base_dim=4, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=1, temperal_downsample=[False, True, True])


def make_vae():
    model = AutoencoderKLQwenImage(**VAE)
    seeded_weights.load(model, vae_names)
    shapes["qwen_image.vae"] = {
        vae_names(name): [list(tensor.shape), name] for name, tensor in model.state_dict().items()
    }
    z, image = randn(1, 2, 16, 1, 3, 5), randn(2, 1, 3, 1, 24, 40).clamp(-1, 1)
    decoded = model.decoder(model.post_quant_conv(z))  # decode() without its clamp
    assert torch.equal(decoded.clamp(-1, 1), model.decode(z).sample)
    posterior = model.encode(image).latent_dist
    expected["qwen_vae.z"], expected["qwen_vae.image"] = z[:, :, 0], decoded[:, :, 0].permute(0, 2, 3, 1)
    expected["qwen_vae_encoder.image"] = image[:, :, 0].permute(0, 2, 3, 1)
    expected["qwen_vae_encoder.mean"] = posterior.mean[:, :, 0]
    expected["qwen_vae_encoder.logvar"] = posterior.logvar[:, :, 0]
    return model


def encode_qwen_image(tokenizer, model, prompt):
    """The ids and the states that ComfyUI keeps: those behind the second "<|im_start|>user\\n"."""
    ids = tokenizer.encode(QwenImagePipeline(*[None] * 5).prompt_template_encode.format(prompt)).ids
    states = model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state
    start = [i for i, token in enumerate(ids) if token == 151644][1]
    assert ids[start + 1 : start + 3] == [872, 198] and start + 3 == 34
    return torch.tensor([ids]).int(), states[:, start + 3 :]


def velocity(model, x, sigma, context):
    batch, channels, height, width = x.shape
    out = model(
        hidden_states=QwenImagePipeline._pack_latents(x, batch, channels, height, width),
        timestep=sigma.expand(batch),
        encoder_hidden_states=context,
        encoder_hidden_states_mask=torch.ones(context.shape[:2], dtype=torch.bool),
        img_shapes=[[(1, height // 2, width // 2)]] * batch,
        return_dict=False,
    )[0]
    return QwenImagePipeline._unpack_latents(out, height * 8, width * 8, 8)[:, :, 0]


def shifted_levels(shift, steps):
    """KSampler's "simple" over ComfyUI's thousand levels of a linear shift."""
    t = torch.arange(1, 1001, dtype=torch.float64) / 1000
    levels = (shift * t / (1 + (shift - 1) * t)).float()
    return [levels[-1 - int(k * (1000 / steps))] for k in range(steps)] + [torch.tensor(0.0)]


def sample(predict, x, sigmas):
    """Euler's method; x is noise of level 1."""
    for sigma, after in zip(sigmas, sigmas[1:]):
        x = x + predict(x, sigma) * (after - sigma)
    return x


def picture_of(vae, latent):
    mean, deviation = (torch.tensor(numbers).view(1, -1, 1, 1) for numbers in (vae.config.latents_mean, vae.config.latents_std))
    decoded = vae.decode((latent * deviation + mean)[:, :, None]).sample[:, :, 0]
    return ((decoded + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)


def make_qwen_image(tokenizers, vae):
    # Of a text alone Qwen2.5-VL makes what Qwen2.5 makes, whose heads may have any size.
    config = Qwen2Config(
        vocab_size=151936,
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=128,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )
    text = Qwen2Model(config)
    shapes["qwen_image.text"] = seeded_weights.load(text, lambda name: f"model.{name}")
    model = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=64,
        out_channels=16,
        num_layers=2,
        attention_head_dim=24,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        axes_dims_rope=[16, 4, 4],
    )
    shapes["qwen_image.transformer"] = seeded_weights.load(model)
    tokenizer = vocabulary_goldens.qwen(os.path.join(tokenizers, "qwen2.5"))
    ids, positive = encode_qwen_image(tokenizer, text, PROMPT)
    _, negative = encode_qwen_image(tokenizer, text, " ")
    expected.update({"qwen_image.ids": ids, "qwen_image.cross_attn": positive, "qwen_image.negative": negative})

    def predict(x, sigma):
        with_text, without = velocity(model, x, sigma, positive), velocity(model, x, sigma, negative)
        return without + 2.5 * (with_text - without)

    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    latent = sample(predict, noise, shifted_levels(3.1, 3))
    expected.update({"qwen_image.latent": latent, "qwen_image.picture": picture_of(vae, latent)})


def z_name(name):
    """The original name of a tensor of ZImageTransformer2DModel."""
    for here, there in (
        ("all_x_embedder.2-1.", "x_embedder."),
        ("all_final_layer.2-1.", "final_layer."),
        ("attention.to_out.0.", "attention.out."),
        ("attention.norm_q.", "attention.q_norm."),
        ("attention.norm_k.", "attention.k_norm."),
    ):
        name = name.replace(here, there)
    return name


def load_z(model):
    """As seeded_weights.load(); the original files have queries, keys and values in one tensor."""
    named, state = {}, {}
    for name, tensor in model.state_dict().items():
        thirds = ["to_q.", "to_k.", "to_v."]
        third = next((i for i, part in enumerate(thirds) if f"attention.{part}" in name), None)
        if third is None:
            named[z_name(name)] = list(tensor.shape)
            state[name] = seeded_weights.seeded(z_name(name), tuple(tensor.shape))
            continue
        fused, rows = name.replace(thirds[third], "qkv."), tensor.shape[0]
        named[fused] = [3 * rows, tensor.shape[1]]
        state[name] = seeded_weights.seeded(fused, tuple(named[fused]))[third * rows : (third + 1) * rows]
    model.load_state_dict(state)
    model.eval()
    return named


def z_velocity(model, x, sigma, context):
    """As ComfyUI asks the model: the level counted from the other end, and the result's opposite. Odd sides are
    completed by the first row and column."""
    height, width = x.shape[2:]
    even = torch.nn.functional.pad(x, (0, width % 2, 0, height % 2), mode="circular")
    out = model([item[:, None] for item in even], (1 - sigma).expand(len(x)), [item for item in context]).sample
    return -torch.stack([item[:, 0, :height, :width] for item in out])


def forward_z(model, name, x, context):
    levels = torch.tensor([0.9, 0.55, 0.125])
    out = torch.stack([z_velocity(model, x, sigma, context) for sigma in levels])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": levels, f"{name}.out": out})


def make_flux_vae():
    """An autoencoder as FLUX.1's, which others have, too; and the shapes of its tensors."""
    vae = AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        block_out_channels=[32] * 4,
        layers_per_block=1,
        latent_channels=16,
        norm_num_groups=32,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    return vae, seeded_weights.load(vae)


def flux_picture_of(vae, latent):
    decoded = vae.decode(latent / 0.3611 + 0.1159).sample
    return ((decoded + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)


def make_z_image(tokenizers):
    config = Qwen3Config(
        vocab_size=151936,
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
    )
    text = Qwen3Model(config)
    shapes["z_image.text"] = seeded_weights.load(text, lambda name: f"model.{name}")
    model = ZImageTransformer2DModel(
        dim=48,
        n_layers=2,
        n_refiner_layers=1,
        n_heads=3,
        n_kv_heads=3,
        cap_feat_dim=WIDTH,
        axes_dims=[4, 6, 6],
    )
    shapes["z_image.transformer"] = load_z(model)
    forward_z(model, "z_square", randn(3, 2, 16, 6, 6), randn(4, 2, 5, WIDTH))
    forward_z(model, "z_wide", randn(5, 1, 16, 8, 16), randn(6, 1, 33, WIDTH))
    forward_z(model, "z_odd", randn(7, 1, 16, 5, 9), randn(8, 1, 32, WIDTH))
    vae, shapes["z_image.vae"] = make_flux_vae()
    tokenizer = vocabulary_goldens.qwen(os.path.join(tokenizers, "qwen2.5"))
    ids = tokenizer.encode(f"<|im_start|>user\n{PROMPT}<|im_end|>\n<|im_start|>assistant\n").ids
    states = text(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states[-2]
    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    latent = sample(lambda x, sigma: z_velocity(model, x, sigma, states), noise, shifted_levels(3.0, 3))
    picture = flux_picture_of(vae, latent)
    expected.update({"z_image.ids": torch.tensor([ids]).int(), "z_image.cross_attn": states})
    expected.update({"z_image.latent": latent, "z_image.picture": picture})


def main(tokenizers, out):
    os.makedirs(out, exist_ok=True)
    make_qwen_image(tokenizers, make_vae())
    make_z_image(tokenizers)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (f' "{model}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(what)}' for name, what in tensors.items()) + "\n }"
                  for model, tensors in shapes.items())
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g} {tensor.float().std():.4g}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "workflows"))
