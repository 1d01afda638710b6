"""Small files of models of pictures for small_files.py: FLUX.1 and 2, Chroma Radiance, Stable Diffusion (3, too), SDXL, Lumina 2, Z-Image, Qwen-Image
(Edit, too), their encoders, ControlNets, LoRAs and upscalers. `PICTURES` says how each file is made."""

import base64
import json
import re

from small_parts import CLIP_L, FILES, FLUX, FLUX2_VAE, FLUX_LAYERS, QWEN_IMAGE, T5, TEXT, TOKENIZERS, flux_headers, lora, small, with_vocabulary

from packed_forms import in_8_bits, mixed  # small_parts knows its folder

# Widths in the published files, and here. Two heads of each transformer.
RADIANCE = {3072: 256, 9216: 768, 12288: 1024, 15360: 1280, 21504: 1792, 5120: 256, 4096: TEXT}
# Of FLUX.2 klein 4B with Qwen3 4B, of 9B with 8B, and of dev with Mistral Small: texts are three states of the encoder.
KLEIN_4B = {3072: 256, 9216: 768, 18432: 1536, 27648: 2304, 12288: 1024, 7680: 3 * 64, 6144: 512}
KLEIN_9B = {4096: 256, 12288: 768, 24576: 1536, 36864: 2304, 16384: 1024, 8192: 512}
FLUX2_DEV = {6144: 256, 18432: 768, 36864: 1536, 55296: 2304, 24576: 1024, 12288: 512}
QWEN3_4B = {2560: 64, 4096: 256, 1024: 128, 9728: 128}
QWEN3_8B = {4096: 256, 1024: 128, 12288: 768}
MISTRAL = {4096: 128, 1024: 128, 32768: 64}  # it is known by its width
Z_IMAGE = {3840: 256, 11520: 768, 10240: 512, 15360: 1024, 2560: QWEN3_4B[2560]}
Z_IMAGE_LAYERS = (("layers", 2), ("noise_refiner", 1), ("context_refiner", 1))
LUMINA2 = {2304: 192, 3840: 384, 9216: 768}
GEMMA2 = {2304: 192, 2048: 512, 1024: 256, 9216: 256}
# CLIP's larger encoders are known by their layers, which they keep.
CLIP_G = {1280: 128, 5120: 256, 3840: 384}
CLIP_H = {1024: 64, 4096: 128, 3072: 192}
POOLED = CLIP_L[768] + CLIP_G[1280]
# T5 is not narrower than both of CLIP together.
SD3_T5 = {4096: 256, 10240: 96, 64: 4}
SD3 = {2432: 128, 7296: 384, 9728: 512, 14592: 768, 4864: 256, 4096: SD3_T5[4096], 2048: POOLED}
SD3_BLOCKS = 6
# A fifth of a UNet's widths; a sixth of the refiner's, whose texts are SDXL's.
SEEN_G = {1664: 208, 8192: 256, 1280: CLIP_G[1280]}
UNET = {320: 64, 640: 128, 960: 192, 1280: 256, 1920: 384, 2560: 512, 5120: 1024, 10240: 2048}
UNET |= {768: CLIP_L[768], 1024: CLIP_H[1024], 2048: POOLED, 2816: CLIP_G[1280] + 6 * 256}
REFINER = {384: 64, 768: 128, 1152: 192, 1536: 256, 2304: 384, 3072: 512, 6144: 1024, 12288: 2048}
REFINER |= {1280: CLIP_G[1280], 2560: CLIP_G[1280] + 5 * 256}
LAYERS = (("layers", 3),)


def parts_of(whole, parts):
    """Parts of a checkpoint, which have widths of their own: of (prefix, sizes, layers)."""
    out = {}
    for prefix, sizes, layers in parts:
        part = {name.removeprefix(prefix): what for name, what in whole.items() if name.startswith(prefix)}
        out |= {prefix + name: what for name, what in small(part, sizes, layers).items()}
    return out


def flux_checkpoint(name):
    return parts_of(
        FILES[name](),
        (
            ("model.diffusion_model.", FLUX, FLUX_LAYERS),
            ("text_encoders.clip_l.", CLIP_L, LAYERS),
            ("text_encoders.t5xxl.", T5, (("block", 2),)),
            ("vae.", FLUX2_VAE, ()),
        ),
    )


def unet_checkpoint(name):
    base = name.partition("/")[2]
    texts = {
        "cond_stage_model.transformer.": CLIP_L,
        "cond_stage_model.model.": CLIP_H,
        "conditioner.embedders.0.transformer.": CLIP_L,
        "conditioner.embedders.0.model.": CLIP_G,
        "conditioner.embedders.1.model.": CLIP_G,
    }
    depths = (("transformer_blocks", 2),)
    parts = [("model.diffusion_model.", REFINER if "refiner" in base else UNET, depths), ("first_stage_model.", FLUX2_VAE, ())]
    return parts_of(FILES[name](), parts + [(prefix, sizes, LAYERS) for prefix, sizes in texts.items()])


