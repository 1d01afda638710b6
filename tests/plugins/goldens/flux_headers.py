"""Header-only checkpoints of the true size of FLUX.1, FLUX.2, Qwen-Image, Z-Image, Lumina 2, Krea 2, Stable Diffusion, SDXL and Wan: the names, shapes and
types of the published files over sparse zeros, so that planning can be tested on a 24 GB model that takes 100 kB of disk.

    flux_headers.py OUT [FILE ...]

writes the files of true_files.json (make_true_files.py) and unet_files.json (make_unet_files.py),
OUT/diffusion_models/{flux1-dev,flux1-schnell,flux1-dev-fp8,flux1-krea-dev_fp8_scaled,flux1-kontext-dev,
flux1-fill-dev,flux1-canny-dev}.safetensors,
OUT/checkpoints/{flux1-dev-fp8,flux1-schnell-fp8}.safetensors,
OUT/text_encoders/{clip_l,t5xxl_fp16}.safetensors, OUT/vae/ae.safetensors, what FLUX.1 Redux needs, those of Stable
Diffusion 3 and 3.5, the models and LoRAs of Qwen-Image Edit, LTX's files (ltx_headers.py), LoRAs of UNets and upscalers (classic_headers.py), or only the files named (such as vae/ae). Needs nothing but Python.
"""

import argparse
import json
import os
import re
import struct

import classic_headers
import ltx_headers
import packed_forms
from name_patterns import expanded

