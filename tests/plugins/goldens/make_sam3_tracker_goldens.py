"""Writes what a small random tracker of SAM 3.1 makes: what it sees of a frame with its memory, what it remembers, pointers.

    make_sam3_tracker_goldens.py [OUT]        (default: sam3_tracker/ beside this file)

transformers has the tracker of SAM 3 alone, which follows one thing at a time. That of SAM 3.1, which follows M at once, is
written down here in PyTorch after what ComfyUI does; of transformers are the encoder of pictures, the decoder that makes a
pointer of a mask, and ConvNeXt's block. Needs what make_sam3_goldens.py needs; runs on the CPU in float32. Weights follow
from their names:

    shapes.json             {"sam31": {name of the tensor in a published file: shape}}
    expected.safetensors    "SIZE.PART.NAME", of the parts "tracker", "memory", "pointer" and "mask_logits": inputs and
                            outputs by their names in plugins/detection/sam3.h
"""

import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers.models.sam3_tracker_video import modeling_sam3_tracker_video as video
from transformers.models.sam3_tracker_video.configuration_sam3_tracker_video import Sam3TrackerVideoConfig

import make_sam3_goldens as models
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = "tracker.model."
TIMES, LAYERS, HEADS, TASKS, POINTERS = 7, 2, 8, 3, 16


class Weights:
    """Seeded tensors by their names in a file, or those that changed has in their place; on "meta" only shapes."""

    def __init__(self, listed, device="cpu", changed=None):
        self.listed, self.device, self.changed, self.made = listed, device, {} if changed is None else changed, {}

    def __call__(self, name, *shape):
        self.listed[name] = list(shape)
        if self.device == "meta":
            return torch.empty(shape, device="meta")
        if name not in self.made:
            self.made[name] = seeded_weights.seeded(name, shape)
        return self.changed.get(name, self.made[name])

    def linear(self, x, name, out):
        return F.linear(x, self(name + ".weight", out, x.shape[-1]), self(name + ".bias", out))

    def norm(self, x, name, eps=1e-5):
        """Over the last axis."""
        return F.layer_norm(x, x.shape[-1:], self(name + ".weight", x.shape[-1]), self(name + ".bias", x.shape[-1]), eps)

    def norm2d(self, x, name):
        return self.norm(x.permute(0, 2, 3, 1), name, 1e-6).permute(0, 3, 1, 2)

    def conv(self, x, name, out, side, **how):
        return F.conv2d(x, self(name + ".weight", out, x.shape[1], side, side), self(name + ".bias", out), **how)

    def doubled(self, x, name, out):
        return F.conv_transpose2d(x, self(name + ".weight", x.shape[1], out, 2, 2), self(name + ".bias", out), stride=2)

    def head(self, x, name, inner, out):
        for i, width in enumerate((inner, inner, out)):
            x = self.linear(x, f"{name}.layers.{i}", width)
            x = x.relu() if i < 2 else x
        return x


