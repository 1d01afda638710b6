"""Writes unet/tome.safetensors: what a UNet of Stable Diffusion 1.x draws whose tokens are merged (TomePatchModel).

    make_tome_goldens.py

Needs what make_unet_patch_goldens.py needs. Algorithm: https://arxiv.org/abs/2303.17604, on queries alone, as ComfyUI has
it, written down here with torch.argsort and scatter_reduce: at the latent's size tokens are merged into those at one corner
of each 2x2, and what these attend to is theirs. The corner is heddle's for each block (draw_of() in unet_patches.cpp), as
ComfyUI's is random. "sd1.<ratio>" are ends of guided runs of two steps of 8 x 16 cells, "sd1.odd" of 5 x 9 with ratio 0.5.
"""

import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

from make_unet_goldens import denoiser, euler, make_unet, normal
from make_unet_patch_goldens import CFG, STEPS, noised, texts

torch.set_grad_enabled(False)


def corner_of(path):
    value = 14695981039346656037
    for byte in path.encode():
        value = ((value ^ byte) * 1099511628211) % 2**64
    return (value >> 1) % 4


def matched(like, height, width, corner, ratio):
    """Two functions of (B, tokens, C): merge, and unmerge of what became of the merged."""
    tokens = like.shape[1]
    kinds = torch.zeros(height, width)
    kinds[corner // 2 : height // 2 * 2 : 2, corner % 2 : width // 2 * 2 : 2] = -1
    order, count = kinds.flatten().argsort(stable=True), (height // 2) * (width // 2)
    into, others = order[:count], order[count:]
    like = like / like.norm(dim=-1, keepdim=True)
    best, column = (like[:, others] @ like[:, into].transpose(-1, -2)).max(-1)
    moved = min(int(tokens * ratio), len(others))
    ranked = best.argsort(-1, descending=True)
    rows = lambda x, ids: x.gather(1, ids[..., None].expand(-1, -1, x.shape[-1]))
    kept_ids, moved_ids = ranked[:, moved:], ranked[:, :moved]
    to = column.gather(1, moved_ids)

    def merge(x):
        other = x[:, others]
        target = to[..., None].expand(-1, -1, x.shape[-1])
        return torch.cat([rows(other, kept_ids), x[:, into].scatter_reduce(1, target, rows(other, moved_ids), "mean")], 1)

    def unmerge(x):
        kept, base = x[:, : kept_ids.shape[1]], x[:, kept_ids.shape[1] :]
        made = torch.zeros(x.shape[0], tokens, x.shape[-1])
        made[:, into] = base
        for item in range(len(x)):
            made[item, others[kept_ids[item]]] = kept[item]
            made[item, others[moved_ids[item]]] = base[item, to[item]]
        return made

    return merge, unmerge


class Merged:
    def __init__(self, path, ratio, height, width):
        self.corner, self.ratio, self.height, self.width = corner_of(path), ratio, height, width

    def __call__(self, attn, hidden_states, *_, **__):
        merge, unmerge = matched(hidden_states, self.height, self.width, self.corner, self.ratio)
        heads = lambda x: x.unflatten(-1, (attn.heads, -1)).transpose(1, 2)
        q, k, v = heads(attn.to_q(merge(hidden_states))), heads(attn.to_k(hidden_states)), heads(attn.to_v(hidden_states))
        return unmerge(attn.to_out[0](F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))


def draw(ratio, height, width):
    model = make_unet("sd1")
    places = [(model.down_blocks[0].attentions, "input", 1), (model.up_blocks[1].attentions, "output", 3)]
    for attentions, side, first in places:
        for i, attention in enumerate(attentions):
            path = f"{side}.{first + i}.transformer.0"
            attention.transformer_blocks[0].attn1.set_processor(Merged(path, ratio, height, width))
    levels = normal(STEPS)
    return euler(denoiser(model, *texts("sd1"), CFG), noised(levels, height, width), levels)


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet")
    made = {f"sd1.{ratio}": draw(ratio, 8, 16) for ratio in (0.3, 1.0)} | {"sd1.odd": draw(0.5, 5, 9)}
    save_file({name: latent.contiguous() for name, latent in made.items()}, os.path.join(here, "tome.safetensors"))
    for name, latent in made.items():
        print(f"{name:10} {tuple(latent.shape)} {float(latent.norm()):.5g}")


if __name__ == "__main__":
    main()