BYTES = {"F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1, "I8": 1, "BOOL": 1, "I64": 8}


def linear(out, name, rows, columns):
    out[f"{name}.weight"], out[f"{name}.bias"] = (rows, columns), (rows,)


def flux(
    guidance,
    hidden=3072,
    head=128,
    mlp=12288,
    doubles=19,
    singles=38,
    context=4096,
    pooled=768,
    token=64,
    beside=0,
):
    """`beside`: numbers of a token that stand beside the noisy ones, of a picture or a mask."""
    out = {}
    linear(out, "img_in", hidden, token + beside)
    linear(out, "txt_in", hidden, context)
    for name, width in [("time_in", 256), ("vector_in", pooled)] + [
        ("guidance_in", 256)
    ] * guidance:
        linear(out, f"{name}.in_layer", hidden, width)
        linear(out, f"{name}.out_layer", hidden, hidden)
    for i in range(doubles):
        for side in ("img", "txt"):
            at = f"double_blocks.{i}.{side}_"
            linear(out, f"{at}mod.lin", 6 * hidden, hidden)
            linear(out, f"{at}attn.qkv", 3 * hidden, hidden)
            out[f"{at}attn.norm.query_norm.scale"] = out[f"{at}attn.norm.key_norm.scale"] = (head,)
            linear(out, f"{at}attn.proj", hidden, hidden)
            linear(out, f"{at}mlp.0", mlp, hidden)
            linear(out, f"{at}mlp.2", hidden, mlp)
    for i in range(singles):
        at = f"single_blocks.{i}."
        linear(out, f"{at}modulation.lin", 3 * hidden, hidden)
        linear(out, f"{at}linear1", 3 * hidden + mlp, hidden)
        linear(out, f"{at}linear2", hidden, hidden + mlp)
        out[f"{at}norm.query_norm.scale"] = out[f"{at}norm.key_norm.scale"] = (head,)
    linear(out, "final_layer.adaLN_modulation.1", 2 * hidden, hidden)
    linear(out, "final_layer.linear", token, hidden)
    return out


def clip_l(width=768, layers=12, vocabulary=49408, positions=77):
    out = {
        "text_model.embeddings.token_embedding.weight": (vocabulary, width),
        "text_model.embeddings.position_embedding.weight": (positions, width),
    }
    for i in range(layers):
        at = f"text_model.encoder.layers.{i}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(out, f"{at}self_attn.{name}", width, width)
        linear(out, f"{at}mlp.fc1", 4 * width, width)
        linear(out, f"{at}mlp.fc2", width, 4 * width)
        for name in ("layer_norm1", "layer_norm2"):
            out[f"{at}{name}.weight"] = out[f"{at}{name}.bias"] = (width,)
    out["text_model.final_layer_norm.weight"] = out["text_model.final_layer_norm.bias"] = (width,)
    return out


def t5xxl(width=4096, inner=4096, mlp=10240, heads=64, layers=24, vocabulary=32128, buckets=32):
    out = {"shared.weight": (vocabulary, width), "encoder.embed_tokens.weight": (vocabulary, width)}
    for i in range(layers):
        at = f"encoder.block.{i}.layer."
        for name in "qkv":
            out[f"{at}0.SelfAttention.{name}.weight"] = (inner, width)
        out[f"{at}0.SelfAttention.o.weight"] = (width, inner)
        out[f"{at}0.layer_norm.weight"] = out[f"{at}1.layer_norm.weight"] = (width,)
        out[f"{at}1.DenseReluDense.wi_0.weight"] = out[f"{at}1.DenseReluDense.wi_1.weight"] = (
            mlp,
            width,
        )
        out[f"{at}1.DenseReluDense.wo.weight"] = (width, mlp)
    out["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = (buckets, heads)
    out["encoder.final_layer_norm.weight"] = (width,)
    return out


def autoencoder(channels=(128, 256, 512, 512), latent=16):
    out = {}

    def conv(name, rows, columns, size=3):
        out[f"{name}.weight"], out[f"{name}.bias"] = (rows, columns, size, size), (rows,)

    def norm(name, width):
        out[f"{name}.weight"] = out[f"{name}.bias"] = (width,)

    def resnet(name, before, after):
        norm(f"{name}.norm1", before)
        conv(f"{name}.conv1", after, before)
        norm(f"{name}.norm2", after)
        conv(f"{name}.conv2", after, after)
        if before != after:
            conv(f"{name}.nin_shortcut", after, before, 1)

    def middle(side, width):
        for i in (1, 2):
            resnet(f"{side}.mid.block_{i}", width, width)
        norm(f"{side}.mid.attn_1.norm", width)
        for name in ("q", "k", "v", "proj_out"):
            conv(f"{side}.mid.attn_1.{name}", width, width, 1)

    conv("encoder.conv_in", channels[0], 3)
    before = channels[0]
    for level, width in enumerate(channels):
        for i in range(2):
            resnet(f"encoder.down.{level}.block.{i}", before, width)
            before = width
        if level + 1 < len(channels):
            conv(f"encoder.down.{level}.downsample.conv", width, width)
    middle("encoder", before)
    norm("encoder.norm_out", before)
    conv("encoder.conv_out", 2 * latent, before)
    conv("decoder.conv_in", before, latent)
    middle("decoder", before)
    for level, width in reversed(list(enumerate(channels))):
        for i in range(3):
            resnet(f"decoder.up.{level}.block.{i}", before, width)
            before = width
        if level > 0:
            conv(f"decoder.up.{level}.upsample.conv", width, width)
    norm("decoder.norm_out", before)
    conv("decoder.conv_out", 3, before)
    return out


def typed(shapes, dtype, prefix=""):
    return {prefix + name: (dtype, shape) for name, shape in shapes.items()}


def scaled(shapes):
    """Matrices in fp8 with a scale each, everything else in bf16."""
    out = {"scaled_fp8": ("F8_E4M3", (2,))}
    for name, shape in shapes.items():
        is_matrix = len(shape) == 2
        out[name] = ("F8_E4M3" if is_matrix else "BF16", shape)
        if is_matrix:
            out[name.removesuffix("weight") + "scale_weight"] = ("F32", ())
    return out


def checkpoint(guidance):
    """All in one, as ComfyUI saves it: T5's token table once, CLIP's projection and logit scale."""
    clip = {**clip_l(), "text_projection.weight": (768, 768)}
    t5 = {name: shape for name, shape in t5xxl().items() if name != "encoder.embed_tokens.weight"}
    return {
        **typed(flux(guidance), "F8_E4M3", "model.diffusion_model."),
        **typed(clip, "F16", "text_encoders.clip_l.transformer."),
        **typed({"logit_scale": ()}, "F32", "text_encoders.clip_l."),
        **typed(t5, "F8_E4M3", "text_encoders.t5xxl.transformer."),
        **typed(autoencoder(), "F32", "vae."),
    }


FILES = {
    "diffusion_models/flux1-dev": lambda: typed(flux(True), "BF16"),
    "diffusion_models/flux1-schnell": lambda: typed(flux(False), "BF16"),
    "diffusion_models/flux1-dev-fp8": lambda: typed(flux(True), "F8_E4M3"),
    "diffusion_models/flux1-krea-dev_fp8_scaled": lambda: scaled(flux(True)),
    "diffusion_models/flux1-kontext-dev": lambda: typed(flux(True), "BF16"),
    "diffusion_models/flux1-fill-dev": lambda: typed(flux(True, beside=320), "BF16"),
    "diffusion_models/flux1-canny-dev": lambda: typed(flux(True, beside=64), "BF16"),
    "checkpoints/flux1-dev-fp8": lambda: checkpoint(True),
    "checkpoints/flux1-schnell-fp8": lambda: checkpoint(False),
    "text_encoders/clip_l": lambda: typed(clip_l(), "F16"),
    "text_encoders/t5xxl_fp16": lambda: typed(t5xxl(), "F16"),
    "vae/ae": lambda: typed(autoencoder(), "F32"),
}


def lora(of, rank=16):
    """A LoRA of a file's blocks, of no published file: by the names that ComfyUI's own files have."""
    out = {}
    for name, (_, shape) in FILES[of]().items():
        if "blocks." in name and len(shape) == 2:
            module = "diffusion_model." + name.removesuffix(".weight")
            out[module + ".lora_A.weight"] = ("BF16", (rank, shape[1]))
            out[module + ".lora_B.weight"] = ("BF16", (shape[0], rank))
    return out


def control_lora(rank=128):
    """FLUX.1's Canny and Depth: of every linear layer, with biases, the first one's wider than the model's; and norms."""
    out = {}
    for name, shape in flux(True, beside=64).items():
        if name.endswith(".scale"):
            out[name] = shape
        elif name.endswith(".weight"):
            at = name.removesuffix("weight")
            out[f"{at}lora_A.weight"], out[f"{at}lora_B.weight"] = (rank, shape[1]), (shape[0], rank)
            out[f"{at}lora_B.bias"] = (shape[0],)
    return out


for kind in ("canny", "depth"):
    FILES[f"loras/flux1-{kind}-dev-lora"] = lambda: typed(control_lora(), "BF16")

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "true_files.json")) as true_files:
    FILES.update({name: lambda told=told: expanded(told) for name, told in json.load(true_files).items()})
