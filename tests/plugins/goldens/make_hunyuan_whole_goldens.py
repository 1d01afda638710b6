"""Writes what transformers and diffusers make of texts, and of a picture, with a tiny HunyuanVideo 1.5.

    make_hunyuan_whole_goldens.py TOKENIZERS [OUT]        (default: hunyuan_whole/ beside this file)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them. Needs torch, diffusers,
transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out. The vision tower is that of redux/, the picture that of edit/.

    shapes.json             {model: {name of the tensor in ComfyUI's files: shape}}: "text" is Qwen2.5-VL's language model, "glyphs"
                            byT5, "transformer", and "vae" of 32 channels; "{0-3}" stands for each of these numbers
    expected.safetensors    "NAME.cross_attn" are the states of the text NAME of TEXTS as the pipeline of diffusers encodes it,
                            "NAME.byt5" those of what it quotes, both without padding. "drawn.latent" is the end of 3 steps of Euler's
                            method with guidance 3 and a shift of 7, in the model's units, of the noise of seed 7, of the texts "words"
                            and "none"; "drawn.pictures" (F, H, W, 3), from 0 to 1, what the autoencoder makes of it; "shown.latent",
                            "shown.pictures" of a video that begins with the picture, which SigLIP's tower sees, too
"""

import os
import sys

import numpy
import torch
from diffusers import AutoencoderKLHunyuanVideo15, HunyuanVideo15Pipeline, HunyuanVideo15Transformer3DModel
from PIL import Image
from transformers import ByT5Tokenizer, PreTrainedTokenizerFast, T5Config, T5EncoderModel
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLTextConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLTextModel

import make_hunyuan15_vae_goldens
import make_hunyuan_goldens
import make_redux_goldens
import seeded_weights
from make_wan_goldens import write

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer"))
import vocabulary_goldens  # noqa: E402

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = {
    "plain": "a red fox walks through the deep snow",
    "words": 'a shop sign "Open" beside one that says “brød & øl”, above “Open” and "24 h"',
    "none": "",
    "odd": 'an open " mark, “ a line\nthat ends before the mark does”, and "" (nothing:1.2)',
}
TEXT, WRITTEN, CHANNELS = 128, 24, 32
SIDES, FRAMES, STEPS, GUIDANCE, SHIFT = (48, 64), 5, 3, 3, 7
expected, shapes = {}, {}
CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{{ '<|im_start|>assistant\n' }}"


def make_text():
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]}
    model = Qwen2_5_VLTextModel(
        Qwen2_5_VLTextConfig(vocab_size=151936, hidden_size=TEXT, intermediate_size=40, num_hidden_layers=4, num_attention_heads=1,
                             num_key_value_heads=1, max_position_embeddings=2048, rms_norm_eps=1e-6, rope_parameters=rope))
    shapes["text"] = seeded_weights.load(model, lambda name: "model." + name)
    return model


def make_glyphs():
    model = T5EncoderModel(
        T5Config(vocab_size=1510, d_model=WRITTEN, d_kv=64, num_heads=6, d_ff=56, num_layers=3, feed_forward_proj="gated-gelu", tie_word_embeddings=False))
    shapes["glyphs"] = seeded_weights.load(model)
    # Bound to the first one.
    shapes["glyphs"].pop("encoder.embed_tokens.weight", None)
    table = seeded_weights.seeded("shared.weight", tuple(model.shared.weight.shape))
    model.shared.weight.copy_(table)
    model.encoder.embed_tokens.weight.copy_(table)
    return model


def make_vae():
    model = AutoencoderKLHunyuanVideo15(latent_channels=CHANNELS, block_out_channels=(4, 8, 16, 32, 64), layers_per_block=1)
    shapes["vae"] = seeded_weights.load(model, make_hunyuan15_vae_goldens.original)
    return model


