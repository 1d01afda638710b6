"""Writes what diffusers makes with tiny models of LTX 2.

    make_ltx2_goldens.py [OUT]       (default: ltx2/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "two" is as LTX 2, "three" as LTX 2.3 (gated
                            attentions, modulated texts, no projection of the text), "flow" as LTX 2 with 32 heads, "two_text" and
                            "three_text" their connectors; "{0-1}" stands for each of these numbers
    expected.safetensors    "MODEL.CLIP.x", ".audio" and so on are inputs, "MODEL.CLIP.out" and ".audio_out" outputs with a row for
                            each step, of the clips "short" and "long"; "told" has noise masks of frames of both,
                            "guided" also two frames behind the video's own that stand at told pictures,
                            "connected" the texts that connectors read;
                            "flow.video", "flow.audio" are the end of 3 steps of Euler's method with guidance 3 by "flow", of the texts
                            "in.one.cross_attn" and "in.two.cross_attn" and the noise of seed 7, drawn for the video, then for the
                            audio, at 24 pictures a second; "masked.video", "masked.audio" the same with the video's first frame and all of
                            the audio kept, which are 0; "apart.video", "apart.audio" with guidance 1 of the video and 5 of the audio
"""

import json
import os
import sys

import torch
from diffusers.models.transformers.transformer_ltx2 import LTX2VideoTransformer3DModel
from diffusers.pipelines.ltx2.connectors import LTX2ConnectorTransformer1d
from safetensors.torch import save_file

import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = torch.tensor([0.9, 0.55, 0.125])
TEXT, TOKENS = 40, 9
expected, shapes = {}, {}
BEGINNINGS = {
    "proj_in.": "patchify_proj.",
    "audio_proj_in.": "audio_patchify_proj.",
    "time_embed.": "adaln_single.",
    "audio_time_embed.": "audio_adaln_single.",
    "prompt_adaln.": "prompt_adaln_single.",
    "audio_prompt_adaln.": "audio_prompt_adaln_single.",
    "av_cross_attn_video_scale_shift.": "av_ca_video_scale_shift_adaln_single.",
    "av_cross_attn_audio_scale_shift.": "av_ca_audio_scale_shift_adaln_single.",
    "av_cross_attn_video_a2v_gate.": "av_ca_a2v_gate_adaln_single.",
    "av_cross_attn_audio_v2a_gate.": "av_ca_v2a_gate_adaln_single.",
}
PARTS = {
    ".norm_q.": ".q_norm.",
    ".norm_k.": ".k_norm.",
    ".video_a2v_cross_attn_scale_shift_table": ".scale_shift_table_a2v_ca_video",
    ".audio_a2v_cross_attn_scale_shift_table": ".scale_shift_table_a2v_ca_audio",
}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publisher's name of a tensor of LTX2VideoTransformer3DModel."""
    for here, there in BEGINNINGS.items():
        if name.startswith(here):
            return there + name[len(here) :]
    for here, there in PARTS.items():
        name = name.replace(here, there)
    return name


def make(kind):
    heads, head, audio_head, channels, audio_channels = {"two": (4, 16, 8, 16, 12), "three": (2, 20, 12, 16, 12), "flow": (32, 4, 2, 128, 128)}[kind]
    more = {}
    if kind == "three":
        more = dict(gated_attn=True, cross_attn_mod=True, audio_gated_attn=True, audio_cross_attn_mod=True, use_prompt_embeddings=False)
    model = LTX2VideoTransformer3DModel(
        in_channels=channels,
        out_channels=channels,
        num_attention_heads=heads,
        attention_head_dim=head,
        cross_attention_dim=heads * head,
        audio_in_channels=audio_channels,
        audio_out_channels=audio_channels,
        audio_num_attention_heads=heads,
        audio_attention_head_dim=audio_head,
        audio_cross_attention_dim=heads * audio_head,
        num_layers=2,
        caption_channels=TEXT,
        rope_type="interleaved" if kind == "three" else "split",
        **more,
    )
    shapes[kind] = seeded_weights.load(model, original)
    return model


