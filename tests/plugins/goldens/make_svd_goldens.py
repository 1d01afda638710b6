"""Writes what diffusers makes with a tiny Stable Video Diffusion: UNet, autoencoder, and a whole video; and with SV3D.

    make_svd_goldens.py [OUT]        (default: svd/ beside this file)

Needs torch, diffusers, transformers, numpy, Pillow and safetensors from PyPI; runs on the CPU in float32. All weights
follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out; the tower is
that of make_unclip_goldens.py, the picture that of edit/. SV3D has the same UNet but for what it is told: the autoencoder
that draws its frames is that of make_unet_goldens.py. Files:

    shapes.json             {"unet", "vae": {name of the tensor in diffusers: shape}}
    expected.safetensors    "square.x" and so on are inputs of the UNet, "square.out" its output with a row for each step;
                            "odd" likewise, with odd sides and another number of frames. "vae.z" and "vae.image" are those
                            of the decoder. "drawn.latent" is the end of a guided run of the workflow, ".picture" its
                            frames, "triangle.latent" that by VideoTriangleCFGGuidance. "sv3d_u" and "sv3d_p" as "odd", of
                            UNets that are told one number, and a camera for each frame; "orbit" as "drawn", by the latter
"""

import json
import math
import os
import sys

import numpy
import torch
from diffusers import AutoencoderKLTemporalDecoder, UNetSpatioTemporalConditionModel
from diffusers.models.embeddings import get_timestep_embedding
from PIL import Image
from safetensors.torch import save_file

