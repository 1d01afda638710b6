"""Writes graphs/models/loras/tiny-scenes-warm.safetensors: a LoRA of rank 1 and 3 kB for the small
model that ships, which bathes its pictures in warm light.

    make_warm_lora.py [GRAPHS]        (default: graphs/ of this repository)

Nothing is trained. The model gives noise - picture in latents, so what is taken off its output
everywhere is added to the picture. What warm light is in latents is measured: the mean over the
cells of graphs/scene.png of the autoencoder's answer to a warmer picture, less that to the picture
itself. The shift before the last layer is where it goes in: `up` is the shift that the last layer
turns into that much, `down` the direction in which the conditioning vector is 1 at every noise
level, both by least squares. Needs torch, diffusers, transformers, safetensors and Pillow from
PyPI.
"""

import os
import sys

import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

from make_stage_goldens import PROMPTS, Pipeline, tokens

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
GRAPHS = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "../../../graphs")
FOLDER = os.path.join(GRAPHS, "models/diffusers/tiny-scenes")
WARM = torch.tensor([1.1, 0.92, 0.55])  # what red, green and blue are multiplied by
CELLS = 4  # of the latent in a token of the model


def main():
    model = Pipeline(FOLDER, torch.float32)
    with Image.open(os.path.join(GRAPHS, "scene.png")) as file:
        data = torch.frombuffer(bytearray(file.convert("RGB").tobytes()), dtype=torch.uint8)
        scene = data.reshape(1, file.height, file.width, 3).float() / 255
    encode = lambda p: model.vae.encode(p.movedim(-1, 1) * 2 - 1).latent_dist.mode()
    change = encode((scene * WARM).clamp(0, 1)) - encode(scene)
    change = change.mean((0, 2, 3)) * model.vae.config.scaling_factor

    flow = model.flow
    width = flow.proj_out.in_features
    wanted = -change.repeat_interleave(CELLS)
    shift = torch.linalg.lstsq(flow.proj_out.weight, wanted[:, None]).solution[:, 0]

    texts = [text for text, _ in PROMPTS] + [""]
    clip_ids, _ = tokens(FOLDER, "tokenizer", texts, 77)
    t5_ids, _ = tokens(FOLDER, "tokenizer_2", texts, 64)
    pooled, _, _ = model.encode(clip_ids, t5_ids)
    rows = [
        F.silu(flow.time_text_embed(level.expand(len(texts)) * 1000, pooled))
        for level in model.levels[:-1]
    ]
    rows = torch.cat(rows)
    one = torch.linalg.lstsq(rows, torch.ones(len(rows), 1), driver="gelsd").solution[:, 0]
    print("the direction gives", (rows @ one).min().item(), "to", (rows @ one).max().item())

    # diffusers has the scale in the first half of this layer, the shift in the second.
    up = torch.cat([torch.zeros(width), shift])[:, None]
    os.makedirs(os.path.join(GRAPHS, "models/loras"), exist_ok=True)
    save_file(
        {
            "transformer.norm_out.linear.lora_A.weight": one[None].contiguous(),
            "transformer.norm_out.linear.lora_B.weight": up.contiguous(),
        },
        os.path.join(GRAPHS, "models/loras/tiny-scenes-warm.safetensors"),
        metadata={"format": "pt"},
    )


if __name__ == "__main__":
    main()
