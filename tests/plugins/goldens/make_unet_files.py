"""Writes unet_files.json: names and shapes of the published checkpoints of Stable Diffusion 1.5, 2.1, SDXL and its
refiner, of those that draw over pictures or change them, unCLIP, Stable Zero123, the x4 upscaler, Lotus, Stable Video Diffusion, SV3D, and of files that go with them: ControlNets, of several kinds of hints, too, and as LoRA, T2I-Adapters,
vision towers of CLIP, IP-Adapters, GLIGEN and PhotoMaker. Of Stable Video Diffusion without its second autoencoder, which nothing
reads; SV3D's, of pictures, draws its frames.

    make_unet_files.py

Needs torch, diffusers and transformers from PyPI: models of the published configurations are made on PyTorch's meta
device, which holds no weights, and named as the checkpoints name them. "parts": {part: {name: shape}}, where each
"{0-27}" in a name stands for all of these numbers; "files": {file: {prefix: part}}; "controls": {file: [[prefix, part]]}. Position_ids are I64, all else is
F16. "visions", "adapters", "gligens" and "photo_makers": as "files", of one part each. flux_headers.py writes files of it; tests/plugins/families/true_files_test.cpp holds the families against it.
"""

import json
import os
import re

import torch
from diffusers import (
    AutoencoderKL,
    AutoencoderKLTemporalDecoder,
    ControlNetModel,
    ControlNetUnionModel,
    T2IAdapter,
    UNet2DConditionModel,
    UNetSpatioTemporalConditionModel,
)
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, CLIPVisionConfig, CLIPVisionModelWithProjection

import original_names

PLAIN, TEXT = "DownBlock2D", "CrossAttnDownBlock2D"
SD = dict(block_out_channels=(320, 640, 1280, 1280), down_block_types=(TEXT, TEXT, TEXT, PLAIN))
SD1 = dict(cross_attention_dim=768, attention_head_dim=8, **SD)
SDXL = dict(addition_embed_type="text_time", addition_time_embed_dim=256, use_linear_projection=True)
UNETS = {
    "sd1": SD1,
    "sd2": dict(cross_attention_dim=1024, attention_head_dim=(5, 10, 20, 20), use_linear_projection=True, **SD),
    "sdxl": dict(
        block_out_channels=(320, 640, 1280),
        down_block_types=(PLAIN, TEXT, TEXT),
        transformer_layers_per_block=(1, 2, 10),
        attention_head_dim=(5, 10, 20),
        cross_attention_dim=2048,
        projection_class_embeddings_input_dim=2816,
        **SDXL,
    ),
    "refiner": dict(
        block_out_channels=(384, 768, 1536, 1536),
        down_block_types=(PLAIN, TEXT, TEXT, PLAIN),
        transformer_layers_per_block=4,
        attention_head_dim=(6, 12, 24, 24),
        cross_attention_dim=1280,
        projection_class_embeddings_input_dim=2560,
        **SDXL,
    ),
    "x4": dict(
        block_out_channels=(256, 512, 512, 1024),
        down_block_types=(PLAIN, TEXT, TEXT, TEXT),
        attention_head_dim=8,
        cross_attention_dim=1024,
        use_linear_projection=True,
        only_cross_attention=(True, True, True, False),
        num_class_embeds=1000,
        in_channels=7,
    ),
}
OUTSIDE = {
    "conv_in.": "input_blocks.0.0.",
    "time_embedding.linear_1.": "time_embed.0.",
    "time_embedding.linear_2.": "time_embed.2.",
    "add_embedding.linear_1.": "label_emb.0.0.",
    "add_embedding.linear_2.": "label_emb.0.2.",
    "class_embedding.weight": "label_emb.weight",
    "conv_norm_out.": "out.0.",
    "conv_out.": "out.2.",
    "mid_block.resnets.0.": "middle_block.0.",
    "mid_block.attentions.0.": "middle_block.1.",
    "mid_block.resnets.1.": "middle_block.2.",
}
RESNET = {
    ".norm1.": ".in_layers.0.",
    ".conv1.": ".in_layers.2.",
    ".time_emb_proj.": ".emb_layers.1.",
    ".norm2.": ".out_layers.0.",
    ".conv2.": ".out_layers.3.",
    ".conv_shortcut.": ".skip_connection.",
}


def shapes_of(model):
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