def together(parts):
    """A checkpoint of these files, each behind a prefix; a tokenizer stands by itself."""
    out = {}
    for file, prefix in parts:
        for name, what in FILES[file]().items():
            out["text_encoders.spiece_model" if name == "spiece_model" else prefix + name] = what
    return out


FILES["checkpoints/NetaYumev35_pretrained_all_in_one"] = lambda: together(
    (
        ("diffusion_models/lumina_2_model_bf16", "model.diffusion_model."),
        ("text_encoders/gemma_2_2b_fp16", "text_encoders.gemma2_2b.transformer."),
        ("vae/ae", "vae."),
    )
)
for turbo in ("Flux2TurboComfyv2", "Flux_2-Turbo-LoRA_comfyui"):
    FILES[f"loras/{turbo}"] = lambda: lora("diffusion_models/flux2_dev_fp8mixed")


def edit_lora():
    """Of rank 64, for all of a block's layers, by their names in diffusers."""
    out = {}
    for i in range(60):
        for module, rows, columns in (
            *((f"attn.{name}", 3072, 3072) for name in ("to_q", "to_k", "to_v", "to_out.0")),
            *((f"attn.{name}", 3072, 3072) for name in ("add_q_proj", "add_k_proj", "add_v_proj", "to_add_out")),
            *((f"{stream}_mlp.net.0.proj", 12288, 3072) for stream in ("img", "txt")),
            *((f"{stream}_mlp.net.2", 3072, 12288) for stream in ("img", "txt")),
            *((f"{stream}_mod.1", 18432, 3072) for stream in ("img", "txt")),
        ):
            at = f"transformer_blocks.{i}.{module}"
            out[f"{at}.lora_down.weight"], out[f"{at}.lora_up.weight"] = (64, columns), (rows, 64)
    return out


def siglip(width=1152, mlp=4304, layers=27, positions=729):
    """The tower of so400m, without its pooling head, which nobody reads."""
    out = {}
    at = "vision_model.embeddings"
    out[f"{at}.patch_embedding.weight"], out[f"{at}.patch_embedding.bias"] = (width, 3, 14, 14), (width,)
    out[f"{at}.position_embedding.weight"] = (positions, width)
    for i in range(layers):
        at = f"vision_model.encoder.layers.{i}"
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            linear(out, f"{at}.self_attn.{name}", width, width)
        linear(out, f"{at}.mlp.fc1", mlp, width)
        linear(out, f"{at}.mlp.fc2", width, mlp)
        for name in ("layer_norm1", "layer_norm2"):
            out[f"{at}.{name}.weight"], out[f"{at}.{name}.bias"] = (width,), (width,)
    out["vision_model.post_layernorm.weight"], out["vision_model.post_layernorm.bias"] = (width,), (width,)
    return out


