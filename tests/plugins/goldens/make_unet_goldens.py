"""Writes what diffusers makes with tiny UNets of Stable Diffusion 1.x, 2.x, SDXL and its refiner.

    make_unet_goldens.py [OUT]        (default: unet/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in diffusers: shape}}: "sd1" and so on are UNets, "clip_l",
                            "clip_h", "clip_g" and "vae" what workflows need besides; "{0-1}" stands for each of
                            these numbers
    expected.safetensors    "sd1_square.x" is an input, "sd1_square.out" an output with a row for each step; "sd1_odd"
                            likewise, with odd sides, and the same of the other kinds. "sd1_drawn.states" (and
                            ".pooled") are those of a prompt, of every 11th token, "sd1_drawn.latent" the end of a
                            guided run, ".picture" the picture; "inpaint_drawn.pixels" and ".mask" what it is shown
"""

import json
import math
import os
import sys

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModelWithProjection

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
POOLED = 64
WIDTHS = {"sdxl": 128}  # of the states of texts, but for 64
TIMES = torch.tensor([999.0, 431.0, 7.0])
CLIP_IDS, CLIP_START, CLIP_END, LENGTH = [320, 1125, 539, 320, 2368], 49406, 49407, 77  # "a photo of a cat"
SD_SCALE, SDXL_SCALE = 0.18215, 0.13025
SIZES = {"sdxl": 6, "refiner": 5}  # how many numbers about the picture are told
PLAIN, TEXT = "DownBlock2D", "CrossAttnDownBlock2D"
LINEAR = {"use_linear_projection": True}
KINDS = {
    "sd1": dict(block_out_channels=(32, 64), down_block_types=(TEXT, PLAIN), attention_head_dim=8, layers_per_block=2),
    "sd2": dict(block_out_channels=(64, 128), down_block_types=(TEXT, TEXT), attention_head_dim=(1, 2), layers_per_block=1, **LINEAR),
    "sdxl": dict(
        block_out_channels=(32, 64, 128),
        down_block_types=(PLAIN, TEXT, TEXT),
        attention_head_dim=(1, 1, 2),
        transformer_layers_per_block=(1, 1, 2),
        layers_per_block=1,
        **LINEAR,
    ),
    "refiner": dict(
        block_out_channels=(32, 64, 64),
        down_block_types=(PLAIN, TEXT, PLAIN),
        attention_head_dim=(1, 1, 1),
        transformer_layers_per_block=(1, 2, 2),
        layers_per_block=1,
        **LINEAR,
    ),
    "inpaint": dict(
        block_out_channels=(32, 64), down_block_types=(TEXT, PLAIN), attention_head_dim=8, layers_per_block=1, in_channels=9
    ),
}
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_unet(kind, **more):
    told = dict(KINDS[kind]) | more
    downs = told["down_block_types"]
    told["up_block_types"] = tuple(block.replace("Down", "Up") for block in reversed(downs))
    if kind in SIZES:
        told.update(
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=POOLED + SIZES[kind] * 256,
        )
    model = UNet2DConditionModel(sample_size=16, cross_attention_dim=WIDTHS.get(kind, 64), **told)
    tensors = seeded_weights.load(model)
    if not more:
        shapes[kind] = tensors
    return model


def predicted(model, x, time, context, pooled=None, sizes=None):
    count = len(x)
    added = None
    if pooled is not None:
        added = {"text_embeds": pooled.expand(count, -1), "time_ids": sizes.expand(count, -1)}
    told = context.expand(count, -1, -1)
    return model(x, time, encoder_hidden_states=told, added_cond_kwargs=added).sample


def forward(model, kind, name, x, context, pooled, sizes):
    told = {"x": x, "context": context, "timestep": TIMES}
    if kind in SIZES:
        told |= {"y": pooled, "sizes": sizes[:, : SIZES[kind]]}
    whole = x
    if kind == "inpaint":
        told["concat"] = randn(11, 1, 5, *x.shape[2:])
        whole = torch.cat([x, told["concat"].expand(len(x), -1, -1, -1)], dim=1)
    added = [told["y"], told["sizes"]] if kind in SIZES else []
    told["out"] = torch.stack([predicted(model, whole, time, context, *added) for time in TIMES])
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