def original(name, names, layers=2):
    """Residual blocks and the change of size behind them are counted through."""
    found = re.match(r"(down|up)_blocks\.(\d+)\.(\w+)\.(\d+)\.(.*)", name)
    there = name
    if found:
        way, level, kind, index, tail = found[1], int(found[2]), found[3], int(found[4]), found[5]
        first = level * (layers + 1) + (way == "down")
        stage = "input_blocks" if way == "down" else "output_blocks"
        if kind == "downsamplers":
            there = f"{stage}.{first + layers}.0.op.{tail.removeprefix('conv.')}"
        elif kind == "upsamplers":
            last = 2 if f"up_blocks.{level}.attentions.0.norm.weight" in names else 1
            there = f"{stage}.{first + layers}.{last}.{tail}"
        else:
            there = f"{stage}.{first + index}.{int(kind == 'attentions')}.{tail}"
    for here, instead in OUTSIDE.items():
        if name.startswith(here):
            there = instead + name.removeprefix(here)
    if "resnets." in name:
        for here, instead in RESNET.items():
            there = there.replace(here, instead)
    return there


def unet(kind):
    told = dict(UNETS[kind])
    told["up_block_types"] = tuple(block.replace("Down", "Up") for block in reversed(told["down_block_types"]))
    shapes = shapes_of(UNet2DConditionModel(**told))
    return {original(name, shapes): shape for name, shape in shapes.items()}


def original_control(name, names):
    """The original name of a ControlNet's tensor, and whether its UNet has it, too."""
    for here, there in (
        (r"controlnet_mid_block\.", "middle_block_out.0."),
        (r"controlnet_down_blocks\.(\d+)\.", r"zero_convs.\1.0."),
        (r"controlnet_cond_embedding\.conv_in\.", "input_hint_block.0."),
        (r"controlnet_cond_embedding\.conv_out\.", "input_hint_block.14."),
    ):
        if re.match(here, name):
            return re.sub(here, there, name), False
    found = re.match(r"controlnet_cond_embedding\.blocks\.(\d+)\.(.*)", name)
    if found:
        return f"input_hint_block.{2 + 2 * int(found[1])}.{found[2]}", False
    return original(name, names), True


def control_net(kind):
    return shapes_of(ControlNetModel(conditioning_embedding_out_channels=(16, 32, 96, 256), **UNETS[kind]))


def original_control_net(kind):
    shapes = control_net(kind)
    return {original_control(name, shapes)[0]: shape for name, shape in shapes.items()}


def union(kind):
    """What it has besides."""
    plain = control_net(kind)
    model = ControlNetUnionModel(conditioning_embedding_out_channels=(16, 32, 96, 256), **UNETS[kind])
    return {name: shape for name, shape in shapes_of(model).items() if name not in plain}


def control_lora(kind, rank=128):
    """Factors of all matrices and filters that the UNet has, too."""
    shapes, out = control_net(kind), {"lora_controlnet": [0]}
    for name, shape in shapes.items():
        there, is_shared = original_control(name, shapes)
        if is_shared and len(shape) > 1:
            module = there.removesuffix(".weight")
            out[f"{module}.up"] = [shape[0], rank, *([1] * (len(shape) - 2))]
            out[f"{module}.down"] = [rank, *shape[1:]]
        else:
            out[there] = shape
    return out


def adapter_of_publisher():
    """Levels of two blocks each, counted through."""
    out = {}
    for name, shape in shapes_of(T2IAdapter()).items():
        name = name.removeprefix("adapter.")
        name = re.sub(r"body\.(\d+)\.resnets\.(\d+)", lambda found: f"body.{2 * int(found[1]) + int(found[2])}", name)
        out[re.sub(r"body\.(\d+)\.in_conv", lambda found: f"body.{2 * int(found[1])}.in_conv", name)] = shape
    return out


def clip(width, layers, activation):
    heads = width // 64
    config = CLIPTextConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        projection_dim=width,
        hidden_act=activation,
    )
    return shapes_of(CLIPTextModelWithProjection(config))


def clip_l():
    shapes = {name: shape for name, shape in clip(768, 12, "quick_gelu").items() if name != "text_projection.weight"}
    return shapes | {"text_model.embeddings.position_ids": [1, 77]}


