"""Writes concat_goldens.safetensors beside this file: runs over tiny FLUX models that read a picture, or a picture and its mask,
beside the point, computed with PyTorch.

    make_concat_goldens.py        (needs what make_goldens.py needs)

The models are the random one of make_goldens.py with a wider first layer, "<model>.x_embedder.weight"; "in.*" are inputs, pictures in
the autoencoder's units.
"""
import os

import torch
import torch.nn.functional as F
from diffusers import FluxPipeline, FluxTransformer2DModel
from safetensors.torch import load_file, save_file

from make_goldens import FLUX_SCALE, FLUX_SHIFT, flux, run, simple, table
from make_random_models import randn

HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS, PIXELS = 4, 8  # of a latent; of a side of its cells
given = load_file(os.path.join(HERE, "goldens.safetensors"))
cond = given["in.one.cross_attn"], given["in.one.pooled_output"]
shape = (1, CHANNELS, 6, 8)
goldens = {}


def wider(name, channels, seed):
    """The random model with `channels` more of them."""
    plain = flux(False)
    model = FluxTransformer2DModel(**{**plain.config, "in_channels": 4 * (CHANNELS + channels), "out_channels": 4 * CHANNELS}).eval()
    state = plain.state_dict()
    more = randn(seed, state["x_embedder.weight"].shape[0], 4 * channels) * (4 * channels) ** -0.5
    state["x_embedder.weight"] = torch.cat([state["x_embedder.weight"], more], 1)
    model.load_state_dict(state)
    goldens[f"{name}.x_embedder.weight"] = state["x_embedder.weight"].contiguous()
    return model


def cropped(planes, height, width):
    """The middle of it that has this aspect."""
    h, w = planes.shape[-2:]
    a, b = w / h, width / height
    x, y = round((w - w * (b / a)) / 2) if a > b else 0, round((h - h * (a / b)) / 2) if a < b else 0
    return planes[..., y:h - y, x:w - x]


def resized(planes, height, width):
    if planes.shape[-2:] == (height, width):
        return planes
    return F.interpolate(cropped(planes, height, width), size=(height, width), mode="bilinear")


def beside(image, mask, height, width):
    """What the model reads; image: or none; mask: in pixels, or none at all for models that read none."""
    image = torch.zeros(1, CHANNELS, height, width) if image is None else image
    image = (resized(image, height, width) - FLUX_SHIFT) * FLUX_SCALE
    if mask is None:
        return image
    mask = resized(mask.mean(1, keepdim=True), height * PIXELS, width * PIXELS)
    cells = mask.view(-1, height, PIXELS, width, PIXELS).permute(0, 2, 4, 1, 3).reshape(-1, PIXELS**2, height, width)
    return torch.cat([image, cells], 1)


def spread(planes, items):
    """As ComfyUI fits a batch to another number of items."""
    rows = planes.shape[0]
    if rows == 1 or rows == items:
        return planes
    if rows > items:
        return planes[[round(i * (rows - 1) / (items - 1)) if items > 1 else 0 for i in range(items)]]
    return planes[[int((i + 0.5) * rows / items) for i in range(items)]]


def denoised(model, concat):
    def seen(x, sigma):
        batch, channels, height, width = x.shape
        ids = FluxPipeline._prepare_latent_image_ids(batch, height // 2, width // 2, "cpu", torch.float32)
        context, pooled = (t.expand(batch, *t.shape[1:]) for t in cond)
        pack = lambda planes: FluxPipeline._pack_latents(planes, batch, planes.shape[1], height, width)
        v = model(hidden_states=torch.cat([pack(x), pack(concat.expand(batch, -1, -1, -1).contiguous())], 2),
                  timestep=torch.tensor([sigma], dtype=torch.float32).expand(batch), guidance=None, pooled_projections=pooled,
                  encoder_hidden_states=context, txt_ids=torch.zeros(context.shape[1], 3), img_ids=ids, return_dict=False)[0]
        return x - sigma * FluxPipeline._unpack_latents(v, height * 8, width * 8, 8)
    return seen


levels = simple(table(1.0), 4)
canny, fill = wider("canny", CHANNELS, 50), wider("fill", CHANNELS + PIXELS**2, 51)
image, other, mask = randn(52, 1, CHANNELS, 6, 8), randn(53, 2, CHANNELS, 7, 7), torch.rand(1, 1, 40, 66, generator=torch.Generator().manual_seed(54))
three = randn(56, 3, CHANNELS, 6, 8)
goldens |= {"in.three.concat_latent_image": three, "in.image.concat_latent_image": image, "in.other.concat_latent_image": other, "in.masked.concat_latent_image": image,
            "in.masked.concat_mask": mask, "in.odd.concat_latent_image": randn(55, 1, CHANNELS + 1, 6, 8)}
for name in ("image", "other", "three", "masked", "odd", "none"):
    goldens[f"in.{name}.cross_attn"], goldens[f"in.{name}.pooled_output"] = cond
all_of_it = torch.ones(1, 1, 1, 1).expand(1, 1, 48, 64)

goldens["canny"] = run("euler", levels, shape, 7, denoised(canny, beside(image, None, 6, 8)))
goldens["canny.resized"] = run("euler", levels, (2, *shape[1:]), 7, denoised(canny, beside(other, None, 6, 8)))
goldens["canny.more"] = run("euler", levels, (4, *shape[1:]), 7, denoised(canny, spread(beside(other, None, 6, 8), 4)))
goldens["canny.fewer"] = run("euler", levels, (2, *shape[1:]), 7, denoised(canny, spread(beside(three, None, 6, 8), 2)))
goldens["fill"] = run("euler", levels, shape, 7, denoised(fill, beside(image, mask, 6, 8)))
goldens["fill.none"] = run("euler", levels, shape, 7, denoised(fill, beside(None, all_of_it, 6, 8)))

# In an area the model sees the part of the picture that lies there. Outside nothing is drawn.
y, x, h, w = 2, 4, 4, 4
part = lambda planes: planes[..., y:y + h, x:x + w].contiguous()
sees_part = denoised(fill, part(beside(image, mask, 6, 8)))


def in_area(point, sigma):
    whole = torch.zeros_like(point)
    whole[..., y:y + h, x:x + w] = sees_part(part(point), sigma)
    return whole


goldens["fill.area"] = run("euler", levels, shape, 7, in_area)

if __name__ == "__main__":
    save_file({name: value.clone().contiguous() for name, value in goldens.items()}, os.path.join(HERE, "concat_goldens.safetensors"))