def make_transformer():
    model = make_hunyuan_goldens.load(
        HunyuanVideo15Transformer3DModel(
            in_channels=2 * CHANNELS + 1, out_channels=CHANNELS, num_attention_heads=3, attention_head_dim=16, num_layers=2, num_refiner_layers=2, mlp_ratio=2.0,
            text_embed_dim=TEXT, text_embed_2_dim=WRITTEN, image_embed_dim=make_redux_goldens.WIDTH, rope_axes_dim=(4, 6, 6)), "transformer")
    shapes["transformer"] = make_hunyuan_goldens.shapes["transformer"]
    return model


def encode(tokenizer, text_model, glyphs):
    """Each text as the pipeline does it, without padding."""
    for name, text in TEXTS.items():
        states, mask = HunyuanVideo15Pipeline._get_mllm_prompt_embeds(text_model, tokenizer, text, "cpu")
        written, seen = HunyuanVideo15Pipeline._get_byt5_prompt_embeds(ByT5Tokenizer(), glyphs, text, "cpu")
        expected[name + ".cross_attn"] = states[:, mask[0].bool()]
        if seen.any():
            expected[name + ".byt5"] = written[:, seen[0].bool()]


def velocity(model, x, level, name, shown, mask, vision):
    """As the pipeline asks: what is not there are zeros, and masked."""
    context, byt5 = expected[name + ".cross_attn"], expected.get(name + ".byt5", torch.zeros(1, 1, WRITTEN))
    return model(torch.cat([x, shown, mask], 1), (1000 * level).expand(1), context, torch.ones(context.shape[:2]), None, byt5,
                 torch.full(byt5.shape[:2], float(name + ".byt5" in expected)), vision, return_dict=False)[0]


def draw(model, vae, name, shown=None, vision=None):
    """ComfyUI's `simple` schedule over 1000 levels."""
    grid = (1 + (FRAMES - 1) // 4, *(side // 16 for side in SIDES))
    x, given, mask = torch.randn(1, CHANNELS, *grid, generator=torch.Generator().manual_seed(7)), torch.zeros(1, CHANNELS, *grid), torch.zeros(1, 1, *grid)
    if shown is not None:
        given[:, :, :1], mask[:, :, :1] = vae.config.scaling_factor * shown, 1
    seen = torch.zeros(1, 4, make_redux_goldens.WIDTH) if vision is None else vision
    levels = [SHIFT * t / (1 + (SHIFT - 1) * t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / STEPS))] for i in range(STEPS)] + [0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        yes, no = (velocity(model, x, torch.tensor(here), text, given, mask, seen) for text in ("words", "none"))
        x = x + (no + GUIDANCE * (yes - no)) * (there - here)
    expected[name + ".latent"] = x
    expected[name + ".pictures"] = (vae.decode(x / vae.config.scaling_factor).sample[0].permute(1, 2, 3, 0) / 2 + 0.5).clamp(0, 1)


def main():
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "hunyuan_whole")
    qwen = vocabulary_goldens.qwen(os.path.join(sys.argv[1], "qwen2.5"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=qwen, pad_token="<|endoftext|>", chat_template=CHAT, padding_side="right")
    encode(tokenizer, make_text(), make_glyphs())
    model, vae, (tower, _) = make_transformer(), make_vae(), make_redux_goldens.make_siglip()
    draw(model, vae, "drawn")
    image = Image.open(os.path.join(HERE, "edit/one.png")).convert("RGB")
    picture = torch.from_numpy(numpy.asarray(image).astype(numpy.float32))[None] / 255
    vision = make_redux_goldens.encode(tower, picture, True)
    middle = picture[:, :, 1:-1].permute(0, 3, 1, 2)  # of 36 x 50 what has the shape of SIDES
    assert middle.shape[2] * SIDES[1] == middle.shape[3] * SIDES[0]
    sized = torch.nn.functional.interpolate(middle, SIDES, mode="bilinear")
    shown = vae.encode(2 * sized[:, :, None] - 1).latent_dist.mean
    draw(model, vae, "shown", shown, vision)
    write(out, shapes, expected)
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.abs().mean():.4g} {tensor.std():.4g}")


if __name__ == "__main__":
    main()