def redux():
    out = {}
    linear(out, "redux_up", 12288, 1152)
    linear(out, "redux_down", 4096, 12288)
    return out


def sd3(hidden, side, blocks, duals=0, normed=True):
    """A transformer of Stable Diffusion 3; `side` of its table of positions, `duals` blocks with a second attention."""
    out = {"pos_embed": (1, side * side, hidden), "x_embedder.proj.bias": (hidden,)}
    out["x_embedder.proj.weight"] = (hidden, 16, 2, 2)
    linear(out, "context_embedder", hidden, 4096)
    for name, width in (("t_embedder", 256), ("y_embedder", 2048)):
        linear(out, f"{name}.mlp.0", hidden, width)
        linear(out, f"{name}.mlp.2", hidden, hidden)
    for i in range(blocks):
        for stream in ("x_block", "context_block"):
            at, ends = f"joint_blocks.{i}.{stream}", stream != "x_block" and i + 1 == blocks
            dual = stream == "x_block" and i < duals
            linear(out, f"{at}.adaLN_modulation.1", (2 if ends else 9 if dual else 6) * hidden, hidden)
            for attention in ("attn", "attn2")[: 1 + dual]:
                linear(out, f"{at}.{attention}.qkv", 3 * hidden, hidden)
                for norm in ("ln_q", "ln_k") if normed else ():
                    out[f"{at}.{attention}.{norm}.weight"] = (64,)
                if not ends:
                    linear(out, f"{at}.{attention}.proj", hidden, hidden)
            if not ends:
                linear(out, f"{at}.mlp.fc1", 4 * hidden, hidden)
                linear(out, f"{at}.mlp.fc2", hidden, 4 * hidden)
    linear(out, "final_layer.adaLN_modulation.1", 2 * hidden, hidden)
    linear(out, "final_layer.linear", 64, hidden)
    return out


def clip_g():
    return {**clip_l(1280, 32), "text_projection.weight": (1280, 1280)}


def sd3_checkpoint(transformer):
    """With all three encoders."""
    clip = {**clip_l(), "text_projection.weight": (768, 768)}
    t5 = {name: shape for name, shape in t5xxl().items() if name != "encoder.embed_tokens.weight"}
    return {
        **{"model.diffusion_model." + name: what for name, what in transformer.items()},
        **typed(clip, "F16", "text_encoders.clip_l.transformer."),
        **typed(clip_g(), "F16", "text_encoders.clip_g.transformer."),
        **typed(t5, "F8_E4M3", "text_encoders.t5xxl.transformer."),
        **typed(autoencoder(), "BF16", "first_stage_model."),
    }


def sd3_large():
    return sd3(2432, 192, 38)


def sd3_medium():
    return sd3(1536, 384, 24, 13)


FILES["checkpoints/sd3.5_large_fp8_scaled"] = lambda: sd3_checkpoint(scaled(sd3_large()))
FILES["checkpoints/sd3_medium_incl_clips_t5xxlfp8"] = lambda: sd3_checkpoint(
    typed(sd3(1536, 192, 24, normed=False), "F16")
)
for file, transformer in (("sd3.5_large", sd3_large), ("sd3.5_medium", sd3_medium)):
    FILES[f"checkpoints/{file}"] = lambda transformer=transformer: {  # without encoders
        **typed(transformer(), "F16", "model.diffusion_model."),
        **typed(autoencoder(), "BF16", "first_stage_model."),
    }
FILES["text_encoders/clip_g"] = lambda: typed(clip_g(), "F16")
FILES["clip_vision/sigclip_vision_patch14_384"] = lambda: typed(siglip(), "F16")
FILES["style_models/flux1-redux-dev"] = lambda: typed(redux(), "BF16")



def numbered(name):
    """What a name of unet_files.json stands for: each "{0-27}" in it for all of these numbers."""
    found = re.search(r"\{(\d+)-(\d+)\}", name)
    if found is None:
        return [name]
    names = (name.replace(found[0], str(number), 1) for number in range(int(found[1]), int(found[2]) + 1))
    return [each for one in names for each in numbered(one)]


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet_files.json")) as unet_files:
    CLASSIC = json.load(unet_files)