def unet_lora(name):
    """Of as many layers as unet_checkpoint() leaves."""
    numbers = ((re.compile(r"_layers_(\d+)_"), 3), (re.compile(r"_transformer_blocks_(\d+)_"), 2))
    out = {}
    for tensor, what in FILES[name]().items():
        found = [(pattern.search(tensor), keep) for pattern, keep in numbers]
        if all(number is None or int(number[1]) < keep for number, keep in found):
            out[tensor] = what
    return small(out, UNET | {3072: CLIP_L[3072]})


def with_tekken(tensors):
    """Mistral's tokenizer of single bytes."""
    specials = ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[IMG]", "<pad>", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]")
    ranks = (0, 1, 2, 3, 4, 10, 11, 17, 18)
    words = [{"rank": byte, "token_bytes": base64.b64encode(bytes([byte])).decode(), "token_str": None} for byte in range(256)]
    told = {
        "config": {"pattern": " ?\\p{L}+|\\s|[^\\s\\p{L}]+", "default_vocab_size": 1256, "default_num_special_tokens": 1000, "version": "v11"},
        "vocab": words,
        "special_tokens": [{"rank": rank, "token_str": text, "is_control": True} for rank, text in zip(ranks, specials)],
    }
    content = json.dumps(told).encode()
    return {**tensors, "tekken_model": ("U8", (len(content),), content)}


def mistral(name):
    return with_tekken(small(FILES[name](), MISTRAL | {131072: 1256}))


def sd3_checkpoint():
    """Its last block is another than those before."""
    transformer = small(flux_headers.scaled(flux_headers.sd3(2432, 192, SD3_BLOCKS)), SD3)
    parts = (
        ("text_encoders.clip_l.", CLIP_L, LAYERS),
        ("text_encoders.clip_g.", CLIP_G, ()),
        ("text_encoders.t5xxl.", SD3_T5, (("block", 2),)),
        ("first_stage_model.", FLUX2_VAE, ()),
    )
    named = {"model.diffusion_model." + name: what for name, what in transformer.items()}
    return named | parts_of(FILES["checkpoints/sd3.5_large_fp8_scaled"](), parts)


def lumina_checkpoint(name):
    whole = FILES[name]()
    at = "text_encoders.gemma2_2b.transformer."
    parts = (("model.diffusion_model.", LUMINA2, Z_IMAGE_LAYERS), (at, GEMMA2, (("layers", 4),)), ("vae.", FLUX2_VAE, ()))
    texts = with_vocabulary(parts_of(whole, parts), TOKENIZERS / "bpe.model", 400, at + "model.embed_tokens.weight")
    return {name.replace("spiece_model", "text_encoders.spiece_model"): what for name, what in texts.items()}


def small_decoder():
    """Of FLUX.2's latents, by diffusers' names; its decoder is narrower."""
    out = {}
    for name, (dtype, shape) in FILES["vae/full_encoder_small_decoder"]().items():
        is_kept = name.startswith("bn.") or "quant_conv" in name
        out[name] = (dtype, shape if is_kept else tuple((FLUX2_VAE | {96: 32, 192: 32, 384: 64}).get(size, size) for size in shape))
    return out


PICTURES = {}


def add(name, sizes, layers=(), of=None, then=lambda tensors: tensors):
    PICTURES[name] = lambda: then(small(FILES[of or name](), sizes, layers))


for name in (
    "flux1-dev",
    "flux1-dev-fp8",
    "flux1-schnell",
    "flux1-krea-dev_fp8_scaled",
    "flux1-kontext-dev",
    "flux1-fill-dev",
    "flux1-canny-dev",
    "flux.1-fill-dev-OneReward-transformer_fp8",
):
    add(f"diffusion_models/{name}", FLUX, FLUX_LAYERS)
for name in ("checkpoints/flux1-dev-fp8", "checkpoints/flux1-schnell-fp8"):
    PICTURES[name] = lambda name=name: flux_checkpoint(name)
add("vae/ae", FLUX2_VAE)
add("text_encoders/t5xxl_fp8_e4m3fn_scaled", T5, (("block", 2),))
add("style_models/flux1-redux-dev", {1152: 144, 12288: 256, 4096: TEXT})
add("controlnet/instantx_flux_canny", {3072: 256, 12288: 1024, 18432: 1536, 4096: TEXT, 768: CLIP_L[768]}, (("transformer_blocks", 2), ("controlnet_blocks", 2)))
add("loras/flux1-depth-dev-lora", FLUX, FLUX_LAYERS)
PICTURES["loras/removal_timestep_alpha-2-1740"] = lambda: lora(PICTURES["diffusion_models/flux1-fill-dev"]())
add("diffusion_models/chroma-radiance-x0", RADIANCE, FLUX_LAYERS)
for name in ("flux-2-klein-4b", "flux-2-klein-base-4b", "flux-2-klein-base-4b-fp8"):
    add(f"diffusion_models/{name}", KLEIN_4B, FLUX_LAYERS)