def guided_coords(model, x, rate, guides):
    """The places of a video's tokens, of which the last frames stand at the pictures [begin, end) of the video."""
    batch, _, frames, height, width = x.shape
    coords = model.rope.prepare_video_coords(batch, frames, height, width, x.device, fps=rate)
    first = (frames - len(guides)) * height * width
    coords[:, 0, first:] = (guides / rate).repeat_interleave(height * width, 0)
    return coords


def velocity(model, x, audio, level, contexts, rate, frame_noise=None, audio_noise=None, guide_frames=None):
    """Of both; the other's greatest level is what they look at each other by."""
    batch, _, frames, height, width = x.shape
    coords = None if guide_frames is None else guided_coords(model, x, rate, guide_frames)
    levels = (1000 * level).expand(batch, 1)
    video_levels = audio_levels = levels
    video_most = audio_most = (1000 * level).expand(batch)
    if frame_noise is not None:
        video_levels = (levels * frame_noise).repeat_interleave(height * width, 1)
        video_most = video_most * frame_noise.max()
    if audio_noise is not None:
        audio_levels = levels * audio_noise
        audio_most = audio_most * audio_noise.max()
    out, audio_out = model(
        hidden_states=x.flatten(2).transpose(1, 2),
        audio_hidden_states=audio.permute(0, 2, 1, 3).flatten(2),
        encoder_hidden_states=contexts[0].expand(batch, -1, -1),
        audio_encoder_hidden_states=contexts[1].expand(batch, -1, -1),
        timestep=video_levels,
        audio_timestep=audio_levels,
        sigma=video_most,
        audio_sigma=audio_most,
        num_frames=frames,
        height=height,
        width=width,
        fps=rate,
        audio_num_frames=audio.shape[2],
        video_coords=coords,
        use_cross_timestep=True,
        return_dict=False,
    )
    channels, bands = audio.shape[1], audio.shape[3]
    return (
        out.transpose(1, 2).reshape(x.shape).contiguous(),
        audio_out.unflatten(2, (channels, bands)).permute(0, 2, 1, 3).contiguous(),
    )


def widths(kind):
    return (40, 24) if kind == "three" else (TEXT, TEXT)


def make_clip(model, kind, clip, seed, grid, length, rate, batch=1, **noise):
    at = f"{kind}.{clip}."
    x, audio = randn(seed, batch, 16, *grid), randn(seed + 1, batch, 3, length, 4)
    contexts = [randn(seed + 2 + i, 1, TOKENS, width) for i, width in enumerate(widths(kind))]
    inputs = {"x": x, "audio": audio, "timestep": LEVELS, "context": torch.cat(contexts, 2), "frame_time": torch.tensor([1.0 / rate])}
    inputs.update(noise)
    if "frame_noise" in noise:
        inputs["frame_most"], inputs["audio_most"] = noise["frame_noise"].max()[None], noise["audio_noise"].max()[None]
    for name, tensor in inputs.items():
        expected[at + name] = tensor.clone()
    made = [velocity(model, x, audio, level, contexts, rate, **noise) for level in LEVELS]
    expected[at + "out"] = torch.stack([one[0] for one in made])
    expected[at + "audio_out"] = torch.stack([one[1] for one in made])


def make_flow(model, at, frame_noise=None, audio_noise=None, scales=(3, 3)):
    generator = torch.Generator().manual_seed(7)
    x, audio = torch.randn(1, 128, 2, 2, 3, generator=generator), torch.randn(1, 16, 5, 8, generator=generator)
    contexts = []
    for name, tokens, seed in (("one", TOKENS, 92), ("two", TOKENS - 4, 93)):
        contexts.append(randn(seed, 1, tokens, 2 * TEXT))
        expected[f"in.{name}.cross_attn"] = contexts[-1]
    sigmas = [1.0, 0.75, 0.5, 0.0]
    masks = [torch.ones(1, 1, 2, 1, 1), torch.ones(1, 1, 1, 1)]
    if frame_noise is not None:
        masks = [frame_noise.reshape(1, 1, -1, 1, 1), audio_noise.reshape(1, 1, -1, 1)]
    point = [x, audio]
    for here, there in zip(sigmas, sigmas[1:]):
        seen = [p * m for p, m in zip(point, masks)]
        clean = []
        for context in contexts:
            made = velocity(model, *seen, torch.tensor(here), (context[:, :, :TEXT], context[:, :, TEXT:]), 24, frame_noise, audio_noise)
            clean.append([s - here * v for s, v in zip(seen, made)])
        mixed = [m * (no + scale * (yes - no)) for yes, no, m, scale in zip(*clean, masks, scales)]
        point = [p + (p - d) / here * (there - here) for p, d in zip(point, mixed)]
    expected[at + ".video"], expected[at + ".audio"] = point


