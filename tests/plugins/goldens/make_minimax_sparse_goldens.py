"""Writes what tiny models of FastH3 make with video sparse attention.

    make_minimax_sparse_goldens.py [OUT]       (default: minimax_sparse/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. diffusers has MiniMax H3 without sparse attention, so the attention of its
layers is one of our own here, by the paper (arXiv 2505.13389) and as ComfyUI tiles: tokens in cubes of 4 x 4 x 4, those before the video in tiles of 64,
segment by segment; of a cube's queries every token before the video is seen, the cubes next to it in order, and those that score highest; the means of
all tiles and cubes attend to each other besides, and a gate tells how much of that is added. Which cubes are seen hangs on no rounding: the scores of the
last that is seen and of the first that is not are apart. Weights and inputs are those of make_minimax_goldens.py.

    expected.safetensors    "CLIP.x", ".audio" and so on are inputs, "CLIP.KIND.out" and ".audio_out" outputs with a row for each level: "all" by both
                            layers, "second" by the second alone, "plain" without gates; "wide" has cubes over all edges, "tall" references
                            of several pieces; "flow.video", "flow.audio" are the end of steps of Euler's method, of which those
                            between two levels are sparse; "heads.video", "heads.audio" that of dense steps by output heads
                            for parallel decoding, of which a step takes those that it goes past
"""

import math
import os
import sys

import torch
from safetensors.torch import save_file

import make_minimax_goldens as h3
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = [0.9, 0.4]
SHARE, HEADS = 0.3, 8
LENGTH = 37  # of the sound of 22 pictures
NEAREST = 2e-5  # that two scores may come to each other where one is seen
expected = {}


def kept(cubes):
    return max(1, min(cubes - 1, round(SHARE * cubes))) if cubes > 1 else 0


class Layout:
    """Of a clip: its tokens, in groups of which means are made. segments: of the tokens before the video, their places."""

    def __init__(self, segments, video, grid):
        self.tiles = [part for segment in segments for part in segment.split(64)]
        frames, rows, columns = grid
        numbers = torch.arange(len(video)).reshape(grid)
        self.cubes = [
            video[numbers[t : t + 4, y : y + 4, x : x + 4].flatten()] for t in range(0, frames, 4) for y in range(0, rows, 4) for x in range(0, columns, 4)
        ]

    def groups(self):
        return self.tiles + self.cubes


def attend(q, k, v, layout, gate):
    """q, k, v (T, H, d), gate (T, H, d) or None -> (T, H, d)."""
    tokens, heads, width = q.shape
    groups, cubes = layout.groups(), layout.cubes
    mean = lambda x: torch.stack([x[group].mean(0) for group in groups])
    means = [mean(x) for x in (q, k, v)]
    first = len(layout.tiles)
    out = torch.empty_like(q)
    for head in range(heads):
        score = means[0][first:, head] @ means[1][first:, head].T
        count = kept(len(cubes))
        allowed = torch.zeros(tokens, tokens, dtype=torch.bool)
        for tile in layout.tiles:
            allowed[tile, :] = True
            allowed[:, tile] = True
        for i, cube in enumerate(cubes):
            ranked = score[i].sort(descending=True)
            if count:
                assert ranked.values[count - 1] - ranked.values[count] > NEAREST * score.abs().max()
            seen = set(ranked.indices[:count].tolist()) | {j for j in (i - 1, i, i + 1) if 0 <= j < len(cubes)}
            for j in seen:
                allowed[cube[:, None], cubes[j][None, :]] = True
        weights = (q[:, head] @ k[:, head].T / math.sqrt(width)).masked_fill(~allowed, -math.inf).softmax(-1)
        out[:, head] = weights @ v[:, head]
        if gate is not None:
            coarse = (means[0][:, head] @ means[1][:, head].T / math.sqrt(width)).softmax(-1) @ means[2][:, head]
            for number, group in enumerate(groups):
                out[group, head] += gate[group, head] * coarse[number]
    return out


