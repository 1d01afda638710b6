"""Writes how diffusers calls the modules of each family, as its own converters of LoRA files rename them.

    make_lora_name_cases.py [OUT]        (default: ../nodes/lora_names.json)

Needs torch and diffusers from PyPI. A LoRA of every matrix of a small model (shapes.json of the folders beside this
file), by the names of the model's publisher, goes through diffusers' converter: factors A say which matrix a module of
the result is of, factors B which of its rows. Some converters know the published width alone, and are given its rows.
The result, for each family:

    {"goldens": folder, "model": of its shapes.json, or a file there, "layers": residual blocks of a level of a UNet,
     "others": {module: tensor, or [[tensor, begin, end], ...]}}

UNets have the names of checkpoints, which diffusers' converter of these renames.

Besides those of diffusers, "others" has the names of the publisher of HunyuanVideo, and of joined matrices.

BY_FILE are models that are tried by the names of their files alone.
"""

import json
import pathlib
import re
import sys

import torch
from diffusers.loaders import lora_conversion_utils as convert
from diffusers.loaders.single_file_utils import convert_ldm_unet_checkpoint
from safetensors import safe_open

from make_unet_files import original

HERE = pathlib.Path(__file__).parent
BY_FILE = {
    "Wan 2.1 VACE": ("wan_vace", "flow"),
    "Wan 2.2 5B": ("wan22", "flow"),
    "Qwen-Image 2.1": ("qwen21", "transformer"),
    "Stable Diffusion 3": ("sd3", "drawn"),
}


def expanded(name):
    numbered = re.search(r"\{(\d+)-(\d+)\}", name)
    if not numbered:
        return [name]
    numbers = range(int(numbered[1]), int(numbered[2]) + 1)
    return [one for i in numbers for one in expanded(name.replace(numbered[0], str(i), 1))]


def shapes_of(folder, model):
    if model.endswith(".safetensors"):
        with safe_open(HERE / folder / model, "pt") as file:
            return {name: file.get_slice(name).get_shape() for name in file.keys()}
    shapes = {}
    for name, told in json.load(open(HERE / folder / "shapes.json"))[model].items():
        name = name.removeprefix(model + ".")  # some files hold several models
        shape = told[0] if told and isinstance(told[0], list) else told
        shapes |= {one: shape for one in expanded(name)}
    return shapes


def parts_of(tensor, shape, rows):
    """A tensor's name where it is whole, else what of it stands one after another."""
    parts = []
    for row in rows:
        if parts and parts[-1][2] == row:
            parts[-1][2] += 1
        else:
            parts.append([tensor, row, row + 1])
    return tensor if parts == [[tensor, 0, shape[0]]] else parts


def case(folder, model, converter, leave="$^", factors="lora_A lora_B", rows=None):
    """rows: of a matrix with so many -> the row of the small one for each row that the converter is given."""
    shapes = shapes_of(folder, model)
    a, b = factors.split()
    weights = [n for n, s in shapes.items() if n.endswith(".weight") and len(s) == 2 and not re.search(leave, n)]
    lora, given = {}, {}
    for i, name in enumerate(weights):
        module = "diffusion_model." + name.removesuffix(".weight")
        given[i] = list(range(shapes[name][0])) if rows is None else rows(name, shapes[name][0])
        lora[f"{module}.{a}.weight"] = torch.full((3, 1), float(i))  # Hunyuan's converter parts these as well
        lora[f"{module}.{b}.weight"] = torch.arange(len(given[i]), dtype=torch.float64).reshape(-1, 1)
    converted, named = converter(lora), {}
    for key, value in converted.items():
        if not key.endswith(".lora_A.weight"):
            continue
        module, i = key.removesuffix(".lora_A.weight"), int(value[0, 0])
        found = [given[i][int(row)] for row in converted[module + ".lora_B.weight"][:, 0]]
        # A row of the small one may stand for several of the published one.
        named[module.removeprefix("transformer.")] = parts_of(weights[i], shapes[weights[i]], list(dict.fromkeys(found)))
    assert {p if isinstance(p, str) else p[0][0] for p in named.values()} == set(weights), (folder, model)
    return {"goldens": folder, "model": model, "others": named}