def make_connected(model, kind, seed):
    """Behind connectors, as the publishers' files have them: "MODEL_text" are their shapes, "MODEL.connected.context" what they read."""
    wide, narrow = widths(kind)
    later = kind == "three"
    kwargs = dict(num_layers=2, num_learnable_registers=8, rope_type="interleaved" if later else "split", gated_attention=later)
    both, listed = [], {}
    for stream, width in (("video", wide), ("audio", narrow)):
        connector = LTX2ConnectorTransformer1d(num_attention_heads=2, attention_head_dim=width // 2, **kwargs)
        prefix = f"model.diffusion_model.{stream}_embeddings_connector."
        listed.update(seeded_weights.load(connector, lambda name: prefix + name.replace("transformer_blocks", "transformer_1d_blocks").replace("norm_q", "q_norm").replace("norm_k", "k_norm")))
        both.append(connector)
    shapes[kind + "_text"] = listed
    texts = [randn(seed, 1, TOKENS, wide), randn(seed + 1, 1, TOKENS, narrow)]
    if not later:
        texts[1] = texts[0]
    mask = torch.cat([torch.zeros(1, TOKENS), torch.full((1, 1024 - TOKENS), -10000.0)], 1)[:, None, None]
    contexts = [connector(torch.cat([text, torch.zeros(1, 1024 - TOKENS, text.shape[2])], 1), mask)[0] for connector, text in zip(both, texts)]
    at = f"{kind}.connected."
    x, audio = expected[f"{kind}.long.x"], expected[f"{kind}.long.audio"]
    inputs = {"x": x, "audio": audio, "timestep": LEVELS, "context": torch.cat(texts, 2) if later else texts[0], "frame_time": torch.tensor([1.0 / 24])}
    for name, tensor in inputs.items():
        expected[at + name] = tensor.clone()
    made = [velocity(model, x, audio, level, contexts, 24) for level in LEVELS]
    expected[at + "out"] = torch.stack([one[0] for one in made])
    expected[at + "audio_out"] = torch.stack([one[1] for one in made])


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltx2")
    os.makedirs(out, exist_ok=True)
    for kind, seed in (("two", 10), ("three", 40)):
        model = make(kind)
        make_clip(model, kind, "short", seed, (1, 4, 6), 3, 25, batch=2)
        make_clip(model, kind, "long", seed + 9, (3, 5, 3), 11, 24)
        noise = dict(frame_noise=torch.tensor([0.0, 1.0, 0.5]), audio_noise=torch.tensor([0.25, 0.75, 0.5, 0.0]))
        make_clip(model, kind, "told", seed + 19, (3, 2, 3), 4, 25, **noise)
        make_connected(model, kind, seed + 200)
        guided = dict(guide_frames=torch.tensor([[16.0, 17.0], [3.0, 11.0]]))
        make_clip(model, kind, "guided", seed + 300, (4, 2, 3), 4, 25, **noise | dict(frame_noise=torch.tensor([1.0, 1.0, 0.25, 0.0])), **guided)
    flow = make("flow")
    make_flow(flow, "flow")
    make_flow(flow, "masked", torch.tensor([0.0, 1.0]), torch.zeros(5))
    make_flow(flow, "apart", scales=(1, 5))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(listed) for kind, listed in shapes.items()}, file, indent=1)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))


if __name__ == "__main__":
    main()