def classic(file, channels=4):
    """A checkpoint of Stable Diffusion or SDXL; `channels` that its UNet reads."""
    out = {}
    for prefix, part in CLASSIC["files"][f"checkpoints/{file}"].items():
        for pattern, shape in CLASSIC["parts"][part].items():
            for name in numbered(pattern):
                out[prefix + name] = ("I64" if name.endswith("position_ids") else "F16", tuple(shape))
    first = "model.diffusion_model.input_blocks.0.0.weight"
    dtype, (rows, _, *side) = out[first]
    out[first] = (dtype, (rows, channels, *side))
    return out


for file, like, channels in (
    ("v1-5-pruned-emaonly-fp16", "v1-5-pruned-emaonly-fp16", 4),
    ("v1-5-pruned-emaonly", "v1-5-pruned-emaonly-fp16", 4),
    ("Anything-V3.0", "v1-5-pruned-emaonly-fp16", 4),
    ("sd-v1-5-inpainting", "v1-5-pruned-emaonly-fp16", 9),
    ("v2-1_768-ema-pruned", "v2-1_768-ema-pruned", 4),
    ("512-inpainting-ema", "v2-1_768-ema-pruned", 9),
    ("sd_xl_base_1.0", "sd_xl_base_1.0", 4),
    ("sd_xl_1.0", "sd_xl_base_1.0", 4),
    ("sd_xl_turbo_1.0_fp16", "sd_xl_base_1.0", 4),
    ("sd_xl_refiner_1.0", "sd_xl_refiner_1.0", 4),
    ("sd21-unclip-h", "sd21-unclip-h", 4),
    ("sd21-unclip-l", "sd21-unclip-l", 4),
    ("svd", "svd", 8),
    ("svd_xt", "svd_xt", 8),
    ("sv3d_u", "sv3d_u", 8),
    ("sv3d_p", "sv3d_p", 8),
    ("stable_zero123", "stable_zero123", 8),
    ("instruct-pix2pix-00-22000", "instruct-pix2pix-00-22000", 8),
    ("cosxl_edit", "cosxl_edit", 8),
    ("sd_xl_base_1.0_inpainting_0.1", "sd_xl_base_1.0_inpainting_0.1", 9),
):
    FILES[f"checkpoints/{file}"] = lambda like=like, channels=channels: classic(like, channels)
FILES["diffusion_models/lotus-depth-d-v1-1"] = lambda: {
    name: ("F16", tuple(shape)) for pattern, shape in CLASSIC["parts"]["lotus"].items() for name in numbered(pattern)
}
# What SaveConditioning writes of an empty text.
FILES["embeddings/lotus_conditioning"] = lambda: {"conditioning": ("F32", (1, 77, 1024))}


def sdpose():
    """A UNet of Lotus with a head of heatmaps, and Stable Diffusion's autoencoder, by the names of ComfyUI's modules."""
    at, out = "model.diffusion_model.", {}
    for prefix, part in ((at, "sd2"), ("first_stage_model.", "vae")):
        for pattern, shape in CLASSIC["parts"][part].items():
            for name in numbered(pattern):
                out[prefix + name] = ("F16", tuple(shape))
    head = {"deconv_layers.0.weight": (640, 640, 4, 4), "conv_layers.0.weight": (640, 640, 1, 1), "conv_layers.0.bias": (640,)}
    head |= {"final_layer.weight": (133, 640, 1, 1), "final_layer.bias": (133,)}
    label = {"0.0.weight": (1280, 4), "0.0.bias": (1280,), "0.2.weight": (1280, 1280), "0.2.bias": (1280,)}
    for module, tensors in (("heatmap_head.", head), ("label_emb.", label)):
        out |= {at + module + name: ("F16", shape) for name, shape in tensors.items()}
    return out


FILES["checkpoints/sdpose_wholebody_fp16"] = sdpose
for file, like in (
    ("diffusion_models/minimax_h3_ref2va_pruned_int8_convrot", "diffusion_models/minimax_h3_fl2va_pruned_bf16"),
    ("vae/minimax_h3_video_vae_int8_convrot", "vae/minimax_h3_video_vae_fp16"),
    ("model_patches/minimax_h3_fun_controlnet_union_pruned_int8_convrot", "model_patches/minimax_h3_fun_controlnet_union_pruned_bf16"),
):
    FILES[file] = lambda like=like: packed_forms.in_8_bits(FILES[like]())
# In the place of 4 bits stand those of 16.
FILES["text_encoders/qwen3vl_32b_minimax_h3_nvfp4_awq"] = FILES["text_encoders/qwen3vl_32b_bf16"]
FILES["loras/minimax_h3_ref2v_turbo_4step_v0.1_comfyui_bf16"] = lambda: lora("diffusion_models/minimax_h3_fl2va_pruned_bf16")


