"""Writes true_files.json: names, shapes and types of the published files of Qwen-Image, Z-Image, FLUX.2, FLUX 3, ControlNets, model patches and others, by
the names that ComfyUI's examples give them.

    make_true_files.py

Needs torch, diffusers and transformers from PyPI: models of the published configurations are made on PyTorch's meta
device, which holds no weights, and named as ComfyUI's files name them. {file: {name: [type, shape]}}, where "{0-27}" in a
name stands for each of these numbers. flux_headers.py writes files of it; tests/plugins/families/true_files_test.cpp
holds the families against it.
"""

import json
import os
import re
import types

import torch
from diffusers import AutoencoderKLFlux2, AutoencoderKLHunyuanVideo, AutoencoderKLHunyuanVideo15, AutoencoderKLLTX2Video, AutoencoderKLMiniMaxH3, AutoencoderKLMiniMaxH3Audio, AutoencoderKLQwenImage, AutoencoderKLQwenImage21, AutoencoderKLWan, ChromaTransformer2DModel, Flux3Transformer2DModel, FluxControlNetModel, HunyuanVideo15Transformer3DModel, HunyuanVideoTransformer3DModel, Krea2Transformer2DModel, LTX2VideoTransformer3DModel, LTXVideoTransformer3DModel, Lumina2Transformer2DModel, MiniMaxH3Transformer3DModel, QwenImage21Transformer2DModel, QwenImageControlNetModel, QwenImageTransformer2DModel, SD3ControlNetModel, WanAnimateTransformer3DModel, WanTransformer3DModel, WanVACETransformer3DModel, ZImageControlNetModel, ZImageTransformer2DModel
from diffusers.models.autoencoders.ltx2_diffusion_decoder import LTX2VideoDiffusionDecoderModel
from diffusers.pipelines.ltx2.connectors import LTX2ConnectorTransformer1d
from transformers import Gemma2Config, Gemma2ForCausalLM, Gemma3Config, Gemma3ForConditionalGeneration, Gemma3TextConfig, Gemma4AudioConfig, Gemma4Config, Gemma4ForConditionalGeneration, Gemma4TextConfig, Gemma4UnifiedConfig, Gemma4UnifiedForConditionalGeneration, Gemma4UnifiedTextConfig, Gemma4VisionConfig, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen3_5Config, Qwen3_5ForConditionalGeneration, Qwen3Config, Qwen3ForCausalLM, Qwen3VLConfig, Qwen3VLForConditionalGeneration, SiglipVisionConfig, T5Config, T5EncoderModel, UMT5Config, UMT5EncoderModel, Wav2Vec2Config, Wav2Vec2ForCTC, Wav2Vec2ForPreTraining, WhisperConfig, WhisperModel

import make_chroma_goldens
import make_control_goldens
import make_flux2_goldens
import make_flux3_goldens
import make_gemma3_picture_goldens
import make_gemma4_picture_goldens
import make_h3_vae_goldens
import make_hunyuan15_vae_goldens
import make_hunyuan_first_goldens
import make_hunyuan_goldens
import make_krea2_goldens
import make_ltx25_vae_goldens
import make_ltx2_goldens
import make_ltxv_goldens
import make_ltxv_later_vae_goldens
import make_lumina2_goldens
import make_minimax_fun_goldens
import make_minimax_goldens
import make_patch_goldens
import make_qwen21_picture_goldens
import make_sam3_tracker_goldens
import make_sound_encoder_goldens
import make_wan_animate_goldens
import make_wan_dancer_goldens
import make_wan_goldens
import make_wan_sound_goldens
import make_wan_talk_goldens
import make_wan_vace_goldens
import make_workflow_goldens
import moge_reference
import original_names
import rtdetr_reference
from name_patterns import compressed
from seedvr_transformer import Transformer as SeedvrTransformer
from seedvr_vae import Autoencoder as SeedvrAutoencoder

make_workflow_goldens.VAE["num_res_blocks"] = 2


def language(name):
    """Of Qwen2.5-VL as it was published, before transformers put its parts into one model."""
    return name.replace("model.language_model.", "model.").replace("model.visual.", "visual.")


def fused(shapes):
    """Z-Image's original names; queries, keys and values in one tensor."""
    out = {}
    for name, shape in shapes.items():
        if "attention.to_k." in name or "attention.to_v." in name:
            continue
        is_first = "attention.to_q." in name
        out[make_workflow_goldens.z_name(name.replace("to_q.", "qkv."))] = [3 * shape[0], *shape[1:]] if is_first else shape
    return out


def scaled(shapes, inside="model.layers.", but="modulation"):
    """Matrices of the layers in fp8 with a scale each, all else in bf16."""
    out = {"scaled_fp8": ["F8_E4M3", [0]]}
    for name, shape in shapes.items():
        is_matrix = len(shape) == 2 and name.startswith(inside) and but not in name
        out[name] = ["F8_E4M3" if is_matrix else "BF16", shape]
        if is_matrix:
            out[name.removesuffix("weight") + "scale_weight"] = ["F32", []]
    return out


def mixed(shapes, inside):
    """As scaled(), in the way of ComfyUI's files that mix types: matrices of what `inside` matches."""
    out = {}
    for name, shape in shapes.items():
        is_matrix = len(shape) == 2 and re.match(inside, name) is not None
        out[name] = ["F8_E4M3" if is_matrix else "BF16", shape]
        if is_matrix:
            out[name + "_scale"] = ["F32", []]
    return out


