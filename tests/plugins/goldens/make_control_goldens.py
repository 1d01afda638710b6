"""Writes what diffusers makes with tiny ControlNets of Qwen-Image, FLUX.1 and Stable Diffusion 3 and 3.5.

    make_control_goldens.py [OUT]        (default: control/ beside this file)

Needs torch, diffusers, safetensors and Pillow from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor: shape}}
    hint.png                the picture of the hints, with what is drawn anew in its alpha
    expected.safetensors    "qwen_union.x" and so on are inputs of a ControlNet, "qwen_union.control.double.0" a residual
                            with a row for each step; the denoiser "qwen_drawn" is given those of two ControlNets.
                            "qwen.latent" is the end of 3 guided steps with one hint all the way and another one, weaker, in
                            the first half; "qwen.inpainted" with a mask; "qwen.fun" with a Fun ControlNet, "qwen_first"
                            the denoiser that is given one residual of such. "flux_union", "flux_plain", "sd3_first" and
                            "sd3_large" likewise; "flux.latent" is the end of 3 steps of two pictures with an odd side,
                            "sd3.latent" that of a guided run with "sd3_first", "sd3.canny" of one with "sd3_large"
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLQwenImage, QwenImageControlNetModel, QwenImagePipeline, QwenImageTransformer2DModel
from diffusers.models.transformers.transformer_qwenimage import QwenImageTransformerBlock
from safetensors.torch import load_file, save_file

import seeded_weights
from control_references import (
    LEVELS,
    WIDTH,
    expected,
    make_flux,
    make_hint,
    make_kl,
    make_sd3,
    put_residuals,
    randn,
    resized,
    shapes,
    side_by_side,
)
from make_workflow_goldens import VAE, picture_of, sample, shifted_levels, vae_names
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))


# ---- Qwen-Image ----


def qwen_tokens(x):
    return QwenImagePipeline._pack_latents(x, *x.shape)


def qwen_told(x, sigma, context):
    batch, _, height, width = x.shape
    return dict(
        timestep=sigma.expand(batch),
        encoder_hidden_states=context,
        encoder_hidden_states_mask=torch.ones(context.shape[:2], dtype=torch.bool),
        img_shapes=[[(1, height // 2, width // 2)]] * batch,
        return_dict=False,
    )


def qwen_residuals(control, x, sigma, context, hint):
    hint = qwen_tokens(hint.expand(len(x), *hint.shape[1:]))
    return control(hidden_states=qwen_tokens(x), controlnet_cond=hint, **qwen_told(x, sigma, context))


def qwen_velocity(model, x, sigma, context, residuals=None):
    out = model(hidden_states=qwen_tokens(x), controlnet_block_samples=residuals, **qwen_told(x, sigma, context))[0]
    return QwenImagePipeline._unpack_latents(out, x.shape[2] * 8, x.shape[3] * 8, 8)[:, :, 0]


def make_qwen_control(name, layers, extra=0):
    model = QwenImageControlNetModel(
        patch_size=2,
        in_channels=64,
        out_channels=16,
        num_layers=layers,
        attention_head_dim=24,
        num_attention_heads=2,
        joint_attention_dim=WIDTH,
        axes_dims_rope=[16, 4, 4],
        extra_condition_channels=extra,
    )
    shapes[name] = seeded_weights.load(model)
    return model


def forward_qwen(model, union, inpaint):
    for name, control, channels, batch, sides in (
        ("qwen_union", union, 16, 2, (6, 6)),
        ("qwen_inpaint", inpaint, 17, 1, (4, 10)),
    ):
        x, context = randn(10, batch, 16, *sides), randn(11, batch, 5, WIDTH)
        hint = randn(12, 1, channels, *sides)
        expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.hint": hint, f"{name}.timestep": LEVELS})
        put_residuals(f"{name}.control.double", [qwen_residuals(control, x, sigma, context, hint) for sigma in LEVELS])
    x, context = randn(13, 1, 16, 4, 6), randn(14, 1, 7, WIDTH)
    for name, count in (("qwen_drawn", 1), ("qwen_each", 2)):
        given = randn(15, count, 1, 6, 48)
        out = torch.stack([qwen_velocity(model, x, sigma, context, list(given)) for sigma in LEVELS])
        expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.timestep": LEVELS, f"{name}.out": out})
        expected[f"{name}.control.double"] = side_by_side(given)


class FunControl(torch.nn.Module):
    """A Fun ControlNet as ComfyUI runs it: diffusers has none. Latent, text and noise level go through the denoiser's
    layers; the hint's latent has a mask and another latent behind it, which are zero."""

    def __init__(self, heads, head, blocks):
        super().__init__()
        width = heads * head
        self.control_img_in = torch.nn.Linear(132, width)
        made = [QwenImageTransformerBlock(width, heads, head) for _ in range(blocks)]
        for i, block in enumerate(made):
            block.after_proj = torch.nn.Linear(width, width)
            if i == 0:
                block.before_proj = torch.nn.Linear(width, width)
        self.control_blocks = torch.nn.ModuleList(made)

    def residuals(self, model, x, sigma, context, hint):
        told = qwen_told(x, sigma, context)
        hint = torch.cat([hint, torch.zeros(len(hint), 17, *hint.shape[2:])], dim=1)
        img, txt = model.img_in(qwen_tokens(x)), model.txt_in(model.txt_norm(context))
        level = model.time_text_embed(told["timestep"], img)
        rotary = model.pos_embed(told["img_shapes"], max_txt_seq_len=context.shape[1], device=x.device)
        state = img + self.control_blocks[0].before_proj(self.control_img_in(qwen_tokens(hint)))
        made = []
        for block in self.control_blocks:
            txt, state = block(
                hidden_states=state, encoder_hidden_states=txt, encoder_hidden_states_mask=None, temb=level, image_rotary_emb=rotary
            )
            made.append(block.after_proj(state))
        return made


