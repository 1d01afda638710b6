"""Writes what PyTorch draws by pictures: Stable Diffusion 2.1 unCLIP, and SDXL with embeddings in place of the pooled
text ("revision"), with a small tower of CLIP.

    make_unclip_goldens.py [OUT]        (default: unclip/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py); UNets, texts and autoencoder are those of make_unet_goldens.py, pictures
those of edit/. Files:

    shapes.json             {"tower": {name of the tensor: shape}}, by the names of transformers
    expected.safetensors    "tower.picture" and what the tower makes of it; "one.image_embeds" what CLIPVisionEncode
                            makes of one.png; "unclip_drawn.latent" and ".picture", "revision_drawn" likewise;
                            "seen_square.x" is an input of the UNet of unCLIP, "seen_square.out" an output with a row for each
                            step, and "seen_odd" likewise, with odd sides
"""

import json
import os
import sys

import numpy
import torch
from diffusers import DDPMScheduler
from diffusers.models.embeddings import get_timestep_embedding
from PIL import Image
from safetensors.torch import save_file
from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

import make_unet_goldens as unets
import seeded_weights

F = torch.nn.functional
SIZE, WIDTH, SEED = 28, 64, 7
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
expected = {}


def make_tower():
    config = CLIPVisionConfig(
        hidden_size=WIDTH,
        intermediate_size=40,
        projection_dim=WIDTH,
        num_hidden_layers=3,
        num_attention_heads=16,
        image_size=SIZE,
        patch_size=14,
        hidden_act="quick_gelu",
    )
    config._attn_implementation = "eager"
    model = CLIPVisionModelWithProjection(config)
    return model, seeded_weights.load(model)


def seen(tower, picture, mask=1):
    """As ComfyUI: picture (1, H, W, 3) from 0 to 1, the middle of it; the pack multiplies what is read by a mask."""
    image = picture.permute(0, 3, 1, 2)
    factor = SIZE / min(image.shape[2:])
    image = F.interpolate(image, [round(factor * side) for side in image.shape[2:]], mode="bicubic", antialias=True)
    top, left = ((side - SIZE) // 2 for side in image.shape[2:])
    image = torch.clip(255 * image[:, :, top : top + SIZE, left : left + SIZE], 0, 255).round() / 255
    mean, deviation = (torch.tensor(each).view(1, 3, 1, 1) for each in (MEAN, DEVIATION))
    return tower(pixel_values=(image - mean) / deviation * mask, output_hidden_states=True)


NOISES = DDPMScheduler(num_train_timesteps=1000, beta_schedule="squaredcos_cap_v2")


def augmented(embedding, augmentation):
    """As StableUnCLIPImg2ImgPipeline.noise_image_embeddings(), with the statistics of ComfyUI: 0 and 1."""
    level = torch.tensor([round(999 * augmentation)])
    noised = NOISES.add_noise(embedding, torch.randn(embedding.shape), timesteps=level)
    waves = get_timestep_embedding(level, embedding.shape[1], flip_sin_to_cos=True, downscale_freq_shift=0)
    return torch.cat([noised, waves], dim=1)


def told(pictures, of_sum):
    """pictures: (embedding, strength, augmentation)."""
    all_ = []
    for embedding, strength, augmentation in pictures:
        torch.manual_seed(SEED - 10)
        all_.append(augmented(embedding, augmentation) * strength)
    if len(all_) == 1:
        return all_[0]
    return augmented(torch.stack(all_).sum(0)[:, :WIDTH], of_sum)


def forward(model, name, seed, *shape):
    told = {
        "x": unets.randn(seed, *shape),
        "context": unets.randn(seed + 1, shape[0], 5, WIDTH),
        "y": unets.randn(seed + 2, shape[0], 2 * WIDTH),
        "timestep": unets.TIMES,
    }
    rows = [model(told["x"], time, encoder_hidden_states=told["context"], class_labels=told["y"]).sample for time in unets.TIMES]
    expected.update({f"{name}.{key}": tensor for key, tensor in (told | {"out": torch.stack(rows)}).items()})


def draw_unclip(vae, clip, one, two):
    model = unets.make_unet("sd2", class_embed_type="projection", projection_class_embeddings_input_dim=2 * WIDTH)
    forward(model, "seen_square", 21, 2, 4, 8, 8)
    forward(model, "seen_odd", 31, 1, 4, 5, 11)

    def predicted(_, x, time, states, label):
        return model(x, time, encoder_hidden_states=states, class_labels=label).sample

    unets.predicted, kept = predicted, unets.predicted
    texts = [unets.encode(clip, 0, words, -2, True)[0] for words in (True, False)]
    levels = unets.normal(4)
    labels = told([(one, 0.8, 0.3), (two, 1.0, 0.1)], 0.05), torch.zeros(1, 2 * WIDTH)
    latent = unets.euler(
        unets.denoiser(model, (texts[0], labels[0]), (texts[1], labels[1]), 5.0, True), unets.noised(levels), levels
    )
    unets.predicted = kept
    unets.keep("unclip_drawn", vae, latent, unets.SD_SCALE)


def draw_revision(vae, clips, one, two):
    model = unets.make_unet("sdxl")
    sizes = torch.tensor([[48.0, 80, 0, 0, 48, 80]])
    texts = []
    for words in (True, False):
        (first, _), (second, pooled) = (unets.encode(clip, end, words, -2, False) for clip, end in zip(clips, (unets.CLIP_END, 0)))
        texts.append([torch.cat([first, second], dim=-1), pooled, sizes])
    texts[0][1] = told([(one, 0.75, 0.0), (two, 0.75, 0.0)], 0.0)[:, :WIDTH]
    levels = unets.karras(3)
    latent = unets.dpmpp_2m(unets.denoiser(model, *texts, 6.0), unets.noised(levels), levels)
    unets.keep("revision_drawn", vae, latent, unets.SDXL_SCALE)


def main(out):
    os.makedirs(out, exist_ok=True)
    torch.set_grad_enabled(False)
    here = os.path.dirname(os.path.abspath(__file__))
    tower, shapes = make_tower()
    picture = torch.randn(2, SIZE, SIZE, 3, generator=torch.Generator().manual_seed(1))
    made = tower(pixel_values=picture.permute(0, 3, 1, 2), output_hidden_states=True)
    one, two = (
        seen(tower, torch.from_numpy(numpy.asarray(Image.open(os.path.join(here, "edit", name))).astype(numpy.float32))[None] / 255).image_embeds
        for name in ("one.png", "two.png")
    )
    expected.update(
        {
            "tower.picture": picture,
            "tower.last_hidden": made.hidden_states[-1],
            "tower.penultimate": made.hidden_states[-2],
            "tower.projected": made.image_embeds,
            "one.image_embeds": one,
        }
    )
    l, h, g = unets.make_clip("clip_l", 3, "quick_gelu"), unets.make_clip("clip_h", 24, "gelu"), unets.make_clip("clip_g", 32, "gelu")
    vae = unets.make_vae()
    unets.expected.clear()
    draw_unclip(vae, h, one, two)
    draw_revision(vae, (l, g), one, two)
    expected.update(unets.expected)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        text = ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in shapes.items())
        file.write(f'{{\n "tower": {{\n{text}\n }}\n}}\n')
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "unclip"))
