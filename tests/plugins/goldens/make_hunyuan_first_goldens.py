"""Writes what transformers and diffusers make of a text, and of videos, with a tiny HunyuanVideo 1.0.

    make_hunyuan_first_goldens.py TOKENIZERS [OUT]        (default: hunyuan_first/ beside this file)

TOKENIZERS holds the publishers' files, as plugins/encoders/vocabularies/make_vocabularies.py takes them. Needs torch, diffusers,
transformers, tokenizers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py), so only shapes are written, and what comes out:

    tokenizer.json          a vocabulary of bytes with the special tokens of Llama 3
    shapes.json             {model: {name of the tensor in ComfyUI's files: [shape, diffusers' name]}}: "llama", "clip" (CLIP-L),
                            "transformer", "vae", and "vae_diffusers", the same with matrices in the places of filters of one pixel
    expected.safetensors    "text.cross_attn" and "text.pooled_output" are those of TEXT by the pipeline's template, without padding,
                            of the former each 16th number;
                            "drawn.latent" is the end of 3 steps of Euler's method with an embedded guidance of 6 and a shift of 7, in
                            the model's units, of the noise of seed 7; "drawn.pictures" (F, H, W, 3), from 0 to 1, what the
                            autoencoder makes of it. "FRAMES.frames" (F, H, W, 3) are from 0 to 1, "FRAMES.mean" is what the encoder
                            makes of them, "FRAMES.decoded" what the decoder makes of "FRAMES.latent", in the autoencoder's units;
                            "pictures.decoded" of "pictures.latent", two of pictures
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLHunyuanVideo, HunyuanVideoTransformer3DModel
from diffusers.pipelines.hunyuan_video.pipeline_hunyuan_video import DEFAULT_PROMPT_TEMPLATE
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import CLIPTextConfig, CLIPTextModel, LlamaConfig, LlamaModel

import make_hunyuan_goldens
import seeded_weights

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../encoders/tokenizer"))
import vocabulary_goldens  # noqa: E402

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = "a red fox walks through the deep snow – günstig"
WIDTH, POOLED, CHANNELS = 4096, 64, 16
SIDES, FRAMES, STEPS, GUIDANCE, SHIFT = (48, 64), 5, 3, 6, 7
SPECIALS = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
expected, shapes = {}, {}


def make_tokenizer(path):
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    tokenizer.post_processor = processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", 256)])
    tokenizer.save(path, pretty=False)
    return tokenizer


def listed(model, kind, name):
    seeded_weights.load(model, name)
    shapes[kind] = {name(key): [list(tensor.shape), key] for key, tensor in model.state_dict().items()}
    return model


def encode_llama(tokenizer):
    model = listed(
        LlamaModel(
            LlamaConfig(vocab_size=272, hidden_size=WIDTH, intermediate_size=16, num_hidden_layers=4, num_attention_heads=1, num_key_value_heads=1, head_dim=128,
                        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 5e5})), "llama", lambda name: "model." + name)
    template = DEFAULT_PROMPT_TEMPLATE["template"]
    begin = len(tokenizer.encode(template[: template.index("{}")]).ids)
    ids = torch.tensor([tokenizer.encode(template.format(TEXT)).ids])
    expected["text.cross_attn"] = model(input_ids=ids, output_hidden_states=True).hidden_states[-3][:, begin:]


def encode_clip(folder):
    model = CLIPTextModel(
        CLIPTextConfig(vocab_size=49408, hidden_size=POOLED, intermediate_size=80, num_hidden_layers=2, num_attention_heads=1, eos_token_id=49407, bos_token_id=49406))
    prefix = "" if next(iter(model.state_dict())).startswith("text_model.") else "text_model."
    listed(model, "clip", lambda name: prefix + name)
    ids = [49406, *vocabulary_goldens.clip(folder).encode(TEXT, add_special_tokens=False).ids, 49407]
    expected["text.pooled_output"] = model(input_ids=torch.tensor([ids + [49407] * (77 - len(ids))])).pooler_output


def vae_name(name, levels=4):
    """ComfyUI's name of a tensor of AutoencoderKLHunyuanVideo, which counts a decoder's levels from its end."""
    if name.startswith("decoder.up_blocks."):
        level = int(name.split(".")[2])
        name = name.replace(f"up_blocks.{level}.", f"up.{levels - 1 - level}.")
    for here, there in (
        ("mid_block.resnets.0", "mid.block_1"),
        ("mid_block.resnets.1", "mid.block_2"),
        ("mid_block.attentions.0.group_norm", "mid.attn_1.norm"),
        ("mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out"),
        ("mid_block.attentions.0.to_", "mid.attn_1."),
        ("down_blocks.", "down."),
        (".resnets.", ".block."),
        (".downsamplers.0.", ".downsample."),
        (".upsamplers.0.", ".upsample."),
        ("conv_shortcut", "nin_shortcut"),
        ("conv_norm_out", "norm_out"),
    ):
        name = name.replace(here, there)
    return name


def make_vae():
    model = listed(AutoencoderKLHunyuanVideo(latent_channels=CHANNELS, block_out_channels=(32, 32, 64, 64), layers_per_block=1), "vae_diffusers", vae_name)
    is_matrix = lambda name, shape: ".attn_1." in name and len(shape) == 2  # noqa: E731
    shapes["vae"] = {name: [shape + [1, 1, 1] if is_matrix(name, shape) else shape, key] for name, (shape, key) in shapes["vae_diffusers"].items()}
    return model


def code(vae):
    for frames in (1, 5, 9):
        pictures = torch.rand(frames, 16, 24, 3, generator=torch.Generator().manual_seed(frames))
        latent = torch.randn(1, CHANNELS, 1 + (frames - 1) // 4, 2, 3, generator=torch.Generator().manual_seed(100 + frames))
        expected[f"{frames}.frames"], expected[f"{frames}.latent"] = pictures, latent
        expected[f"{frames}.mean"] = vae._encode((2 * pictures - 1).permute(3, 0, 1, 2)[None]).chunk(2, dim=1)[0]
        expected[f"{frames}.decoded"] = vae._decode(latent).sample[0].permute(1, 2, 3, 0) / 2 + 0.5
    latent = torch.randn(2, CHANNELS, 3, 2, generator=torch.Generator().manual_seed(200))
    expected["pictures.latent"] = latent
    expected["pictures.decoded"] = torch.cat([vae._decode(one[None, :, None]).sample[0].permute(1, 2, 3, 0) / 2 + 0.5 for one in latent])


def draw(vae):
    model = make_hunyuan_goldens.load(
        HunyuanVideoTransformer3DModel(
            in_channels=CHANNELS, out_channels=CHANNELS, num_attention_heads=3, attention_head_dim=16, num_layers=2, num_single_layers=2, num_refiner_layers=2,
            mlp_ratio=2.0, text_embed_dim=WIDTH, pooled_projection_dim=POOLED, guidance_embeds=True, rope_axes_dim=(4, 6, 6)), "transformer")
    shapes["transformer"] = {name: [shape, name] for name, shape in make_hunyuan_goldens.shapes["transformer"].items()}
    x = torch.randn(1, CHANNELS, 1 + (FRAMES - 1) // 4, *(side // 8 for side in SIDES), generator=torch.Generator().manual_seed(7))
    context = expected["text.cross_attn"]
    levels = [SHIFT * t / (1 + (SHIFT - 1) * t) for t in (i / 1000 for i in range(1, 1001))]
    sigmas = [levels[-(1 + int(i * 1000 / STEPS))] for i in range(STEPS)] + [0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        x = x + (there - here) * model(x, torch.tensor([1000 * here]), context, torch.ones(context.shape[:2]), expected["text.pooled_output"],
                                       torch.tensor([1000.0 * GUIDANCE]), return_dict=False)[0]
    expected["drawn.latent"] = x
    expected["drawn.pictures"] = (vae._decode(x / vae.config.scaling_factor).sample[0].permute(1, 2, 3, 0) / 2 + 0.5).clamp(0, 1)


def main():
    out = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "hunyuan_first")
    os.makedirs(out, exist_ok=True)
    encode_llama(make_tokenizer(os.path.join(out, "tokenizer.json")))
    encode_clip(os.path.join(sys.argv[1], "clip"))
    vae = make_vae()
    vae.use_framewise_encoding = vae.use_framewise_decoding = False
    code(vae)
    draw(vae)
    expected["text.cross_attn"] = expected["text.cross_attn"][..., ::16]
    with open(os.path.join(out, "shapes.json"), "w") as file:
        rows = (f' "{kind}": {{\n' + ",\n".join(f"  {json.dumps(name)}: {json.dumps(what)}" for name, what in names.items()) + "\n }" for kind, names in shapes.items())
        file.write("{\n" + ",\n".join(rows) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.abs().mean():.4g} {tensor.std():.4g}")


if __name__ == "__main__":
    main()