def qwen_first_velocity(model, x, sigma, context, residuals):
    """Of blocks that would add the same residual the first alone does."""
    every = -(-len(model.transformer_blocks) // len(residuals))
    nothing = torch.zeros_like(residuals[0])
    whole = [residuals[i // every] if i % every == 0 else nothing for i in range(len(model.transformer_blocks))]
    return qwen_velocity(model, x, sigma, context, whole)


def draw_qwen(model, vae, union, inpaint, picture, mask):
    texts = load_file(os.path.join(HERE, "workflows/expected.safetensors"))
    positive, negative = texts["qwen_image.cross_attn"], texts["qwen_image.negative"]
    mean, deviation = (
        torch.tensor(numbers).view(1, -1, 1, 1) for numbers in (vae.config.latents_mean, vae.config.latents_std)
    )

    def latent_of(pixels):
        small = resized(pixels.permute(0, 3, 1, 2), 48, 80)
        encoded = vae.encode((2 * small - 1)[:, :, None]).latent_dist.mean[:, :, 0]
        return (encoded - mean) / deviation

    hint, other = latent_of(picture), latent_of(picture.flip(2))
    kept = 1 - mask[:, None]
    holes = picture * resized(kept, 50, 70, "bilinear").round().permute(0, 2, 3, 1)
    masked = torch.cat([latent_of(holes), resized(kept, 6, 10)], dim=1)
    half = torch.tensor(3.1 * 0.5 / (1 + 2.1 * 0.5))

    def predict(residuals):
        def guided(x, sigma):
            with_text, without = (
                qwen_velocity(model, x, sigma, text, residuals(x, sigma, text)) for text in (positive, negative)
            )
            return without + 2.5 * (with_text - without)

        return guided

    def both(x, sigma, text):
        first = qwen_residuals(union, x, sigma, text, hint)
        if sigma < half:
            return [0.7 * one for one in first]
        second = qwen_residuals(union, x, sigma, text, other)
        return [0.7 * one + 0.4 * two for one, two in zip(first, second)]

    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    sigmas = shifted_levels(3.1, 3)
    expected["qwen.latent"] = sample(predict(both), noise, sigmas)
    expected["qwen.picture"] = picture_of(vae, expected["qwen.latent"])
    inpainted = lambda x, sigma, text: [0.9 * one for one in qwen_residuals(inpaint, x, sigma, text, masked)]
    expected["qwen.inpainted"] = sample(predict(inpainted), noise, sigmas)
    # Its strength counts by its square root.
    fun = FunControl(2, 24, 2)
    shapes["qwen_fun"] = seeded_weights.load(fun)
    drawn = lambda x, sigma, text: [0.6 * one for one in fun.residuals(model, x, sigma, text, hint)]
    expected["qwen.fun"] = sample(predict(drawn), noise, sigmas)
    x, context, given = randn(16, 1, 16, 4, 6), randn(17, 1, 7, WIDTH), randn(18, 1, 1, 6, 48)
    out = torch.stack([qwen_first_velocity(model, x, sigma, context, list(given)) for sigma in LEVELS])
    expected.update({"qwen_first.x": x, "qwen_first.context": context, "qwen_first.timestep": LEVELS, "qwen_first.out": out})
    expected["qwen_first.control.first"] = side_by_side(given)
    plain = sample(predict(lambda *_: None), noise, sigmas)
    for name in ("latent", "inpainted", "fun"):
        print(f"control changes {name} by {((expected[f'qwen.{name}'] - plain).norm() / plain.norm()):.3g}")


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
    union, inpaint = make_qwen_control("qwen_union", 1), make_qwen_control("qwen_inpaint", 2, 4)
    forward_qwen(model, union, inpaint)
    draw_qwen(model, vae, union, inpaint, picture, mask)


def main(out):
    os.makedirs(out, exist_ok=True)
    picture, mask = make_hint(out)
    make_qwen(picture, mask)
    make_flux(make_kl(), picture)
    make_sd3(make_kl(), picture)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (
            f' "{model}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(what)}' for name, what in compressed(tensors).items()) + "\n }"
            for model, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file(
        {name: (tensor.float() if tensor.is_floating_point() else tensor).clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name, tensor in expected.items():
        print(f"{name:32} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "control"))
