"""Writes what PyTorch makes with UNets that are shown a picture: Lotus, which gives its depth, and Stable Diffusion's x4
upscaler.

    make_shown_goldens.py [OUT]        (default: shown/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py); the encoder of texts and Lotus's autoencoder are those of make_unet_goldens.py.
Files:

    shapes.json             {model: {name of the tensor in diffusers: shape}}: "lotus" and "x4" are UNets, "x4_vae"
    expected.safetensors    "lotus_square.x" is an input, "lotus_square.out" an output with a row for each step; "_odd" with
                            odd sides; "x4" likewise. "lotus_text" is what a file of a conditioning holds, "lotus_drawn.pixels"
                            the picture, ".latent" and ".picture" what comes of it; "x4_drawn" likewise
"""

import json
import math
import os
import sys

import torch
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from safetensors.torch import save_file

import make_unet_goldens as unets
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
PLAIN, TEXT = unets.PLAIN, unets.TEXT
X4_SCALE, X4_FIRST, X4_LAST, X4_MOST, SEED = 0.08333, 0.0001, 0.02, 350, 7
expected, shapes = unets.expected, {}


def make_unet(name, **told):
    told["up_block_types"] = tuple(block.replace("Down", "Up") for block in reversed(told["down_block_types"]))
    model = UNet2DConditionModel(sample_size=16, cross_attention_dim=64, layers_per_block=1, use_linear_projection=True, **told)
    shapes[name] = seeded_weights.load(model)
    return model


def forward(model, name, label, x, context, inputs):
    told = {"x": x, "context": context, "timestep": unets.TIMES, **inputs}
    whole = x
    if "concat" in inputs:
        whole = torch.cat([x, inputs["concat"].expand(len(x), -1, -1, -1)], dim=1)
    labels = label.expand(len(x), *label.shape[1:])
    told["out"] = torch.stack([model(whole, time, encoder_hidden_states=context, class_labels=labels).sample for time in unets.TIMES])
    expected.update({f"{name}.{key}": tensor for key, tensor in told.items()})


def lotus():
    model = make_unet(
        "lotus", block_out_channels=(64, 128), down_block_types=(TEXT, TEXT), attention_head_dim=(1, 2),
        class_embed_type="projection", projection_class_embeddings_input_dim=4)
    # As Lotus's pipeline tells its task: sines, then cosines of (1, 0).
    task = torch.tensor([[1.0, 0.0]])
    task = torch.cat([task.sin(), task.cos()], dim=-1)
    forward(model, "lotus_square", task, unets.randn(21, 2, 4, 8, 8), unets.randn(22, 2, 5, 64), {"y": task})
    forward(model, "lotus_odd", task, unets.randn(24, 1, 4, 5, 11), unets.randn(25, 1, 7, 64), {"y": task})
    # The first two tokens of a text that was encoded without anything in it; the file holds more of them.
    text, vae = unets.randn(26, 1, 5, 64), unets.make_vae()
    pixels = torch.rand(1, 48, 80, 3, generator=torch.Generator().manual_seed(27))
    latent = unets.SD_SCALE * vae.encode((2 * pixels - 1).permute(0, 3, 1, 2)).latent_dist.mode()
    shown = model(latent, torch.tensor(999.0), encoder_hidden_states=text[:, :2], class_labels=task).sample
    picture = 1 - ((vae.decode(shown / unets.SD_SCALE).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    expected.update({"lotus_text": text, "lotus_drawn.pixels": pixels, "lotus_drawn.latent": shown, "lotus_drawn.picture": picture})


def make_x4_vae():
    vae = AutoencoderKL(
        block_out_channels=(32,) * 3, down_block_types=("DownEncoderBlock2D",) * 3, up_block_types=("UpDecoderBlock2D",) * 3,
        norm_num_groups=32, layers_per_block=1, latent_channels=4)
    shapes["x4_vae"] = seeded_weights.load(vae)
    return vae.eval()


def upscaled(model, text, nothing, picture, noise_augmentation, cfg):
    level = torch.tensor([round(X4_MOST * noise_augmentation)])
    if noise_augmentation > 0:
        torch.manual_seed(SEED - 10)
        noises = DDPMScheduler(beta_schedule="scaled_linear", beta_start=X4_FIRST, beta_end=X4_LAST)
        picture = noises.add_noise(picture, torch.randn(picture.shape), level)
    levels = unets.karras(4)

    def clean(x, sigma, context):
        scale = 1 / math.sqrt(sigma**2 + 1)
        whole = torch.cat([x * scale, picture], dim=1)
        velocity = model(whole, torch.tensor(unets.time_of(sigma)), encoder_hidden_states=context, class_labels=level.expand(len(x))).sample
        return x * scale**2 - velocity * sigma * scale

    def guided(x, sigma):
        without = clean(x, sigma, nothing)
        return without + cfg * (clean(x, sigma, text) - without)

    noise = torch.randn(1, 4, *picture.shape[2:], generator=torch.Generator().manual_seed(SEED))
    return unets.dpmpp_2m(guided, noise * math.sqrt(1 + levels[0] ** 2), levels)


def x4():
    model = make_unet(
        "x4", block_out_channels=(32, 32, 64), down_block_types=(PLAIN, TEXT, TEXT), attention_head_dim=8, num_class_embeds=1000,
        only_cross_attention=(True, True, False), in_channels=7)
    for name, items, height, width, level in (("x4_square", 2, 8, 8, 20), ("x4_odd", 1, 5, 11, 349)):
        label = torch.tensor([level])
        forward(model, name, label, unets.randn(31, items, 4, height, width), unets.randn(32, items, 5, 64),
                {"level": label.int(), "concat": unets.randn(33, 1, 3, height, width)})
    kept = 1 - torch.linspace(X4_FIRST**0.5, X4_LAST**0.5, 1000, dtype=torch.float64) ** 2
    kept = torch.cumprod(kept, dim=0)
    unets.TABLE = ((1 - kept) / kept).sqrt()
    encoder, vae = unets.make_clip("clip_h", 24, "gelu"), make_x4_vae()
    text, nothing = (unets.encode(encoder, 0, words, -2, True)[0] for words in (True, False))
    pixels = torch.rand(1, 11, 17, 3, generator=torch.Generator().manual_seed(34))
    expected["x4_drawn.pixels"] = pixels
    whole = (2 * pixels - 1).permute(0, 3, 1, 2)
    # The ratio 4 leaves the picture as it is; 4.3 makes it 18 x 11, cut to that shape before.
    sides = [round(4.3 * side) // 4 for side in whole.shape[2:]]
    old = whole.shape[3] / whole.shape[2]
    new = sides[1] / sides[0]
    x = round((whole.shape[3] - whole.shape[3] * (new / old)) / 2) if old > new else 0
    y = round((whole.shape[2] - whole.shape[2] * (old / new)) / 2) if old < new else 0
    cut = whole[:, :, y : whole.shape[2] - y, x : whole.shape[3] - x]
    larger = torch.nn.functional.interpolate(cut, size=sides, mode="bilinear")
    for name, picture, noise in (("x4_drawn", whole, 0.05), ("x4_larger", larger, 0.0)):
        latent = upscaled(model, text, nothing, picture, noise, 5.0)
        shown = ((vae.decode(latent / X4_SCALE).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
        expected.update({f"{name}.latent": latent, f"{name}.picture": shown})


def main(out):
    os.makedirs(out, exist_ok=True)
    lotus()
    x4()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "shown"))
