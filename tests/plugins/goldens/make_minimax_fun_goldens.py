"""Writes what PyTorch makes with tiny models of MiniMax H3 with a Fun ControlNet beside them.

    make_minimax_fun_goldens.py [OUT]       (default: minimax_fun/ beside this file)

Needs what make_minimax_goldens.py and make_h3_vae_goldens.py need, and Pillow. diffusers has no such ControlNet: its stream is written here as
ComfyUI runs it, over the layers of diffusers' H3. All weights follow from the names of their tensors (seeded_weights.py), so only
shapes are written, and what comes out:

    shapes.json             {ControlNet: {name of the tensor: shape}}: "fun" has two layers, behind both of the model, and hints of 49 channels, "fun_curve" the
                            same for "curve" of minimax/, "alone" one layer and hints of 24 channels
    one.png, two.png        pictures of 80 x 72
    expected.safetensors    "NAME.x" and so on are inputs of the model with ControlNets, "NAME.patch.N.hint" theirs, "NAME.out" and ".audio_out" outputs with a
                            row for each step. NAME is "whole" or "curve" and the clip; ".both" has two ControlNets, 0.7 and -0.4 times.
                            "RUN.video" and "RUN.audio" are the end of 3 steps of Euler's method of a video of 22 pictures, from the noise of seed 7
                            and the text "in.one.cross_attn"; RUN is "followed": both pictures as the video that is followed, 0.8 times;
                            "kept": the same, with a mask that is the red of both, and them in turned order behind it, in the first half;
                            "holes": that mask alone, by a ControlNet whose holes are the mean of pictures
"""

import json
import os
import sys

import torch
from diffusers.models.transformers.transformer_minimax_h3 import MiniMaxH3TransformerBlock
from diffusers.modular_pipelines.minimax_h3.before_denoise import patchify_video_latents
from PIL import Image
from safetensors.torch import save_file
from torch import nn

import make_h3_vae_goldens as autoencoders
import make_minimax_goldens as models
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
HEIGHT, WIDTH, PICTURES, FRAMES, SOUND, CELL = 64, 96, 22, 7, 37, 16
LATENT = 24
SIGMAS = [1.0, 0.95, 0.7, 0.0]
expected, shapes = {}, {}


class Control(nn.Module):
    """Beside a model: `hint` is what it reads, `strength` how much it counts."""

    def __init__(self, layers, channels, times, width=models.WIDTH, heads=models.HEADS, head=models.HEAD, inner=models.MLP):
        super().__init__()
        self.control_proj_in = nn.Linear(4 * channels, width)
        self.control_blocks = nn.ModuleList(MiniMaxH3TransformerBlock(width, heads, head, inner, times, 1e-5, 1e-5) for _ in range(layers))
        for i, block in enumerate(self.control_blocks):
            if i == 0:
                block.before_proj = nn.Linear(width, width)
            block.after_proj = nn.Linear(width, width)
        self.hint, self.strength = None, 1.0

    def begin(self, hidden, video):
        """video: the places of pictures' rows, those of references first, which are shown nothing."""
        told = patchify_video_latents(self.hint, (1, 2, 2))
        rows = torch.zeros(len(video), self.control_proj_in.in_features)
        rows[len(video) - len(told) :, : told.shape[1]] = told
        mixed = hidden.clone()
        mixed[:, video] = self.control_proj_in(rows)
        return self.control_blocks[0].before_proj(mixed) + hidden


def make_control(kind, layers, channels, times, is_curve=False):
    control = Control(layers, channels, times)
    listed, state = {}, {}
    for name, tensor in control.state_dict().items():
        if ".attn.to_k." in name or ".attn.to_v." in name:
            continue
        there, shape = models.original(name), tuple(tensor.shape)
        if ".attn.to_q." in name:
            there, shape = there.replace("to_q", "qkv_proj"), (3 * shape[0], *shape[1:])
        made = seeded_weights.seeded(there, shape)
        listed[there] = list(shape)
        if ".attn.to_q." in name:
            for part, third in zip("qkv", made.chunk(3)):
                state[name.replace("to_q", f"to_{part}")] = third
        else:
            state[name] = torch.cat(made.chunk(2)[::-1]) if ".ff.net.0.proj." in name else made
    control.load_state_dict(state)
    control.eval()
    if is_curve:
        for block in control.control_blocks:
            block.adaln_proj.linear.register_forward_pre_hook(lambda _, args: (models.unbent(args[0]),))
    shapes[kind] = listed
    return control


class Beside:
    """Puts ControlNets beside a model, each with the numbers of the layers behind which it adds, until remove()."""

    def __init__(self, model, controls):
        self.controls, self.now, self.streams, self.is_at_work = controls, None, [], True
        self.hooks = [model.register_forward_pre_hook(self.begin, with_kwargs=True), model.transformer_blocks[0].register_forward_pre_hook(self.first)]
        for i, block in enumerate(model.transformer_blocks):
            self.hooks.append(block.register_forward_hook(self.behind(i)))

    def begin(self, _, args, kwargs):
        self.now = kwargs["video_indices"], kwargs["audio_indices"]

    def first(self, _, args):
        self.streams = [control.begin(args[0], self.now[0]) for control, _ in self.controls] if self.is_at_work else []

    def behind(self, index):
        def hook(_, args, made):
            for k, stream in enumerate(self.streams):
                control, places = self.controls[k]
                if index not in places:
                    continue
                block = control.control_blocks[places.index(index)]
                self.streams[k] = block(stream, *args[1:])
                skip = block.after_proj(self.streams[k])
                skip[:, self.now[1]] = 0
                made = made + control.strength * skip
            return made

        return hook

    def remove(self):
        for hook in self.hooks:
            hook.remove()