def control(file):
    """What goes with such a UNet."""
    out = {}
    for prefix, part in CLASSIC["controls"].get(file) or {**CLASSIC["visions"], **CLASSIC["adapters"], **CLASSIC["photo_makers"]}[file].items():
        for pattern, shape in CLASSIC["parts"][part].items():
            for name in numbered(pattern):
                out[prefix + name] = ("I64" if name.endswith("position_ids") else "F16", tuple(shape))
    return out


for file in (*CLASSIC["controls"], *CLASSIC["visions"], *CLASSIC["adapters"], *CLASSIC["photo_makers"]):
    FILES[file] = lambda file=file: control(file)
for noise in ("high", "low"):
    for kind in ("t2v", "i2v"):
        of = f"diffusion_models/wan2.2_{kind}_{noise}_noise_14B_fp8_scaled"
        for version in ("v1", "v1.1"):
            FILES[f"loras/wan2.2_{kind}_lightx2v_4steps_lora_{version}_{noise}_noise"] = lambda of=of: lora(of, 64)
# Of Wan 2.1, which templates put on its models; and its autoencoder under other names.
for name, of, rank in (
    ("Wan21_CausVid_14B_T2V_lora_rank32", "wan2.1_t2v_14B_fp8_scaled", 32),
    ("lightx2v_T2V_14B_cfg_step_distill_v2_lora_rank64_bf16", "wan2.1_t2v_14B_fp8_scaled", 64),
    ("lightx2v_I2V_14B_480p_cfg_step_distill_rank64_bf16", "wan2.1_i2v_480p_14B_fp16", 64),
    ("wan_alpha_2.1_rgba_lora", "wan2.1_t2v_14B_fp8_scaled", 32),
):
    FILES[f"loras/{name}"] = lambda of=of, rank=rank: lora(f"diffusion_models/{of}", rank)
for name in ("wan_alpha_2.1_vae_rgb_channel", "wan_alpha_2.1_vae_alpha_channel", "Wan2_1_VAE_bf16"):
    FILES[f"vae/{name}"] = FILES["vae/wan_2.1_vae"]
# Wan Animate 2 has the tensors of Wan 2.1 for pictures.
FILES["diffusion_models/wan_animate_2_bf16"] = lambda: typed(
    {key: shape for key, (_, shape) in FILES["diffusion_models/wan2.1_i2v_480p_14B_fp16"]().items()}, "BF16"
)


def in_8_bits(file):
    """As the file of the name int8_convrot, of one in 16 bits."""
    return lambda: packed_forms.in_8_bits(FILES[file]())


for name in ("wan_animate_2_int8_convrot", "wan_animate_2_distill_int8_convrot"):
    FILES[f"diffusion_models/{name}"] = in_8_bits("diffusion_models/wan_animate_2_bf16")
# WanDancer's two files are alike.
FILES["diffusion_models/wan2.2_dancer_14b_local_fp8_scaled"] = FILES["diffusion_models/wan2.2_dancer_14b_global_fp8_scaled"]
# SCAIL 2 likewise; and Bernini has the tensors of Wan 2.2 for texts.
FILES["diffusion_models/wan2.1_14B_SCAIL_2_int8_convrot"] = in_8_bits("diffusion_models/wan2.1_14B_SCAIL_2_fp16")
FILES["loras/wan2.1_SCAIL_2_DPO_lora_bf16"] = lambda: lora("diffusion_models/wan2.1_14B_SCAIL_2_fp16", 64)
for noise in ("high", "low"):
    FILES[f"diffusion_models/wan2.2_bernini_r_{noise}_noise_fp8_scaled"] = FILES[f"diffusion_models/wan2.2_t2v_{noise}_noise_14B_fp8_scaled"]
# ATI, Wan-Move and ChronoEdit, too.
for name, of in (
    ("Wan2_1-I2V-ATI-14B_fp8_e4m3fn", "Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ"),
    ("Wan21-WanMove_fp8_scaled_e4m3fn_KJ", "Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ"),
    ("chrono_edit_14B_fp16", "wan2.1_i2v_720p_14B_fp16"),
):
    FILES[f"diffusion_models/{name}"] = FILES[f"diffusion_models/{of}"]
FILES["loras/chronoedit_distill_lora"] = lambda: lora("diffusion_models/wan2.1_i2v_720p_14B_fp16", 32)