def heads_apart(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def turned(x, grid):
    """x (B, heads, n G G, d): the first half of d turns with columns, the second with rows."""
    half = x.shape[-1] // 2
    cells = torch.arange(grid * grid, device=x.device)
    speeds = 1 / 10000 ** (torch.arange(0, half, 2, device=x.device) / half)
    angles = torch.cat([(place[:, None] * speeds) for place in (cells % grid, cells // grid)], -1)
    angles = angles.repeat(x.shape[2] // (grid * grid), 1)
    both = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(both * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def sine_places(grid, channels):
    far = torch.arange(grid) / (grid - 1 + 1e-6)
    along = models.waves(far, channels // 2)
    rows, columns = along[:, None].expand(-1, grid, -1), along[None].expand(grid, -1, -1)
    return torch.cat((rows, columns), -1).reshape(1, grid * grid, channels)


class Tracker:
    """One bucket of M things. Grids are (1, C, G, G), cells (1, G G, C)."""

    def __init__(self, listed, size, slots=4, channels=models.CHANNELS, inner=models.INNER, layers=LAYERS, width=128, device="cpu", changed=None):
        self.w = Weights(listed, device, changed)
        self.size, self.slots, self.channels, self.inner, self.layers, self.width = size, slots, channels, inner, layers, width
        self.grid = size // models.PATCH
        self.root = ROOT

    def level(self, hidden, doublings):
        """hidden (1, G, G, D)."""
        x, at, width = hidden.permute(0, 3, 1, 2), f"{models.EYES}propagation_convs.{2 - doublings}.", hidden.shape[-1]
        for i in range(doublings):
            width //= 2
            x = self.w.doubled(F.gelu(x) if i else x, at + "dconv_2x2" + ("" if doublings == 1 else f"_{i}"), width)
        x = self.w.conv(x, at + "conv_1x1", self.channels, 1)
        return self.w.conv(x, at + "conv_3x3", self.channels, 3, padding=1)

    def attention(self, q, k, v, heads):
        made = F.scaled_dot_product_attention(heads_apart(q, heads), heads_apart(k, heads), heads_apart(v, heads))
        return made.transpose(1, 2).flatten(2)

    def turned_attention(self, q, k, v, turning):
        q, k, v = (heads_apart(x, HEADS) for x in (q, k, v))
        k = torch.cat((turned(k[:, :, :turning], self.grid), k[:, :, turning:]), 2)
        return F.scaled_dot_product_attention(turned(q, self.grid), k, v).transpose(1, 2).flatten(2)

    def memory_layer(self, at, x, cells, memory, past, places):
        w, c, s = self.w, self.channels, cells.shape[1]
        n = w.norm(x, at + "norm1")
        q, k, v = (w.linear(n, f"{at}self_attn_{word}_proj", c) for word in "qkv")
        x = x + w.linear(self.turned_attention(q, k, v, s), at + "self_attn_out_proj", c)
        n = w.norm(x, at + "norm2")
        q = w.linear(cells, at + "image_cross_attn_q_proj", c) + w.linear(n, at + "cross_attn_q_proj", c)
        shown = torch.cat((past, torch.zeros_like(memory[:, past.shape[1] :])), 1)
        k = w.linear(shown, at + "image_cross_attn_k_proj", c) + w.linear(memory, at + "cross_attn_k_proj", c) + places
        v = w.linear(memory, at + "cross_attn_v_proj", c)
        x = x + w.linear(self.turned_attention(q, k, v, past.shape[1]), at + "cross_attn_out_proj", c)
        raised = F.gelu(w.linear(w.norm(x, at + "norm3"), at + "linear1", self.inner))
        return x + w.linear(raised, at + "linear2", c)

    def with_memory(self, grid, memory, past, frames, ages):
        """frames: rows of the table of times, ages: of pointers, parts of the longest time."""
        c, w = self.channels, self.w
        cells = grid.flatten(2).transpose(1, 2)
        places = sine_places(self.grid, c).to(cells)
        times = w(self.root + "maskmem_tpos_enc", TIMES, 1, 1, c)
        of_frames = [places + times[int(row)].reshape(1, 1, c) for row in frames]
        longest = 10000 ** (2 * (torch.arange(c // 2) // 2) / (c // 2))
        angles = ages[:, None] / longest
        known = w.linear(torch.cat((angles.sin(), angles.cos()), -1), self.root + "obj_ptr_tpos_proj", c)
        places_of_memory = torch.cat((*of_frames, known.repeat_interleave(self.slots, 0)[None]), 1)
        x = cells + 0.1 * places
        for i in range(self.layers):
            x = self.memory_layer(f"{self.root}transformer.encoder.layers.{i}.", x, cells, memory, past, places_of_memory)
        return w.norm(x, self.root + "transformer.encoder.norm")

    def decoder_attention(self, at, q, k, v, inner):
        w = self.w
        made = self.attention(w.linear(q, at + ".q_proj", inner), w.linear(k, at + ".k_proj", inner), w.linear(v, at + ".v_proj", inner), 8)
        return w.linear(made, at + ".out_proj", self.channels)

    def two_ways(self, at, tokens, cells, places):
        w, c, first = self.w, self.channels, tokens
        for i in range(2):
            name = f"{at}layers.{i}."
            q = tokens + first
            tokens = w.norm(tokens + self.decoder_attention(name + "self_attn", q, q, tokens, c), name + "norm1") if i else w.norm(self.decoder_attention(name + "self_attn", tokens, tokens, tokens, c), name + "norm1")
            tokens = w.norm(tokens + self.decoder_attention(name + "cross_attn_token_to_image", tokens + first, cells + places, cells, c // 2), name + "norm2")
            raised = w.linear(tokens, name + "mlp.lin1", self.inner).relu()
            tokens = w.norm(tokens + w.linear(raised, name + "mlp.lin2", c), name + "norm3")
            cells = w.norm(cells + self.decoder_attention(name + "cross_attn_image_to_token", cells + places, tokens + first, tokens, c // 2), name + "norm4")
        tokens = w.norm(tokens + self.decoder_attention(at + "final_attn_token_to_image", tokens + first, cells + places, cells, c // 2), at + "norm_final_attn")
        return tokens, cells

    def wave_places(self):
        waves = self.w(self.root + "image_pe_layer.positional_encoding_gaussian_matrix", 2, self.channels // 2)
        middles = (torch.arange(self.grid) + 0.5) / self.grid
        at = torch.stack((middles[None].expand(self.grid, -1), middles[:, None].expand(-1, self.grid)), -1)
        angles = 2 * math.pi * (2 * at - 1).to(waves) @ waves
        return torch.cat((angles.sin(), angles.cos()), -1).reshape(1, -1, self.channels)

    def see(self, hidden, memory, past, frames, ages, slots):
        w, c, m = self.w, self.channels, self.slots
        fine, middle, coarse = (self.level(hidden, i) for i in (2, 1, 0))
        cells = self.with_memory(coarse, memory, past, frames, ages)
        at = self.root + "sam_mask_decoder."
        used = slots[:, None]
        extra = used * w(self.root + "output_valid_embed", m, c) + (1 - used) * w(self.root + "output_invalid_embed", m, c)
        masks = w(at + "mask_tokens.weight", m * TASKS, c).reshape(m, TASKS, c) + extra[:, None]
        tokens = torch.cat((w(at + "obj_score_token.weight", m, c), w(at + "iou_token.weight", m, c), masks.flatten(0, 1)))[None]
        tokens, cells = self.two_ways(at + "transformer.", tokens, cells, self.wave_places())
        x = cells.transpose(1, 2).unflatten(2, (self.grid, self.grid))
        x = w.doubled(x, at + "output_upscaling.0", c // 4) + w.conv(middle, at + "conv_s1", c // 4, 1)
        x = F.gelu(w.norm2d(x, at + "output_upscaling.1"))
        x = F.gelu(w.doubled(x, at + "output_upscaling.3", c // 8) + w.conv(fine, at + "conv_s0", c // 8, 1))
        of_masks = tokens[0, 2 * m :].reshape(m, TASKS, c)
        codes = [w.head(of_masks[:, i], f"{at}output_hypernetworks_mlps.{i}", c, c // 8) for i in range(TASKS)]
        pointers = w.head(of_masks[:, 0], self.root + "obj_ptr_proj", c, c)[None]
        return {
            **{f"mask.{i}": torch.einsum("mc,chw->mhw", code, x[0])[None] for i, code in enumerate(codes)},
            "qualities": w.head(tokens[:, m : 2 * m], at + "iou_prediction_head", c, TASKS),
            "objects": w.head(tokens[:, :m], at + "pred_obj_score_head", c, 1),
            "pointers": pointers,
            "absent": self.absent(pointers),
        }

    def absent(self, pointers):
        return self.w.linear(pointers, self.root + "no_obj_ptr_linear", self.channels)

    def remember(self, hidden, masks, trusted, absent):
        """masks (1, M, 16 G, 16 G)."""
        w, c, m, at = self.w, self.channels, self.slots, self.root + "maskmem_backbone."
        grid = self.level(hidden, 0)
        x = torch.cat((masks, trusted.reshape(1, m, 1, 1).expand_as(masks)), 1)
        for i, out in enumerate(self.mask_channels()):
            x = w.conv(x, f"{at}mask_downsampler.encoder.{3 * i}", out, 3, stride=2, padding=1)
            x = F.gelu(w.norm2d(x, f"{at}mask_downsampler.encoder.{3 * i + 1}"))
        x = w.conv(x, at + "mask_downsampler.encoder.12", c, 1) + w.conv(grid, at + "pix_feat_proj", c, 1)
        for i in range(2):
            x = self.fuse(f"{at}fuser.layers.{i}.", x)
        x = x + (absent @ w(self.root + "no_obj_embed_spatial", m, c)).reshape(1, c, 1, 1)
        return {"memory": x.flatten(2).transpose(1, 2), "cells": grid.flatten(2).transpose(1, 2)}

    def mask_channels(self):
        return [16, 64, 256, 1024] if self.channels == 256 else [8, 16, 16, 32]

    def fuse(self, at, x):
        """By transformers' block, whose norm has another eps than ComfyUI's."""
        c = self.channels
        names = {"depthwise_conv.weight": ("dwconv.weight", (c, 1, 7, 7)), "depthwise_conv.bias": ("dwconv.bias", (c,)), "layer_norm.weight": ("norm.weight", (c,)), "layer_norm.bias": ("norm.bias", (c,)), "pointwise_conv1.weight": ("pwconv1.weight", (4 * c, c)), "pointwise_conv1.bias": ("pwconv1.bias", (4 * c,)), "pointwise_conv2.weight": ("pwconv2.weight", (c, 4 * c)), "pointwise_conv2.bias": ("pwconv2.bias", (c,)), "scale": ("gamma", (c,))}
        state = {own: self.w(at + name, *shape) for own, (name, shape) in names.items()}
        if self.w.device == "meta":
            return x
        block = video.Sam3TrackerVideoMemoryFuserCXBlock(Sam3TrackerVideoConfig(memory_fuser_embed_dim=c, memory_fuser_intermediate_dim=4 * c))
        block.load_state_dict(state)
        block.layer_norm.eps = 1e-5
        return block(x)

    def mask_logits(self, mask):
        """mask (1, 1, S, S)."""
        return self.w.conv(mask, self.root + "interactive_mask_downsample", 1, 4, stride=4)

    def pointer_weights(self):
        return self.w.head(torch.zeros(1, self.channels, device=self.w.device), self.root + "interactive_obj_ptr_proj", self.channels, self.channels)


def pointer(tracker, segmenter, hidden, logits):
    """Of a mask's logits (1, 1, 4 G, 4 G), by transformers' decoder: object, pointer, and that of no object."""
    fine, middle, coarse = models.features_of(segmenter, hidden)
    sparse, dense = segmenter.prompt_encoder(input_points=torch.zeros(1, 1, 1, 2), input_labels=-torch.ones(1, 1, 1, dtype=torch.int32), input_boxes=None, input_masks=logits)
    _, _, tokens, score = segmenter.mask_decoder(
        image_embeddings=coarse,
        image_positional_embeddings=segmenter.get_image_wide_positional_embeddings(),
        sparse_prompt_embeddings=sparse,
        dense_prompt_embeddings=dense,
        multimask_output=False,
        high_resolution_features=[fine, middle],
    )[:4]
    made = tracker.w.head(tokens[:, :, 0], tracker.root + "interactive_obj_ptr_proj", tracker.channels, tracker.channels)
    return {"object": score.reshape(1, 1, 1), "pointers": made, "absent": tracker.absent(made)}


def write(expected, at, inputs, outputs):
    for name, tensor in {**inputs, **outputs}.items():
        expected[at + name] = tensor.clone()


def parts(size, listed, expected):
    tracker, segmenter = Tracker(listed, size), models.segmenter_model("sam31", size, listed)
    g, c, m, at = size // models.PATCH, models.CHANNELS, 4, f"{size}."
    hidden = models.noise((1, g, g, 128), size)
    frames, ages = torch.tensor([6, 1, 0], dtype=torch.int32), torch.tensor([3.0, 1.0, 2.0, 0.5]) / 4
    seen = {
        "hidden": hidden,
        "memory": models.noise((1, 3 * g * g + 4 * m, c), size + 1),
        "past": models.noise((1, 3 * g * g, c), size + 2),
        "frames": frames,
        "ages": ages,
        "slots": torch.tensor([1.0, 1.0, 1.0, 0.0]),
    }
    write(expected, at + "tracker.", seen, tracker.see(**seen))
    masks = torch.nn.functional.interpolate(2 * torch.rand((1, m, 5, 5), generator=torch.Generator().manual_seed(size)) - 1, (16 * g, 16 * g), mode="bilinear", align_corners=False)
    told = {"hidden": hidden, "masks": masks, "trusted": torch.tensor([1.0, 0.0, 1.0, 0.0]), "absent": torch.tensor([[0.0, 1.0, 0.0, 1.0]])}
    made = tracker.remember(**told)
    write(expected, at + "memory.", {**told, "masks": masks.permute(0, 2, 3, 1)}, made)
    mask = (torch.nn.functional.interpolate(models.noise((1, 1, 4, 4), size + 4), (size, size), mode="bilinear") > 0).float()
    logits = tracker.mask_logits(mask)
    write(expected, at + "mask_logits.", {"mask": mask.permute(0, 2, 3, 1)}, {"logits": logits.permute(0, 2, 3, 1)})
    prompt = 4 * models.noise((1, 1, 4 * g, 4 * g), size + 3)
    none = {"points": torch.full((2, 2), 0.5 / size), "kinds": torch.tensor([4, 4], dtype=torch.int32)}
    write(expected, at + "pointer.", {"hidden": hidden, "mask": prompt.permute(0, 2, 3, 1), **none}, pointer(tracker, segmenter, hidden, prompt))


def true_file():
    """{name: shape} of SAM 3.1's checkpoint of true size: what transformers knows of it, and the tracker."""
    listed = models.true_file()
    with torch.device("meta"):
        tracker = Tracker(listed, 1008, slots=16, channels=256, inner=2048, layers=4, width=1024, device="meta")
        hidden, cells = torch.empty(1, 72, 72, 1024), 72 * 72
        tracker.see(hidden, torch.empty(1, cells + 16, 256), torch.empty(1, cells, 256), [0], torch.empty(1), torch.empty(16))
        tracker.remember(hidden, torch.empty(1, 16, 1152, 1152), torch.empty(16), torch.empty(1, 16))
        tracker.mask_logits(torch.empty(1, 1, 1008, 1008))
        tracker.pointer_weights()
    return listed


def save(out, shapes, expected):
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = []
        for model, tensors in shapes.items():
            rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in compressed(tensors).items())
            texts.append(f' "{model}": {{\n{rows}\n }}')
        file.write("{\n" + ",\n".join(texts) + "\n}\n")


def main(out):
    expected, listed = {}, {}
    for size in (112, 56):
        models.detector_model(size, listed)
        parts(size, listed, expected)
    shapes = {"sam31": {key: shape for key, shape in listed.items() if "convs.3." not in key}}
    save(out, shapes, expected)
    for name, tensor in expected.items():
        print(f"{name:28} {tuple(tensor.shape)} {tensor.float().std():.4g} {tensor.float().abs().max():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "sam3_tracker"))