def hunyuan_rows(name, count):
    """The converter parts 3072 queries, as many keys and values, and the rest; the small model is 48 wide."""
    return [row for row in range(count) for _ in range(3072 // 48 if ".linear1." in name else 1)]


def lumina_rows(name, count):
    """The converter parts 2304 queries, 768 keys and 768 values; the small model has half as many keys as queries."""
    if ".attention.qkv." not in name:
        return list(range(count))
    width = count // 4
    thirds = ((0, 2 * width, 2304), (2 * width, width, 768), (3 * width, width, 768))
    return [first + row * rows // published for first, rows, published in thirds for row in range(published)]


PUBLISHER = {
    "_mod.lin.": "_mod.linear.",
    ".modulation.lin.": ".modulation.linear.",
    "_attn.qkv.": "_attn_qkv.",
    "_attn.proj.": "_attn_proj.",
    "mlp.0.": "mlp.fc1.",
    "mlp.2.": "mlp.fc2.",
    "c_embedder.in_layer.": "c_embedder.linear_1.",
    "c_embedder.out_layer.": "c_embedder.linear_2.",
    "t_embedder.in_layer.": "t_embedder.mlp.0.",
    "t_embedder.out_layer.": "t_embedder.mlp.2.",
    "time_in.in_layer.": "time_in.mlp.0.",
    "time_in.out_layer.": "time_in.mlp.2.",
    "guidance_in.in_layer.": "guidance_in.mlp.0.",
    "guidance_in.out_layer.": "guidance_in.mlp.2.",
}


def by_publisher(name):
    for here, there in PUBLISHER.items():
        name = name.replace(here, there)
    return name


def hunyuan(lora):
    """Names of ComfyUI's files -> those of the publisher's -> those of diffusers."""
    return convert._convert_hunyuan_video_lora_to_diffusers({by_publisher(key): value for key, value in lora.items()})


FLUX_WIDTH = 40  # of the small model
CHROMA_WIDTH = shapes_of("chroma", "transformer")["img_in.weight"][0]
CHROMA_LEFT = "distilled_guidance_layer"  # no converter knows it


def flux_rows(width):
    """The converter parts 3072 queries, as many keys and values, and 12288 rows of the MLP."""

    def rows(name, count):
        if ".linear1." not in name:
            return list(range(count))
        return [row * width // 3072 for row in range(count // width * 3072)]

    return rows


def flux(lora):
    """Names of ComfyUI's files -> those of sd-scripts -> those of diffusers."""
    flat = {}
    for key, value in lora.items():
        module, kind = key.removeprefix("diffusion_model.").split(".lora_")
        flat[f"lora_unet_{module.replace('.', '_')}.lora_{kind}"] = value
    return convert._convert_kohya_flux_lora_to_diffusers(flat)


def unet(model):
    """Matrices and filters of a UNet by the names of checkpoints; diffusers' converter renames them."""
    shapes = shapes_of("unet", model)
    layers = len({name.split(".")[3] for name in shapes if name.startswith("down_blocks.0.resnets.")})
    tensors = [original(name, shapes, layers) for name in shapes]
    numbered = {"model.diffusion_model." + name: torch.tensor(i) for i, name in enumerate(tensors)}
    told = {"class_embed_type": None, "addition_embed_type": None, "layers_per_block": layers}
    if "label_emb.0.0.weight" in tensors:
        told["addition_embed_type"] = "text_time"
    converted = convert_ldm_unet_checkpoint(numbered, told)
    assert len(converted) == len(shapes), model
    modules = {
        name.removesuffix(".weight"): tensors[int(number)]
        for name, number in converted.items()
        if name.endswith(".weight") and len(shapes[name]) > 1
    }
    return {"goldens": "unet", "model": model, "layers": layers, "others": modules}


HUNYUAN_LEFT = r"^(byt5_in|cond_type_embedding|vision_in|time_in|final_layer.adaLN)"
cases = {
    "FLUX.1": case("random", "flux_original.safetensors", flux, factors="lora_down lora_up", rows=flux_rows(FLUX_WIDTH)),
    "Chroma": case("chroma", "transformer", flux, CHROMA_LEFT, "lora_down lora_up", flux_rows(CHROMA_WIDTH)),
    "Stable Diffusion 1": unet("sd1"),
    "SDXL": unet("sdxl"),
    "Wan 2.1": case("umt5", "following", convert._convert_non_diffusers_wan_lora_to_diffusers),
    "Wan 2.1 t2v": case("wan", "flow", convert._convert_non_diffusers_wan_lora_to_diffusers),
    "HunyuanVideo 1.0": case(
        "hunyuan_first", "transformer", hunyuan, "final_layer.adaLN", rows=hunyuan_rows),
    "HunyuanVideo 1.5": case("hunyuan", "flow", hunyuan, HUNYUAN_LEFT),
    "LTX-Video": case("ltxv", "flow", convert._convert_non_diffusers_ltx2_lora_to_diffusers),
    "LTX 2": case("ltx2", "flow", convert._convert_non_diffusers_ltx2_lora_to_diffusers),
    "MiniMax H3": case("minimax", "whole", convert._convert_non_diffusers_minimax_h3_lora_to_diffusers),
    "Qwen-Image": case("workflows", "qwen_image.transformer", convert._convert_non_diffusers_qwen_lora_to_diffusers),
    "Qwen-Image Layered": case(
        "qwen_layered", "transformer", convert._convert_non_diffusers_qwen_lora_to_diffusers, "addition_t_embedding"),
    "Z-Image": case(
        "workflows", "z_image.transformer", convert._convert_non_diffusers_z_image_lora_to_diffusers,
        "x_embedder|final_layer", "lora.down lora.up"),
    "Lumina 2": case(
        "lumina2", "transformer", convert._convert_non_diffusers_lumina2_lora_to_diffusers,
        "x_embedder|final_layer|t_embedder|cap_embedder", rows=lumina_rows),
    "Krea 2": case("krea2", "transformer", convert._convert_non_diffusers_krea2_lora_to_diffusers),
    "FLUX.2": case("flux2", "klein", convert._convert_non_diffusers_flux2_lora_to_diffusers, "final_layer.adaLN"),
    "FLUX 3": case(
        "flux3", "distilled", convert._convert_non_diffusers_flux3_lora_to_diffusers,
        r"^(emb_in|txt_in|time_in|ref_time_in|final_layer)|\.lin\.|modulation"),
}
# What no converter knows: as HunyuanVideo15Transformer3DModel, ChromaTransformer2DModel and
# ZImageTransformer2DModel call it.
cases["HunyuanVideo 1.5"]["others"] |= {
    "time_embed.timestep_embedder.linear_1": "time_in.in_layer.weight",
    "time_embed.timestep_embedder.linear_2": "time_in.out_layer.weight",
    "context_embedder_2.linear_2": "byt5_in.fc2.weight",
    "image_embedder.linear_1": "vision_in.proj.1.weight",
    "cond_type_embed": "cond_type_embedding.weight",
}
for i in range(2):
    for here, there in {"in_layer": "linear_1", "out_layer": "linear_2"}.items():
        module = f"distilled_guidance_layer.layers.{i}."
        cases["Chroma"]["others"][module + there] = f"{module}{here}.weight"
cases["Z-Image"]["others"] |= {
    "all_x_embedder.2-1": "x_embedder.weight",
    "all_final_layer.2-1.linear": "final_layer.linear.weight",
    "all_final_layer.2-1.adaLN_modulation.1": "final_layer.adaLN_modulation.1.weight",
}
for name, (folder, model) in BY_FILE.items():
    cases[name] = {"goldens": folder, "model": model, "others": {}}
for name in ("HunyuanVideo 1.0", "HunyuanVideo 1.5"):
    shapes = shapes_of(cases[name]["goldens"], cases[name]["model"])
    for tensor, shape in shapes.items():
        module = by_publisher(tensor).removesuffix(".weight")
        if tensor.endswith(".weight") and len(shape) > 1 and module + ".weight" != tensor:
            cases[name]["others"][module] = tensor


def joined(family, at, parts, name):
    shapes = shapes_of(cases[family]["goldens"], cases[family]["model"])
    tensors = [f"{at[0]}.{part}.weight" for part in parts]
    cases[family]["others"][f"{at[1]}.{name}"] = [[tensor, 0, shapes[tensor][0]] for tensor in tensors]


joined("Krea 2", ("blocks.0.attn", "transformer_blocks.0.attn"), ("wq", "wk", "wv"), "to_qkv")
joined("Qwen-Image 2.1", ("transformer_blocks.1.img_mlp",) * 2, ("gate_layer", "proj"), "gate_up")

out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent / "nodes/lora_names.json"
lines = []
for name, told in cases.items():
    modules = ",\n".join(f"    {json.dumps(m)}: {json.dumps(parts)}" for m, parts in told["others"].items())
    head = f'  {json.dumps(name)}: {{"goldens": {json.dumps(told["goldens"])}, "model": {json.dumps(told["model"])}, '
    head += (f'"layers": {told["layers"]}, ' if "layers" in told else "") + '"others": '
    lines.append(head + ("{\n" + modules + "\n  }}" if modules else "{}}"))
out.write_text("{\n" + ",\n".join(lines) + "\n}\n")