def humo():
    """Wan 2.1 for pictures without what sees them, and in each layer a look at a sound, 16 tokens of 1,536 a frame."""
    out = {}
    for name, (dtype, shape) in FILES["diffusion_models/wan2.1_i2v_720p_14B_fp16"]().items():
        if not name.startswith("img_emb.") and "_img." not in name:
            out[name] = (dtype, shape)
    width, middle, heard, tokens, numbers = 5120, 512, 1536, 16, 8 * 5 * 1280
    for part, (rows, columns) in {"1": (middle, numbers), "2": (middle, middle), "3": (tokens * heard, middle), "norm": (heard, 0)}.items():
        at = f"audio_proj.audio_proj_glob_{part}.layer."
        out[at + "weight"] = ("F16", (rows, columns) if columns else (rows,))
        out[at + "bias"] = ("F16", (rows,))
    for layer in range(40):
        at = f"blocks.{layer}.audio_cross_attn_wrapper."
        for kind in ("weight", "bias"):
            out[at + f"norm1_audio.{kind}"] = ("F16", (width,))
        for part in "qkvo":
            out[at + f"audio_cross_attn.{part}.weight"] = ("F16", (width, heard if part in "kv" else width))
            out[at + f"audio_cross_attn.{part}.bias"] = ("F16", (width,))
        for part in ("norm_q", "norm_k"):
            out[at + f"audio_cross_attn.{part}.weight"] = ("F16", (width,))
    return {name: ("F8_E4M3" if len(shape) == 2 and name.startswith("blocks.") else dtype, shape) for name, (dtype, shape) in out.items()}


FILES["diffusion_models/humo_17B_fp8_e4m3fn"] = humo
FILES["audio_encoders/whisper_large_v3_fp16"] = FILES["audio_encoders/whisper_large_v3_encoder_fp16"]
FILES["clip_vision/clip_vision_h"] = FILES["clip_vision/CLIP-ViT-H-14-laion2B-s32B-b79K"]
FILES["vae/vae-ft-mse-840000-ema-pruned"] = lambda: {
    name: ("F32", tuple(shape)) for pattern, shape in CLASSIC["parts"]["vae"].items() for name in numbered(pattern)
}

# Qwen-Image Edit has the tensors of Qwen-Image; 2511 says by one more how it shows pictures.
DRAWS = FILES["diffusion_models/qwen_image_fp8_e4m3fn"]
for name in ("qwen_image_edit_fp8_e4m3fn", "qwen_image_edit_2509_fp8_e4m3fn"):
    FILES[f"diffusion_models/{name}"] = DRAWS
FILES["diffusion_models/qwen_image_edit_2511_bf16"] = lambda: {
    **{name: ("BF16", shape) for name, (_, shape) in DRAWS().items()},
    "__index_timestep_zero__": ("BF16", (0,)),
}
for name in (
    "Qwen-Image-Lightning-4steps-V1.0",
    "Qwen-Image-Lightning-8steps-V1.0",
    "Wuli-Qwen-Image-2512-Turbo-LoRA-2steps-V1.0-bf16",
    "qwen-360-diffusion-2512-int8-bf16-v2",
    "illustration-1.0-qwen-image",
    "qwen_image_union_diffsynth_lora",
    "Qwen-Image-Edit-Lightning-4steps-V1.0-bf16",
    "Qwen-Image-Edit-2509-Lightning-4steps-V1.0-bf16",
    "Qwen_Image_Edit_2511-SYSTMS_INFL8",
):
    FILES[f"loras/{name}"] = lambda: typed(edit_lora(), "BF16")
FILES["loras/Qwen-Image-2512-Lightning-4steps-V1.0-fp32"] = lambda: typed(edit_lora(), "F32")

for folder, name in [("diffusion_models", "qwen_image_2.1"), ("text_encoders", "qwen3vl_8b")]:
    FILES[f"{folder}/{name}_int8_convrot"] = in_8_bits(f"{folder}/{name}_bf16")
for kind in ("t2i", "i2i"):
    FILES[f"text_encoders/qwen3.5_9b_qwen_image_2.1_pe_{kind}.int8_convrot"] = in_8_bits("text_encoders/qwen3.5_9b_bf16")
# Of the templates of FLUX 3 klein and Marigold v2, too; a file of the name w4a8 stands as that of 16 bits.
for kind in ("klein", "klein-base"):
    FILES[f"diffusion_models/flux3-image-{kind}-int8-convrot"] = in_8_bits(f"diffusion_models/flux3-image-{kind}")