class Sparse:
    """A processor of diffusers' attention."""

    def __init__(self, gate):
        self.gate, self.layout = gate, None

    def __call__(self, attn, hidden_states, rotary_emb=None, attention_mask=None):
        from diffusers.models.transformers.transformer_minimax_h3 import _apply_rotary_emb

        def split(x):
            return x.unflatten(-1, (attn.heads, -1))

        q, k, v = attn.norm_q(split(attn.to_q(hidden_states))), attn.norm_k(split(attn.to_k(hidden_states))), split(attn.to_v(hidden_states))
        q, k = _apply_rotary_emb(q, *rotary_emb), _apply_rotary_emb(k, *rotary_emb)
        gate = None if self.gate is None else split(hidden_states @ self.gate.T)[0]
        return attn.to_out[0](attend(q[0], k[0], v[0], self.layout, gate).flatten(1)[None])


def gate_of(layer):
    return seeded_weights.seeded(f"blocks.{layer}.attn.to_gate_compress.weight", (h3.HEADS * h3.HEAD, h3.WIDTH))


class Switched:
    """The model with sparse layers; layouts follow from its calls. pieces: lengths of the references, of sounds too."""

    def __init__(self, model, grid, length, pieces=((), ())):
        self.model, self.grid, self.length, self.pieces = model, grid, length, pieces
        self.processors = []
        self.dense = [block.attn.processor for block in model.transformer_blocks]
        model.register_forward_pre_hook(self.look, with_kwargs=True)

    def look(self, _, args, kwargs):
        count = math.prod(self.grid)
        video, sound, text = kwargs["video_indices"], kwargs["audio_indices"], kwargs["text_indices"]
        shown, heard = video[: len(video) - count], sound[: len(sound) - 2 * self.length]
        pieces = [list(one) for one in self.pieces]
        segments = [text, *(shown.split(pieces[0]) if len(shown) else ()), *(heard.split(pieces[1]) if len(heard) else ()), sound[len(heard) :]]
        for processor in self.processors:
            processor.layout = Layout(segments, video[len(shown) :], self.grid)
        return args, kwargs

    def use(self, layers, gated=True):
        self.processors = []
        for number, block in enumerate(self.model.transformer_blocks):
            block.attn.processor = self.dense[number]
            if number in layers:
                block.attn.processor = Sparse(gate_of(number) if gated else None)
                self.processors.append(block.attn.processor)


KINDS = {"all": ((0, 1), True), "second": ((1,), True), "plain": ((0, 1), False)}