def open_clip(width, layers):
    """OpenCLIP's names: queries, keys and values in one."""
    out = {"logit_scale": []}
    for name, shape in clip(width, layers, "gelu").items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        for here, there in (
            ("text_model.embeddings.token_embedding.", "token_embedding."),
            ("text_model.embeddings.position_embedding.weight", "positional_embedding"),
            ("text_model.final_layer_norm.", "ln_final."),
            ("text_model.encoder.layers.", "transformer.resblocks."),
            ("layer_norm", "ln_"),
            ("self_attn.q_proj.", "attn.in_proj_"),
            ("self_attn.out_proj.", "attn.out_proj."),
            ("mlp.fc1", "mlp.c_fc"),
            ("mlp.fc2", "mlp.c_proj"),
            ("text_projection.weight", "text_projection"),
        ):
            name = name.replace(here, there)
        out[name] = [3 * shape[0], *shape[1:]] if "in_proj_" in name else shape
    return out


def tower(width, layers, inner, projected):
    config = CLIPVisionConfig(
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=16,
        projection_dim=projected,
        image_size=224,
        patch_size=14,
    )
    return shapes_of(CLIPVisionModelWithProjection(config)) | {"vision_model.embeddings.position_ids": [1, 257]}


def open_tower(*sizes):
    """OpenCLIP's names."""
    out = {}
    for name, shape in tower(*sizes).items():
        if ".k_proj." in name or ".v_proj." in name or "position_ids" in name:
            continue
        for here, there in (
            ("vision_model.embeddings.class_embedding", "class_embedding"),
            ("vision_model.embeddings.patch_embedding.", "conv1."),
            ("vision_model.embeddings.position_embedding.weight", "positional_embedding"),
            ("vision_model.pre_layrnorm.", "ln_pre."),
            ("vision_model.post_layernorm.", "ln_post."),
            ("vision_model.encoder.layers.", "transformer.resblocks."),
            ("layer_norm", "ln_"),
            ("self_attn.q_proj.", "attn.in_proj_"),
            ("self_attn.out_proj.", "attn.out_proj."),
            ("mlp.fc1", "mlp.c_fc"),
            ("mlp.fc2", "mlp.c_proj"),
        ):
            name = name.replace(here, there)
        if name == "visual_projection.weight":
            name, shape = "proj", shape[::-1]
        out[name] = [3 * shape[0], *shape[1:]] if "in_proj_" in name else shape
    return out


def label(numbers, vector=1280):
    return {"0.0.weight": [vector, numbers], "0.0.bias": [vector], "0.2.weight": [vector, vector], "0.2.bias": [vector]}


def image_projection(kind, context, seen):
    def linear(name, rows, columns):
        return {f"{name}.weight": [rows, columns], f"{name}.bias": [rows]}

    def norm(name, width):
        return {f"{name}.weight": [width], f"{name}.bias": [width]}

    if kind == "plain":
        return linear("proj", 4 * context, seen) | norm("norm", context)
    if kind == "full":
        return linear("proj.0", seen, seen) | linear("proj.2", context, seen) | norm("proj.3", context)
    inner = 768 if context == 768 else 1280
    out = {"latents": [1, 16, inner]} | linear("proj_in", inner, seen) | linear("proj_out", context, inner) | norm("norm_out", context)
    for i in range(4):
        for name in (f"layers.{i}.0.norm1", f"layers.{i}.0.norm2", f"layers.{i}.1.0"):
            out |= norm(name, inner)
        matrices = {"0.to_q": (inner, inner), "0.to_kv": (2 * inner, inner), "0.to_out": (inner, inner)}
        for name, shape in (matrices | {"1.1": (4 * inner, inner), "1.3": (inner, 4 * inner)}).items():
            out[f"layers.{i}.{name}.weight"] = list(shape)
    return out


def ip_adapter(kind, unet_kind, seen):
    """Keys and values of all attentions to the text: on the way down, up, then in the middle."""
    model = UNet2DConditionModel(**(UNETS[unet_kind] | {"up_block_types": tuple(
        block.replace("Down", "Up") for block in reversed(UNETS[unet_kind]["down_block_types"]))}))
    out = {f"image_proj.{name}": shape for name, shape in image_projection(kind, model.config.cross_attention_dim, seen).items()}
    names = [name.removesuffix(".processor") for name in model.attn_processors if "attn2" in name]
    for i, name in enumerate(names):
        for matrix in "kv":
            out[f"ip_adapter.{2 * i + 1}.to_{matrix}_ip.weight"] = list(model.get_submodule(name).to_k.weight.shape)
    return out