def encode(model, padding, words, layer, is_normed):
    """The states after a layer, counted from the end, and the projected vector at the end of the text."""
    ids = [CLIP_START, *(CLIP_IDS if words else []), CLIP_END]
    end = len(ids) - 1
    out = model.text_model(input_ids=torch.tensor([ids + [padding] * (LENGTH - len(ids))]), output_hidden_states=True)
    states = out.hidden_states[layer]
    if is_normed:
        states = model.text_model.final_layer_norm(states)
    return states, model.text_projection(out.last_hidden_state[:, end])


# Noise levels and samplers, written down from ComfyUI's rules and from the papers of the methods.
BETAS = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64) ** 2
KEPT = torch.cumprod(1 - BETAS, dim=0)
TABLE = ((1 - KEPT) / KEPT).sqrt()


def level_at(time):
    """Between two levels of the table it is interpolated in the logarithm."""
    low = min(int(math.floor(time)), len(TABLE) - 1)
    high = min(low + 1, len(TABLE) - 1)
    part = time - low
    return float(torch.exp((1 - part) * TABLE[low].log() + part * TABLE[high].log()))


def time_of(level):
    return float((TABLE.log() - math.log(level)).abs().argmin())


def normal(steps):
    return [level_at(999 * (1 - i / (steps - 1))) for i in range(steps)] + [0.0]


def karras(steps):
    low, high = (float(level) ** (1 / 7) for level in (TABLE[0], TABLE[-1]))
    return [(high + i / (steps - 1) * (low - high)) ** 7 for i in range(steps)] + [0.0]


def euler(denoise, x, levels):
    for level, after in zip(levels, levels[1:]):
        x = x + (x - denoise(x, level)) / level * (after - level)
    return x


def dpmpp_2m(denoise, x, levels):
    before, step_before = None, None
    for level, after in zip(levels, levels[1:]):
        clean = denoise(x, level)
        if after == 0:
            return clean
        step = math.log(level / after)
        told = clean
        if before is not None:
            ratio = step_before / step
            told = clean + (clean - before) / (2 * ratio)
        x = after / level * x - math.expm1(-step) * told
        before, step_before = clean, step
    return x


def denoiser(model, positive, negative, cfg, is_velocity=False, concat=None):
    def clean(x, level, conditioning):
        scale = 1 / math.sqrt(level**2 + 1)
        told = x * scale
        if concat is not None:
            told = torch.cat([told, concat], dim=1)
        made = predicted(model, told, torch.tensor(time_of(level)), *conditioning)
        return x * scale**2 - made * level * scale if is_velocity else x - made * level

    def guided(x, level):
        without = clean(x, level, negative)
        return without + cfg * (clean(x, level, positive) - without)

    return guided


def noised(levels, latent=0.0):
    """The first level is the highest of all, whose noise has the variance of the model's own."""
    noise = torch.randn(1, 4, 6, 10, generator=torch.Generator().manual_seed(7))
    return noise * math.sqrt(1 + levels[0] ** 2) + latent


def make_vae():
    vae = AutoencoderKL(
        block_out_channels=(32,) * 4,
        down_block_types=("DownEncoderBlock2D",) * 4,
        up_block_types=("UpDecoderBlock2D",) * 4,
        norm_num_groups=32,
        layers_per_block=1,
        latent_channels=4,
    )
    shapes["vae"] = seeded_weights.load(vae)
    return vae.eval()