def make_clip(clip, kinds, seed, grid, length, text, pieces=((), ()), **more):
    model = h3.make("whole")
    switched = Switched(model, (grid[0], grid[1] // 2, grid[2] // 2), length, pieces)
    x, audio, context = h3.randn(seed, 1, 24, *grid), h3.randn(seed + 1, 1, 32, 2, length), h3.randn(seed + 2, 1, text, h3.TEXT)
    heard = [h3.sound_level(level) for level in LEVELS]
    ones, none = torch.ones(len(LEVELS)), torch.zeros(len(LEVELS))
    inputs = {"x": x, "audio": audio, "timestep": torch.tensor(LEVELS), "sound_timestep": torch.tensor(heard), "sound_carry": ones, "sound_kept": none, "sound_gain": ones, "context": context}
    if "references" in more:
        inputs["references"], inputs["reference_positions"] = more["references"][0][None], more["references"][1]
        inputs["sound_references"], inputs["sound_reference_positions"] = more["sounds"][0][None], more["sounds"][1]
        for name, lengths in zip(("reference_pools", "sound_reference_pools"), pieces):
            inputs[name] = pools(lengths)
    for name, tensor in inputs.items():
        expected[f"{clip}.{name}"] = tensor
    for kind in kinds:
        switched.use(*KINDS[kind])
        made = [h3.velocities(model, x, audio, context, levels, **more) for levels in zip(LEVELS, heard)]
        expected[f"{clip}.{kind}.out"], expected[f"{clip}.{kind}.audio_out"] = (torch.stack([one[i] for one in made]) for i in (0, 1))


def pools(lengths):
    """A row for each tile of each piece."""
    rows, at = [], 0
    for length in lengths:
        for begin in range(0, length, 64):
            row, count = torch.zeros(sum(lengths)), min(64, length - begin)
            row[at + begin : at + begin + count] = 1 / count
            rows.append(row)
        at += length
    return torch.stack(rows)


def make_flow():
    """As make_minimax_goldens.py's, over a latent of several cubes; the steps at 0.95 and 0.7 are sparse, with the gates of the first layer alone."""
    model = h3.make("whole")
    switched = Switched(model, (7, 6, 9), LENGTH)
    generator = torch.Generator().manual_seed(7)
    x, audio = torch.randn(1, 24, 7, 12, 18, generator=generator), torch.randn(1, 32, 2, LENGTH, generator=generator)
    expected["in.one.cross_attn"] = context = h3.randn(92, 1, h3.TOKENS, h3.TEXT)
    sigmas = [1.0, 0.95, 0.7, 0.2, 0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        switched.use((0, 1) if here in (0.95, 0.7) else ())
        heard, next_heard = h3.sound_level(here), h3.sound_level(there)
        out, audio_out, _, _ = h3.velocities(model, x, audio, context, (here, heard))
        x, audio = x + (there - here) * out, audio + (next_heard - heard) * audio_out
    expected["flow.video"], expected["flow.audio"] = x, audio


def make_heads():
    """As make_minimax_goldens.py's flow, by heads of parallel decoding: the first is whole, the others are what they differ from it by."""
    model = h3.make("whole")
    generator = torch.Generator().manual_seed(7)
    x, audio = torch.randn(1, 24, 2, 4, 6, generator=generator), torch.randn(1, 32, 2, 8, generator=generator)
    context = h3.randn(92, 1, h3.TOKENS, h3.TEXT)
    sigmas = [1.0, 0.95, 0.7, 0.0]
    places = [round((1 - sigma / (12 - 11 * sigma)) * HEADS) for sigma in sigmas]
    banks = []
    for module, shift in ((model.proj_out, 12), (model.audio_proj_out, 3)):
        name = "video_out" if module is model.proj_out else "audio_out"
        rows, width = module.weight.shape
        weight, bias = seeded_weights.seeded(f"final_layer.{name}.weight", (HEADS * rows, width)), seeded_weights.seeded(f"final_layer.{name}.bias", (HEADS * rows,))
        banks.append((module, shift, weight.reshape(HEADS, rows, width), bias.reshape(HEADS, rows)))
    grid = torch.linspace(1, 0, HEADS + 1, dtype=torch.float64)
    for here, there, begin, end in zip(sigmas, sigmas[1:], places, places[1:]):
        begin = min(begin, HEADS - 1)
        end = max(end, begin + 1)
        for module, shift, weight, bias in banks:
            lengths = (1 - h3.shifted(grid, shift)).diff()[begin:end]
            parts = (lengths / lengths.sum()).float()
            module.weight.copy_(weight[0] + sum(parts[i - begin] * weight[i] for i in range(max(begin, 1), end)))
            module.bias.copy_(bias[0] + sum(parts[i - begin] * bias[i] for i in range(max(begin, 1), end)))
        heard, next_heard = h3.sound_level(here), h3.sound_level(there)
        out, audio_out, _, _ = h3.velocities(model, x, audio, context, (here, heard))
        x, audio = x + (there - here) * out, audio + (next_heard - heard) * audio_out
    expected["heads.video"], expected["heads.audio"] = x, audio


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "minimax_sparse")
    os.makedirs(out, exist_ok=True)
    make_clip("wide", ("all", "plain"), 210, (9, 6, 18), 40, 70)
    places = torch.tensor([[float(i // 10), float(i % 10), 3.0] for i in range(80)])
    heard = torch.tensor([[float(t), 0, w] for w in (0.0, 16.0) for t in range(7)])
    make_clip(
        "tall", ("all", "second"), 220, (5, 18, 4), 9, 5, pieces=((70, 10), (6, 8)), references=(h3.randn(221, 80, 96), places), sounds=(h3.randn(222, 14, 32), heard)
    )
    make_flow()
    make_heads()
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