def gligen():
    """Of boxes with phrases for Stable Diffusion 1.x: the attentions, by the names of its UNet, and what makes objects."""
    told = UNETS["sd1"] | {"attention_type": "gated"}
    ups = tuple(block.replace("Down", "Up") for block in reversed(told["down_block_types"]))
    shapes = shapes_of(UNet2DConditionModel(**told, up_block_types=ups))
    return {original(name, shapes): shape for name, shape in shapes.items() if ".fuser." in name or name.startswith("position_net.")}


def lotus():
    """The UNet of Stable Diffusion 2.1 by the names of diffusers, with four numbers in place of a label."""
    told = UNETS["sd2"] | {"class_embed_type": "projection", "projection_class_embeddings_input_dim": 4}
    ups = tuple(block.replace("Down", "Up") for block in reversed(told["down_block_types"]))
    return shapes_of(UNet2DConditionModel(**told, up_block_types=ups))


def pix2pix():
    """SDXL's UNet with the names of diffusers, which reads a picture beside the latent."""
    ups = tuple(block.replace("Down", "Up") for block in reversed(UNETS["sdxl"]["down_block_types"]))
    return shapes_of(UNet2DConditionModel(**UNETS["sdxl"], up_block_types=ups, in_channels=8))


def autoencoder(widths=(128, 256, 512, 512)):
    levels = dict(down_block_types=["DownEncoderBlock2D"] * len(widths), up_block_types=["UpDecoderBlock2D"] * len(widths))
    model = AutoencoderKL(block_out_channels=widths, layers_per_block=2, latent_channels=4, **levels)
    return {name: list(tensor.shape) for name, tensor in original_names.autoencoder(model.state_dict()).items()}


def video_unet():
    shapes = shapes_of(UNetSpatioTemporalConditionModel(num_attention_heads=(5, 10, 20, 20)))
    out = {}
    for name, shape in shapes.items():
        there = original(name.replace(".spatial_res_block", ""), shapes)
        there = re.sub(r"temporal_(res_block|transformer_blocks)", "time_stack", there)
        out[re.sub(r"time_pos_embed\.linear_(\d)", lambda found: f"time_pos_embed.{2 * int(found[1]) - 2}", there)] = shape
    return out


def video_autoencoder():
    model = AutoencoderKLTemporalDecoder(
        block_out_channels=(128, 256, 512, 512), down_block_types=["DownEncoderBlock2D"] * 4, layers_per_block=2, latent_channels=4
    )
    parts = {
        "norm1": "in_layers.0", "conv1": "in_layers.2", "norm2": "out_layers.0", "conv2": "out_layers.3",
    }
    out = {}
    for name, tensor in original_names.autoencoder(model.state_dict()).items():
        if name.startswith("quant_conv."):  # of diffusers alone
            continue
        name = name.replace(".spatial_res_block", "").replace(".time_mixer.mix_factor", ".mix_factor")
        name = name.replace("time_conv_out", "conv_out.time_mix_conv")
        name = re.sub(r"temporal_res_block\.(\w+)", lambda found: f"time_stack.{parts[found[1]]}", name)
        out[name] = list(tensor.shape)
    return out


def photo_maker():
    """Beside the tower two projections of its class token, and what puts them into a text's row, 2048 wide."""
    out = tower(1024, 24, 4096, 768) | {"visual_projection_2.weight": [1280, 1024]}
    for module, inside in (("mlp1", 4096), ("mlp2", 2048)):
        for name, shape in (("layernorm", [inside]), ("fc1", [2048, inside]), ("fc2", [2048, 2048])):
            out |= {f"fuse_module.{module}.{name}.weight": shape, f"fuse_module.{module}.{name}.bias": shape[:1]}
    return out | {f"fuse_module.layer_norm.{kind}": [2048] for kind in ("weight", "bias")}


