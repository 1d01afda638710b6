"""Small model files with random weights, under the names that workflows ask for, those of pictures by small_pictures.py: tensors
named, typed and packed as in the published files, with fewer layers and narrower.

    small_files.py OUT [FILE ...]

writes OUT/FOLDER/NAME.safetensors of each, or of the FILEs named (such as vae/wan_2.1_vae), and the
vocabularies OUT/tokenizers/llama3 and qwen3.5. Needs nothing but Python. `SMALL` says how each file is made.
"""

import json
import os
import random
import struct
import sys
from pathlib import Path

from small_numbers import INT8_MOST, bytes_of, power_of
from small_parts import CLIP_L, FILES, FLUX, FLUX2_VAE, FLUX_LAYERS, GOLDENS, QWEN_IMAGE, T5, TEXT, TOKENIZERS, WAN_VAE, flux_headers, golden, lora, small, with_vocabulary

from ltx_headers import packed_but_tower
from packed_forms import in_8_bits, in_fp8, is_inner, told  # small_parts knows its folder
import small_pictures

# Widths in the published files, and here; the same in files that are called together.
SEEN = 64
WAN = {5120: 256, 13824: 512, 30720: 1536, 1536: 256, 8960: 320, 9216: 1536, 1280: SEEN, 4096: TEXT}
VISION_H = {1280: SEEN, 5120: 128, 1024: 32}
SIGLIP = {1152: 144, 4304: 96}
HUNYUAN15 = {2048: 256, 6144: 768, 4096: 512, 8192: 512, 12288: 1536, 1472: 64, 3584: 128, 1152: 144}
HUNYUAN15_VAE = {1024: 64, 512: 32, 256: 16, 128: 8, 8192: 512, 4096: 256}
BYT5 = {1472: 64, 3584: 96}
QWEN25 = {3584: 128, 512: 128, 18944: 256, 1280: 64, 3840: 192, 3420: 96, 5120: 256}
QWEN21 = {4096: 256, 12288: 512, 16384: 1024, 24576: 1024}
QWEN3_VL = {4096: 256, 1024: 128, 12288: 512, 1152: 128, 3456: 384, 4304: 96, 4608: 512}
# Four heads of values, two of queries and keys; an attention of two heads.
QWEN35 = {4096: 512, 8192: 1024, 1024: 256, 12288: 512, 32: 4, 1152: 128, 3456: 384, 4304: 96, 4608: 512, 248320: 320}
HUNYUAN = {3072: 256, 9216: 768, 12288: 512, 6144: 512, 18432: 1536, 21504: 1280, 15360: 768, 768: 64}
HUNYUAN_VAE = {128: 32, 256: 64, 512: 128}
# Two heads; of its text encoder four, one of keys and values, and eight of its layers in a row.
FLUX3 = {3072: 256, 9216: 768, 18432: 1536, 6144: 512, 20480: 8 * 256}
QWEN3_VL_4B = {2560: 256, 4096: 512, 1024: 128, 9728: 512, 3072: 384}
USO = {3072: 256, 1152: 144}
GEMMA = {3840: 256, 4096: 512, 2048: 256, 15360: 256}
LTXV = {2048: 128, 8192: 256, 12288: 768, 4096: TEXT}
GEMMA_TOWER = {1152: 144, 4304: 96, 4096: 64, 3840: 256}
GEMMA_LAYERS = 4
HEARD_LAYERS, HEARD = 2, 128  # of encoders of sound
WAV2VEC2 = {512: 32, 1024: HEARD, 4096: 160, 768: HEARD, 48: 64, 3072: 160}
WAN_SOUND = WAN | {25: HEARD_LAYERS + 1, 1024: HEARD, 2560: 2 * SEEN, 10240: 512}
WHISPER = {1280: HEARD, 5120: 160}
# Eight windows of five states, and 16 tokens.
HUMO = WAN | {51200: 8 * 5 * HEARD, 24576: 16 * 256, 512: 64}
TALK = {46080: 5 * HEARD_LAYERS * HEARD, 73728: 8 * HEARD_LAYERS * HEARD, 512: 64, 24576: 1024, 768: 32, 5120: 256, 10240: 512}