import make_unclip_goldens as unclip
import make_unet_goldens as unets
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
WIDTH, SCALE, FRAMES = 64, 0.18215, 5
TIMES = torch.tensor([1.6377, 0.4, -1.5537])
LOWEST, HIGHEST = 0.002, 700.0
expected = {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_unet(label=768):
    return UNetSpatioTemporalConditionModel(
        block_out_channels=(64, 128),
        down_block_types=("CrossAttnDownBlockSpatioTemporal", "DownBlockSpatioTemporal"),
        up_block_types=("UpBlockSpatioTemporal", "CrossAttnUpBlockSpatioTemporal"),
        num_attention_heads=(1, 2),
        layers_per_block=1,
        cross_attention_dim=WIDTH,
        projection_class_embeddings_input_dim=label,
    )


def make_vae():
    return AutoencoderKLTemporalDecoder(
        block_out_channels=(32,) * 4, down_block_types=("DownEncoderBlock2D",) * 4, layers_per_block=2, latent_channels=4
    )


def predicted(model, x, time, context, numbers, concat):
    frames = len(x)
    whole = torch.cat([x, concat.expand(frames, -1, -1, -1)], dim=1)[None]
    return model(whole, time, encoder_hidden_states=context, added_time_ids=numbers).sample[0]


def waves(numbers, width):
    return get_timestep_embedding(numbers, width, flip_sin_to_cos=True, downscale_freq_shift=0)


def cameras(above, around):
    """Degrees for each frame, as SV3D reads them behind the noise in the picture, of which there is none."""
    above, around = (torch.deg2rad(torch.fmod(each, 360)) for each in (90 - above, around))
    return torch.cat([waves(torch.zeros(len(above)), 256), waves(above, 512), waves(around, 512)], dim=1)


def predicted_by_cameras(model, x, time, context, y, concat):
    """diffusers tells all frames the same: here each residual block is given what each frame is told."""
    told = model.time_embedding(model.time_proj(time.expand(1))) + model.add_embedding(y)
    told = torch.nn.functional.silu(told)
    hooks = [
        module.time_emb_proj.register_forward_pre_hook(lambda _, given: (told.reshape(given[0].shape),))
        for module in model.modules()
        if hasattr(module, "time_emb_proj")
    ]
    made = predicted(model, x, time, context, torch.zeros(1, 5), concat)
    for hook in hooks:
        hook.remove()
    return made


def forward(model, name, x, context, numbers, concat, predicted=predicted):
    told = {"x": x, "timestep": TIMES, "context": context, "concat": concat}
    told["sizes" if predicted is not predicted_by_cameras else "y"] = numbers
    told["out"] = torch.stack([predicted(model, x, time, context, numbers, concat) for time in TIMES])
    expected.update({f"{name}.{key}": tensor for key, tensor in told.items()})


def karras(steps):
    low, high = (level ** (1 / 7) for level in (LOWEST, HIGHEST))
    return [(high + i / (steps - 1) * (low - high)) ** 7 for i in range(steps)] + [0.0]


def draw(model, levels, positive, negative, scales, predicted=predicted, frames=FRAMES):
    """Euler's method over velocities, as EDM's preconditioning has them: the time is a quarter of the logarithm."""
    x = randn(7, frames, 4, 6, 10) * math.sqrt(1 + levels[0] ** 2)
    for level, after in zip(levels, levels[1:]):
        scale = 1 / math.sqrt(level**2 + 1)
        time = torch.tensor(0.25 * math.log(level))
        made = [predicted(model, x * scale, time, *told) for told in (positive, negative)]
        with_, without = (x * scale**2 - each * level * scale for each in made)
        clean = without + scales * (with_ - without)
        x = x + (x - clean) / level * (after - level)
    return x


def shown(vae, here):
    tower, _ = unclip.make_tower()
    picture = numpy.asarray(Image.open(os.path.join(here, "edit", "one.png")).convert("RGB")).astype(numpy.float32)
    picture = torch.from_numpy(picture)[None] / 255
    seen = unclip.seen(tower, picture).image_embeds[:, None]
    # The middle of it in the video's proportions, then bilinear.
    height, width = picture.shape[1:3]
    left, top = 0, 0
    if width / height > 80 / 48:
        left = round((width - width * (80 / 48) / (width / height)) / 2)
    elif width / height < 80 / 48:
        top = round((height - height * (width / height) / (80 / 48)) / 2)
    cut = picture[:, top : height - top, left : width - left].permute(0, 3, 1, 2)
    pixels = torch.nn.functional.interpolate(cut, size=(48, 80), mode="bilinear")
    return seen, vae.encode(2 * pixels - 1).latent_dist.mode()


def orbit(here):
    model, vae, frames = make_unet(1280), unets.make_vae(), 4
    seeded_weights.load(model)
    seen, latent = shown(vae, here)
    y = cameras(torch.full((frames,), 10.0), torch.arange(frames) * 120.0)
    positive, negative = (seen, y, latent), (torch.zeros_like(seen), y, torch.zeros_like(latent))
    made = draw(model, karras(3), positive, negative, 2.5, predicted_by_cameras, frames)
    pictures = ((vae.decode(made / SCALE).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    expected.update({"orbit.latent": made, "orbit.picture": pictures[:, ::5, ::5]})


def workflow(model, vae, here):
    seen, latent = shown(vae, here)
    numbers = torch.tensor([[8.0 - 1, 120.0, 0.0]])
    positive, negative = (seen, numbers, latent), (torch.zeros_like(seen), numbers, torch.zeros_like(latent))
    levels = karras(4)
    linear = torch.linspace(1.0, 2.5, FRAMES).view(-1, 1, 1, 1)
    latent = draw(model, levels, positive, negative, linear)
    frames = vae.decode(latent / SCALE, num_frames=FRAMES).sample
    frames = ((frames + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    expected.update({"drawn.latent": latent, "drawn.picture": frames[:, ::5, ::5]})
    places = torch.linspace(0, 1, FRAMES)
    rises = 2 * (places - torch.floor(places + 0.5)).abs()
    expected["triangle.latent"] = draw(model, levels, positive, negative, (1.0 + rises * 1.5).view(-1, 1, 1, 1))


def main(out):
    os.makedirs(out, exist_ok=True)
    unet, vae = make_unet(), make_vae()
    shapes = {"unet": seeded_weights.load(unet), "vae": seeded_weights.load(vae)}
    forward(unet, "square", randn(1, 4, 4, 8, 8), randn(2, 1, 1, WIDTH), torch.tensor([[6.0, 127, 0.02]]), randn(3, 1, 4, 8, 8))
    forward(unet, "odd", randn(4, 3, 4, 5, 11), randn(5, 1, 3, WIDTH), torch.tensor([[24.0, 40, 0.3]]), randn(6, 3, 4, 5, 11))
    z = randn(8, 3, 4, 3, 5)
    expected.update({"vae.z": z, "vae.image": vae.decode(z, num_frames=3).sample.permute(0, 2, 3, 1)})
    here = os.path.dirname(os.path.abspath(__file__))
    workflow(unet, vae, here)
    for name, label, numbers, how in (
        ("sv3d_u", 256, torch.tensor([[0.02]]), predicted),
        ("sv3d_p", 1280, cameras(torch.tensor([12.5, -30, 100]), torch.tensor([0.0, 180, 400])), predicted_by_cameras),
    ):
        model = make_unet(label)
        seeded_weights.load(model)
        forward(model, name, randn(4, 3, 4, 5, 11), randn(5, 1, 1, WIDTH), numbers, randn(6, 1, 4, 5, 11), how)
    orbit(here)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "svd"))
