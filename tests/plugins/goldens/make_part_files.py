"""Writes part_files.json: names and shapes of published files that are put together of parts, each behind a prefix.

    make_part_files.py

Needs torch, diffusers, transformers and spandrel from PyPI: models of the published configurations are made on PyTorch's meta
device, which holds no weights, and named as the publishers' files name them, by original_names.py and the generators of goldens. No
file itself was at hand. Where modules and sizes come from:

    FLUX.1, SD3, Hunyuan, CLIP, T5, SigLIP, Redux, TAESD   the classes of diffusers and transformers in the published configs
    LTX         the parts of ltx_files.json (make_ltx_files.py)
    HuMo, HunyuanVideo 1.5's models of latents   the PyTorch modules of make_wan_humo_goldens.py and make_hunyuan15_upsampler_goldens.py;
                to_720's sizes are the publisher's, the widths of to_1080 are of no published file
    upscalers   SPAN, SwinIR, HAT, DAT, PLKSR: spandrel's classes, with what they compute by themselves (tables of positions, masks),
                as such files hold it; ESRGAN and compact ones: the generator of their goldens

"parts": {part: {name: shape}}, where each "{0-27}" in a name stands for all of these numbers; "files": {file: [[prefix, part, type]]}:
what a later part has takes the place of an earlier one's. tests/plugins/families/part_files_test.cpp holds the families against it.
"""

import json
import os

import torch
from diffusers import AutoencoderKL, AutoencoderTiny, FluxTransformer2DModel, HunyuanVideo15Transformer3DModel, HunyuanVideoTransformer3DModel, SD3Transformer2DModel, WanTransformer3DModel
from diffusers.pipelines.flux.modeling_flux import ReduxImageEncoder
from spandrel.architectures.DAT import DAT
from spandrel.architectures.HAT import HAT
from spandrel.architectures.PLKSR import PLKSR, RealPLKSR
from spandrel.architectures.SPAN import SPAN
from spandrel.architectures.SwinIR import SwinIR
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, SiglipVisionConfig, SiglipVisionModel, T5Config, T5EncoderModel

import classic_headers
import make_hunyuan15_upsampler_goldens as sharper
import make_sd3_goldens
import make_true_files
import make_unet_files
import make_wan_goldens
import make_wan_humo_goldens
import original_names

HERE = os.path.dirname(os.path.abspath(__file__))
LEVELS = dict(down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4, block_out_channels=(128, 256, 512, 512))
shapes_of = make_true_files.shapes_of


def flux(**more):
    model = FluxTransformer2DModel(**more)
    return {name: list(tensor.shape) for name, tensor in original_names.flux(model.state_dict()).items()}


def flux_parts():
    """What depends on the kind by itself: the first layer, and what is told of guidance."""
    guided, first = flux(guidance_embeds=True), {}
    for kind, channels in (("plain", 64), ("canny", 128), ("fill", 384)):
        first[f"flux first {kind}"] = {name: shape for name, shape in flux(num_layers=1, num_single_layers=1, in_channels=channels, out_channels=64).items() if name.startswith("img_in.")}
    return first | {
        "flux guidance": {name: shape for name, shape in guided.items() if name.startswith("guidance_in.")},
        "flux": {name: shape for name, shape in guided.items() if not name.startswith(("guidance_in.", "img_in."))},
    }


def sd3(blocks, side, **more):
    """By the publisher's names; queries, keys and values are one tensor."""
    width = 64 * blocks
    model = SD3Transformer2DModel(
        sample_size=128, num_layers=blocks, num_attention_heads=blocks, caption_projection_dim=width, pos_embed_max_size=side,
        joint_attention_dim=4096, pooled_projection_dim=2048, out_channels=16, **more)
    out = {}
    for name, shape in shapes_of(model, make_sd3_goldens.original).items():
        if ".to_k." in name or ".to_v." in name:
            continue
        out[name.replace(".to_q.", ".qkv.")] = [3 * shape[0], *shape[1:]] if ".to_q." in name else shape
    return out