def flux2(hidden, doubles, singles, context, is_guided):
    return make_flux2_goldens.original_shapes(
        dict(
            attention_head_dim=128,
            num_attention_heads=hidden // 128,
            in_channels=128,
            joint_attention_dim=context,
            num_layers=doubles,
            num_single_layers=singles,
            guidance_embeds=is_guided,
        )
    )


def flux2_vae(inside, **more):
    """inside: by the publisher's names, the convolutions of latents with their side; else by those of diffusers."""
    state = {name: tensor for name, tensor in AutoencoderKLFlux2(**VAE_LEVELS, **more).state_dict().items() if not name.endswith("tracked")}
    if not inside:
        return {name: list(tensor.shape) for name, tensor in state.items()}
    moved = {"quant_conv.": "encoder.quant_conv.", "post_quant_conv.": "decoder.post_quant_conv."}
    shapes = {}
    for name, tensor in original_names.autoencoder(state).items():
        first = name.split(".")[0] + "."
        shapes[name.replace(first, moved.get(first, first), 1)] = list(tensor.shape)
    return shapes


VAE_LEVELS = dict(down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4, block_out_channels=[128, 256, 512, 512])


def lumina2(shapes):
    """The publisher's names; queries, keys and values in one tensor, and a norm that nobody reads."""
    out = {"norm_final.weight": [2304]}
    for name, shape in shapes.items():
        there = make_lumina2_goldens.original(name)
        if "attention.k." in there or "attention.v." in there:
            continue
        is_first = "attention.q." in there
        rows = shape[0] + 2 * shapes[name.replace("to_q.", "to_k.")][0] if is_first else shape[0]
        out[there.replace("attention.q.", "attention.qkv.")] = [rows, *shape[1:]]
    return out


def flux3(is_distilled):
    """The publisher's names."""
    return {make_flux3_goldens.original(name): shape for name, shape in shapes_of(Flux3Transformer2DModel(flow_map=is_distilled)).items()}


def krea2(shapes):
    """The publisher's names; a block's six modulations stand in one row."""
    named = ((make_krea2_goldens.original(name), shape) for name, shape in shapes.items())
    return {name: make_krea2_goldens.original_shape(name, shape) for name, shape in named}


def qwen21(shapes):
    """ComfyUI's file has both matrices that raise an MLP in one."""
    return {
        name.replace("gate_layer", "gate_up"): [2 * shape[0], shape[1]] if "gate_layer" in name else shape
        for name, shape in shapes.items()
        if ".img_mlp.proj." not in name
    }


def qwen3_vl(width, inner, depth, vision_width, vision_inner, deepstack, layers=36, heads=32):
    """With its vision tower; the names are those of the published files."""
    return Qwen3VLForConditionalGeneration(
        Qwen3VLConfig(
            text_config=dict(
                vocab_size=151936,
                hidden_size=width,
                intermediate_size=inner,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                num_key_value_heads=8,
                head_dim=128,
            ),
            vision_config=dict(
                depth=depth,
                hidden_size=vision_width,
                intermediate_size=vision_inner,
                num_heads=16,
                out_hidden_size=width,
                deepstack_visual_indexes=deepstack,
            ),
        )
    )


def qwen3_5():
    """With its vision tower, 9B and 4B, whose table of tokens is its lm_head, too. Made on the meta device."""
    large = Qwen3_5ForConditionalGeneration(Qwen3_5Config(vision_config=dict(out_hidden_size=4096)))
    text = dict(hidden_size=2560, intermediate_size=9216)
    vision = dict(depth=24, hidden_size=1024, intermediate_size=4096, out_hidden_size=2560)
    small = shapes_of(Qwen3_5ForConditionalGeneration(Qwen3_5Config(text_config=text, vision_config=vision)))
    return {
        "text_encoders/qwen3.5_9b_bf16": typed(shapes_of(large), "BF16"),
        "text_encoders/qwen3.5_4b_bf16": typed({name: shape for name, shape in small.items() if name != "lm_head.weight"}, "BF16"),
    }


def control_nets():
    """By the classes of diffusers, in the names of which they were published. Made on the meta device."""
    large = dict(num_attention_heads=38, joint_attention_dim=None, use_pos_embed=False, force_zeros_for_pooled_projection=False)
    made = {
        "Qwen-Image-InstantX-ControlNet-Union": QwenImageControlNetModel(num_layers=5),
        "Qwen-Image-InstantX-ControlNet-Inpainting": QwenImageControlNetModel(num_layers=6, extra_condition_channels=4),
        "Qwen-Image-2512-Fun-Controlnet-Union-2602": make_control_goldens.FunControl(24, 128, 5),
        "instantx_flux_canny": FluxControlNetModel(num_layers=5, num_single_layers=0, guidance_embeds=True),
        "flux_controlnet_union_pro": FluxControlNetModel(num_layers=5, num_single_layers=10, guidance_embeds=True, num_mode=10),
        "sd3_controlnet_canny": SD3ControlNetModel(num_layers=6, num_attention_heads=24, caption_projection_dim=1536, pos_embed_max_size=192),
    } | {
        f"sd3.5_large_controlnet_{kind}": SD3ControlNetModel(num_layers=19, **large) for kind in ("blur", "canny", "depth")
    }
    files = {f"controlnet/{name}": typed(shapes_of(model), "BF16") for name, model in made.items()}
    for name, tensors in files.items():
        if "sd3.5" in name:
            tensors["control_type"] = ["F32", [1]]
    return files


