"""Writes what diffusers makes with tiny models of MiniMax H3.

    make_minimax_goldens.py [OUT]       (default: minimax/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the single file: shape}}: "text" is the encoder, "whole" as published, "curve" with a table of
                            the time's embeddings in the place of the network that makes them; "{0-1}" stands for each of
                            these numbers
    expected.safetensors    "MODEL.CLIP.x", ".audio" and so on are inputs, "MODEL.CLIP.out" and ".audio_out" outputs with a row for
                            each step, of the clips "short" and "long"; "keyed" has two keyframes that the text shows, too, "shown"
                            references of video and sound;
                            "flow.video", "flow.audio" are the end of 3 steps of Euler's method by "whole", of the text "in.one.cross_attn"
                            and the noise of seed 7, drawn for the video, then for the audio: both go by the video's levels, the audio by
                            its velocity times how fast its own level changes with them; "moved" with other shifts;
                            "text.states" is what the pipeline reads of the prompt of workflows/
"""

import json
import os
import sys

import torch
from diffusers.models.transformers.transformer_minimax_h3 import MiniMaxH3Transformer3DModel
from diffusers.modular_pipelines.minimax_h3.before_denoise import MiniMaxH3PrepareLayoutStep, MiniMaxH3SetTimestepsStep, patchify_video_latents
from safetensors.torch import load_file, save_file
from transformers import Qwen3VLConfig, Qwen3VLModel

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = [0.9, 0.55, 0.125]
TEXT, TOKENS, WIDTH, HEADS, HEAD, MLP, GRID, CURVE = 40, 9, 48, 3, 20, 56, 65, 8
expected, shapes = {}, {}
RENAMED = {
    "token_refiner.refiner_blocks.": "token_refiner.blocks.",
    "transformer_blocks.": "blocks.",
    "time_embedder.linear_1.": "time_embedder.proj_in.",
    "time_embedder.linear_2.": "time_embedder.proj_out.",
    "audio_proj_in.": "audio_patch_proj.",
    "proj_in.": "video_patch_proj.",
    "context_embedder.": "condition_proj.",
    "norm_out.norm.": "final_layer.norm.",
    "norm_out.linear.": "final_layer.adaln_proj.linear.",
    "audio_proj_out.": "final_layer.audio_out.",
    "proj_out.": "final_layer.video_out.",
}
PARTS = {".attn.norm_q.": ".attn.q_norm.", ".attn.norm_k.": ".attn.k_norm.", ".attn.to_out.0.": ".attn.out_proj.", ".ff.net.0.proj.": ".mlp.fc1.", ".ff.net.2.": ".mlp.fc2."}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The name in single files of a tensor of MiniMaxH3Transformer3DModel."""
    for here, there in RENAMED.items():
        if name.startswith(here):
            name = there + name[len(here) :]
            break
    for here, there in PARTS.items():
        name = name.replace(here, there)
    return name


def make(kind):
    """As a single file has it: queries, keys and values in one tensor, the MLP's gate first."""
    model = MiniMaxH3Transformer3DModel(
        num_attention_heads=HEADS,
        attention_head_dim=HEAD,
        hidden_size=WIDTH,
        num_layers=2,
        num_refiner_layers=2,
        ffn_dim=MLP,
        text_dim=TEXT,
        freq_dim=16,
        time_embed_hidden_dim=24,
        time_embed_dim=CURVE if kind == "curve" else 12,
        rope_freq_dim=2,
    )
    listed, state = {}, {}
    for name, tensor in model.state_dict().items():
        if ".attn.to_q." in name:
            fused, shape = original(name).replace("to_q", "qkv_proj"), (3 * HEADS * HEAD, tensor.shape[1])
            listed[fused] = list(shape)
            for part, third in zip("qkv", seeded_weights.seeded(fused, shape).chunk(3)):
                state[name.replace("to_q", f"to_{part}")] = third
        elif ".attn.to_k." in name or ".attn.to_v." in name:
            continue
        elif kind == "curve" and name.startswith("time_embedder."):
            state[name] = tensor
        else:
            there = original(name)
            listed[there] = list(tensor.shape)
            made = seeded_weights.seeded(there, tuple(tensor.shape))
            state[name] = torch.cat(made.chunk(2)[::-1]) if ".ff.net.0.proj." in name else made
    model.load_state_dict(state)
    model.eval()
    if kind == "curve":
        listed["adaln_t_table"] = [GRID, CURVE]
        table = seeded_weights.seeded("adaln_t_table", (GRID, CURVE))
        model.time_proj = torch.nn.Identity()
        model.time_embedder.forward = lambda t: curve(table, t)
        # Nothing bends what the table has.
        for module in model.modules():
            if hasattr(module, "linear") and type(module).__name__.startswith("MiniMaxH3AdaLayerNorm"):
                module.linear.register_forward_pre_hook(lambda _, args: (unbent(args[0]),))
    shapes[kind] = listed
    return model