add("diffusion_models/flux-2-klein-base-9b-fp8", KLEIN_9B, FLUX_LAYERS)
add("diffusion_models/flux2_dev_fp8mixed", FLUX2_DEV, FLUX_LAYERS)
for name in ("Flux2TurboComfyv2", "Flux_2-Turbo-LoRA_comfyui"):
    PICTURES[f"loras/{name}"] = lambda: lora(PICTURES["diffusion_models/flux2_dev_fp8mixed"]())
for name in ("mistral_3_small_flux2_bf16", "mistral_3_small_flux2_fp8"):
    PICTURES[f"text_encoders/{name}"] = lambda name=name: mistral(f"text_encoders/{name}")
PICTURES["vae/full_encoder_small_decoder"] = small_decoder
add("text_encoders/qwen_3_4b", QWEN3_4B)
add("text_encoders/qwen_3_4b_fp8_mixed", QWEN3_4B, of="text_encoders/qwen_3_4b", then=mixed)
add("text_encoders/qwen_3_8b_fp8mixed", QWEN3_8B)
for name in ("z_image_bf16", "z_image_turbo_bf16"):
    add(f"diffusion_models/{name}", Z_IMAGE, Z_IMAGE_LAYERS)
add("diffusion_models/z_image_turbo_int8_convrot", Z_IMAGE, Z_IMAGE_LAYERS, "diffusion_models/z_image_turbo_bf16", in_8_bits)
PICTURES["checkpoints/NetaYumev35_pretrained_all_in_one"] = lambda: lumina_checkpoint("checkpoints/NetaYumev35_pretrained_all_in_one")
PICTURES["checkpoints/sd3.5_large_fp8_scaled"] = sd3_checkpoint
for name in ("sd3.5_large_controlnet_blur", "sd3.5_large_controlnet_canny"):
    add(f"controlnet/{name}", SD3, (("transformer_blocks", SD3_BLOCKS // 2), ("controlnet_blocks", SD3_BLOCKS // 2)))

QWEN_LAYERS = (("transformer_blocks", 4),)
for name in ("qwen_image_fp8_e4m3fn", "qwen_image_edit_fp8_e4m3fn", "qwen_image_edit_2509_fp8_e4m3fn", "qwen_image_edit_2511_bf16"):
    add(f"diffusion_models/{name}", QWEN_IMAGE, QWEN_LAYERS)
for name in ("Inpainting", "Union"):
    at = f"controlnet/Qwen-Image-InstantX-ControlNet-{name}"
    add(at, QWEN_IMAGE, (("transformer_blocks", 2), ("controlnet_blocks", 2)))
for name in (
    "Qwen-Image-Lightning-4steps-V1.0",
    "Qwen-Image-Lightning-8steps-V1.0",
    "Qwen-Image-2512-Lightning-4steps-V1.0-fp32",
    "Wuli-Qwen-Image-2512-Turbo-LoRA-2steps-V1.0-bf16",
    "qwen-360-diffusion-2512-int8-bf16-v2",
    "illustration-1.0-qwen-image",
    "qwen_image_union_diffsynth_lora",
    "Qwen-Image-Edit-Lightning-4steps-V1.0-bf16",
    "Qwen-Image-Edit-2509-Lightning-4steps-V1.0-bf16",
    "Qwen_Image_Edit_2511-SYSTMS_INFL8",
):
    add(f"loras/{name}", QWEN_IMAGE, QWEN_LAYERS)

for name in (
    "v1-5-pruned-emaonly",
    "v1-5-pruned-emaonly-fp16",
    "Anything-V3.0",
    "v2-1_768-ema-pruned",
    "sd_xl_base_1.0",
    "sd_xl_1.0",
    "sd_xl_turbo_1.0_fp16",
    "sd_xl_refiner_1.0",
):
    PICTURES[f"checkpoints/{name}"] = lambda name=name: unet_checkpoint(f"checkpoints/{name}")
for name in ("epiNoiseoffset_v2", "lcm_lora_sdxl"):
    PICTURES[f"loras/{name}"] = lambda name=name: unet_lora(f"loras/{name}")
for name in ("controlnet/control_scribble", "diffusion_models/lotus-depth-d-v1-1", "embeddings/lotus_conditioning"):
    add(name, UNET, (("transformer_blocks", 2),))
add("vae/vae-ft-mse-840000-ema-pruned", FLUX2_VAE)
add("clip_vision/clip_vision_g", SEEN_G, LAYERS)
for name in ("RealESRGAN_x4plus", "RealESRGAN_x2"):
    add(f"upscale_models/{name}", {}, (("body", 2),))
