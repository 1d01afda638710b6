"""Writes what PyTorch makes of latents with tiny transformers of SeedVR2 (seedvr_transformer.py).

    make_seedvr_goldens.py [OUT]        (default: seedvr/ beside this file)

Needs torch and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out. Models: "3b" has layers with weights shared by video
and text, a gated MLP and a last norm, "7b" none of these, "7b_shared" the first two. "flow" is a "3b" for latents of the
tiny autoencoder of make_seedvr_vae_goldens.py.

    shapes.json             {model: {name of the tensor: shape}}
    expected.safetensors    "SIZE.x", ".timestep", ".context", ".concat" are inputs of three sizes, "SIZE.MODEL" what comes out;
                            "flow.film" (F, H, W, 3) are pictures, "flow.latent" is what one step makes of theirs, in the
                            transformer's units, "flow.sharp" the pictures of it in their size, "flow.parts" the latent
                            drawn in parts of one frame
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file

import seeded_weights
from make_seedvr_vae_goldens import VAE
from seedvr_transformer import Transformer, windows
from seedvr_vae import SCALE, Autoencoder

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
CHANNELS = 4
TINY = dict(d=96, head=48, context=24, channels=CHANNELS, texts=(5, 7))
MODELS = {
    "3b": dict(layers=4, separate=2, gated=True, hidden=160, language=True, **TINY),
    "7b": dict(layers=3, separate=3, gated=False, hidden=384, language=False, **TINY),
    "7b_shared": dict(layers=3, separate=1, gated=True, hidden=160, language=False, **TINY),
}
# (batch, frames, rows, columns, tokens of the text, items of the text): of windows of several sizes.
SIZES = {"video": (1, 6, 10, 26, 5, 1), "picture": (1, 1, 30, 70, 7, 1), "pictures": (2, 1, 14, 6, 7, 2)}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def drawn(model, latent, seed):
    """One step of Euler from the noise of a seed, at the level 1."""
    noise = torch.randn(latent.shape, generator=torch.Generator().manual_seed(seed))
    condition = torch.cat([latent, torch.ones_like(latent[:, :1])], 1)
    return noise - model(noise, torch.tensor(1000.0), model.positive_conditioning[None], condition)


def workflow(model, vae):
    frames, height, width = 3, 20, 28
    film = torch.rand(frames, height, width, 3, generator=torch.Generator().manual_seed(50))
    whole = torch.zeros(5, 32, 32, 3)
    whole[:, :height, :width] = torch.cat([film, film[-1:], film[-1:]])
    latent = vae.moments((2 * whole - 1).permute(3, 0, 1, 2)[None])[0] * SCALE
    made = drawn(model, latent, 7)
    pictures = (vae.decoder(made / SCALE)[0].permute(1, 2, 3, 0) * 0.5 + 0.5).clamp(0, 1)
    parts = torch.cat([drawn(model, latent[:, :, t : t + 1], 7) for t in range(latent.shape[2])], 2)
    return {"flow.film": film, "flow.latent": made, "flow.sharp": pictures[:frames, :height, :width], "flow.parts": parts,
            "untold.cross_attn": model.positive_conditioning[None].clone()}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "seedvr")
    os.makedirs(out, exist_ok=True)
    models = {name: Transformer(**sizes) for name, sizes in MODELS.items()}
    shapes = {name: seeded_weights.load(model) for name, model in models.items()}
    expected = {}
    for n, (size, (batch, frames, rows, columns, tokens, items)) in enumerate(SIZES.items()):
        for shifted in (False, True):
            print(size, len(windows((frames, rows // 2, columns // 2), shifted)), "windows")
        x, latent = randn(10 + n, batch, CHANNELS, frames, rows, columns), randn(20 + n, items, CHANNELS, frames, rows, columns)
        given = {"x": x, "timestep": torch.tensor([1000.0 - 300 * n]), "context": randn(30 + n, items, tokens, TINY["context"]),
                 "concat": torch.cat([latent, torch.ones_like(latent[:, :1])], 1)}
        expected |= {f"{size}.{name}": tensor for name, tensor in given.items()}
        for name, model in models.items():
            expected[f"{size}.{name}"] = model(x, given["timestep"][0], given["context"], given["concat"])
    flow, vae = Transformer(**MODELS["3b"] | {"channels": VAE["latent"]}), Autoencoder(**VAE)
    shapes["flow"] = seeded_weights.load(flow)
    seeded_weights.load(vae)
    expected |= workflow(flow, vae)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump(shapes, file, indent=1)
        file.write("\n")
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.std(correction=0):.4g}")


if __name__ == "__main__":
    main()
