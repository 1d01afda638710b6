"""Writes position_goldens.safetensors beside this file: what diffusers' FLUX draws where image tokens lie elsewhere.

    make_position_goldens.py        (needs what make_goldens.py needs)

"scaled", "shifted" (1, 4, 6, 8): the KSampler of node_fixture.h, with time, row and column of image tokens times factors
and plus offsets.
"""
import os

import torch
from diffusers import FluxPipeline
from safetensors.torch import load_file, save_file

import make_goldens as reference

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPE, CFG = (1, 4, 6, 8), 3.0


def main():
    given = load_file(os.path.join(HERE, "goldens.safetensors"))
    one, two = ((given[f"in.{name}.cross_attn"], given[f"in.{name}.pooled_output"]) for name in ("one", "two"))
    model, plain_ids = reference.flux(False), FluxPipeline._prepare_latent_image_ids

    def drawn(scale, shift):
        FluxPipeline._prepare_latent_image_ids = staticmethod(
            lambda *of: plain_ids(*of) * torch.tensor(scale) + torch.tensor(shift))
        levels = reference.simple(reference.table(1.0), 4)
        return reference.run("euler", levels, SHAPE, 7, reference.guided(model, [(one, 1.0)], [(two, 1.0)], CFG))

    torch.testing.assert_close(drawn((1.0, 1.0, 1.0), (0.0, 0.0, 0.0)), given["guidance"], rtol=0, atol=1e-4)
    save_file({"scaled": drawn((1.0, 2.5, 0.4), (0.0, 0.0, 0.0)), "shifted": drawn((1.0, 1.5, 1.0), (3.0, -2.5, 7.0))},
              os.path.join(HERE, "position_goldens.safetensors"))


if __name__ == "__main__":
    main()
