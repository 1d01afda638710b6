"""Writes what PyTorch makes of tiny models of Z-Image and Qwen-Image with model patches.

    make_patch_goldens.py [OUT]        (default: patches/ beside this file)

Needs torch, diffusers, safetensors and Pillow from PyPI; runs on the CPU in float32. The layers of Z-Image's patches are those
of diffusers' ZImageControlNetModel, which takes three kinds of files; how they run beside the model is written here as ComfyUI
does it, with tokens of the picture alone, and, to check that, once more as diffusers does. Patches of DiffSynth for Qwen-Image
are written here from their description. All weights follow from the names of their tensors (seeded_weights.py), so only
shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}
    expected.safetensors    "alone.x" and so on are inputs of Z-Image with a patch of that kind, "alone.out" what it makes, a row
                            for each step; "both" has two patches, "qwen" one of Qwen-Image. "fun.latent" is the end of 3
                            guided steps with a picture, "fun.half" with a picture, another one and a mask in the first half,
                            "fun.inpainted" likewise all the way, by another file; "qwen.edges" and "qwen.inpainted" likewise
"""

import json
import os
import sys

import numpy
import torch
from diffusers import (
    AutoencoderKLQwenImage,
    QwenImagePipeline,
    QwenImageTransformer2DModel,
    ZImageControlNetModel,
    ZImageTransformer2DModel,
)
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import nn

import seeded_weights
from control_references import LEVELS, WIDTH, make_kl, randn, resized
from make_control_goldens import qwen_tokens, qwen_told
from make_workflow_goldens import VAE, load_z, sample, shifted_levels, vae_names, z_velocity
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
expected, shapes = {}, {}
DIM, LAYERS = 48, 4
KINDS = {"alone": (None, [0, 2], 16), "beside": ("control_noise_refiner", [0, 1, 2, 3], 33), "repeated": ("control_layers", [0, 1, 2, 3], 33)}


# ---- Z-Image ----


def make_model():
    model = ZImageTransformer2DModel(
        dim=DIM, n_layers=LAYERS, n_refiner_layers=2, n_heads=3, n_kv_heads=3, cap_feat_dim=WIDTH, axes_dims=[4, 6, 6]
    )
    shapes["z_image"] = load_z(model)
    return model


def make_patch(kind, model):
    refines, places, channels = KINDS[kind]
    control = ZImageControlNetModel(
        control_layers_places=places,
        control_refiner_layers_places=[0, 1],
        control_in_dim=channels,
        add_control_noise_refiner=refines,
        dim=DIM,
        n_refiner_layers=2,
        n_heads=3,
        n_kv_heads=3,
    )
    shapes[kind] = seeded_weights.load(control)
    control.kind = kind
    return ZImageControlNetModel.from_transformer(control, model)


