"""Writes what diffusers makes with tiny models of Qwen-Image-Layered: its transformer, its autoencoder of pictures with
alpha, and a picture taken apart into layers.

    make_qwen_layered_goldens.py [OUT]        (default: qwen_layered/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor as ComfyUI's files have it: shape}}; "vae" has [shape, the name in
                            diffusers]; "{0-3}" stands for each of these numbers
    whole.png               the picture that is taken apart
    expected.safetensors    "tall.x" and so on an input of the transformer, "tall.out" with a row for each step: "tall",
                            "wide", "many" (more pictures than half a side has tokens) and "odd" (sides that are no
                            multiple of 2) are shown a picture, "alone" and "one" none; "vae.z" and so on a decoding and
                            an encoding by themselves; "flow.latent" is the end of 3 guided steps, "flow.layers" each
                            fourth row of their pictures, "flow.video" each eighth row of what they are as one video, of
                            a workflow whose texts are those of workflows/expected.safetensors
"""

import json
import os
import sys

import torch
from PIL import Image
from diffusers import AutoencoderKLQwenImage, QwenImageLayeredPipeline, QwenImageTransformer2DModel
from safetensors.torch import load_file, save_file

import seeded_weights
from make_qwen_image_goldens import places
from make_workflow_goldens import VAE, sample, shifted_levels, vae_names
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS, WIDTH = 16, 24
LEVELS = torch.tensor([0.9, 0.55, 0.125])
CONFIG = dict(
    patch_size=2,
    in_channels=4 * CHANNELS,
    out_channels=CHANNELS,
    num_layers=2,
    attention_head_dim=24,
    num_attention_heads=2,
    joint_attention_dim=WIDTH,
    axes_dims_rope=[16, 4, 4],
    use_additional_t_cond=True,
    use_layer3d_rope=True,
)
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def even(x):
    """Odd sides are completed by the first row and column, as ComfyUI does."""
    sides = (0, x.shape[-1] % 2, 0, x.shape[-2] % 2)
    return torch.nn.functional.pad(x.flatten(0, -4), sides, mode="circular").unflatten(0, x.shape[:-3])


def pack(x):
    """The tokens of pictures (B, F, C, H, W)."""
    batch, frames, channels, height, width = x.shape
    return QwenImageLayeredPipeline._pack_latents(x.contiguous(), batch, channels, height, width, frames)


