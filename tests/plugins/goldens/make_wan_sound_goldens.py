"""Writes what PyTorch makes with tiny models of Wan 2.2 S2V, and videos that ComfyUI's nodes would have them draw.

    make_wan_sound_goldens.py [OUT]        (default: this folder, in which it writes wan_sound/ and wan_sound_nodes/)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. diffusers has no S2V: the module
below is its Wan with what S2V has besides, written from the publishers' tensors and formulas as ComfyUI runs them. All weights
follow from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    wan_sound/
    shapes.json             {"talk": {name of the tensor in the publishers' files: shape; or name that its numbers follow from:
                            [shape, name of the tensor]}}; "{0-3}" stands for each of these numbers
    expected.safetensors    "talk.CLIP.x" is an input, "talk.CLIP.out" an output with a row for each step, of the clips "short",
                            "long", "small" and "odd", which has an odd side and nothing but a sound; "without.INPUT.out" is
                            "small" without that input
    wan_sound_nodes/
    shapes.json             "flow" has the latents of published models and heads of 128
    expected.safetensors    "waveform" is a sound at 16 kHz, "pictures" six of 8 x 10 pixels, which the nodes are given;
                            "in.one.cross_attn" and "in.two.cross_attn" are texts. "first.heard" and "next.heard" are every
                            7th number of the states that the nodes make of what "stable" of sound_encoders/ hears, for 8
                            moments each, "motion" every 61st of the latent of the last two pictures behind 71 grey ones,
                            "shown" and "followed" the latents of the first picture, and of the first three behind which all
                            is 0 to the model. "first.latent" is the end of 3 steps of Euler's method with guidance 3 by
                            "flow" of the noise of seed 7, "next.latent" that of the part behind it, of the noise of seed 8,
                            "begun.latent" the first one with the earlier frames of "motion" and without the sound.
"""

import math
import os
import sys

import torch
import torch.nn.functional as F
from diffusers import WanTransformer3DModel

import make_sound_encoder_goldens as sounds
import make_umt5_goldens as umt5
import make_wan_goldens as wan
import make_wan_vace_goldens as vace
import make_workflow_goldens
import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = (0, 4, 8, 12, 16, 20, 24, 27, 30, 33, 36, 39)
LEVELS = torch.tensor([0.9, 0.125])
FRAME, SIDE, EARLIER, PIXELS, GREY = 4, 64, 19, 73, 0.5


def causal(filters, x):
    """x (B, C, S), completed by its first state twice."""
    return filters.conv(F.pad(x, (2, 0), mode="replicate"))


def filters(inner, out, step=1):
    made = torch.nn.Module()
    made.conv = torch.nn.Conv1d(inner, out, 3, stride=step)
    return made