def compressed(tensors):
    """Equal tensors of consecutive numbers under one name, number by number, the last first."""
    entries = [(tuple(re.split(r"(?<=\.)(\d+)(?=\.)", name)), json.dumps(what)) for name, what in tensors.items()]
    for at in range(-2, -2 * max(len(tokens) for tokens, _ in entries), -2):
        groups = {}
        for tokens, what in entries:
            has = len(tokens) >= -at + 1 and tokens[at].isdigit()
            blank = tokens[:at] + ("",) + tokens[at + 1 :] if has else tokens
            groups.setdefault((blank, what, has), []).append(int(tokens[at]) if has else None)
        entries = []
        for (blank, what, has), found in groups.items():
            if not has:
                entries.append((blank, what))
                continue
            found.sort()
            while found:
                first = last = found.pop(0)
                while found and found[0] == last + 1:
                    last = found.pop(0)
                number = str(first) if first == last else f"{{{first}-{last}}}"
                entries.append((blank[:at] + (number,) + blank[at + 1 :], what))
    return {"".join(tokens): json.loads(what) for tokens, what in entries}


def main():
    with torch.device("meta"):
        parts = {kind: unet(kind) for kind in UNETS}
        parts |= {"clip_l": clip_l(), "clip_h": open_clip(1024, 24), "clip_g": open_clip(1280, 32), "vae": autoencoder()}
        parts |= {"lotus": lotus(), "pix2pix_sdxl": pix2pix(), "vae_x4": autoencoder((128, 256, 512))}
        parts |= {f"control_{kind}": original_control_net(kind) for kind in ("sd1", "sd2")}
        parts |= {"control_sdxl": control_net("sdxl"), "union_sdxl": union("sdxl"), "lora_sdxl": control_lora("sdxl")}
        parts |= {
            "adapter_sd1": adapter_of_publisher(),
            "adapter_sdxl": shapes_of(T2IAdapter(adapter_type="full_adapter_xl", downscale_factor=16)),
        }
        # Filters of UNets that read more beside the latent: pictures, or masks, too.
        parts |= {f"first_{width}": {"weight": [320, width, 3, 3]} for width in (8, 9)}
        # What a view or a video is told in, and the matrix that puts a view behind states of a picture.
        parts |= {f"label_{name}": label(numbers) for name, numbers in (("sv3d_u", 256), ("sv3d_p", 1280))}
        parts |= {"view": {"weight": [768, 772], "bias": [768]}, "gligen": gligen()}
        towers = {"l": (1024, 24, 4096, 768), "h": (1280, 32, 5120, 1024), "g": (1664, 48, 8192, 1280)}
        parts |= {f"open_tower_{name}": open_tower(*towers[name]) for name in "lh"}
        parts |= {f"tower_{name}": tower(*towers[name]) for name in "lhg"}
        parts |= {"label_l": label(1536), "label_h": label(2048)}
        parts |= {
            "ip-adapter_sd15": ip_adapter("plain", "sd1", 1024),
            "ip-adapter-plus_sd15": ip_adapter("plus", "sd1", 1280),
            "ip-adapter-full-face_sd15": ip_adapter("full", "sd1", 1280),
            "ip-adapter_sd15_vit-G": ip_adapter("plain", "sd1", 1280),
            "ip-adapter_sdxl": ip_adapter("plain", "sdxl", 1280),
            "ip-adapter-plus_sdxl_vit-h": ip_adapter("plus", "sdxl", 1280),
            "ip-adapter_sdxl_vit-h": ip_adapter("plain", "sdxl", 1024),
        }
        parts |= {"svd": video_unet(), "vae_svd": video_autoencoder(), "photo_maker": photo_maker()}
    encoders = {
        "v1-5-pruned-emaonly-fp16": ("sd1", {"cond_stage_model.transformer.": "clip_l"}),
        "v2-1_768-ema-pruned": ("sd2", {"cond_stage_model.model.": "clip_h"}),
        "sd_xl_base_1.0": ("sdxl", {"conditioner.embedders.0.transformer.": "clip_l", "conditioner.embedders.1.model.": "clip_g"}),
        "sd_xl_refiner_1.0": ("refiner", {"conditioner.embedders.0.model.": "clip_g"}),
    }
    files = {
        f"checkpoints/{name}": {"model.diffusion_model.": kind, "first_stage_model.": "vae", **texts}
        for name, (kind, texts) in encoders.items()
    }
    for name in "lh":
        files[f"checkpoints/sd21-unclip-{name}"] = files["checkpoints/v2-1_768-ema-pruned"] | {
            "model.diffusion_model.label_emb.": f"label_{name}",
            "embedder.model.visual.": f"open_tower_{name}",
        }
    files["checkpoints/x4-upscaler-ema"] = files["checkpoints/v2-1_768-ema-pruned"] | {
        "model.diffusion_model.": "x4", "first_stage_model.": "vae_x4"}
    for name in ("svd", "svd_xt"):
        files[f"checkpoints/{name}"] = {
            "model.diffusion_model.": "svd",
            "first_stage_model.": "vae_svd",
            "conditioner.embedders.0.open_clip.model.visual.": "open_tower_h",
        }
    # What a later part has takes the place of an earlier one's.
    first = "model.diffusion_model.input_blocks.0.0."
    for name, like, width in (
        ("sd-v1-5-inpainting", "v1-5-pruned-emaonly-fp16", 9),
        ("512-inpainting-ema", "v2-1_768-ema-pruned", 9),
        ("sd_xl_base_1.0_inpainting_0.1", "sd_xl_base_1.0", 9),
        ("instruct-pix2pix-00-22000", "v1-5-pruned-emaonly-fp16", 8),
        ("cosxl_edit", "sd_xl_base_1.0", 8),
    ):
        files[f"checkpoints/{name}"] = files[f"checkpoints/{like}"] | {first: f"first_{width}"}
    files["checkpoints/stable_zero123"] = {
        "model.diffusion_model.": "sd1", "first_stage_model.": "vae", first: "first_8", "cond_stage_model.model.visual.": "open_tower_l", "cc_projection.": "view"}
    for name in ("sv3d_u", "sv3d_p"):
        files[f"checkpoints/{name}"] = files["checkpoints/svd"] | {
            "model.diffusion_model.label_emb.": f"label_{name}", "conditioner.embedders.1.encoder.": "vae"}
    files["diffusion_models/lotus-depth-d-v1-1"] = {"": "lotus"}
    files["diffusion_models/sdxl-instructpix2pix-768"] = {"": "pix2pix_sdxl"}
    visions = {"clip_vision_l": "tower_l", "clip_vision_g": "tower_g", "CLIP-ViT-bigG-14-laion2B-39B-b160k": "tower_g", "CLIP-ViT-H-14-laion2B-s32B-b79K": "tower_h"}
    controls = {
        "control_scribble": [["control_model.", "control_sd1"]],
        "control_v11p_sd15_scribble_fp16": [["", "control_sd1"]],
        "control_v11p_sd21_canny": [["", "control_sd2"]],
        "diffusers_xl_canny_full": [["", "control_sdxl"]],
        "controlnet-union-sdxl-1.0": [["", "control_sdxl"], ["", "union_sdxl"]],
        "control-lora-canny-rank128": [["", "lora_sdxl"]],
        "t2iadapter_canny_sd15v2": [["", "adapter_sd1"]],
        "t2i-adapter_diffusers_xl_canny": [["", "adapter_sdxl"]],
    }
    for file, told in files.items():
        print(file, sum(len(parts[part]) for part in told.values()))

    def rows(of):
        return ",\n".join(f"   {json.dumps(key)}: {json.dumps(what)}" for key, what in of.items())

    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet_files.json"), "w") as file:
        texts = ",\n".join(f'  "{part}": {{\n{rows(compressed(shapes))}\n  }}' for part, shapes in parts.items())
        controls = {f"controlnet/{name}": told for name, told in controls.items()}
        beside = {"visions": {f"clip_vision/{name}": {"": part} for name, part in visions.items()}}
        beside["adapters"] = {f"ipadapter/{name}": {"": name} for name in parts if name.startswith("ip-adapter")}
        for name, like in (
            ("ip-adapter_sd15_light", "ip-adapter_sd15"),
            ("ip-adapter_sd15_light_v11", "ip-adapter_sd15"),
            ("ip-adapter-plus-face_sd15", "ip-adapter-plus_sd15"),
            ("ip-adapter-plus-face_sdxl_vit-h", "ip-adapter-plus_sdxl_vit-h"),
        ):
            beside["adapters"][f"ipadapter/{name}"] = {"": like}
        beside["gligens"] = {"gligen/gligen_sd14_textbox_pruned": {"": "gligen"}}
        beside["photo_makers"] = {"photomaker/photomaker-v1": {"id_encoder.": "photo_maker"}}
        more = "".join(f',\n "{kind}": {{\n{rows(told)}\n }}' for kind, told in beside.items())
        file.write(f'{{\n "parts": {{\n{texts}\n }},\n "files": {{\n{rows(files)}\n }},\n "controls": {{\n{rows(controls)}\n }}{more}\n}}\n')


if __name__ == "__main__":
    main()
