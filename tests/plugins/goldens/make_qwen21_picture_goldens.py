"""Writes what diffusers and transformers make with tiny models of Qwen-Image 2.1 that have to do with pictures: its
autoencoder, Qwen3-VL's vision tower, and the transformer shown pictures.

    make_qwen21_picture_goldens.py [OUT]        (default: qwen21_pictures/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor as ComfyUI's files have it: shape}}; "vae" has [shape, the name in
                            diffusers], which has no axis of frames; "{0-3}" stands for each of these numbers
    one.png, two.png        pictures; the second is not opaque. smaller.png is the second, of 32 x 32 pixels
    expected.safetensors    "vae.z" and so on a decoding and an encoding by themselves; "tower.tokens" and so on what the
                            vision tower makes of a picture whose numbers follow from its name, too; "between.x" and "end.x" and so on the transformer of make_qwen21_goldens.py
                            shown two pictures among its text, or at its end, "out" with a row for each step; "edit." both
                            pictures and a prompt: the states of the prompt without pictures (".states") and with them
                            (".seen"), the end of 3 steps, and the first rows of the picture; "text." the same of a text
                            alone, by the same models: states, latent, and the whole picture
"""

import json
import os
import re
import sys

import torch
from PIL import Image
from diffusers import AutoencoderKLQwenImage21, QwenImage21Transformer2DModel
from safetensors.torch import save_file
from transformers import Qwen2VLImageProcessorPil, Qwen3VLConfig, Qwen3VLModel

import make_qwen21_goldens as texts
import seeded_weights
from make_krea2_goldens import flow_levels
from make_workflow_goldens import sample
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS, WIDTH = 64, 32
PROMPT = "<image2> beside the fox of <image1>, soft light"
VISION_START, VISION_END, IMAGE_PAD = 151652, 151653, 151655
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def vae_name(name):
    """As ComfyUI's file has it: the original name."""
    for pattern, to in [
        (r"^quant_conv", "conv1"),
        (r"^post_quant_conv", "conv2"),
        (r"\.conv_in\.", ".conv1."),
        (r"\.norm_out\.", ".head.0."),
        (r"\.conv_out\.", ".head.2."),
        (r"mid_block\.attentions\.0", "middle.1"),
        (r"mid_block\.resnets\.(\d)", lambda found: f"middle.{2 * int(found[1])}"),
        (r"down_blocks\.(\d)\.resnets", r"downsamples.\1.downsamples"),
        (r"down_blocks\.(\d)\.downsampler", r"downsamples.\1.downsamples.2"),
        (r"up_blocks\.(\d)\.resnets", r"upsamples.\1.upsamples"),
        (r"up_blocks\.(\d)\.upsampler", r"upsamples.\1.upsamples.3"),
        (r"\.conv_shortcut\.", ".shortcut."),
    ]:
        name = re.sub(pattern, to, name)
    if ".resample." not in name and not name.startswith("conv"):
        for ours, theirs in [("norm1", "0"), ("norm2", "3"), ("conv1", "2"), ("conv2", "6")]:
            name = re.sub(rf"(samples\.\d|middle\.\d)\.{ours}\.", rf"\1.residual.{theirs}.", name)
    return name


def vae_shape(name, tensor):
    """In the original every filter but attention's and those that change the size has an axis of one frame."""
    shape = list(tensor.shape)
    flat = ".to_qkv." in name or ".proj." in name or ".resample." in name or len(shape) != 4 or not name.endswith("weight")
    return shape if flat else [*shape[:2], 1, *shape[2:]]


def make_vae():
    model = AutoencoderKLQwenImage21(base_dim=2, decoder_base_dim=3, z_dim=CHANNELS)
    seeded_weights.load(model, vae_name)
    shapes["vae"] = {vae_name(name): [vae_shape(name, tensor), name] for name, tensor in model.state_dict().items()}
    z, image = randn(1, 1, CHANNELS, 1, 2, 1), randn(2, 1, 4, 1, 16, 48).clamp(-1, 1)
    model.clear_cache()
    decoded = model.decoder(
        model.post_quant_conv(z), feat_cache=model._feat_map, feat_idx=[0], first_chunk=True
    )  # decode() without its clamp
    assert torch.equal(decoded.clamp(-1, 1), model.decode(z).sample)
    posterior = model.encode(image).latent_dist
    expected["vae.z"], expected["vae.image"] = z[:, :, 0], decoded[:, :, 0].permute(0, 2, 3, 1)
    expected["vae_encoder.image"] = image[:, :, 0].permute(0, 2, 3, 1)
    expected["vae_encoder.mean"], expected["vae_encoder.logvar"] = posterior.mean[:, :, 0], posterior.logvar[:, :, 0]
    return model