def make_clip(model, kind, clip, controls, seed, grid, length, **more):
    beside = Beside(model, controls)
    for number, (control, _) in enumerate(controls):
        channels = control.control_proj_in.in_features // 4
        control.hint = expected[f"{kind}.{clip}.patch.{number}.hint"] = models.randn(seed + 50 + number, 1, channels, *grid)
    models.make_clip(model, kind, clip, seed, grid, length, **more)
    beside.remove()
    expected.update(models.expected)
    models.expected.clear()


def make_forwards():
    for kind, seed in (("whole", 200), ("curve", 300)):
        model = models.make(kind)
        fun = make_control("fun" if kind == "whole" else "fun_curve", 2, 2 * LATENT + 1, models.CURVE if kind == "curve" else 12, kind == "curve")
        fun.strength = 0.8
        both = [(fun, [0, 1])]
        make_clip(model, kind, "short", both, seed, (2, 4, 6), 8, batch=2)
        tags = torch.ones(models.TOKENS)
        tags[2:5] = 0
        places = torch.tensor([[t * 5 / 3, y, 8.0] for t in range(2) for y in (0.0, 16.0)])
        heard = torch.tensor([[float(t), 0, w] for w in (0.0, 16.0) for t in range(3)])
        shown = dict(tags=tags, references=(models.randn(seed + 30, 4, 96), places), sounds=(models.randn(seed + 31, 6, 32), heard))
        make_clip(model, kind, "shown", both, seed + 10, (7, 6, 2), 21, **shown)
        if kind == "whole":
            alone = make_control("alone", 1, LATENT, 12)
            fun.strength, alone.strength = 0.7, -0.4
            make_clip(model, kind, "both", [(fun, [0, 1]), (alone, [0])], seed + 20, (2, 6, 4), 8)


def picture(name):
    return (seeded_weights.seeded(name, (72, 80, 3)).mul(8).clamp(-1, 1) * 127.5 + 127.5).round() / 255


def fitted(frames):
    """(B, C, h, w) -> (PICTURES, C, HEIGHT, WIDTH), as ComfyUI's common_upscale: "bilinear", "center"."""
    frames = frames[torch.arange(PICTURES).clamp(max=len(frames) - 1)]
    height, width = frames.shape[2:]
    old, new = width / height, WIDTH / HEIGHT
    x, y = (round((width - width * (new / old)) / 2), 0) if old > new else (0, round((height - height * (old / new)) / 2) if old < new else 0)
    part = frames[:, :, y : height - y, x : width - x]
    return torch.nn.functional.interpolate(part, size=(HEIGHT, WIDTH), mode="bilinear")


def encoded(vae, frames):
    return autoencoders.encode(vae, frames.permute(0, 2, 3, 1))


def hint_of(vae, video, mask, source, has_means):
    hint = torch.zeros(1, LATENT, FRAMES, HEIGHT // CELL, WIDTH // CELL) if video is None else encoded(vae, fitted(video))
    if mask is None:
        return hint
    marks = fitted((mask[:, None] > 0.5).float())
    assert (marks - 0.5).abs().min() > 1e-3
    stays = 1 - (marks > 0.5).float()
    there = torch.zeros(PICTURES, 3, HEIGHT, WIDTH) if source is None else fitted(source)
    seen = there * stays
    if has_means:
        seen = seen + (1 - stays) * autoencoders.MEAN.view(1, 3, 1, 1)
    cells = torch.nn.functional.interpolate(stays[:, 0][None, None], size=hint.shape[2:], mode="trilinear", align_corners=False)
    return torch.cat([hint, cells, encoded(vae, seen)], dim=1)


def make_run(name, model, control, hint, strength, lowest=0.0):
    """lowest: the level below which the ControlNet rests."""
    control.hint, control.strength = hint, strength
    beside = Beside(model, [(control, [0, 1])])
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(1, LATENT, FRAMES, HEIGHT // CELL, WIDTH // CELL, generator=generator)
    audio = torch.randn(1, 32, 2, SOUND, generator=generator)
    for here, there in zip(SIGMAS, SIGMAS[1:]):
        beside.is_at_work = here >= lowest
        heard, next_heard = models.sound_level(here), models.sound_level(there)
        out, audio_out, _, _ = models.velocities(model, x, audio, expected["in.one.cross_attn"], (here, heard))
        x, audio = x + (there - here) * out, audio + (next_heard - heard) * audio_out
    beside.remove()
    expected[f"{name}.video"], expected[f"{name}.audio"] = x, audio


def make_runs(out):
    both = torch.stack([picture("fun.one"), picture("fun.two")])
    for name, one in zip(("one", "two"), both):
        Image.fromarray((one * 255).round().to(torch.uint8).numpy()).save(os.path.join(out, name + ".png"))
    expected["in.one.cross_attn"] = models.randn(92, 1, models.TOKENS, models.TEXT)
    model, (vae, _) = models.make("whole"), autoencoders.make()
    fun = make_control("fun", 2, 2 * LATENT + 1, 12)
    video, mask = both.permute(0, 3, 1, 2), both[..., 0]
    half = models.shifted(0.5, 12)
    make_run("followed", model, fun, hint_of(vae, video, None, None, False), 0.8)
    make_run("kept", model, fun, hint_of(vae, video, mask, video.flip(0), False), 1.2, half)
    make_run("holes", model, fun, hint_of(vae, None, mask, None, True), 1.0)


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "minimax_fun")
    os.makedirs(out, exist_ok=True)
    make_forwards()
    make_runs(out)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(listed) for kind, listed in shapes.items()}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:32} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main()