def clip(width, layers, has_projection):
    config = CLIPTextConfig(
        hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=width // 64, projection_dim=width)
    shapes = shapes_of(CLIPTextModelWithProjection(config))
    return {name: shape for name, shape in shapes.items() if has_projection or name != "text_projection.weight"}


def t5():
    config = T5Config(vocab_size=32128, d_model=4096, d_ff=10240, d_kv=64, num_layers=24, num_heads=64, feed_forward_proj="gated-gelu")
    return {name: shape for name, shape in shapes_of(T5EncoderModel(config)).items() if name != "encoder.embed_tokens.weight"}


def autoencoder():
    model = AutoencoderKL(layers_per_block=2, latent_channels=16, use_quant_conv=False, use_post_quant_conv=False, **LEVELS)
    return {name: list(tensor.shape) for name, tensor in original_names.autoencoder(model.state_dict()).items()}


def siglip():
    config = SiglipVisionConfig(hidden_size=1152, intermediate_size=4304, num_hidden_layers=27, num_attention_heads=16, image_size=384, patch_size=14)
    return shapes_of(SiglipVisionModel(config), lambda name: "vision_model." + name.removeprefix("vision_model."))


def taesd(channels):
    """By the numbers of TAESD's own modules: its decoders begin with a limit."""
    sides = {"encoder": {}, "decoder": {}}
    for name, shape in shapes_of(AutoencoderTiny(latent_channels=channels)).items():
        side, _, number, rest = name.split(".", 3)
        sides[side][f"{int(number) + (side == 'decoder')}.{rest}"] = shape
    return {f"taesd {side} {channels}": shapes for side, shapes in sides.items()}


def humo():
    model = WanTransformer3DModel(num_attention_heads=40, num_layers=40, ffn_dim=13824, in_channels=36, out_channels=16)
    sound = make_wan_humo_goldens.Sound(layers=40, width=5120, numbers=1280, middle=512, tokens=16, context=1536)
    return shapes_of(model, make_wan_goldens.original) | shapes_of(sound)


def hunyuan_parts():
    """1.0 that begins with a picture, beside the point or in its place, and 1.5's that makes videos sharper: two latents with a mask each."""
    begins = {
        "hunyuan beside": HunyuanVideoTransformer3DModel(in_channels=33, guidance_embeds=False, image_condition_type="latent_concat"),
        "hunyuan replaced": HunyuanVideoTransformer3DModel(image_condition_type="token_replace"),
        "hunyuan 1.5 sharper": HunyuanVideo15Transformer3DModel(in_channels=98, use_meanflow=True),
    }
    sharper.CHANNELS = 32
    made = {"hunyuan to_720": sharper.To720(64, 6), "hunyuan to_1080": sharper.To1080((512, 256), 2)}
    return {name: make_true_files.hunyuan(model) for name, model in begins.items()} | {name: shapes_of(model) for name, model in made.items()}


def old_esrgan():
    """RRDBNet with the names of its first publisher, which most community models keep: 23 blocks, x4."""
    out = {}
    for name, (_, shape) in classic_headers.real_esrgan(3).items():
        for here, there in (
            ("conv_first.", "model.0."),
            ("conv_body.", "model.1.sub.23."),
            ("body.", "model.1.sub."),
            ("conv_up1.", "model.3."),
            ("conv_up2.", "model.6."),
            ("conv_hr.", "model.8."),
            ("conv_last.", "model.10."),
        ):
            if name.startswith(here):
                name = there + name.removeprefix(here)
                break
        module, kind = name.rsplit(".", 1)
        out[f"{module.replace('.rdb', '.RDB')}.0.{kind}" if ".rdb" in name else name] = list(shape)
    return out


def compact(blocks, scale=4, width=64):
    out = {}
    for i in range(blocks + 2):
        rows = 3 * scale * scale if i == blocks + 1 else width
        out[f"body.{2 * i}.weight"], out[f"body.{2 * i}.bias"] = [rows, width if i else 3, 3, 3], [rows]
        if i <= blocks:
            out[f"body.{2 * i + 1}.weight"] = [width]
    return out


def upscalers():
    swin = dict(upscale=4, window_size=8, img_size=64, mlp_ratio=2)
    hat = dict(upscale=4, window_size=16, embed_dim=180, mlp_ratio=2, upsampler="pixelshuffle")
    with torch.device("cpu"):  # spandrel reads numbers of tensors as it makes them
        models = window_upscalers(swin, hat)
    return {name: shapes_of(model) for name, model in models.items()} | {
        "esrgan x4": {name: list(shape) for name, (_, shape) in classic_headers.real_esrgan(3).items()},
        "esrgan x2": {name: list(shape) for name, (_, shape) in classic_headers.real_esrgan(12).items()},
        "esrgan x4 small": {name: list(shape) for name, (_, shape) in classic_headers.real_esrgan(3, blocks=6).items()},
        "esrgan old": old_esrgan(),
        "compact": compact(32),
    }


def window_upscalers(swin, hat):
    return {
        "swinir m": SwinIR(embed_dim=180, depths=[6] * 6, num_heads=[6] * 6, upsampler="pixelshuffle", **swin),
        "swinir l": SwinIR(embed_dim=240, depths=[6] * 9, num_heads=[8] * 9, upsampler="nearest+conv", resi_connection="3conv", **swin),
        "hat": HAT(depths=[6] * 6, num_heads=[6] * 6, **hat),
        "dat": DAT(embed_dim=180, depth=[6] * 6, num_heads=[6] * 6, split_size=[8, 32], expansion_factor=4, upscale=4),
        "plksr": PLKSR(),
        "realplksr": RealPLKSR(),
        "span": SPAN(num_in_ch=3, num_out_ch=3),
    }


def parts_of():
    with torch.device("meta"):
        medium = dict(qk_norm="rms_norm", dual_attention_layers=tuple(range(13)))
        return flux_parts() | hunyuan_parts() | upscalers() | taesd(4) | taesd(16) | {
            "sd3": sd3(24, 192),
            "sd3.5 large": sd3(38, 192, qk_norm="rms_norm"),
            "sd3.5 medium": sd3(24, 384, **medium),
            "clip_l": clip(768, 12, False),
            "clip_l projection": {"text_projection.weight": [768, 768]},
            "clip_g": clip(1280, 32, True),
            "t5xxl": t5(),
            "t5xxl again": {"encoder.embed_tokens.weight": [32128, 4096]},
            "ae": autoencoder(),
            "siglip": siglip(),
            "redux": shapes_of(ReduxImageEncoder()),
            "humo": humo(),
        }


def files_of():
    files = {}
    for name, first, is_guided in (
        ("flux1-dev", "plain", True), ("flux1-schnell", "plain", False), ("flux1-dev-kontext_fp8_scaled", "plain", True),
        ("flux1-fill-dev", "fill", True), ("flux1-canny-dev", "canny", True),
    ):
        parts = [f"flux first {first}", *["flux guidance"] * is_guided, "flux"]
        files[f"diffusion_models/{name}"] = [["", part, "BF16"] for part in parts]
    texts = [
        ["text_encoders.clip_l.transformer.", "clip_l", "F16"],
        ["text_encoders.clip_l.transformer.", "clip_l projection", "F16"],
        ["text_encoders.clip_g.transformer.", "clip_g", "F16"],
        ["text_encoders.t5xxl.transformer.", "t5xxl", "F8_E4M3"],
    ]
    for name, part in (("sd3_medium", "sd3"), ("sd3.5_large", "sd3.5 large"), ("sd3.5_medium", "sd3.5 medium")):
        files[f"checkpoints/{name}"] = [["model.diffusion_model.", part, "F16"], ["first_stage_model.", "ae", "BF16"]]
    files["checkpoints/sd3_medium_incl_clips_t5xxlfp8"] = files["checkpoints/sd3_medium"] + texts
    flux_texts = [texts[0], texts[1], texts[3]]
    files["checkpoints/flux1-dev-fp8"] = [
        ["model.diffusion_model." + prefix, part, "F8_E4M3"] for prefix, part, _ in files["diffusion_models/flux1-dev"]
    ] + flux_texts + [["vae.", "ae", "F32"]]
    files["text_encoders/clip_l"] = [["", "clip_l", "F16"]]
    files["text_encoders/clip_g"] = [["", "clip_g", "F16"]]
    files["text_encoders/t5xxl_fp16"] = [["", "t5xxl", "F16"], ["", "t5xxl again", "F16"]]
    files["vae/ae"] = [["", "ae", "F32"]]
    files["clip_vision/sigclip_vision_patch14_384"] = [["", "siglip", "F16"]]
    files["style_models/flux1-redux-dev"] = [["", "redux", "BF16"]]
    files["diffusion_models/humo_17B_fp16"] = [["", "humo", "F16"]]
    files["diffusion_models/hunyuan_video_image_to_video_720p_bf16"] = [["", "hunyuan beside", "BF16"]]
    files["diffusion_models/hunyuan_video_v2_replace_image_to_video_720p_bf16"] = [["", "hunyuan replaced", "BF16"]]
    files["diffusion_models/hunyuanvideo1.5_1080p_sr_distilled_fp16"] = [["", "hunyuan 1.5 sharper", "F16"]]
    files["latent_upscale_models/hunyuanvideo15_latent_upsampler_720p"] = [["", "hunyuan to_720", "F16"]]
    files["latent_upscale_models/hunyuanvideo15_latent_upsampler_1080p"] = [["", "hunyuan to_1080", "F16"]]
    for name, channels in (("sd", 4), ("sdxl", 4), ("sd3", 16), ("f1", 16)):
        for side in ("encoder", "decoder"):
            files[f"vae_approx/tae{name}_{side}"] = [["", f"taesd {side} {channels}", "F16"]]
    for name, part in (
        ("RealESRGAN_x4plus", "esrgan x4"), ("RealESRGAN_x4plus_anime_6B", "esrgan x4 small"), ("RealESRGAN_x2plus", "esrgan x2"),
        ("4x-UltraSharp", "esrgan old"), ("realesr-general-x4v3", "compact"),
        ("001_classicalSR_DF2K_s64w8_SwinIR-M_x4", "swinir m"), ("003_realSR_BSRGAN_DFOWMFC_s64w8_SwinIR-L_x4_GAN", "swinir l"),
        ("Real_HAT_GAN_SRx4", "hat"), ("DAT_x4", "dat"), ("PLKSR_X4", "plksr"), ("4xRealPLKSR", "realplksr"), ("4xSPANkendata", "span"),
    ):
        files[f"upscale_models/{name}"] = [["", part, "F32"]]
    return files | ltx_files()


def ltx_files():
    """Of the parts of ltx_files.json; transformers by themselves as LTX-2's repository of ComfyUI has them."""
    files = {
        "checkpoints/ltx-video-2b-v0.9 (autoencoder)": [["vae.", "vae 0.9", "F32"]],
        "checkpoints/ltx-video-2b-v0.9.5 (autoencoder)": [["vae.", "vae 0.9.5", "BF16"]],
        "latent_upscale_models/ltx-2-spatial-upscaler-x2-1.0": [["", "upsampler 2", "BF16"]],
        "latent_upscale_models/ltx-2.3-spatial-upscaler-x2-1.1": [["", "upsampler 2.3", "BF16"]],
        "vae/ltx-2.5-audio-vae-bf16": [["audio_vae.", "audio vae", "BF16"], ["vocoder.", "vocoder 2.3", "BF16"]],
    }
    for name, version in (("ltx-2-19b-dev", "2"), ("ltx-2.3-22b-dev", "2.3")):
        files[f"checkpoints/{name}"] = [
            ["", f"transformer {version}", "BF16"], ["", f"texts {version}", "BF16"], ["vae.", f"vae {version}", "BF16"],
            ["audio_vae.", "audio vae", "BF16"], ["vocoder.", f"vocoder {version}", "BF16"],
        ]
    return files


def main():
    def rows(of):
        return ",\n".join(f"   {json.dumps(key)}: {json.dumps(what)}" for key, what in of.items())

    parts, files = parts_of(), files_of()
    for name, shapes in parts.items():
        print(name, len(shapes))
    texts = ",\n".join(f'  "{part}": {{\n{rows(make_unet_files.compressed(shapes))}\n  }}' for part, shapes in parts.items())
    with open(os.path.join(HERE, "part_files.json"), "w") as file:
        file.write(f'{{\n "parts": {{\n{texts}\n }},\n "files": {{\n{rows(files)}\n }}\n}}\n')


if __name__ == "__main__":
    main()