FILES["text_encoders/qwen3vl_4b_int8_convrot"] = lambda: packed_forms.in_8_bits(
    {
        name: ("BF16", shape)
        for name, (_, shape) in FILES["text_encoders/qwen3vl_4b_fp8_scaled"]().items()
        if not name.endswith("_scale")
    }
)
FILES["text_encoders/qwen3.5_9b_flux3_prompt_upsampler_w4a8"] = FILES["text_encoders/qwen3.5_9b_bf16"]
FILES["diffusion_models/qwen_image_edit_2509_int8_convrot"] = lambda: packed_forms.in_8_bits(
    {name: ("BF16", shape) for name, (_, shape) in DRAWS().items()}
)
for name in ("depth_log_stage2", "albedo", "normals"):
    FILES[f"loras/marigold_v2_{name}"] = lambda: typed(edit_lora(), "BF16")
    FILES[f"vae/marigold_v2_{name}_vae"] = FILES["vae/qwen_image_vae"]
for name in ("depth", "albedo", "normals"):
    FILES[f"embeddings/marigold_v2_{name}_conditioning"] = lambda: {"conditioning": ("BF16", (1, 16, 3584))}


def uso(seen=729, tokens=64, width=1152, hidden=3072):
    """USO's projector, by the names that its publisher's class gives."""
    out = {}
    for layer in ("high", "mid", "low"):
        at = f"feature_embedder.{layer}"
        linear(out, f"{at}_embedding_linear.0", tokens, seen)
        out[f"{at}_layer_norm.weight"], out[f"{at}_layer_norm.bias"] = (width,), (width,)
        linear(out, f"{at}_projection", hidden, width)
    return out


FILES["model_patches/uso-flux1-projector-v1"] = lambda: typed(uso(), "BF16")
FILES["loras/uso-flux1-dit-lora-v1"] = lambda: lora("diffusion_models/flux1-dev", 128)
# OneReward's has the tensors of FLUX.1 Fill, all in 8 bits, and a LoRA of any rank.
FILES["diffusion_models/flux.1-fill-dev-OneReward-transformer_fp8"] = lambda: typed(flux(True, beside=320), "F8_E4M3")
FILES["loras/removal_timestep_alpha-2-1740"] = lambda: lora("diffusion_models/flux1-fill-dev", 64)
FILES["text_encoders/t5xxl_fp8_e4m3fn_scaled"] = lambda: scaled(t5xxl())
FILES["diffusion_models/z_image_turbo_int8_convrot"] = lambda: packed_forms.in_8_bits(FILES["diffusion_models/z_image_turbo_bf16"]())
FILES["text_encoders/qwen_3_4b_fp8_mixed"] = lambda: packed_forms.mixed(FILES["text_encoders/qwen_3_4b"]())
FILES.update(classic_headers.files(FILES))
# What the workflows of tests/golden/saved_form ask for.
OWN = {
    "checkpoints/sd15": "checkpoints/v1-5-pruned-emaonly-fp16",
    "checkpoints/sdxl_base": "checkpoints/sd_xl_base_1.0",
    "checkpoints/sdxl_refiner": "checkpoints/sd_xl_refiner_1.0",
    "loras/a": "loras/epiNoiseoffset_v2",
    "loras/sub/c": "loras/epiNoiseoffset_v2",
    "loras/chalk": "loras/uso-flux1-dit-lora-v1",
    "loras/lightning": "loras/Qwen-Image-Lightning-4steps-V1.0",
}
FILES.update({name: FILES[of] for name, of in OWN.items()})
LTX, CONFIGS = ltx_headers.files(FILES)
FILES.update(LTX)


def write(path, tensors, config=None):
    """A safetensors file whose data is one hole, but for the tensors that are given with their content."""
    header, offset, contents = {"__metadata__": {"format": "pt"}}, 0, []
    if config:
        header["__metadata__"]["config"] = json.dumps(config)
    for name, (dtype, shape, *content) in tensors.items():
        size = BYTES[dtype]
        for axis in shape:
            size *= axis
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [offset, offset + size],
        }
        contents += [(offset, one) for one in content]
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
        for begin, content in contents:
            file.seek(8 + len(text) + begin)
            file.write(content)
    print(f"{path}: {len(tensors)} tensors, {offset} bytes of data")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out")
    parser.add_argument("files", nargs="*", metavar="FILE", help=", ".join(FILES))
    args = parser.parse_args()
    unknown = [name for name in args.files if name not in FILES]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(FILES)}")
    for name in args.files or FILES:
        write(os.path.join(args.out, f"{name}.safetensors"), FILES[name](), CONFIGS.get(name))


if __name__ == "__main__":
    main()