def make_text():
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20], "mrope_interleaved": True}
    text = dict(
        vocab_size=151936,
        hidden_size=WIDTH,
        intermediate_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=128,
        rms_norm_eps=1e-6,
        rope_parameters=rope,
    )
    vision = dict(
        depth=4,
        hidden_size=64,
        intermediate_size=48,
        num_heads=16,
        patch_size=16,
        out_hidden_size=WIDTH,
        num_position_embeddings=25,
        deepstack_visual_indexes=[0, 1, 2],
    )
    config = Qwen3VLConfig(text_config=text, vision_config=vision, image_token_id=IMAGE_PAD)
    model = Qwen3VLModel(config)
    shapes["text"] = seeded_weights.load(model, lambda name: f"model.{name}")
    return model


def patches_of(pictures):
    """Of pictures (H, W, 3) from 0 to 1: what the processor makes, which changes no size here."""
    processor = Qwen2VLImageProcessorPil(
        patch_size=16, merge_size=2, do_resize=False, do_rescale=False, image_mean=[0.5] * 3, image_std=[0.5] * 3
    )
    made = processor(images=[picture.permute(2, 0, 1) for picture in pictures], input_data_format="channels_first", return_tensors="pt")
    return made["pixel_values"], made["image_grid_thw"]


def make_tower(model):
    picture = seeded_weights.seeded("tower.picture", (64 * 32 * 3,)).view(64, 32, 3)  # as it is normalised
    patches, grid = patches_of([picture * 0.5 + 0.5])
    made = model.visual(patches, grid_thw=grid)
    expected["tower.tokens"] = made.pooler_output[None]
    for i, deep in enumerate(made.deepstack_features):
        expected[f"tower.deep.{i}"] = deep[None]


def velocity(model, x, sigma, context, references, slots):
    """`slots`: before which token of the context each of the references stands."""
    batch, channels, height, width = x.shape
    parts, mask, told = [], [], 0
    for reference, slot in zip(references + [x], slots + [context.shape[1]]):
        room = reference.shape[2] * reference.shape[3] // 4  # each slot of a picture stands for four tokens
        parts.append(context[:, told:slot])
        mask += [False] * (slot - told) + [True] * room
        if reference is not x:
            parts.append(torch.full((context.shape[0], room, context.shape[2]), 7.0))  # nobody reads it
        told = slot
    tokens = [r.permute(0, 2, 3, 1).reshape(r.shape[0], -1, channels).expand(batch, -1, -1) for r in references + [x]]
    out = model(
        torch.cat(tokens, 1),
        torch.cat(parts, 1).expand(batch, -1, -1),
        sigma.expand(batch),
        img_shapes=[[(1, *r.shape[2:]) for r in references + [x]]] * batch,
        img_mask=torch.tensor([mask] * batch),
    ).sample[:, -height * width :]
    return out.view(batch, height, width, channels).permute(0, 3, 1, 2)


def make_placed():
    model = texts.make_transformer()
    for name, slots in [("between", [2, 5]), ("end", [3, 3])]:
        x, context = randn(11, 2, texts.CHANNELS, 4, 6), randn(12, 1, slots[1] + (name == "between") * 2, texts.WIDTH)
        references = [randn(13, 1, texts.CHANNELS, 2, 4), randn(14, 1, texts.CHANNELS, 4, 2)]
        out = torch.stack([velocity(model, x, sigma, context, references, slots) for sigma in texts.LEVELS])
        expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": texts.LEVELS, f"{name}.out": out})
        for i, (reference, slot) in enumerate(zip(references, slots)):
            expected[f"{name}.reference.{i}"] = reference
            expected[f"{name}.slot.{i}"] = torch.zeros(slot + 1, dtype=torch.int32)


def edit_pictures():
    """(H, W, 4) from 0 to 1, in steps of 1/255; the first is opaque."""
    pictures = [seeded_weights.seeded(name, shape) for name, shape in [("edit.1", (32, 128, 4)), ("edit.2", (64, 64, 4))]]
    pictures = [(picture * 127.5 + 127.5).round() / 255 for picture in pictures]
    pictures[0][..., 3] = 1
    return pictures