def velocity(model, x, sigma, context, shown=None):
    """As QwenImageLayeredPipeline asks the model; x (B, C, F, H, W), shown (1, C, h, w) or none."""
    batch, _, frames, height, width = x.shape
    pictures = even(x.transpose(1, 2))
    rows, columns = pictures.shape[-2] // 2, pictures.shape[-1] // 2
    tokens = pack(pictures)
    count = tokens.shape[1]
    sizes = [(1, rows, columns)] * frames
    if shown is None:
        # The pipeline always shows one: the places of all others are what they are with it.
        model.pos_embed.forward = lambda sizes, **more: (lambda image, text: (image[:-1], text))(
            *type(model.pos_embed).forward(model.pos_embed, [sizes[0] + [(1, 1, 1)]], **more)
        )
    else:
        reference = even(shown[:, None])
        sizes = sizes + [(1, reference.shape[-2] // 2, reference.shape[-1] // 2)]
        tokens = torch.cat([tokens, pack(reference).expand(batch, -1, -1)], dim=1)
    out = model(
        hidden_states=tokens,
        timestep=sigma.expand(batch),
        encoder_hidden_states=context.expand(batch, -1, -1),
        img_shapes=[sizes] * batch,
        additional_t_cond=torch.zeros(batch, dtype=torch.long),
        return_dict=False,
    )[0][:, :count]
    model.pos_embed.__dict__.pop("forward", None)
    made = QwenImageLayeredPipeline._unpack_latents(out, 16 * rows, 16 * columns, frames - 1, 8)
    return made[..., :height, :width]


def forward(model, name, x, context, shown=None):
    expected[f"{name}.out"] = torch.stack([velocity(model, x, sigma, context, shown) for sigma in LEVELS])
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS})
    if shown is None:
        return
    reference = even(shown[:, None])
    sides = [side // 2 for side in (*reference.shape[-2:], *even(x).shape[-2:])]
    expected[f"{name}.references"] = pack(reference)
    expected[f"{name}.reference_positions"] = places(-1, *sides[:2])
    expected[f"{name}.text_start"] = torch.tensor([float(max(x.shape[2], max(sides) // 2))])


def make_transformer():
    model = QwenImageTransformer2DModel(**CONFIG)
    shapes["transformer"] = seeded_weights.load(model)
    forward(model, "tall", randn(1, 2, CHANNELS, 3, 10, 4), randn(2, 2, 5, WIDTH), randn(3, 1, CHANNELS, 8, 4))
    forward(model, "wide", randn(4, 1, CHANNELS, 2, 4, 14), randn(5, 1, 9, WIDTH), randn(6, 1, CHANNELS, 4, 14))
    forward(model, "many", randn(7, 1, CHANNELS, 6, 4, 4), randn(8, 1, 3, WIDTH), randn(9, 1, CHANNELS, 4, 4))
    forward(model, "odd", randn(10, 2, CHANNELS, 2, 5, 7), randn(11, 1, 4, WIDTH), randn(12, 1, CHANNELS, 3, 9))
    forward(model, "alone", randn(13, 1, CHANNELS, 4, 6, 4), randn(14, 1, 6, WIDTH))
    forward(model, "one", randn(15, 1, CHANNELS, 1, 2, 2), randn(16, 1, 6, WIDTH))
    return model


def make_vae():
    model = AutoencoderKLQwenImage(**VAE, input_channels=4)
    seeded_weights.load(model, vae_names)
    shapes["vae"] = {vae_names(name): [list(tensor.shape), name] for name, tensor in model.state_dict().items()}
    z, image = randn(20, 2, CHANNELS, 1, 3, 5), randn(21, 1, 4, 1, 40, 24).clamp(-1, 1)
    decoded = model.decoder(model.post_quant_conv(z))  # decode() without its clamp
    assert torch.equal(decoded.clamp(-1, 1), model.decode(z).sample)
    posterior = model.encode(image).latent_dist
    expected["vae.z"], expected["vae.image"] = z[:, :, 0], decoded[:, :, 0].permute(0, 2, 3, 1)
    expected["vae_encoder.image"] = image[:, :, 0].permute(0, 2, 3, 1)
    expected["vae_encoder.mean"], expected["vae_encoder.logvar"] = posterior.mean[:, :, 0], posterior.logvar[:, :, 0]
    return model


def make_flow(model, vae, out):
    """KSampler with euler and simple, ModelSamplingAuraFlow of 1: 3 steps, cfg 2.5, seed 7, two layers of whole.png."""
    texts = load_file(os.path.join(HERE, "workflows/expected.safetensors"))
    positive, negative = texts["qwen_image.cross_attn"], texts["qwen_image.negative"]
    picture = (seeded_weights.seeded("whole", (48, 80, 3)) * 127.5 + 127.5).round()
    Image.fromarray(picture.to(torch.uint8).numpy()).save(os.path.join(out, "whole.png"))
    opaque = torch.cat([picture / 255, torch.ones(48, 80, 1)], dim=2)
    mean, deviation = (
        torch.tensor(numbers).view(1, -1, 1, 1, 1) for numbers in (vae.config.latents_mean, vae.config.latents_std)
    )
    coded = vae.encode(opaque.permute(2, 0, 1)[None, :, None] * 2 - 1).latent_dist.mode()
    shown = ((coded - mean) / deviation)[:, :, 0]

    def predict(x, sigma):
        with_text, without = (velocity(model, x, sigma, text, shown) for text in (positive, negative))
        return without + 2.5 * (with_text - without)

    noise = torch.randn(1, CHANNELS, 3, 6, 10, generator=torch.Generator().manual_seed(7))
    latent = sample(predict, noise, shifted_levels(1.0, 3))
    layers = (latent * deviation + mean).transpose(1, 2)[0][:, :, None]
    pictures = vae.decode(layers).sample[:, :, 0].permute(0, 2, 3, 1) / 2 + 0.5
    video = vae.decode(latent * deviation + mean).sample[0].permute(1, 2, 3, 0) / 2 + 0.5
    expected.update({"flow.latent": latent, "flow.layers": pictures[:, ::4], "flow.video": video[:, ::8]})


def main(out):
    os.makedirs(out, exist_ok=True)
    make_flow(make_transformer(), make_vae(), out)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file(
        {name: tensor.float().clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name, tensor in expected.items():
        print(f"{name:26} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "qwen_layered"))
