"""Writes what HunyuanVideo 1.0 makes of videos that look at a picture beside them, with a tiny model.

    make_hunyuan_shown_goldens.py [OUT]        (default: hunyuan_shown/ beside this file)

diffusers has no such picture ("custom" of ComfyUI's HunyuanImageToVideo): below, its tokens and their places are put behind
those of the video between the parts of diffusers' model. Needs torch, diffusers and safetensors from PyPI; runs on the CPU in
float32. All weights follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in ComfyUI's files: shape}} of "shown"
    expected.safetensors    "shown.CLIP.x" and so on are inputs, "shown.CLIP.out" an output with a row for each step, of the
                            clips "short", "odd", which has odd sides, "two", whose picture has two frames, and "none", without
                            any; "in.one.cross_attn" and ".pooled_output" are a text, "picture" (1, H, W, 3) is from 0 to 1;
                            "latent" is the end of 3 steps of Euler's method with an embedded guidance of 6 and a shift of 7, in
                            the model's units, of the noise of seed 7
"""

import os
import sys

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKLHunyuanVideo, HunyuanVideoTransformer3DModel
from diffusers.models.embeddings import get_1d_rotary_pos_embed

import make_hunyuan_begin_goldens as begin
import make_hunyuan_first_goldens as first
import make_hunyuan_goldens
import make_wan_goldens as wan
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
KIND = "shown"


class Shows:
    """A model of diffusers that is shown a latent (1, C, F, H, W) behind the tokens of a video."""

    def __init__(self, model):
        self.model, self.shown = model, None
        embed, rope, norm = model.x_embedder.forward, model.rope.forward, model.norm_out.forward

        def embed_both(video):
            own = embed(video)
            self.length = own.shape[1]
            return own if self.shown is None else torch.cat([own, embed(self.shown).expand(len(own), -1, -1)], 1)

        def turn_both(video):
            own = rope(video)
            return own if self.shown is None else tuple(torch.cat(both) for both in zip(own, self.places(video.shape[4] // 2)))

        model.x_embedder.forward, model.rope.forward = embed_both, turn_both
        model.norm_out.forward = lambda hidden, told: norm(hidden[:, : self.length], told)

    def places(self, columns_before):
        """All frames of the picture lie at -1, its columns behind the video's."""
        frames, height, width = self.shown.shape[2:]
        rows, columns = torch.meshgrid(torch.arange(height // 2), torch.arange(width // 2), indexing="ij")
        axes = torch.full_like(rows, -1), rows, columns + columns_before
        turned = [
            get_1d_rotary_pos_embed(size, axis.flatten().repeat(frames).float(), self.model.rope.theta, use_real=True)
            for size, axis in zip(self.model.config.rope_axes_dim, axes)
        ]
        return tuple(torch.cat([part[i] for part in turned], 1) for i in range(2))

    def velocity(self, x, level, text, pooled, reference):
        self.shown = None
        if reference is not None:
            height, width = reference.shape[3:]
            even = F.pad(reference.flatten(1, 2), (0, width % 2, 0, height % 2), mode="circular")
            self.shown = even.unflatten(1, reference.shape[1:3])
        return begin.velocity(self.model, x, level, text, pooled)


def make_model():
    return Shows(
        make_hunyuan_goldens.load(
            HunyuanVideoTransformer3DModel(
                in_channels=begin.CHANNELS,
                out_channels=begin.CHANNELS,
                num_attention_heads=3,
                attention_head_dim=16,
                num_layers=2,
                num_single_layers=2,
                num_refiner_layers=2,
                mlp_ratio=2.0,
                text_embed_dim=begin.WIDTH,
                pooled_projection_dim=begin.POOLED,
                guidance_embeds=True,
                rope_axes_dim=(4, 6, 6),
            ),
            KIND,
        )
    )


def make_clip(model, expected, clip, seed, frames, height, width, batch=1, shown=1):
    at = f"{KIND}.{clip}."
    x = wan.randn(seed, batch, begin.CHANNELS, frames, height, width)
    text, pooled = wan.randn(seed + 1, 1, begin.TOKENS, begin.WIDTH), wan.randn(seed + 2, 1, begin.POOLED)
    expected |= {at + "x": x, at + "timestep": begin.LEVELS, at + "context": text, at + "y": pooled}
    reference = None
    if shown > 0:
        reference = expected[at + "reference"] = wan.randn(seed + 3, 1, begin.CHANNELS, shown, height, width)
    out = torch.stack([model.velocity(x, level, text, pooled, reference) for level in begin.LEVELS])
    expected[at + "out"] = out
    plain = torch.stack([model.velocity(x, level, text, pooled, None) for level in begin.LEVELS])
    print(f"{clip}: the picture changes the velocity by {(out - plain).norm() / plain.norm():.3f}")


def main(out):
    expected, model = {}, make_model()
    make_clip(model, expected, "short", 10, 3, 6, 8, batch=2)
    make_clip(model, expected, "odd", 20, 2, 5, 7)
    make_clip(model, expected, "two", 30, 2, 4, 6, shown=2)
    make_clip(model, expected, "none", 40, 2, 4, 6, shown=0)
    text, pooled = wan.randn(92, 1, begin.TOKENS, begin.WIDTH), wan.randn(93, 1, begin.POOLED)
    expected["in.one.cross_attn"], expected["in.one.pooled_output"] = text, pooled
    picture = torch.rand(1, 9, 12, 3, generator=torch.Generator().manual_seed(21))
    expected["picture"] = picture
    vae = AutoencoderKLHunyuanVideo(latent_channels=begin.CHANNELS, block_out_channels=(32, 32, 64, 64), layers_per_block=1)
    seeded_weights.load(vae, first.vae_name)
    pixels = F.interpolate(picture.movedim(-1, 1), size=first.SIDES, mode="bilinear")
    latent = vae._encode(2 * pixels.transpose(0, 1)[None] - 1).chunk(2, dim=1)[0] * vae.config.scaling_factor
    x = wan.randn(7, 1, begin.CHANNELS, 3, *latent.shape[3:])
    levels = [first.SHIFT * t / (1 + (first.SHIFT - 1) * t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / first.STEPS))] for i in range(first.STEPS)] + [0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        x = x + (there - here) * model.velocity(x, 1000 * here, text, pooled, latent)
    expected["latent"] = x
    wan.write(out, {KIND: make_hunyuan_goldens.shapes[KIND]}, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "hunyuan_shown"))