def encode_edit(model, pictures):
    """The states behind the last layer, before the final norm, and which of them are pictures'."""
    tokenizer = texts.shipped_tokenizer()
    ids = [texts.IM_START, *tokenizer.encode("system\nComprehend and analyze the provided prompt.").ids, texts.IM_END, texts.LINE]
    dropped = len(ids)
    ids += [texts.IM_START, *tokenizer.encode("user\n<image1>").ids]
    for i, picture in enumerate(pictures):
        if i > 0:
            ids += tokenizer.encode(f" <image{i + 1}>").ids
        ids += [VISION_START, *[IMAGE_PAD] * (picture.shape[0] // 32 * (picture.shape[1] // 32)), VISION_END]
    ids += [*tokenizer.encode(PROMPT).ids, texts.IM_END, texts.LINE, texts.IM_START, *tokenizer.encode("assistant\n").ids]
    over_white = [p[..., :3] * p[..., 3:] + (1 - p[..., 3:]) for p in pictures]
    patches, grid = patches_of(over_white)
    kept = []
    handle = model.language_model.norm.register_forward_hook(lambda module, given, made: kept.append(given[0]))
    ids = torch.tensor([ids])
    types = (ids == IMAGE_PAD).int()
    model(input_ids=ids, pixel_values=patches, image_grid_thw=grid, mm_token_type_ids=types, use_cache=False)
    handle.remove()
    return kept[0][:, dropped:], types[0, dropped:].bool()


def units_of(vae):
    return [torch.tensor(numbers).view(1, -1, 1, 1) for numbers in (vae.config.latents_mean, vae.config.latents_std)]


def picture_of(vae, latent):
    mean, deviation = units_of(vae)
    return vae.decode((latent * deviation + mean)[:, :, None]).sample[:, :, 0].permute(0, 2, 3, 1) / 2 + 0.5


def make_edit(text, vae, out):
    transformer = QwenImage21Transformer2DModel(
        in_channels=CHANNELS,
        out_channels=CHANNELS,
        num_layers=2,
        attention_head_dim=32,
        num_attention_heads=2,
        context_in_dim=WIDTH,
        axes_dims_rope=(4, 14, 14),
    )
    shapes["transformer"] = seeded_weights.load(transformer)
    pictures = edit_pictures()
    seen, is_picture = encode_edit(text, pictures)
    states = seen[:, ~is_picture]
    begins = [i for i in range(len(is_picture)) if is_picture[i] and not is_picture[i - 1]]
    slots = [int((~is_picture[:begin]).sum()) for begin in begins]
    mean, deviation = units_of(vae)

    def encode(picture):
        return (vae.encode(picture.permute(2, 0, 1)[None, :, None] * 2 - 1).latent_dist.mode()[:, :, 0] - mean) / deviation

    references = [encode(picture) for picture in pictures]
    noise = torch.randn(1, CHANNELS, 2, 8, generator=torch.Generator().manual_seed(7))
    latent = sample(
        lambda x, sigma: velocity(transformer, x, sigma, states, references, slots), noise, flow_levels(0.69, 3)
    )
    picture = picture_of(vae, latent)
    for name, one in zip(["one", "two"], pictures):
        image = Image.fromarray((one * 255).round().to(torch.uint8).numpy())
        image.save(os.path.join(out, name + ".png"))
    # Where alpha is taken from a picture and joined to it again, some of it is cut to the byte below.
    alpha = pictures[1][..., 3]
    image.putalpha(Image.fromarray(((1 - (1 - alpha)) * 255).to(torch.uint8).numpy()))
    image.resize((32, 32), Image.Resampling.LANCZOS).save(os.path.join(out, "smaller.png"))
    expected.update({"edit.seen": seen, "edit.states": states, "edit.latent": latent, "edit.picture": picture[:, :8]})
    print("slots", slots)
    return transformer


def make_drawn(transformer, text, vae):
    states = texts.encode(text, texts.PROMPT)
    noise = torch.randn(1, CHANNELS, 2, 4, generator=torch.Generator().manual_seed(7))
    latent = sample(lambda x, sigma: texts.velocity(transformer, x, sigma, states), noise, flow_levels(0.69, 3))
    expected.update({"text.states": states, "text.latent": latent, "text.picture": picture_of(vae, latent)})


def main(out):
    os.makedirs(out, exist_ok=True)
    vae, text = make_vae(), make_text()
    make_tower(text)
    make_placed()
    make_drawn(make_edit(text, vae, out), text, vae)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items()) + "\n }"
                 for name, tensors in shapes.items())
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "qwen21_pictures"))