class Hearing(torch.nn.Module):
    """states (B, S, K, E) -> all of a frame's sound (B, F, D), and its tokens (B, F, parts + 1, D)."""

    def __init__(self, states, numbers, parts, width):
        super().__init__()
        self.parts = parts
        self.weights = torch.nn.Parameter(torch.empty(1, states, 1, 1))
        self.encoder = torch.nn.Module()
        self.encoder.conv1_local = filters(numbers, width // 4 * parts)
        self.encoder.conv1_global = filters(numbers, width // 4)
        self.encoder.conv2 = filters(width // 4, width // 2, 2)
        self.encoder.conv3 = filters(width // 2, width, 2)
        self.encoder.final_linear = torch.nn.Linear(width, width)
        self.encoder.padding_tokens = torch.nn.Parameter(torch.empty(1, 1, 1, width))

    def forward(self, states):
        shares = F.silu(self.weights)
        mean = (states * shares).sum(1) / shares.sum()
        e = self.encoder

        def rest(x):
            for step, following in ((0, e.conv2), (1, e.conv3), (2, None)):
                x = F.silu(F.layer_norm(x.transpose(1, 2), (x.shape[1],), eps=1e-6)).transpose(1, 2)
                if following is not None:
                    x = causal(following, x)
            return x.transpose(1, 2)

        items = len(states)
        apart = rest(causal(e.conv1_local, mean).unflatten(1, (self.parts, -1)).flatten(0, 1))
        apart = apart.unflatten(0, (items, self.parts)).transpose(1, 2)
        tokens = torch.cat([apart, e.padding_tokens.expand(items, apart.shape[1], 1, -1)], 2)
        return e.final_linear(rest(causal(e.conv1_global, mean))), tokens


class Injector(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (torch.nn.Linear(width, width) for _ in range(4))
        self.norm_q, self.norm_k = (torch.nn.RMSNorm(width, eps=1e-6) for _ in range(2))

    def forward(self, x, seen):
        parts = self.norm_q(self.q(x)), self.norm_k(self.k(seen)), self.v(seen)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        return self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Shift(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, 2 * width)

    def forward(self, x, told):
        shift, scale = self.linear(F.silu(told))[:, None].chunk(2, 2)
        return F.layer_norm(x, (x.shape[2],), eps=1e-5) * (1 + scale) + shift


class Talk(torch.nn.Module):
    def __init__(self, channels, heads, head, layers, injectors, states, numbers, parts):
        super().__init__()
        self.model = WanTransformer3DModel(
            num_attention_heads=heads,
            attention_head_dim=head,
            in_channels=channels,
            out_channels=channels,
            text_dim=wan.TEXT,
            freq_dim=32,
            ffn_dim=80,
            num_layers=layers,
            rope_max_seq_len=32,
        )
        wan.own_processor(self.model)
        width, self.head = heads * head, head
        self.casual_audio_encoder = Hearing(states, numbers, parts, width)
        self.audio_injector = torch.nn.Module()
        self.audio_injector.injector = torch.nn.ModuleList(Injector(width, heads) for _ in range(injectors))
        self.audio_injector.injector_adain_layers = torch.nn.ModuleList(Shift(width) for _ in range(injectors))
        self.cond_encoder = torch.nn.Conv3d(channels, width, (1, 2, 2), stride=(1, 2, 2))
        self.trainable_cond_mask = torch.nn.Embedding(3, width)
        self.frame_packer = torch.nn.Module()
        for name, taps in (("proj", 1), ("proj_2x", 2), ("proj_4x", 4)):
            sides = (taps, 2 * taps, 2 * taps)
            setattr(self.frame_packer, name, torch.nn.Conv3d(channels, width, sides, stride=sides))

    def table(self, places):
        """cos and sin, each number twice, of (frame, row, column)."""
        side = self.head // 6 * 2
        angles = []
        for axis, dim in enumerate((self.head - 2 * side, side, side)):
            waves = 10000.0 ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
            angles.append(places[:, axis, None].double() * waves)
        angles = torch.cat(angles, 1).repeat_interleave(2, 1)[None, :, None]
        return angles.cos().float(), angles.sin().float()

    def forward(self, x, times, text, heard=None, reference=None, motion=None, followed=None):
        model, items = self.model, len(x)
        frames, rows, columns = x.shape[2], x.shape[3] // 2, x.shape[4] // 2

        def grid(start, count, made=None):
            """Rows and columns of fewer tokens are spread over those of a whole frame."""
            down, across = (rows, columns) if made is None else made.shape[3:]
            axes = (
                torch.arange(start, start + count).float(),
                torch.linspace(0, rows - 1, down),
                torch.linspace(0, columns - 1, across),
            )
            return torch.stack(torch.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)

        def flat(made):
            return made.flatten(2).transpose(1, 2)

        kinds = self.trainable_cond_mask.weight
        video = model.patch_embedding(x)
        if followed is not None:
            video = video + self.cond_encoder(followed)
        tokens, places = [flat(video) + kinds[0]], [grid(0, frames)]
        own = tokens[0].shape[1]
        if reference is not None:
            tokens.append(flat(model.patch_embedding(reference)) + kinds[1])
            places.append(grid(max(30, frames + 9), reference.shape[2]))
        if motion is not None:
            motion = F.pad(motion[:, :, -EARLIER:], (0, 0, 0, 0, max(EARLIER - motion.shape[2], 0), 0))
            pack = self.frame_packer
            far, middle, near = motion.split((16, 2, 1), 2)
            for made, start in ((pack.proj(near), -1), (pack.proj_2x(middle), -3), (pack.proj_4x(far), -19)):
                tokens.append(flat(made) + kinds[2])
                places.append(grid(start, made.shape[2], made))
        hidden = torch.cat(tokens, 1)
        rotary = self.table(torch.cat(places))

        embed = model.condition_embedder
        known = lambda level: embed.time_embedder(embed.timesteps_proj(level))  # noqa: E731
        time, clean = known(times), known(torch.zeros_like(times))
        told = [embed.time_proj(embed.act_fn(level)).unflatten(1, (6, -1))[:, None] for level in (time, clean)]
        told = torch.cat([told[0].expand(-1, own, -1, -1), told[1].expand(-1, hidden.shape[1] - own, -1, -1)], 1)
        text = embed.text_embedder(text)
        whole = None if heard is None else self.casual_audio_encoder(heard[..., : FRAME * frames])
        injector = self.audio_injector
        for i, block in enumerate(model.blocks):
            hidden = block(hidden, text, told, rotary)
            if whole is None or i not in LAYERS[: len(injector.injector)]:
                continue
            k = LAYERS.index(i)
            asking = hidden[:, :own].unflatten(1, (frames, -1)).flatten(0, 1)
            asking = injector.injector_adain_layers[k](asking, whole[0].flatten(0, 1))
            seen = injector.injector[k](asking, whole[1].flatten(0, 1))
            hidden = torch.cat([hidden[:, :own] + seen.reshape(items, own, -1), hidden[:, own:]], 1)
        shift, scale = (model.scale_shift_table + time[:, None]).chunk(2, 1)
        out = model.proj_out(model.norm_out(hidden[:, :own]) * (1 + scale) + shift)
        out = out.reshape(items, frames, rows, columns, 2, 2, -1)
        return out.permute(0, 6, 1, 2, 4, 3, 5).reshape(items, -1, frames, 2 * rows, 2 * columns)


def seed_of(name):
    """Shares of states are around 1, so that their sum is far from 0."""
    return "norm.casual_audio_encoder.weight" if name == "casual_audio_encoder.weights" else name


def original(name):
    return wan.original(name.removeprefix("model.")) if name.startswith("model.") else name


def make(**sizes):
    model = Talk(**sizes)
    listed, state = {}, {}
    for name, tensor in model.state_dict().items():
        there = original(name)
        seed, shape = seed_of(there), list(tensor.shape)
        listed[seed] = [shape, there] if seed != there else shape
        state[name] = seeded_weights.seeded(seed, tuple(shape))
    model.load_state_dict(state)
    model.eval()
    return model, listed


def velocity(model, x, level, context, **given):
    items = len(x)
    given = {name: tensor.expand(items, *tensor.shape[1:]) for name, tensor in given.items()}
    given = {name: tensor if name == "heard" else vace.even(tensor) for name, tensor in given.items()}
    out = model(vace.even(x), (1000 * level).expand(items), context.expand(items, -1, -1), **given)
    return out[..., : x.shape[3], : x.shape[4]]


def make_clip(model, expected, clip, seed, frames, height, width, earlier, batch=1, rows=1, more=0):
    channels, states, numbers = 2, 3, 10
    x = wan.randn(seed, batch, channels, frames, height, width)
    context = wan.randn(seed + 1, 1, wan.TOKENS, wan.TEXT)
    given = {"heard": wan.randn(seed + 2, rows, states, numbers, FRAME * frames + more)}
    if earlier:
        given["reference"] = wan.randn(seed + 3, rows, channels, 1, height, width)
        given["motion"] = wan.randn(seed + 4, rows, channels, earlier, height, width)
        given["followed"] = wan.randn(seed + 5, 1, channels, frames, height, width)
    at = f"talk.{clip}."
    expected.update({at + name: tensor for name, tensor in given.items()})
    expected.update({at + "x": x, at + "context": context, at + "timestep": 1000 * LEVELS})

    def out(given):
        return torch.stack([velocity(model, x, level, context, **given) for level in LEVELS])

    expected[at + "out"] = out(given)
    if clip == "small":
        for left in given:
            made = out({name: tensor for name, tensor in given.items() if name != left})
            expected[f"without.{left}.out"] = made
            print(f"without {left}: differs by {(made - expected[at + 'out']).norm() / made.norm():.3f}")


def moments(states, first, count):
    """ComfyUI's: 50 states a second become 30, of which each of 16 frames a second takes the nearest; (1, S, K, count)."""
    steps = int(states.shape[1] / 50 * 30)
    stepped = F.interpolate(states.transpose(1, 2), size=steps, align_corners=True, mode="linear")
    end = (int(steps / (count * 30 / 16)) + 1) * count
    made = torch.zeros(1, *stepped.shape[:2], count)
    for i in range(first, min(first + count, end)):
        step = round(i * 30 / 16)  # halves to even ones
        if step < steps:
            made[0, :, :, i - first] = stepped[:, :, step]
    return made


def draw(model, expected, seed, one, two):
    x = wan.randn(seed, 1, wan.CHANNELS, 2, SIDE // 8, SIDE // 8)
    texts = [expected["in.one.cross_attn"], expected["in.two.cross_attn"]]
    levels = umt5.simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (velocity(model, x, torch.tensor(here), text, **given) for text, given in zip(texts, (one, two)))
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_nodes(expected):
    """Two parts of five frames."""
    expected["in.one.cross_attn"], expected["in.two.cross_attn"] = (wan.randn(seed, 1, wan.TOKENS, wan.TEXT) for seed in (92, 93))
    expected["pictures"] = torch.rand(6, 8, 10, 3, generator=torch.Generator().manual_seed(21))
    time = torch.arange(900) / 16000
    wave = 0.4 * torch.sin(2 * math.pi * 310 * time) + 0.2 * torch.sin(2 * math.pi * 97 * time * (1 + 9 * time))
    expected["waveform"] = wave[None, None]
    heard = sounds.wav2vec2(True)((wave - wave.mean())[None] / (wave.var() + 1e-7).sqrt(), output_hidden_states=True)
    layers = list(heard.hidden_states)
    layers[-1] = heard.last_hidden_state
    states = torch.cat(layers)
    parts = [moments(states, first, 8) for first in (0, 8)]
    expected["first.heard"], expected["next.heard"] = (part.flatten()[::7] for part in parts)

    pictures = expected["pictures"].movedim(-1, 1)
    video = F.interpolate(pictures[..., 1:9], size=(SIDE, SIDE), mode="bilinear")
    vae = make_workflow_goldens.make_vae()
    encode = lambda frames: vae.encode(2 * frames.transpose(0, 1)[None] - 1).latent_dist.mean  # noqa: E731
    shown = encode(video[:1])
    followed = torch.zeros(1, wan.CHANNELS, 2, SIDE // 8, SIDE // 8)
    followed[:, :, :1] = umt5.scaled(encode(video[:1]))  # of three pictures the first is a whole frame of the latent
    nothing = umt5.MEANS.expand(1, -1, 2, SIDE // 8, SIDE // 8).clone()
    nothing[:, :, :1] = encode(video[:1])
    grey = torch.full((PIXELS, 3, SIDE, SIDE), GREY)
    grey[-2:] = video[4:]
    motion = encode(grey)
    expected |= {"shown": shown, "followed": nothing, "motion": motion.flatten()[::61]}

    model, listed = make(channels=wan.CHANNELS, heads=2, head=128, layers=2, injectors=1, states=len(states), numbers=states.shape[2], parts=4)
    given = {"reference": umt5.scaled(shown), "followed": followed}

    def both(**more):
        """For the negative text the sound is silent."""
        silent = {name: 0 * tensor if name == "heard" else tensor for name, tensor in more.items()}
        return given | more, given | silent

    first = draw(model, expected, 7, *both(heard=parts[0]))
    expected["first.latent"] = first
    expected["next.latent"] = draw(model, expected, 8, *both(heard=parts[1], motion=first))
    expected["begun.latent"] = draw(model, expected, 7, *both(motion=umt5.scaled(motion)))
    return listed


def main(out):
    model, listed = make(channels=2, heads=3, head=16, layers=5, injectors=2, states=3, numbers=10, parts=3)
    talk, nodes = {}, {}
    make_clip(model, talk, "short", 10, 2, 8, 10, 7, batch=2)
    make_clip(model, talk, "long", 20, 3, 10, 8, 5, rows=1, more=2)
    make_clip(model, talk, "small", 30, 1, 8, 8, 21)
    make_clip(model, talk, "odd", 40, 2, 5, 7, 0, batch=2, rows=2)
    wan.write(os.path.join(out, "wan_sound"), {"talk": listed}, talk)
    wan.write(os.path.join(out, "wan_sound_nodes"), {"flow": make_nodes(nodes)}, nodes)
    for name, tensor in (talk | nodes).items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else HERE)