def model_patches():
    """Of Z-Image by the class of diffusers, of Qwen-Image by that of the generator of goldens."""
    beside = dict(control_refiner_layers_places=[0, 1], control_in_dim=33, add_control_noise_refiner="control_noise_refiner")
    fun = {
        "": ZImageControlNetModel(list(range(0, 30, 5)), control_in_dim=16),
        "-2.1": ZImageControlNetModel(list(range(0, 30, 2)), **beside),
        "-2.1-lite-2602-8steps": ZImageControlNetModel([0, 10, 20], **beside),
    }
    made = {f"Z-Image-Turbo-Fun-Controlnet-Union{name}": model for name, model in fun.items()}
    for kind, width in (("canny", 64), ("depth", 64), ("inpaint", 68)):
        made[f"qwen_image_{kind}_diffsynth_controlnet"] = make_patch_goldens.DiffSynth(width, 3072, 60)
    return {f"model_patches/{name}": typed(shapes_of(model), "BF16") for name, model in made.items()}


def wan(heads, layers, inner, channels=16, sees=False, both=False):
    """Wan 2.1 and 2.2; `sees`: pictures by CLIP's tower, `both`: a first and a last one. Made on the meta device."""
    model = WanTransformer3DModel(
        num_attention_heads=heads,
        num_layers=layers,
        ffn_dim=inner,
        in_channels=channels,
        image_dim=1280 if sees else None,
        added_kv_proj_dim=128 * heads if sees else None,
        pos_embed_seq_len=514 if both else None,
    )
    return shapes_of(model, make_wan_goldens.original)


def wan22():
    """Wan 2.2's 5B: the transformer and its autoencoder."""
    model = WanTransformer3DModel(num_attention_heads=24, num_layers=30, ffn_dim=14336, in_channels=48, out_channels=48)
    vae = AutoencoderKLWan(
        base_dim=160,
        decoder_base_dim=256,
        z_dim=48,
        temperal_downsample=[False, True, True],
        is_residual=True,
        in_channels=12,
        out_channels=12,
        patch_size=2,
    )
    return {
        "diffusion_models/wan2.2_ti2v_5B_fp16": typed(shapes_of(model, make_wan_goldens.original), "F16"),
        "vae/wan2.2_vae": typed(shapes_of(vae, make_qwen21_picture_goldens.vae_name), "F16"),
    }