# Sixteen levels, as the published files have them (HEDDLE_I4_LEVELS).
LEVELS = (-0.980602, -0.794529, -0.638165, -0.500986, -0.377321, -0.263187, -0.155210, -0.050720,
          0.052541, 0.156985, 0.265284, 0.379533, 0.502636, 0.638953, 0.794876, 0.980671)  # fmt: skip


def in_w4a8(tensors):
    """Matrices of numbered modules as those of the name w4a8: a level for each number, a scale for 16, and one for a row."""
    out = {}
    for name, (dtype, shape) in tensors.items():
        if not (is_inner(name, shape) and shape[1] % 256 == 0):
            out[name] = (dtype, shape)
            continue
        rows, columns = shape
        module = name.removesuffix(".weight")
        scale = 2.0 ** power_of(name, shape) / INT8_MOST
        out[name] = ("U8", (rows, columns // 2))
        out[module + ".weight_s_rel"] = ("F8_E4M3", (rows, columns // 16), b"\x6c" * (rows * columns // 16))  # 96
        out[module + ".weight_s_channel"] = ("F32", (rows,), struct.pack("<f", scale) * rows)
        out[module + ".weight_codebook"] = ("F32", (16,), struct.pack("<16f", *LEVELS))
        out |= told(module, '{"format": "asym_w4a8_int8", "group_size": 16, "convrot_groupsize": 256}')
    return out


def wan(file, layers=(("blocks", 4), ("vace_blocks", 2)), sizes=None):
    out = small(FILES[f"diffusion_models/{file}"](), sizes or WAN, layers)
    camera = "control_adapter.conv.weight"
    if camera in out:  # 6 numbers of a camera in 16 x 16 pixels, not a width
        dtype, (rows, _, *side) = out[camera]
        out[camera] = (dtype, (rows, 1536, *side))
    return out


def wan_sound():
    """Its first two looks at a sound are behind layers 0 and 4."""
    return wan("wan2.2_s2v_14B_fp8_scaled", (("blocks", 5), ("injector", 2), ("injector_adain_layers", 2)), WAN_SOUND)


def wan_dancer(name):
    """It adds a music behind layers 0 and 4."""
    return wan(f"wan2.2_dancer_14b_{name}_fp8_scaled", (("blocks", 5), ("injector", 2)))


def umt5(file):
    rows = golden("umt5", "text")["shared.weight"][1][0]
    plain = small(FILES[f"text_encoders/{file}"](), T5, (("block", 3),))
    return with_vocabulary(plain, GOLDENS / "umt5" / "spiece.model", rows, "shared.weight")


def llama():
    """Its width is what it is told by. One head, and the words of its golden."""
    rows = golden("hunyuan_first", "llama")["model.embed_tokens.weight"][1][0]
    out = {}
    for name, (dtype, shape) in small(FILES["text_encoders/llava_llama3_fp8_scaled"](), {}, (("layers", 4),)).items():
        sizes = {128320: rows, 14336: 64, 1024: 128}
        shape = tuple(sizes.get(size, size) for size in shape)
        if name.endswith("q_proj.weight"):
            shape = (128, shape[1])
        if name.endswith("o_proj.weight"):
            shape = (shape[0], 128)
        out[name] = (dtype, shape)
    return out


def gemma():
    """Its tower sees pictures of 112 pixels as 4 tokens."""
    sees = ("vision_model.", "multi_modal_projector.")
    whole = FILES["text_encoders/gemma_3_12B_it"]()
    text = {name: what for name, what in whole.items() if not name.startswith(sees)}
    tower = {name: what for name, what in whole.items() if name.startswith(sees)}
    plain = small(text, GEMMA, (("layers", GEMMA_LAYERS),))
    plain |= small(tower, GEMMA_TOWER, (("layers", 2),))
    return with_vocabulary(plain, TOKENIZERS / "bpe.model", 401, "model.embed_tokens.weight")


def qwen35(packed=in_8_bits):
    """The words of its golden."""
    return packed(small(FILES["text_encoders/qwen3.5_9b_bf16"](), QWEN35, (("layers", 4), ("blocks", 2))))


def plain_qwen3_vl_4b():
    """In 16 bits, with all its layers, of which FLUX 3 reads most."""
    plain = {name: what for name, what in FILES["text_encoders/qwen3vl_4b_fp8_scaled"]().items() if not name.endswith("_scale")}
    return {
        name: ("BF16", tuple(QWEN3_VL_4B.get(size, size) for size in shape))
        for name, (_, shape) in plain.items()
    }


def flux2_vae():
    """Its latents have as many channels as the published one's."""
    out = {}
    for name, (dtype, shape) in FILES["vae/flux2-vae"]().items():
        is_kept = name.startswith("bn.") or "quant_conv" in name
        out[name] = (dtype, shape if is_kept else tuple(FLUX2_VAE.get(size, size) for size in shape))
    return out


def hunyuan15_vae():
    """Its numbers of channels of a latent stay, but where they are a fourth of the next channels."""
    out = small(FILES["vae/hunyuanvideo15_vae_fp16"](), HUNYUAN15_VAE)
    for name, (dtype, shape) in out.items():
        if "downsample" in name and shape[0] == 64:
            out[name] = (dtype, (64 // 16, *shape[1:]))
    return out


def ltxv(vae):
    layers = (("transformer_blocks", 2),)
    plain = small(FILES["diffusion_models/ltx-video-2b-v0.9"](), LTXV, layers)
    parts = {"model.diffusion_model." + name: what for name, what in plain.items()}
    return parts | of_128_channels(golden(*vae, prefix="vae."))


def of_128_channels(tensors):
    """An autoencoder of eight channels with as many as LTX's."""
    out = {}
    for name, (dtype, shape) in tensors.items():
        if shape[0] == 8 and "per_channel_statistics" in name:
            shape = (128,)
        if shape[0] == 9 and "encoder.conv_out" in name:
            shape = (129, *shape[1:])
        if name.endswith("decoder.conv_in.conv.weight") and shape[1] == 8:
            shape = (shape[0], 128, *shape[2:])
        out[name] = (dtype, shape)
    if any("time_embedder" in name for name in tensors):
        out["vae.decoder.timestep_scale_multiplier"] = ("F32", ())
    return out


WIDTH = GEMMA[3840]
STATES = WIDTH * (GEMMA_LAYERS + 1)
AUDIO_VAE = {
    "model": {"params": {"ddconfig": {"mel_bins": 16}}},
    "preprocessing": {"stft": {"filter_length": 256, "hop_length": 40}},
}
STAGES = {
    "vocoder": {"upsample_rates": [5, 2], "resblock_dilation_sizes": [[1, 3], [1, 3]], "use_tanh_at_final": False},
    "bwe": {
        "upsample_rates": [5, 3],
        "resblock_dilation_sizes": [[1, 3], [1, 3]],
        "apply_final_activation": False,
        "hop_length": 5,
        "input_sampling_rate": 16000,
        "output_sampling_rate": 48000,
    },
}


def ltx2():
    config = {"transformer": {"num_attention_heads": 4, "audio_num_attention_heads": 4}, "audio_vae": AUDIO_VAE}
    parts = (
        golden("ltx2_text", "projected", sizes={24: WIDTH, 336: STATES, 96: 4 * WIDTH})
        | golden("ltx2_whole", "transformer", sizes={24: WIDTH})
        | golden("ltx2_whole", "vae", prefix="vae.")
        | golden("ltx2_audio", "vae", prefix="audio_vae.")
        | golden("ltx2_audio", "vocoder", "F32", prefix="vocoder.")
    )
    return parts, config


def ltx23():
    transformer = golden("ltx2", "three", prefix="model.diffusion_model.", sizes={12: 16, 16: 128})
    wide, narrow = (transformer[f"model.diffusion_model.{at}patchify_proj.weight"][1][0] for at in ("", "audio_"))
    heads = {f"{at}num_attention_heads": 2 for at in ("", "audio_", "connector_", "audio_connector_")}
    config = {"transformer": heads, "audio_vae": AUDIO_VAE, "vocoder": STAGES}
    at = "text_embedding_projection."
    parts = {
        at + "video_aggregate_embed.weight": ("BF16", (wide, STATES)),
        at + "video_aggregate_embed.bias": ("BF16", (wide,)),
        at + "audio_aggregate_embed.weight": ("BF16", (narrow, STATES)),
        at + "audio_aggregate_embed.bias": ("BF16", (narrow,)),
    }
    parts |= (
        golden("ltx2", "three_text")
        | transformer
        | of_128_channels(golden("ltxv_later_vae", "2.3", prefix="vae."))
        | golden("ltx2_audio", "vae", prefix="audio_vae.")
        | golden("ltx2_audio", "stages", "F32", prefix="vocoder.")
    )
    return parts, config


# LTX 2.5: a file for each part. Widths of both streams, and of its text encoder.
LTX25 = {12: 16, 16: 128, 40: 512, 24: 256, 360: 4608, 216: 2304, 160: 2048, 96: 1024, 80: 1024, 48: 512}
GEMMA4 = {"text": {24: 256, 40: 256}, "told": {40: 256}}
GEMMA4_STATES = 7


def ltx25():
    heads = {f"{at}num_attention_heads": 2 for at in ("", "audio_", "connector_", "audio_connector_")}
    parts = golden("ltx25", "five", sizes=LTX25, prefix="model.diffusion_model.") | golden("ltx25", "five_text", sizes=LTX25)
    return in_8_bits(parts), {"transformer": heads}


def gemma4(model):
    """With its vocabulary: the larger one with the projection that LTX 2.5 reads, the other with a vision tower."""
    folder = "ltx25_text" if model == "text" else "gemma4_pictures"
    out = in_8_bits(golden(folder, model, sizes=GEMMA4[model]))
    at = "text_embedding_projection."
    if model == "text":
        for stream, wide in (("video", 512), ("audio", 256)):
            out[f"{at}{stream}_aggregate_embed.weight"] = ("BF16", (wide, GEMMA4["text"][24] * GEMMA4_STATES))
            out[f"{at}{stream}_aggregate_embed.bias"] = ("BF16", (wide,))
    else:
        out["vision_model.patch_embedder.position_embedding_table"] = ("BF16", (2, 840, 24))
        limits = {"_min": b"\x80\xc0", "_max": b"\x80\x40"}  # 4, in 16 bits
        out |= {name: ("BF16", (), limits[name[-4:]]) for name in out if name[-4:] in limits}
    content = (GOLDENS / folder / "tokenizer.json").read_bytes()
    return out | {"tokenizer_json": ("U8", (len(content),), content)}


def ltx25_vae():
    """The encoder of 2.3, and a decoder with the strides and neighbourhoods of the published one."""
    out = {name: what for name, what in of_128_channels(golden("ltxv_later_vae", "2.3")).items() if not name.startswith("decoder.")}
    kind, channels, head, waves = "BF16", (32, 16, 16, 16, 16), 16, 256

    def linear(name, rows, columns, biased=True):
        out[f"decoder.{name}.weight"] = (kind, (rows, columns))
        if biased:
            out[f"decoder.{name}.bias"] = (kind, (rows,))

    def layer(name, width):
        for norm, size in (("norm1", width), ("norm2", width), ("attn.q_norm", head), ("attn.k_norm", head)):
            out[f"decoder.{name}.{norm}.weight"] = (kind, (size,))
        linear(f"{name}.attn.qkv", 3 * width, width)
        linear(f"{name}.attn.proj", width, width)
        for matrix, rows, columns in (("w_up", 4 * width, width), ("w_gate", 4 * width, width), ("w_down", width, 4 * width)):
            linear(f"{name}.mlp.{matrix}", rows, columns, False)

    linear("conv_in", channels[0], 128)
    for stage, cells in enumerate((4, 2, 8, 8)):
        layer(f"det_stages.{stage}.0", channels[stage])
        linear(f"upsamples.{stage}.proj", cells * channels[stage + 1], channels[stage])
    linear("t_embedder.mlp.0", 24, waves)
    linear("t_embedder.mlp.2", 24, 24)
    linear("shared_adaln.proj", 7 * channels[-1], 24)
    linear("conv_in_x_t", channels[-1], 48)
    layer("diff_blocks.0", channels[-1])
    linear("diff_blocks.0.context_proj", channels[-1], channels[-1])
    out["decoder.diff_blocks.0.scale_shift_table"] = (kind, (7, channels[-1]))
    out["decoder.norm_out.weight"] = (kind, (channels[-1],))
    linear("conv_out", 48, channels[-1])
    return out, {"vae": {"_class_name": "CausalDiffusionVAE", "encoder": {"spatial_padding_mode": "zeros"}, "decoder": {"patch_size": 4}}}


def ltx25_audio_vae():
    parts = golden("ltx2_audio", "vae", prefix="audio_vae.") | golden("ltx2_audio", "stages", "F32", prefix="vocoder.")
    return parts, {"audio_vae": AUDIO_VAE, "vocoder": STAGES}


def ltx2_lora(checkpoint):
    return lora(checkpoint()[0], cut="model.diffusion_model.", inside=r"\.transformer_blocks\.\d+\.")


SMALL = dict(small_pictures.PICTURES)  # and those of videos below


def add(name, make):
    SMALL[name] = make


for name in (
    "wan2.1_t2v_1.3B_fp16",
    "wan2.1_t2v_14B_fp8_scaled",
    "wan2.1_i2v_480p_14B_fp16",
    "wan2.1_i2v_720p_14B_fp16",
    "Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ",
    "Wan2_1-I2V-ATI-14B_fp8_e4m3fn",
    "Wan21-WanMove_fp8_scaled_e4m3fn_KJ",
    "chrono_edit_14B_fp16",
    "wan2.1_flf2v_720p_14B_fp16",
    "wan2.1_vace_1.3B_fp16",
    "wan2.1_vace_14B_fp16",
    "wan2.1_fun_control_1.3B_bf16",
    "wan2.1_fun_camera_v1.1_1.3B_bf16",
    "wan2.1_fun_camera_v1.1_14B_bf16",
    "wan2.1_14B_SCAIL_2_fp16",
    "wan2.2_bernini_r_high_noise_fp8_scaled",
    "wan2.2_bernini_r_low_noise_fp8_scaled",
    *(
        f"wan2.2_{kind}_{noise}_noise_14B_fp8_scaled"
        for kind in ("t2v", "i2v", "fun_inpaint", "fun_control")
        for noise in ("high", "low")
    ),
):
    add(f"diffusion_models/{name}", lambda name=name: wan(name))
for name in ("wan_animate_2_int8_convrot", "wan_animate_2_distill_int8_convrot"):
    add(f"diffusion_models/{name}", lambda: in_8_bits(wan("wan_animate_2_bf16")))
add("diffusion_models/wan2.1_14B_SCAIL_2_int8_convrot", lambda: in_8_bits(wan("wan2.1_14B_SCAIL_2_fp16")))
add("diffusion_models/wan2.2_s2v_14B_fp8_scaled", wan_sound)
for name in ("global", "local"):
    add(f"diffusion_models/wan2.2_dancer_14b_{name}_fp8_scaled", lambda name=name: wan_dancer(name))
add("diffusion_models/humo_17B_fp8_e4m3fn", lambda: wan("humo_17B_fp8_e4m3fn", sizes=HUMO))
add("audio_encoders/whisper_large_v3_fp16", lambda: small(FILES["audio_encoders/whisper_large_v3_fp16"](), WHISPER))
for name in ("single", "multi"):
    at = f"model_patches/wan2.1_infiniteTalk_{name}_fp16"
    add(at, lambda at=at: small(FILES[at](), TALK, (("blocks", 4),)))
for name in ("wav2vec2_large_english_fp16", "wav2vec2-chinese-base_fp16"):
    at = f"audio_encoders/{name}"
    add(at, lambda at=at: small(FILES[at](), WAV2VEC2, (("encoder.layers", HEARD_LAYERS),)))
for name in ("umt5_xxl_fp8_e4m3fn_scaled", "umt5_xxl_fp16"):
    add(f"text_encoders/{name}", lambda name=name: umt5(name))
for name in ("wan_2.1_vae", "Wan2_1_VAE_bf16", "wan_alpha_2.1_vae_rgb_channel", "wan_alpha_2.1_vae_alpha_channel"):
    add(f"vae/{name}", lambda name=name: small(FILES[f"vae/{name}"](), WAN_VAE))
for name, of in (
    ("Wan21_CausVid_14B_T2V_lora_rank32", "wan2.1_t2v_14B_fp8_scaled"),
    ("Wan21_CausVid_bidirect2_T2V_1_3B_lora_rank32", "wan2.1_t2v_1.3B_fp16"),
    ("lightx2v_T2V_14B_cfg_step_distill_v2_lora_rank64_bf16", "wan2.1_t2v_14B_fp8_scaled"),
    ("lightx2v_I2V_14B_480p_cfg_step_distill_rank64_bf16", "wan2.1_i2v_480p_14B_fp16"),
    ("wan_alpha_2.1_rgba_lora", "wan2.1_t2v_14B_fp8_scaled"),
    ("wan2.1_SCAIL_2_DPO_lora_bf16", "wan2.1_14B_SCAIL_2_fp16"),
    ("chronoedit_distill_lora", "wan2.1_i2v_720p_14B_fp16"),
    *((f"wan2.2_{kind}_lightx2v_4steps_lora_{version}_{noise}_noise", f"wan2.2_{kind}_{noise}_noise_14B_fp8_scaled")
      for kind in ("t2v", "i2v") for version in ("v1", "v1.1") for noise in ("high", "low")),
):
    add(f"loras/{name}", lambda of=of: lora(wan(of)))
add("clip_vision/clip_vision_h", lambda: small(FILES["clip_vision/clip_vision_h"](), VISION_H, (("layers", 3),)))
add("checkpoints/sam3.1_multiplex_fp16", lambda: golden("sam3_track_nodes", "checkpoint", "F16"))
SIGLIP_FILE = "clip_vision/sigclip_vision_patch14_384"
add(SIGLIP_FILE, lambda: small(FILES[SIGLIP_FILE](), SIGLIP, (("layers", 21),)))  # USO reads the 20th from the end
add(
    "loras/uso-flux1-dit-lora-v1",
    lambda: lora(small(FILES["diffusion_models/flux1-dev"](), FLUX, FLUX_LAYERS)),
)
add("model_patches/uso-flux1-projector-v1", lambda: small(FILES["model_patches/uso-flux1-projector-v1"](), USO))
for name in ("hunyuanvideo1.5_720p_i2v_fp16", "hunyuanvideo1.5_720p_t2v_fp16"):
    at = f"diffusion_models/{name}"
    add(at, lambda at=at: small(FILES[at](), HUNYUAN15, (("double_blocks", 2),)))
for at, sizes, layers in (
    ("text_encoders/byt5_small_glyphxl_fp16", BYT5, (("block", 2),)),
    ("text_encoders/qwen_2.5_vl_7b_fp8_scaled", QWEN25, (("layers", 4), ("blocks", 2))),
    ("text_encoders/clip_l", CLIP_L, (("layers", 3),)),
    ("text_encoders/t5xxl_fp16", T5, (("block", 2),)),
    ("diffusion_models/hunyuan_video_t2v_720p_bf16", HUNYUAN, (("double_blocks", 2), ("single_blocks", 2))),
    ("vae/hunyuan_video_vae_bf16", HUNYUAN_VAE, ()),
):
    add(at, lambda at=at, sizes=sizes, layers=layers: small(FILES[at](), sizes, layers))
for at, layers in (
    ("diffusion_models/qwen_image_2512_fp8_e4m3fn", (("transformer_blocks", 10),)),
    ("controlnet/Qwen-Image-2512-Fun-Controlnet-Union-2602", ()),
):
    add(at, lambda at=at, layers=layers: small(FILES[at](), QWEN_IMAGE, layers))
add("vae/qwen_image_vae", lambda: small(FILES["vae/qwen_image_vae"](), WAN_VAE))
for name in ("qwen_image_2.1_int8_convrot", "qwen_image_2.1_turbo_int8_convrot"):
    at = f"diffusion_models/{name}"
    add(at, lambda: in_8_bits(small(FILES["diffusion_models/qwen_image_2.1_bf16"](), QWEN21, (("transformer_blocks", 2),))))
add(
    "text_encoders/qwen3vl_8b_int8_convrot",
    lambda: in_8_bits(small(FILES["text_encoders/qwen3vl_8b_bf16"](), QWEN3_VL, (("layers", 4), ("blocks", 27)))),
)
for kind in ("t2i", "i2i"):
    add(f"text_encoders/qwen3.5_9b_qwen_image_2.1_pe_{kind}.int8_convrot", qwen35)
add("vae/qwen_image_2.1_vae_bf16", lambda: golden("qwen21_pictures", "vae"))
FLUX3_LAYERS = (("image", 2), ("image_cond", 2), ("txt_mode_blocks", 2), ("single_blocks", 2))
for kind in ("klein", "klein-base"):
    at = f"flux3-image-{kind}"
    add(
        f"diffusion_models/{at}-int8-convrot",
        lambda at=at: in_8_bits(small(FILES[f"diffusion_models/{at}"](), FLUX3, FLUX3_LAYERS)),
    )
add("text_encoders/qwen3vl_4b_int8_convrot", lambda: in_8_bits(plain_qwen3_vl_4b()))
add("text_encoders/qwen3.5_9b_flux3_prompt_upsampler_w4a8", lambda: qwen35(in_w4a8))
add("vae/flux2-vae", flux2_vae)
EDIT = "diffusion_models/qwen_image_edit_2509"


def edit():
    """In 16 bits."""
    plain = small(FILES[f"{EDIT}_fp8_e4m3fn"](), QWEN_IMAGE, (("transformer_blocks", 4),))
    return {name: ("BF16", shape) for name, (_, shape) in plain.items()}


add(f"{EDIT}_int8_convrot", lambda: in_8_bits(edit()))
for name in ("depth_log_stage2", "albedo", "normals"):
    add(f"loras/marigold_v2_{name}", lambda: lora(edit()))
    add(f"vae/marigold_v2_{name}_vae", lambda: small(FILES["vae/qwen_image_vae"](), WAN_VAE))
for name in ("depth", "albedo", "normals"):
    at = f"embeddings/marigold_v2_{name}_conditioning"
    add(at, lambda at=at: small(FILES[at](), QWEN_IMAGE))
add("vae/hunyuanvideo15_vae_fp16", hunyuan15_vae)
add("text_encoders/llava_llama3_fp8_scaled", llama)
add("text_encoders/gemma_3_12B_it", gemma)
add("text_encoders/gemma_3_12B_it_fp4_mixed", lambda: packed_but_tower(gemma()))
add("checkpoints/ltx-video-2b-v0.9", lambda: ltxv(("ltxv_vae", "flow")))
add("checkpoints/ltx-video-2b-v0.9.5", lambda: ltxv(("ltxv_later_vae", "0.9.5")))
add("checkpoints/ltx-2-19b-dev", ltx2)
add("checkpoints/ltx-2-19b-dev-fp8", lambda: (in_fp8(ltx2()[0]), ltx2()[1]))
for name in ("ltx-2.3-22b-dev-fp8", "ltx-2.3-22b-distilled-fp8"):
    add(f"checkpoints/{name}", lambda: (in_fp8(ltx23()[0]), ltx23()[1]))
for name in ("ltx-2-19b-distilled-lora-384", "ltx-2-19b-lora-camera-control-dolly-left", "ltx2-squish"):
    add(f"loras/{name}", lambda: ltx2_lora(ltx2))
for name in (
    "ltx-2.3-22b-ic-lora-ingredients-0.9",
    "ltx-2.3-id-lora-talkvid-3k",
    "ltx2.3-transition",
    "ltx_2.3_22b_distilled_1.1_lora_dynamic_fro09_avg_rank_111_bf16",
):
    add(f"loras/{name}", lambda: ltx2_lora(ltx23))
add(
    "loras/gemma-3-12b-it-abliterated_lora_rank64_bf16",
    lambda: lora(gemma(), "text_encoders.transformer.", inside=r"^model\.layers\.\d+\."),
)
for name, kind, config in (
    ("ltx-2-spatial-upscaler-x2-1.0", "rational", {"rational_spatial_scale": 2.0}),
    ("ltx-2.3-spatial-upscaler-x2-1.1", "plain", {}),
    ("ltx-2.5-latent-spatial-upscaler-x2-bf16-1.0", "plain", {}),
):
    add(
        f"latent_upscale_models/{name}",
        lambda kind=kind, config=config: (golden("latent_upsamplers", kind, sizes={8: 128, 288: 128}), config),
    )


for kind in ("distilled", "dev"):
    add(f"diffusion_models/ltx-2.5-22b-{kind}-transformer-comfy-int8-convrot", ltx25)
add("text_encoders/gemma4-12b-with-proj-ltx-2.5-comfy-int8-convrot", lambda: gemma4("text"))
add("text_encoders/gemma4_e2b_it_int8_convrot", lambda: gemma4("told"))
add("vae/ltx-2.5-video-vae-bf16", ltx25_vae)
add("vae/ltx-2.5-audio-vae-bf16", ltx25_audio_vae)

SMALL.update({name: SMALL[of] for name, of in flux_headers.OWN.items() if of in SMALL})


def write(root, name, ending="safetensors"):
    """OUT/NAME.ENDING, a safetensors file."""
    made = SMALL[name]()
    tensors, config = made if isinstance(made, tuple) else (made, None)
    header, data, source = {"__metadata__": {"format": "pt"}}, [], random.Random(name)
    if config:
        header["__metadata__"]["config"] = json.dumps(config)
    at = 0
    for tensor, (dtype, shape, *content) in tensors.items():
        one = content[0] if content else bytes_of(tensor, dtype, shape, tensors, source)
        header[tensor] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(one)]}
        at += len(one)
        data.append(one)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = Path(root) / f"{name}.{ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join([struct.pack("<Q", len(text)), text, *data]))
    return path


def write_tokenizers(root):
    for name, golden_folder in (("llama3", "hunyuan_first"), ("qwen3.5", "qwen35")):
        folder = Path(root) / "tokenizers" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_bytes((GOLDENS / golden_folder / "tokenizer.json").read_bytes())


def main():
    root, *names = sys.argv[1:]
    write_tokenizers(root)
    for name in names or SMALL:
        path = write(root, name)
        print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
