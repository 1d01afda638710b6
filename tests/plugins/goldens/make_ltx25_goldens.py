"""Writes what diffusers makes with a tiny model of LTX 2.5.

    make_ltx25_goldens.py [OUT]       (default: ltx25/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py), so only shapes are written, and what comes out, as make_ltx2_goldens.py does:

    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "five" is as LTX 2.5 (as 2.3, but MLPs of the
                            video add nothing, and its first frame is marked), "fixed" has texts modulated by tables alone,
                            "five_text" are connectors whose MLPs add nothing
    expected.safetensors    "five.CLIP.x", ".audio" and so on are inputs, "five.CLIP.out" and ".audio_out" outputs with a row for each
                            step, of the clips "short", "long", "told" and "guided"; "connected" is "long" with texts that connectors read. "fixed.long" is the same of "fixed"
"""

import json
import os
import sys

import torch
from diffusers.models.transformers.transformer_ltx2 import LTX2VideoTransformer3DModel
from diffusers.pipelines.ltx2.connectors import LTX2ConnectorTransformer1d
from safetensors.torch import save_file

import make_ltx2_goldens as before
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
WIDTHS, TOKENS = (40, 24), before.TOKENS
before.widths = lambda kind: WIDTHS


def make(kind):
    model = LTX2VideoTransformer3DModel(
        in_channels=16,
        out_channels=16,
        num_attention_heads=2,
        attention_head_dim=20,
        cross_attention_dim=40,
        audio_in_channels=12,
        audio_out_channels=12,
        audio_num_attention_heads=2,
        audio_attention_head_dim=12,
        audio_cross_attention_dim=24,
        num_layers=2,
        rope_type="split",
        gated_attn=True,
        cross_attn_mod=True,
        audio_gated_attn=True,
        audio_cross_attn_mod=True,
        use_prompt_embeddings=False,
        ff_bias=False,
        use_prompt_adaln_single=kind == "five",
        use_keyframes_abs_pos_embedding=True,
    )
    before.shapes[kind] = seeded_weights.load(model, before.original)
    forward = model.forward

    def marked(hidden_states, height, width, **kwargs):
        """As in ComfyUI, and in the publishers' pipeline with keyframes: the first frame stands for a single picture."""
        mask = torch.zeros(*hidden_states.shape[:2], 1)
        mask[:, : height * width] = 1
        return forward(hidden_states=hidden_states, height=height, width=width, video_keyframes_mask=mask, **kwargs)

    model.forward = marked
    return model


def make_connected(model, seed):
    both, listed = [], {}
    for stream, width in (("video", WIDTHS[0]), ("audio", WIDTHS[1])):
        connector = LTX2ConnectorTransformer1d(
            num_attention_heads=2, attention_head_dim=width // 2, num_layers=2, num_learnable_registers=8, rope_type="split", gated_attention=True
        )
        prefix = f"model.diffusion_model.{stream}_embeddings_connector."
        names = lambda name: prefix + name.replace("transformer_blocks", "transformer_1d_blocks").replace("norm_q", "q_norm").replace("norm_k", "k_norm")
        told = seeded_weights.load(connector, names)
        for block in connector.transformer_blocks:
            for linear in (block.ff.net[0].proj, block.ff.net[2]):
                linear.bias.zero_()
        listed.update({name: shape for name, shape in told.items() if not (".ff." in name and name.endswith("bias"))})
        both.append(connector)
    before.shapes["five_text"] = listed
    texts = [before.randn(seed + i, 1, TOKENS, width) for i, width in enumerate(WIDTHS)]
    mask = torch.cat([torch.zeros(1, TOKENS), torch.full((1, 1024 - TOKENS), -10000.0)], 1)[:, None, None]
    contexts = [connector(torch.cat([text, torch.zeros(1, 1024 - TOKENS, text.shape[2])], 1), mask)[0] for connector, text in zip(both, texts)]
    at, expected = "five.connected.", before.expected
    x, audio = expected["five.long.x"], expected["five.long.audio"]
    inputs = {"x": x, "audio": audio, "timestep": before.LEVELS, "context": torch.cat(texts, 2), "frame_time": torch.tensor([1.0 / 24])}
    for name, tensor in inputs.items():
        expected[at + name] = tensor.clone()
    made = [before.velocity(model, x, audio, level, contexts, 24) for level in before.LEVELS]
    expected[at + "out"] = torch.stack([one[0] for one in made])
    expected[at + "audio_out"] = torch.stack([one[1] for one in made])


def main(out):
    os.makedirs(out, exist_ok=True)
    model = make("five")
    before.make_clip(model, "five", "short", 70, (1, 4, 6), 3, 25, batch=2)
    before.make_clip(model, "five", "long", 79, (3, 5, 3), 11, 24)
    noise = dict(frame_noise=torch.tensor([0.0, 1.0, 0.5]), audio_noise=torch.tensor([0.25, 0.75, 0.5, 0.0]))
    before.make_clip(model, "five", "told", 89, (3, 2, 3), 4, 25, **noise)
    guided = dict(guide_frames=torch.tensor([[16.0, 17.0], [3.0, 11.0]]))
    before.make_clip(model, "five", "guided", 370, (4, 2, 3), 4, 25, **noise | dict(frame_noise=torch.tensor([1.0, 1.0, 0.25, 0.0])), **guided)
    make_connected(model, 270)
    before.make_clip(make("fixed"), "fixed", "long", 79, (3, 5, 3), 11, 24)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(listed) for kind, listed in before.shapes.items()}, file, indent=1)
        file.write("\n")
    save_file(before.expected, os.path.join(out, "expected.safetensors"))
    for name, tensor in before.expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(before.HERE, "ltx25"))