def keep(name, vae, latent, scale, states=None, pooled=None):
    picture = ((vae.decode(latent / scale).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    told = {"latent": latent, "picture": picture[:, ::5, ::5]}
    if states is not None:
        told["states"] = states[:, ::11]
    if pooled is not None:
        told["pooled"] = pooled
    expected.update({f"{name}.{key}": tensor for key, tensor in told.items()})


def draw(vae, clips):
    l, h, g = clips
    both = (True, False)

    levels = normal(4)
    model = make_unet("sd1")
    states = [encode(l, CLIP_END, words, -1, True)[:1] for words in both]
    keep("sd1_drawn", vae, euler(denoiser(model, *states, 7.0), noised(levels), levels), SD_SCALE, states[0][0])
    skipped = [encode(l, CLIP_END, words, -2, True)[:1] for words in both]
    levels = karras(4)
    keep("sd1_skipped", vae, dpmpp_2m(denoiser(model, *skipped, 7.0), noised(levels), levels), SD_SCALE, skipped[0][0])

    model = make_unet("sd2")
    states = [encode(h, 0, words, -2, True)[:1] for words in both]
    keep("sd2_drawn", vae, dpmpp_2m(denoiser(model, *states, 5.0, True), noised(levels), levels), SD_SCALE, states[0][0])

    model = make_unet("sdxl")
    sizes = torch.tensor([[48.0, 80, 0, 0, 48, 80]])
    texts = []
    for words in both:
        (first, _), (second, pooled) = encode(l, CLIP_END, words, -2, False), encode(g, 0, words, -2, False)
        texts.append((torch.cat([first, second], dim=-1), pooled, sizes))
    keep("sdxl_drawn", vae, dpmpp_2m(denoiser(model, *texts, 6.0), noised(levels), levels), SDXL_SCALE, *texts[0][:2])

    model = make_unet("refiner")
    texts = []
    for words, score in zip(both, (6.0, 2.5)):
        texts.append((*encode(g, 0, words, -2, False), torch.tensor([[48.0, 80, 0, 0, score]])))
    levels = normal(4)
    keep("refiner_drawn", vae, euler(denoiser(model, *texts, 4.0), noised(levels), levels), SDXL_SCALE, *texts[0][:2])

    # A picture of which the middle is drawn anew.
    model = make_unet("inpaint")
    states = [encode(l, CLIP_END, words, -1, True)[:1] for words in both]
    pixels, mask = torch.rand(1, 48, 80, 3, generator=torch.Generator().manual_seed(8)), torch.zeros(1, 48, 80)
    mask[:, 13:37, 20:61] = 1
    hidden = (pixels - 0.5) * (1 - mask)[..., None] + 0.5
    seen, whole = (SD_SCALE * vae.encode((2 * each - 1).permute(0, 3, 1, 2)).latent_dist.mode() for each in (hidden, pixels))
    small = torch.nn.functional.interpolate(mask[:, None], size=(6, 10), mode="bilinear").round()
    concat = torch.cat([small, seen], dim=1)
    expected.update({"inpaint_drawn.pixels": pixels, "inpaint_drawn.mask": mask})
    keep("inpaint_drawn", vae, euler(denoiser(model, *states, 7.0, concat=concat), noised(levels, whole), levels), SD_SCALE)

    # Pix2pix: "inpaint" with a first convolution of 8 channels is shown the whole picture, in the autoencoder's units.
    model = make_unet("inpaint", in_channels=8)
    shown = denoiser(model, *states, 7.0, concat=whole / SD_SCALE)
    keep("pix2pix_drawn", vae, euler(shown, noised(levels), levels), SD_SCALE)


def main(out):
    os.makedirs(out, exist_ok=True)
    for kind in KINDS:
        model, width = make_unet(kind), WIDTHS.get(kind, 64)
        sizes = torch.tensor([[128.0, 96, 0, 16, 2.5, 160], [64, 64, 8, 0, 6, 48]])
        forward(model, kind, f"{kind}_square", randn(1, 2, 4, 8, 8), randn(2, 2, 5, width), randn(3, 2, POOLED), sizes)
        forward(model, kind, f"{kind}_odd", randn(4, 1, 4, 5, 11), randn(5, 1, 7, width), randn(6, 1, POOLED), sizes[:1])
    draw(make_vae(), [make_clip("clip_l", 3, "quick_gelu"), make_clip("clip_h", 24, "gelu"), make_clip("clip_g", 32, "gelu")])
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet"))