BENT = {}


def curve(table, t):
    """Between the two rows of the table that are next to each time in [0, 1]; kept, for `unbent`."""
    place = t.clamp(0, 1) * (table.shape[0] - 1)
    below = place.floor().long().clamp(max=table.shape[0] - 2)
    BENT["is"] = torch.lerp(table[below], table[below + 1], (place - below)[:, None])
    return BENT["is"]


def unbent(bent):
    assert torch.equal(bent, torch.nn.functional.silu(BENT["is"]))
    return BENT["is"]


def sound_rows(audio):
    """(1, C, 2, L) -> rows, one channel of the loudspeakers after the other."""
    return audio.permute(0, 2, 3, 1).reshape(1, -1, audio.shape[1])


def shifted(level, by):
    return by * level / (1 + (by - 1) * level)


def sound_level(level):
    """Of the sound, when the video's is `level`."""
    return shifted(level / (12 - 11 * level), 3)


def velocities(model, x, audio, context, levels, tags=None, anchors=(), references=None, sounds=None):
    """Noise minus clean, of both. references: rows (R, K) and places (R, 3) from the end of the text on, sounds alike."""
    tags = torch.ones(context.shape[1]) if tags is None else tags
    _, _, frames, height, width = x.shape
    length = audio.shape[3]
    positions, tokens, video, sound, text, shown, _ = MiniMaxH3PrepareLayoutStep.build_packed_sequence(
        tags, frames, height, width, length, (1, 2, 2), 2, 2, 0, anchors
    )
    rows, sound_in = patchify_video_latents(x, (1, 2, 2)), sound_rows(audio)[0]
    told, heard = shown, 0
    begin, total = len(tags), len(positions)
    if references is not None:
        assert not anchors or len(references[0]) == shown
        rows = torch.cat([references[0], rows])
        if not anchors:  # behind all others, which changes nothing: rows see each other by their places
            video = torch.cat([torch.arange(total, total + len(references[0])), video])
            place = references[1].double() + torch.tensor([begin, 0, 0])
            positions, tokens = torch.cat([positions, place]), torch.cat([tokens, torch.zeros(len(place), dtype=torch.long)])
            told, total = len(place), total + len(place)
    if sounds is not None:
        sound_in = torch.cat([sounds[0], sound_in])
        sound = torch.cat([torch.arange(total, total + len(sounds[0])), sound])
        place = sounds[1].double() + torch.tensor([begin, 0, 0])
        positions, tokens = torch.cat([positions, place]), torch.cat([tokens, torch.full((len(place),), 2)])
        heard = len(place)
    times, indices = MiniMaxH3SetTimestepsStep.build_row_timesteps(
        video, sound, told, heard, len(tags), 1 - levels[0], 1 - levels[1], max(1 - levels[0], 0.999), 1.0
    )
    out, audio_out = model(
        hidden_states=rows[None],
        audio_hidden_states=sound_in[None],
        encoder_hidden_states=context,
        timestep=times,
        timestep_indices=indices,
        token_tags=tokens,
        position_ids=positions,
        video_indices=video,
        audio_indices=sound,
        text_indices=text,
        return_dict=False,
    )
    out = out[0, told:].reshape(frames, height // 2, width // 2, x.shape[1], 2, 2).permute(3, 0, 1, 4, 2, 5).reshape(x.shape)
    audio_out = audio_out[0, heard:].reshape(1, 2, length, -1).permute(0, 3, 1, 2)
    return -out, -audio_out, positions, told


def make_clip(model, kind, clip, seed, grid, length, batch=1, **more):
    at = f"{kind}.{clip}."
    x, audio = randn(seed, batch, 24, *grid), randn(seed + 1, batch, 32, 2, length)
    context = randn(seed + 2, 1, TOKENS, TEXT)
    heard = [sound_level(level) for level in LEVELS]
    carries, parts, gains = [0.5, 2.0, 1.25], [-0.5, 0.25, 1.0], [0.75, 1.5, 2.0]
    inputs = {"x": x, "audio": audio, "timestep": torch.tensor(LEVELS), "sound_timestep": torch.tensor(heard), "sound_carry": torch.tensor(carries), "sound_kept": torch.tensor(parts), "sound_gain": torch.tensor(gains), "context": context}
    out, audio_out = [], []
    for level, sound, carry, kept, gain in zip(LEVELS, heard, carries, parts, gains):
        made = [velocities(model, x[i : i + 1], carry * audio[i : i + 1], context, (level, sound), **more) for i in range(batch)]
        out.append(torch.cat([one[0] for one in made]))
        audio_out.append(kept * audio + gain * torch.cat([one[1] for one in made]))
    if "tags" in more:
        inputs["picture_rows"] = (more["tags"] == 0).float()[:, None]
    if "references" in more:
        rows, places = more["references"]
        _, _, positions, told = made[0]
        if more.get("anchors"):
            places = (positions[TOKENS : TOKENS + told] - torch.tensor([TOKENS, 0, 0])).float()
        inputs["references"], inputs["reference_positions"] = rows[None], places
    if "sounds" in more:
        inputs["sound_references"], inputs["sound_reference_positions"] = more["sounds"][0][None], more["sounds"][1]
    for name, tensor in inputs.items():
        expected[at + name] = tensor.clone().contiguous()
    expected[at + "out"], expected[at + "audio_out"] = torch.stack(out).contiguous(), torch.stack(audio_out).contiguous()


def make_flow(model, at, shifts=(12, 3)):
    generator = torch.Generator().manual_seed(7)
    x, audio = torch.randn(1, 24, 2, 4, 6, generator=generator), torch.randn(1, 32, 2, 8, generator=generator)
    expected["in.one.cross_attn"] = context = randn(92, 1, TOKENS, TEXT)
    sigmas = [1.0, 0.95, 0.7, 0.0]

    def level_of_sound(level):
        return shifted(level / (shifts[0] + (1 - shifts[0]) * level), shifts[1])

    for here, there in zip(sigmas, sigmas[1:]):
        heard, next_heard = level_of_sound(here), level_of_sound(there)
        out, audio_out, _, _ = velocities(model, x, audio, context, (here, heard))
        x, audio = x + (there - here) * out, audio + (next_heard - heard) * audio_out
    expected[at + ".video"], expected[at + ".audio"] = x, audio.contiguous()


def make_text():
    """Qwen3-VL of 52 layers; what the pipeline reads of the prompt of workflows/, and a clip of it."""
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    text = dict(vocab_size=151936, hidden_size=TEXT, intermediate_size=32, num_hidden_layers=52, num_attention_heads=2, num_key_value_heads=1, head_dim=16, rms_norm_eps=1e-6, rope_parameters=rope)
    seen = dict(depth=1, hidden_size=64, intermediate_size=24, num_heads=16, patch_size=4, out_hidden_size=TEXT, num_position_embeddings=16, deepstack_visual_indexes=[0])
    model = Qwen3VLModel(Qwen3VLConfig(text_config=text, vision_config=seen))
    shapes["text"] = seeded_weights.load(model, lambda name: f"model.{name}")
    # Without the template of Qwen-Image.
    ids = load_file(os.path.join(HERE, "workflows/expected.safetensors"))["qwen_image.ids"].long()[:, 34:-5]
    expected["text.states"] = model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states[50]


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "minimax")
    os.makedirs(out, exist_ok=True)
    for kind, seed in (("whole", 10), ("curve", 40)):
        model = make(kind)
        make_clip(model, kind, "short", seed, (2, 4, 6), 8, batch=2)
        make_clip(model, kind, "long", seed + 9, (7, 4, 2), 21)
        tags = torch.ones(TOKENS)
        tags[2:5] = 0
        make_clip(model, kind, "keyed", seed + 19, (7, 4, 4), 21, tags=tags, anchors=("first", "last"), references=(randn(seed + 20, 8, 96), None))
        places = torch.tensor([[t * 5 / 3, y, 8.0] for t in range(2) for y in (0.0, 16.0)])
        heard = torch.tensor([[float(t), 0, w] for w in (0.0, 16.0) for t in range(3)])
        make_clip(model, kind, "shown", seed + 29, (2, 4, 4), 8, references=(randn(seed + 30, 4, 96), places), sounds=(randn(seed + 31, 6, 32), heard))
        if kind == "whole":
            make_flow(model, "flow")
            make_flow(model, "moved", (10, 2))
    make_text()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(listed) for kind, listed in shapes.items()}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