def wan_vace(heads, layers, inner, beside):
    """Wan 2.1 VACE, with so many layers beside the model's own. Made on the meta device."""
    model = WanVACETransformer3DModel(
        num_attention_heads=heads,
        num_layers=layers,
        ffn_dim=inner,
        vace_layers=list(range(0, layers, layers // beside)),
        vace_in_channels=96,
    )
    return shapes_of(model, make_wan_vace_goldens.original)


def wan_fun(shapes, width, camera=0, reference=0):
    """Wan Fun: what reads a camera of so many numbers a cell, or a picture of so many channels before the video."""
    made = {}
    if camera:
        made["control_adapter.conv"] = [width, camera, 2, 2]
        for k in (1, 2):
            made[f"control_adapter.residual_blocks.0.conv{k}"] = [width, width, 3, 3]
    if reference:
        made["ref_conv"] = [width, reference, 2, 2]
    return shapes | {f"{name}.weight": shape for name, shape in made.items()} | {f"{name}.bias": [width] for name in made}


def wan_animate():
    """Wan 2.2 Animate by the publishers' names, with the constant filters that are in their file. Made on the meta device."""
    at = "motion_encoder.enc.net_app.convs."
    made = {f"{at}{k}.{module}.kernel": [4, 4] for k in range(1, 8) for module in ("conv2.0", "skip.0")}
    for name, tensor in WanAnimateTransformer3DModel(added_kv_proj_dim=5120).state_dict().items():
        there = make_wan_animate_goldens.original(name)
        made[there] = make_wan_animate_goldens.file_shape(there, tensor.shape)
    return made


def wan_sound(shapes):
    """Wan 2.2 S2V: what it has beside the tensors of Wan. Made on the meta device."""
    model = make_wan_sound_goldens.Talk(channels=16, heads=40, head=128, layers=1, injectors=12, states=25, numbers=1024, parts=4)
    return shapes | {name: shape for name, shape in shapes_of(model).items() if not name.startswith("model.")}


def wan_dancer(shapes):
    """WanDancer: what it has beside the tensors of Wan for pictures. Made on the meta device."""
    of = types.SimpleNamespace(num_attention_heads=40, attention_head_dim=128, in_channels=36, out_channels=16)
    return shapes | shapes_of(make_wan_dancer_goldens.Dance(of, numbers=35, width=256, inner=1024, looks=8, seen=1280))


def wan_scail(shapes):
    """SCAIL 2: filters of poses and of coloured masks beside those of Wan for pictures."""
    made = {f"patch_embedding_{name}.weight": [5120, channels, 1, 2, 2] for name, channels in (("pose", 20), ("mask", 28))}
    return shapes | made | {f"patch_embedding_{name}.bias": [5120] for name in ("pose", "mask")}


def wan_talk():
    """InfiniteTalk, a model patch of Wan 2.1. Made on the meta device."""
    return shapes_of(make_wan_talk_goldens.Patch(layers=40, width=5120, numbers=12 * 768, middle=512, tokens=32, context=768))


def wan_files():
    """The transformers of Wan and UMT5, which all of them read, by the publishers' names."""
    small, large, shown = wan(12, 30, 8960), wan(40, 40, 13824), wan(40, 40, 13824, 36)
    seeing, both = wan(40, 40, 13824, 36, True), wan(40, 40, 13824, 36, True, True)
    files = {
        "wan2.1_t2v_1.3B_fp16": typed(small, "F16"),
        "wan2.1_t2v_14B_fp8_scaled": scaled(large, "blocks."),
        "wan2.1_i2v_480p_14B_fp16": typed(seeing, "F16"),
        "wan2.1_i2v_720p_14B_fp16": typed(seeing, "F16"),
        "wan2.1_flf2v_720p_14B_fp16": typed(both, "F16"),
        "wan2.1_vace_1.3B_fp16": typed(wan_vace(12, 30, 8960, 15), "F16"),
        "wan2.1_vace_14B_fp16": typed(wan_vace(40, 40, 13824, 8), "F16"),
        "wan2.1_fun_control_1.3B_bf16": typed(wan(12, 30, 8960, 48, True), "BF16"),
        "wan2.1_fun_camera_v1.1_1.3B_bf16": typed(wan_fun(wan(12, 30, 8960, 32, True), 1536, camera=1536), "BF16"),
        "wan2.1_fun_camera_v1.1_14B_bf16": typed(wan_fun(wan(40, 40, 13824, 32, True), 5120, camera=1536), "BF16"),
    }
    files["wan2.1_14B_SCAIL_2_fp16"] = typed(wan_scail(wan(40, 40, 13824, 20, True)), "F16")
    files["wan2.2_animate_14B_bf16"] = typed(wan_animate(), "BF16")
    files["wan2.2_s2v_14B_fp8_scaled"] = scaled(wan_sound(large), ("blocks.", "audio_injector."))
    files["wan2.2_dancer_14b_global_fp8_scaled"] = scaled(wan_dancer(seeing), ("blocks.", "music_injector."))
    for noise in ("high", "low"):
        files[f"wan2.2_t2v_{noise}_noise_14B_fp8_scaled"] = scaled(large, "blocks.")
        for kind in ("i2v", "fun_inpaint"):
            files[f"wan2.2_{kind}_{noise}_noise_14B_fp8_scaled"] = scaled(shown, "blocks.")
        followed = wan_fun(wan(40, 40, 13824, 52), 5120, reference=16)
        files[f"wan2.2_fun_control_{noise}_noise_14B_fp8_scaled"] = scaled(followed, "blocks.")
    files["Wan2_1-I2V-14B-480p_fp8_e4m3fn_scaled_KJ"] = scaled(seeing, "blocks.")
    files = {f"diffusion_models/{name}": tensors for name, tensors in files.items()}
    for speakers in ("single", "multi"):
        files[f"model_patches/wan2.1_infiniteTalk_{speakers}_fp16"] = typed(wan_talk(), "F16")
    files |= wan22()
    text = shapes_of(UMT5EncoderModel(UMT5Config(vocab_size=256384, d_model=4096, d_ff=10240, num_layers=24, num_heads=64, d_kv=64)))
    text.pop("encoder.embed_tokens.weight", None)  # bound to the first one
    spiece = {"spiece_model": ["U8", [4_548_313]]}
    files["text_encoders/umt5_xxl_fp8_e4m3fn_scaled"] = scaled(text, "encoder.block.", "relative_attention_bias") | spiece
    files["text_encoders/umt5_xxl_fp16"] = typed(text, "F16") | spiece
    return files


def typed(shapes, dtype):
    return {name: [dtype, shape] for name, shape in shapes.items()}


def shapes_of(model, rename=lambda name: name):
    return {rename(name): list(tensor.shape) for name, tensor in model.state_dict().items()}


def h3_autoencoders():
    """MiniMax H3's, by the publishers' names, with the statistics of latents. Made on the meta device."""
    video = make_h3_vae_goldens.original_tensors(AutoencoderKLMiniMaxH3().state_dict())
    shapes = {name: list(tensor.shape) for name, tensor in video.items()} | {"decoder.mask_token": [1, 1, 2048]}
    return {
        "vae/minimax_h3_video_vae_fp16": typed(shapes | {"latents_mean": [24], "latents_std": [24]}, "F16"),
        "vae/minimax_h3_audio_vae_fp32": typed(shapes_of(AutoencoderKLMiniMaxH3Audio()), "F32"),
    }


def hunyuan(model):
    """HunyuanVideo by the publisher's names, which diffusers' script of conversion tells; in 1.5 blocks have queries, keys and
    values apart, the token refiner and 1.0 have them in one tensor."""
    out = {}
    is_first = "single_transformer_blocks.0.proj_out.weight" in model.state_dict()
    for name, shape in shapes_of(model, make_hunyuan_goldens.original).items():
        fused, _ = make_hunyuan_goldens.join(name)
        if fused != name and (is_first or "refiner" in name):
            name, shape = fused, [out.get(fused, [0])[0] + shape[0], *shape[1:]]
            out[name] = shape
            continue
        out[name] = shape
    spelled = {}
    for name, shape in out.items():
        for here, there in (
            ("c_embedder.in_layer.", "c_embedder.linear_1."),
            ("c_embedder.out_layer.", "c_embedder.linear_2."),
            (".in_layer.", ".mlp.0."),
            (".out_layer.", ".mlp.2."),
            ("mod.lin.", "mod.linear."),
            ("modulation.lin.", "modulation.linear."),
            ("_attn.to_", "_attn_"),
            ("_attn.qkv.", "_attn_qkv."),
            ("_attn.norm.query_norm.", "_attn_q_norm."),
            ("_attn.norm.key_norm.", "_attn_k_norm."),
            (".norm.query_norm.", ".q_norm."),
            (".norm.key_norm.", ".k_norm."),
            ("_attn.proj.", "_attn_proj."),
        ):
            name = name.replace(here, there)
        if name.startswith(("double_blocks", "txt_in.individual")):
            name = name.replace("mlp.0.", "mlp.fc1.").replace("mlp.2.", "mlp.fc2.")
        spelled[name] = shape
    return spelled


def hunyuan_files():
    later, first = HunyuanVideo15Transformer3DModel(), HunyuanVideoTransformer3DModel()
    glyphs = T5EncoderModel(T5Config(vocab_size=1510, d_model=1472, d_kv=64, d_ff=3584, num_layers=12, num_heads=6, feed_forward_proj="gated-gelu"))
    llama = LlamaForCausalLM(
        LlamaConfig(vocab_size=128320, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8))
    first_vae = shapes_of(AutoencoderKLHunyuanVideo(), make_hunyuan_first_goldens.vae_name)
    filters = {n: s + [1, 1, 1] if ".attn_1." in n and len(s) == 2 else s for n, s in first_vae.items()}
    return {
        "vae/hunyuan_video_vae_bf16": typed(filters, "BF16"),
        "text_encoders/byt5_small_glyphxl_fp16": typed({n: s for n, s in shapes_of(glyphs).items() if n != "encoder.embed_tokens.weight"}, "F16"),
        "text_encoders/llava_llama3_fp8_scaled": scaled({n: s for n, s in shapes_of(llama).items() if n != "lm_head.weight"}),
        "diffusion_models/hunyuanvideo1.5_720p_t2v_fp16": typed(hunyuan(later), "F16"),
        "diffusion_models/hunyuanvideo1.5_720p_i2v_fp16": typed(hunyuan(later), "F16"),
        "diffusion_models/hunyuan_video_t2v_720p_bf16": typed(hunyuan(first), "BF16"),
        "vae/hunyuanvideo15_vae_fp16": typed(shapes_of(AutoencoderKLHunyuanVideo15(), make_hunyuan15_vae_goldens.original), "F16"),
    }


def seedvr_files():
    """7B is the published kind without shared weights."""
    seven = SeedvrTransformer(d=3072, layers=36, separate=36, gated=False, hidden=12288, language=False)
    return {
        "diffusion_models/seedvr2_3b_fp16": typed(shapes_of(SeedvrTransformer()), "F16"),
        "diffusion_models/seedvr2_7b_fp16": typed(shapes_of(seven), "F16"),
        "vae/seedvr2_ema_vae_fp16": typed(shapes_of(SeedvrAutoencoder()), "F16"),
    }


def minimax(shapes, is_pruned):
    """Single files of MiniMax H3: queries, keys and values in one tensor; what reads and makes latents and times in F32. Pruned ones have a
    table of 1025 times, 8 numbers each, in the place of the network that makes 2688."""
    out = {}
    for name, shape in shapes.items():
        if ".to_k." in name or ".to_v." in name or (is_pruned and name.startswith("time_embedder.")):
            continue
        there = make_minimax_goldens.original(name).replace("to_q", "qkv_proj")
        if ".to_q." in name:
            shape = [3 * shape[0], *shape[1:]]
        if is_pruned and there.endswith("adaln_proj.linear.weight"):
            shape = [shape[0], 8]
        is_wide = there.startswith(("video_patch_proj.", "audio_patch_proj.", "time_embedder.", "final_layer.video_out.", "final_layer.audio_out."))
        out[there] = ["F32" if is_wide else "BF16", shape]
    return out | ({"adaln_t_table": ["F32", [1025, 8]]} if is_pruned else {})


def radiance(chroma):
    """Chroma Radiance of Chroma's shapes: squares of 16 x 16 pixels, pixels of 64 numbers, four times as many between the matrices,
    four networks, 8 waves along a side, a filter for a last layer, and the mark of a model that makes the picture itself."""
    shapes = {name: shape for name, shape in chroma.items() if not name.startswith(("img_in.", "final_layer."))}
    shapes |= {"img_in_patch.weight": [3072, 3, 16, 16], "img_in_patch.bias": [3072]}
    shapes |= {"nerf_image_embedder.embedder.0.weight": [64, 3 + 8 * 8], "nerf_image_embedder.embedder.0.bias": [64]}
    made = 3 * 64 * 64 * 4
    for i in range(4):
        at = f"nerf_blocks.{i}."
        shapes |= {at + "param_generator.weight": [made, 3072], at + "param_generator.bias": [made], at + "norm.scale": [64]}
    last = "nerf_final_layer_conv."
    return shapes | {last + "norm.scale": [64], last + "conv.weight": [3, 64, 3, 3], last + "conv.bias": [3], "__x0__": [0]}


def sound_encoders():
    """Encoders of sound, wav2vec 2.0 by the names of older versions. Made on the meta device."""
    large = Wav2Vec2ForCTC(
        Wav2Vec2Config(
            vocab_size=33,
            hidden_size=1024,
            num_hidden_layers=24,
            num_attention_heads=16,
            intermediate_size=4096,
            feat_extract_norm="layer",
            conv_bias=True,
            do_stable_layer_norm=True,
        )
    )
    older = lambda name: make_sound_encoder_goldens.older(name).removeprefix("wav2vec2.")  # noqa: E731
    whisper = WhisperModel(WhisperConfig(d_model=1280, encoder_layers=32, encoder_attention_heads=20, encoder_ffn_dim=5120, decoder_layers=1, decoder_attention_heads=20, num_mel_bins=128))
    return {
        "audio_encoders/wav2vec2_large_english_fp16": typed(shapes_of(large, older), "F16"),
        "audio_encoders/wav2vec2-chinese-base_fp16": typed(shapes_of(Wav2Vec2ForPreTraining(Wav2Vec2Config()), older), "F16"),
        "audio_encoders/whisper_large_v3_encoder_fp16": typed(shapes_of(whisper.encoder, lambda name: "model.encoder." + name), "F16"),
    }


def gemma4(model):
    """As ComfyUI's files name it; lm_head is the table of tokens."""
    return {name: shape for name, shape in shapes_of(model, gemma4_name).items() if name != "lm_head.weight"}


def gemma4_name(name):
    return make_gemma4_picture_goldens.file_name(name).replace("model.audio_tower.", "audio_model.")


def unread_keys(model):
    """Of layers that have the keys and values of others, the matrices that ComfyUI's files hold all the same."""
    text, shapes = model.config.text_config, shapes_of(model, gemma4_name)
    own = text.num_hidden_layers - text.num_kv_shared_layers
    made = {}
    for layer in range(own, text.num_hidden_layers):
        source = max(i for i in range(own) if text.layer_types[i] == text.layer_types[layer])
        for module in ("k_proj", "v_proj", "k_norm"):
            made[f"model.layers.{layer}.self_attn.{module}.weight"] = shapes[f"model.layers.{source}.self_attn.{module}.weight"]
    return made


def ltx25_files():
    """LTX 2.5's, by the publishers' names, in 16 bits, and its text encoders; of the encoder of videos 2's. Made on the meta device."""
    transformer = LTX2VideoTransformer3DModel(
        gated_attn=True,
        cross_attn_mod=True,
        audio_gated_attn=True,
        audio_cross_attn_mod=True,
        use_prompt_embeddings=False,
        ff_bias=False,
        use_keyframes_abs_pos_embedding=True,
    )
    at = "model.diffusion_model."
    shapes = shapes_of(transformer, lambda name: at + make_ltx2_goldens.original(name))
    for stream, head in (("video", 128), ("audio", 64)):
        connector = LTX2ConnectorTransformer1d(num_attention_heads=32, attention_head_dim=head, num_layers=8, gated_attention=True)
        begin = f"{at}{stream}_embeddings_connector."
        shapes |= shapes_of(connector, lambda name: begin + make_ltx2_goldens.original(name).replace("transformer_blocks", "transformer_1d_blocks").replace("norm_q", "q_norm").replace("norm_k", "k_norm"))
    pattern = lambda layers, every: ["full_attention" if (i + 1) % every == 0 else "sliding_attention" for i in range(layers)]
    dense = Gemma4UnifiedForConditionalGeneration(Gemma4UnifiedConfig(text_config=Gemma4UnifiedTextConfig(hidden_size=3840, intermediate_size=15360, num_hidden_layers=48, num_attention_heads=16, num_key_value_heads=8, head_dim=256, global_head_dim=512, num_global_key_value_heads=1, attention_k_eq_v=True, layer_types=pattern(48, 6)), vision_config={}, audio_config={}))
    told = Gemma4ForConditionalGeneration(Gemma4Config(text_config=Gemma4TextConfig(hidden_size=1536, intermediate_size=6144, num_hidden_layers=35, num_key_value_heads=1, num_kv_shared_layers=20, use_double_wide_mlp=True, layer_types=pattern(35, 5)), vision_config=Gemma4VisionConfig(use_clipped_linears=True), audio_config=Gemma4AudioConfig(use_clipped_linears=True)))
    vocabulary = {"tokenizer_json": ["U8", [32_169_626]]}
    assets = {f"hf_asset__{name}": ["U8", [2_000]] for name in ("chat_template.jinja", "generation_config.json", "processor_config.json", "tokenizer_config.json")}
    projection = {}
    for stream, width in (("video", 4096), ("audio", 2048)):
        module = f"text_embedding_projection.{stream}_aggregate_embed."
        projection |= {module + "weight": [width, 3840 * 49], module + "bias": [width]}
    decoder = LTX2VideoDiffusionDecoderModel().decoder.state_dict()
    joined = {}
    for name, tensor in decoder.items():
        if ".attn.to_q." in name:
            joined[make_ltx25_vae_goldens.original(name.replace("to_q", "qkv"))] = [3 * tensor.shape[0], *tensor.shape[1:]]
        elif ".attn.to_k." not in name and ".attn.to_v." not in name:
            joined[make_ltx25_vae_goldens.original(name)] = list(tensor.shape)
    encoder = AutoencoderKLLTX2Video()
    alternates = {"encoder": True, "decoder": True}
    video = {make_ltxv_later_vae_goldens.original(name, alternates): list(tensor.shape) for name, tensor in encoder.state_dict().items()}
    video = {name: shape for name, shape in video.items() if not name.startswith("decoder.")} | joined | {"decoder.type_emb": [256]}
    return {
        "diffusion_models/ltx-2.5-22b-distilled-transformer-bf16": typed(shapes, "BF16"),
        "text_encoders/gemma4-12b-with-proj-ltx-2.5-bf16": typed(gemma4(dense) | projection, "BF16") | vocabulary | assets,
        "text_encoders/gemma4_e2b_it_bf16": typed(gemma4(told) | unread_keys(told), "BF16") | vocabulary,
        "vae/ltx-2.5-video-vae-bf16": typed(video, "BF16"),
    }


def minimax_fun(layers, is_pruned):
    """The Fun ControlNet of MiniMax H3 as ComfyUI's file has it, by the module of the generator of goldens in the published sizes: what reads hints in
    F32, of pruned ones modulations, too, of 8 numbers."""
    control = make_minimax_fun_goldens.Control(layers, 49, 2688, width=5376, heads=56, head=128, inner=14336)
    made = minimax(shapes_of(control), is_pruned)
    made.pop("adaln_t_table", None)
    for name in made:
        if name.startswith("control_proj_in.") or (is_pruned and ".adaln_proj." in name):
            made[name][0] = "F32"
    return made


def main():
    with torch.device("meta"):
        qwen = QwenImageTransformer2DModel()
        vae = AutoencoderKLQwenImage()
        layered, layered_vae = QwenImageTransformer2DModel(use_additional_t_cond=True, use_layer3d_rope=True), AutoencoderKLQwenImage(input_channels=4)
        z_image = ZImageTransformer2DModel()
        text = Qwen2_5_VLForConditionalGeneration(
            Qwen2_5_VLConfig(
                text_config=dict(
                    vocab_size=152064,
                    hidden_size=3584,
                    intermediate_size=18944,
                    num_hidden_layers=28,
                    num_attention_heads=28,
                    num_key_value_heads=4,
                ),
                vision_config=dict(hidden_size=1280, out_hidden_size=3584, intermediate_size=3420),
            )
        )
        qwen3 = Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=151936,
                hidden_size=2560,
                intermediate_size=9728,
                num_hidden_layers=36,
                num_attention_heads=32,
                num_key_value_heads=8,
                head_dim=128,
                tie_word_embeddings=True,
            )
        )
        qwen3_8b = Qwen3ForCausalLM(
            Qwen3Config(
                vocab_size=151936,
                hidden_size=4096,
                intermediate_size=12288,
                num_hidden_layers=36,
                num_attention_heads=32,
                num_key_value_heads=8,
                head_dim=128,
                tie_word_embeddings=False,
            )
        )
        # Of its 40 layers ComfyUI's file has as many as are read.
        mistral = MistralForCausalLM(
            MistralConfig(
                vocab_size=131072,
                hidden_size=5120,
                intermediate_size=32768,
                num_hidden_layers=30,
                num_attention_heads=32,
                num_key_value_heads=8,
                head_dim=128,
            )
        )
        lumina = Lumina2Transformer2DModel(cap_feat_dim=2304, ffn_dim_multiplier=1.0)
        gemma = Gemma2ForCausalLM(
            Gemma2Config(
                vocab_size=256000,
                hidden_size=2304,
                intermediate_size=9216,
                num_hidden_layers=26,
                num_attention_heads=8,
                num_key_value_heads=4,
                head_dim=256,
            )
        )
        gemma3 = Gemma3ForConditionalGeneration(
            Gemma3Config(
                text_config=Gemma3TextConfig(
                    vocab_size=262208,
                    hidden_size=3840,
                    intermediate_size=15360,
                    num_hidden_layers=48,
                    num_attention_heads=16,
                    num_key_value_heads=8,
                    head_dim=256,
                ),
                vision_config=SiglipVisionConfig(
                    hidden_size=1152,
                    intermediate_size=4304,
                    num_hidden_layers=27,
                    num_attention_heads=16,
                    image_size=896,
                    patch_size=14,
                    vision_use_head=False,
                ),
            )
        )
        krea = Krea2Transformer2DModel()
        klein_3, klein_3_base = flux3(True), flux3(False)
        chroma = make_chroma_goldens.original_shapes(ChromaTransformer2DModel().state_dict())
        qwen3_vl_4b = qwen3_vl(2560, 9728, 24, 1024, 4096, [5, 11, 17])
        qwen_21, qwen21_vae = QwenImage21Transformer2DModel(), AutoencoderKLQwenImage21()
        qwen3_5s = qwen3_5()
        qwen3_vl_8b = qwen3_vl(4096, 12288, 27, 1152, 4304, [8, 16, 24])
        qwen3_vl_32b = qwen3_vl(5120, 25600, 27, 1152, 4304, [8, 16, 24], 64, 64)
        ltxv, ltxv_13b = LTXVideoTransformer3DModel(), LTXVideoTransformer3DModel(attention_head_dim=128, cross_attention_dim=4096, num_layers=48)
        minimax_h3 = MiniMaxH3Transformer3DModel()
        minimax_funs = {
            "MiniMax-H3-Fun-Controlnet-Union": minimax_fun(5, False),
            "minimax_h3_fun_controlnet_union_pruned_bf16": minimax_fun(5, True),
            "minimax_h3_fun_controlnet_union_2.0_pruned_bf16": minimax_fun(10, True),
        }
        controls = control_nets() | model_patches()
        videos = wan_files()
        h3 = h3_autoencoders()
        hunyuans = hunyuan_files()
        seedvrs = seedvr_files()
        ltx25 = ltx25_files()
        heard = sound_encoders()
        flux2_vaes = flux2_vae(True), flux2_vae(False, decoder_block_out_channels=[96, 192, 384, 384])
    mistral_shapes = {name: shape for name, shape in shapes_of(mistral).items() if name not in ("lm_head.weight", "model.norm.weight")}
    gemma_shapes = {name: shape for name, shape in shapes_of(gemma).items() if name != "lm_head.weight"}
    gemma3_shapes = {name: shape for name, shape in shapes_of(gemma3, make_gemma3_picture_goldens.file_name).items() if name != "lm_head.weight"}
    spiece, spiece3 = {"spiece_model": ["U8", [4_241_003]]}, {"spiece_model": ["U8", [4_689_074]]}
    tekken = {"tekken_model": ["U8", [19_399_895]]}
    blocks, layers = r"(double|single)_blocks\.", r"model\.layers\."
    klein_4b, klein_9b = flux2(3072, 5, 20, 7680, False), flux2(4096, 8, 24, 12288, False)
    transformer, z_transformer = shapes_of(qwen), fused(shapes_of(z_image))
    tied = {name: shape for name, shape in shapes_of(qwen3).items() if name != "lm_head.weight"}
    qwen3_vl_shapes = {name: shape for name, shape in shapes_of(qwen3_vl_4b).items() if name != "lm_head.weight"}
    original = make_qwen21_picture_goldens
    qwen21_vae_shapes = {original.vae_name(name): original.vae_shape(name, tensor) for name, tensor in qwen21_vae.state_dict().items()}
    files = {
        "diffusion_models/qwen_image_fp8_e4m3fn": typed(transformer, "F8_E4M3"),
        "diffusion_models/qwen_image_2512_fp8_e4m3fn": typed(transformer, "F8_E4M3"),
        "text_encoders/qwen_2.5_vl_7b_fp8_scaled": scaled(shapes_of(text, language)),
        "vae/qwen_image_vae": typed(shapes_of(vae, make_workflow_goldens.vae_names), "BF16"),
        "diffusion_models/qwen_image_layered_bf16": typed(shapes_of(layered), "BF16"),
        "vae/qwen_image_layered_vae": typed(shapes_of(layered_vae, make_workflow_goldens.vae_names), "BF16"),
        "vae/wan_2.1_vae": typed(shapes_of(vae, make_workflow_goldens.vae_names), "BF16"),
        **videos,
        "diffusion_models/z_image_turbo_bf16": typed(z_transformer, "BF16"),
        "diffusion_models/z_image_bf16": typed(z_transformer, "BF16"),
        "text_encoders/qwen_3_4b": typed(tied, "BF16"),
        "diffusion_models/flux-2-klein-4b": typed(klein_4b, "BF16"),
        "diffusion_models/flux-2-klein-base-4b": typed(klein_4b, "BF16"),
        "diffusion_models/flux-2-klein-base-4b-fp8": mixed(klein_4b, blocks),
        "diffusion_models/flux-2-klein-base-9b-fp8": mixed(klein_9b, blocks),
        "diffusion_models/flux2_dev_fp8mixed": mixed(flux2(6144, 8, 48, 15360, True), blocks),
        "diffusion_models/flux3-image-klein": typed(klein_3, "BF16"),
        "diffusion_models/flux3-image-klein-base": typed(klein_3_base, "BF16"),
        "text_encoders/qwen_3_8b_fp8mixed": mixed(shapes_of(qwen3_8b), layers),
        "text_encoders/mistral_3_small_flux2_bf16": typed(mistral_shapes, "BF16") | tekken,
        "text_encoders/mistral_3_small_flux2_fp8": mixed(mistral_shapes, layers) | tekken,
        "diffusion_models/lumina_2_model_bf16": typed(lumina2(shapes_of(lumina)), "BF16"),
        "text_encoders/gemma_2_2b_fp16": typed(gemma_shapes, "F16") | spiece,
        "text_encoders/gemma_3_12B_it": typed(gemma3_shapes, "BF16") | spiece3,
        "diffusion_models/Chroma1-HD-fp8mixed": mixed(chroma, blocks),
        "diffusion_models/chroma-radiance-x0": typed(radiance(chroma), "BF16"),
        "diffusion_models/krea2_turbo_fp8_scaled": mixed(krea2(shapes_of(krea)), r"(txtfusion\..*_)?blocks\."),
        "text_encoders/qwen3vl_4b_fp8_scaled": mixed(qwen3_vl_shapes, r"model\.language_model\.layers\."),
        "diffusion_models/qwen_image_2.1_bf16": typed(qwen21(shapes_of(qwen_21)), "BF16"),
        "text_encoders/qwen3vl_8b_bf16": typed(shapes_of(qwen3_vl_8b), "BF16"),
        "text_encoders/qwen3vl_32b_bf16": typed(shapes_of(qwen3_vl_32b), "BF16"),
        **qwen3_5s,
        "vae/qwen_image_2.1_vae_bf16": typed(qwen21_vae_shapes, "BF16"),
        "diffusion_models/ltx-video-2b-v0.9": typed(shapes_of(ltxv, make_ltxv_goldens.original), "BF16"),
        "diffusion_models/ltxv-13b-0.9.7-dev": typed(shapes_of(ltxv_13b, make_ltxv_goldens.original), "BF16"),
        "diffusion_models/minimax_h3_fl2va_bf16": minimax(shapes_of(minimax_h3), False),
        "diffusion_models/minimax_h3_fl2va_pruned_bf16": minimax(shapes_of(minimax_h3), True),
        **{f"model_patches/{name}": shapes for name, shapes in minimax_funs.items()},
        "vae/flux2-vae": typed(flux2_vaes[0], "F32"),
        "vae/full_encoder_small_decoder": typed(flux2_vaes[1], "F32"),
        "checkpoints/sam3.1_multiplex_fp16": typed(make_sam3_tracker_goldens.true_file(), "F16"),
        "geometry_estimation/moge_1_vitl_fp16": typed(moge_reference.true_file(moge_reference.true_first), "F16"),
        "geometry_estimation/moge_2_vitl_normal_fp16": typed(moge_reference.true_file(moge_reference.true_second), "F16"),
        "diffusion_models/rt_detr_v4-x-hgnet_fp16": rtdetr_reference.true_file(),
        **h3,
        **hunyuans,
        **seedvrs,
        **ltx25,
        **heard,
        **controls,
    }
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "true_files.json"), "w") as file:
        texts = []
        for name, tensors in files.items():
            rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(what)}" for key, what in compressed(tensors).items())
            texts.append(f' "{name}": {{\n{rows}\n }}')
            print(name, len(tensors))
        file.write("{\n" + ",\n".join(texts) + "\n}\n")


if __name__ == "__main__":
    main()