def patchify(hint):
    channels, height, width = hint.shape
    return hint.view(channels, height // 2, 2, width // 2, 2).permute(1, 3, 2, 4, 0).reshape(height * width // 4, 4 * channels)


def whole(tokens):
    return torch.ones(tokens.shape[:2], dtype=torch.bool)


class Beside:
    """The stream of a patch beside that of one picture. c: the tokens of the hint."""

    def __init__(self, control, c, strength, freqs, vector):
        self.control, self.c, self.strength, self.freqs, self.vector = control, c, strength, freqs, vector
        if control.kind == "alone":
            for layer in control.control_noise_refiner:
                self.c = layer(self.c, whole(self.c), freqs, vector)

    def run(self, layer, x, first):
        """What the layer adds."""
        given = self.c if first else torch.stack([self.c])
        skip, self.c = torch.unbind(layer(given, x, whole(self.c), self.freqs, self.vector))[-2:]
        return skip

    def refined(self, index, img, x):
        refine = self.control.control_noise_refiner
        if self.control.kind == "alone":
            return img
        if self.control.kind == "beside":
            skip = self.run(refine[index], x, index == 0)
        else:
            skip = self.run(self.control.control_layers[index], x, index == 0)
            for layer in self.control.control_layers[2:] if index == 1 else []:
                self.run(layer, x, False)
        return self.added(img, skip)

    def added(self, img, skip):
        count = self.c.shape[1]
        return torch.cat([img[:, :count] + self.strength * skip[:, :count], img[:, count:]], dim=1)


class Begun:
    """What the model makes of a point before its first layers, with what fills picture and text up."""

    def __init__(self, model, x, sigma, context):
        self.vector = model.t_embedder((1 - sigma).view(1) * model.t_scale)
        parts = model.patchify_and_embed([x[:, None]], [context], 2, 1)
        (img,), (text,), _, (ids,), (text_ids,), (self.filling,), (text_filling,) = parts
        img, text = model.all_x_embedder["2-1"](img), model.cap_embedder(text)
        img[self.filling], text[text_filling] = model.x_pad_token, model.cap_pad_token
        self.img, self.text = img[None], text[None]
        self.freqs, self.text_freqs = model.rope_embedder(ids)[None], model.rope_embedder(text_ids[: len(text)])[None]
        self.count = int((~self.filling).sum())

    def refined(self, model, beside, seen):
        """Picture and text behind the refiners; `seen`: the picture's tokens that patches see."""
        img, text = self.img, self.text
        for i, layer in enumerate(model.noise_refiner):
            img = layer(img, whole(img), self.freqs, self.vector)
            for one in beside:
                img = one.refined(i, img, seen)
        for layer in model.context_refiner:
            text = layer(text, whole(text), self.text_freqs)
        return img, text


def velocity_of_one(model, x, sigma, context, patches):
    """x (16, H, W), context (T, WIDTH), patches: a control net, its hint (C, H, W) and its strength each."""
    begun = Begun(model, x, sigma, context)
    count = begun.count
    beside = []
    for control, hint, strength in patches:
        c = control.control_all_x_embedder["2-1"](patchify(hint))[None]
        beside.append(Beside(control, c, strength, begun.freqs[:, :count], begun.vector))
    img, text = begun.refined(model, beside, begun.img[:, :count])
    seen, hidden = img[:, :count], torch.cat([img, text], dim=1)
    freqs = torch.cat([begun.freqs, begun.text_freqs], dim=1)
    for i, layer in enumerate(model.layers):
        hidden = layer(hidden, whole(hidden), freqs, begun.vector)
        for one in beside:
            layers = one.control.control_layers
            every = round(LAYERS / len(layers))
            if i % every == 0 and i // every < len(layers):
                hidden = one.added(hidden, one.run(layers[i // every], seen, i == 0))
    hidden = model.all_final_layer["2-1"](hidden, c=begun.vector)
    return -model.unpatchify([hidden[0]], [(1, *x.shape[1:])], 2, 1)[0][:, 0]


def velocity(model, x, sigma, context, patches):
    def of(i, hint):
        return hint[i % len(hint)]

    return torch.stack(
        [
            velocity_of_one(model, x[i], sigma, context[i % len(context)], [(c, of(i, hint), s) for c, hint, s in patches])
            for i in range(len(x))
        ]
    )


def is_close(a, b):
    return (a - b).norm() / b.norm() < 1e-5


def check(model, control, x, sigma, context, hint):
    """Without patches this is diffusers' model, and run as diffusers runs them, the layers of a patch give its residuals."""
    assert is_close(velocity(model, x, sigma, context, []), z_velocity(model, x, sigma, context))
    told = [x[:1, :, None].unbind()[0]], (1 - sigma).view(1), [context[0]], [hint[0][:, None]]
    wanted = control(*told)
    begun = Begun(model, x[0], sigma, context[0])
    tokens = patchify(hint[0])
    c = control.control_all_x_embedder["2-1"](torch.cat([tokens, tokens[-1:].expand(len(begun.filling) - len(tokens), -1)]))
    c[begun.filling] = model.x_pad_token
    one = Beside(control, c[None], 1.0, begun.freqs, begun.vector)
    img, text = begun.refined(model, [one], begun.img)
    hidden, one.c = torch.cat([img, text], dim=1), torch.cat([one.c, text], dim=1)
    one.freqs = torch.cat([begun.freqs, begun.text_freqs], dim=1)
    for i, (layer, residual) in enumerate(zip(control.control_layers, wanted.values())):
        assert is_close(one.run(layer, hidden, i == 0), residual)


def forward(model, name, patches, x, context):
    given = [(control, randn(60 + i, 1, KINDS[control.kind][2], *x.shape[2:]), strength) for i, (control, strength) in enumerate(patches)]
    for control, hint, _ in given:
        check(model, control, x, LEVELS[0], context, hint)
    out = torch.stack([velocity(model, x, sigma, context, given) for sigma in LEVELS])
    plain = z_velocity(model, x, LEVELS[0], context)
    print(f"{name} changes the velocity by {(out[0] - plain).norm() / plain.norm():.3g}")
    expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": out})
    for i, (_, hint, _) in enumerate(given):
        expected[f"{name}.patch.{i}.hint"] = hint


def read_hint():
    pixels = torch.from_numpy(numpy.array(Image.open(os.path.join(HERE, "control/hint.png")))).float()[None] / 255
    return pixels[..., :3], 1 - pixels[..., 3]


def at_pixels(picture, height, width):
    """(B, H, W, 3) as (B, 3, height, width)."""
    return resized(picture.permute(0, 3, 1, 2), height, width, "area")


def make_z_image(picture, mask):
    model, vae = make_model(), make_kl()
    alone, beside, repeated = (make_patch(kind, model) for kind in KINDS)
    forward(model, "alone", [(alone, 0.7)], randn(50, 2, 16, 6, 6), randn(51, 2, 5, WIDTH))
    forward(model, "beside", [(beside, 0.8)], randn(52, 1, 16, 8, 16), randn(53, 1, 33, WIDTH))
    forward(model, "repeated", [(repeated, 0.6)], randn(54, 1, 16, 4, 10), randn(55, 1, 32, WIDTH))
    forward(model, "both", [(alone, 0.4), (beside, -0.5)], randn(56, 1, 16, 6, 8), randn(57, 1, 7, WIDTH))

    positive, negative = randn(58, 1, 6, WIDTH), randn(59, 1, 9, WIDTH)
    expected.update({"in.one.cross_attn": positive, "in.two.cross_attn": negative})
    height, width = 48, 80

    def latent_of(pixels):
        return (vae.encode(2 * pixels - 1).latent_dist.mean - 0.1159) * 0.3611

    def inpaint(control, other):
        kept = 1 - mask[:, None]
        around = (at_pixels(other, height, width) - 0.5) * resized(kept, height, width, "bilinear").round() + 0.5
        return torch.cat([latent_of(at_pixels(control, height, width)), resized(kept, 6, 10, "nearest"), latent_of(around)], dim=1)

    def draw(patches):
        def guided(x, sigma):
            at_work = [(control, hint, strength) for control, hint, strength, least in patches if sigma >= least]
            with_text, without = (velocity(model, x, sigma, text, at_work) for text in (positive, negative))
            return without + 2 * (with_text - without)

        noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
        return sample(guided, noise, shifted_levels(3.0, 3))

    edges = latent_of(at_pixels(picture, height, width))
    plain = draw([])
    half = 3 * 0.5 / (1 + 2 * 0.5)
    expected["fun.latent"] = draw([(alone, edges, 0.7, 0)])
    expected["fun.half"] = draw([(beside, inpaint(picture, picture.flip(2)), 0.9, half)])
    expected["fun.inpainted"] = draw([(repeated, inpaint(picture.flip(2), picture), 0.6, 0)])
    for name in ("latent", "half", "inpainted"):
        print(f"{name} differs by {(expected[f'fun.{name}'] - plain).norm() / plain.norm():.3g}")


# ---- Qwen-Image ----


class DiffSynth(nn.Module):
    """Behind block i: two layers over the sum of the normed tokens of picture and hint."""

    def __init__(self, width, dim, depth):
        super().__init__()
        self.img_in = nn.Linear(width, dim)
        self.controlnet_blocks = nn.ModuleList(
            nn.ModuleDict(
                dict(
                    x_rms=nn.RMSNorm(dim, eps=1e-6),
                    y_rms=nn.RMSNorm(dim, eps=1e-6),
                    input_proj=nn.Linear(dim, dim),
                    output_proj=nn.Linear(dim, dim),
                )
            )
            for _ in range(depth)
        )

    def added(self, index, img, hint):
        block = self.controlnet_blocks[index]
        raised = nn.functional.gelu(block["input_proj"](block["x_rms"](img) + block["y_rms"](self.img_in(hint))))
        return block["output_proj"](raised)


def qwen_velocity(model, x, sigma, context, patch=None, hint=None, strength=1.0):
    hooks = []
    if patch is not None:
        tokens = qwen_tokens(hint.expand(len(x), *hint.shape[1:]))
        for index, block in enumerate(model.transformer_blocks):

            def behind(_, __, out, index=index):
                return out[0], out[1] + strength * patch.added(index, out[1], tokens)

            hooks.append(block.register_forward_hook(behind))
    out = model(hidden_states=qwen_tokens(x), **qwen_told(x, sigma, context))[0]
    for hook in hooks:
        hook.remove()
    return QwenImagePipeline._unpack_latents(out, x.shape[2] * 8, x.shape[3] * 8, 8)[:, :, 0]


def make_qwen(picture, mask):
    vae = AutoencoderKLQwenImage(**VAE)
    seeded_weights.load(vae, vae_names)
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
    seeded_weights.load(model)
    edges, inpaint = DiffSynth(64, 48, 2), DiffSynth(68, 48, 2)
    shapes["qwen_edges"], shapes["qwen_inpaint"] = seeded_weights.load(edges), seeded_weights.load(inpaint)
    x, context, hint = randn(70, 2, 16, 6, 6), randn(71, 2, 5, WIDTH), randn(72, 1, 16, 6, 6)
    out = torch.stack([qwen_velocity(model, x, sigma, context, edges, hint, 0.7) for sigma in LEVELS])
    expected.update({"qwen.x": x, "qwen.context": context, "qwen.timestep": LEVELS, "qwen.patch.0.hint": hint, "qwen.out": out})

    texts = load_file(os.path.join(HERE, "workflows/expected.safetensors"))
    positive, negative = texts["qwen_image.cross_attn"], texts["qwen_image.negative"]
    expected.update({"in.qwen_one.cross_attn": positive, "in.qwen_two.cross_attn": negative})
    mean, deviation = (torch.tensor(numbers).view(1, -1, 1, 1) for numbers in (vae.config.latents_mean, vae.config.latents_std))
    encoded = vae.encode((2 * at_pixels(picture, 48, 80) - 1)[:, :, None]).latent_dist.mean[:, :, 0]
    latent = (encoded - mean) / deviation
    kept = nn.functional.interpolate(1 - mask[:, None], (6, 10), mode="bilinear")

    def draw(*patch):
        def guided(x, sigma):
            with_text, without = (qwen_velocity(model, x, sigma, text, *patch) for text in (positive, negative))
            return without + 2.5 * (with_text - without)

        noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
        return sample(guided, noise, shifted_levels(3.1, 3))

    expected["qwen.edges"] = draw(edges, latent, 0.7)
    expected["qwen.inpainted"] = draw(inpaint, torch.cat([latent, kept], dim=1), 0.9)
    plain = draw()
    for name in ("edges", "inpainted"):
        print(f"{name} differs by {(expected[f'qwen.{name}'] - plain).norm() / plain.norm():.3g}")


def main(out):
    os.makedirs(out, exist_ok=True)
    picture, mask = read_hint()
    make_z_image(picture, mask)
    make_qwen(picture, mask)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (
            f' "{model}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(what)}' for name, what in compressed(tensors).items()) + "\n }"
            for model, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file({name: tensor.float().clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "patches"))
