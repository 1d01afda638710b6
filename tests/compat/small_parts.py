"""What small_files.py and small_pictures.py make files of: published ones with other sizes and fewer layers. By the standard library alone."""

import json
import re
import sys
from pathlib import Path

GOLDENS = Path(__file__).resolve().parent.parent / "plugins" / "goldens"
sys.path.insert(0, str(GOLDENS))
import flux_headers  # noqa: E402

TOKENIZERS = GOLDENS.parent / "encoders" / "tokenizer" / "data"
FILES = flux_headers.FILES

# Widths that several files of one model have, in place of the published ones: of texts, T5, CLIP-L, autoencoders and FLUX.1.
TEXT = 64
T5 = {4096: TEXT, 10240: 96, 64: 4}
CLIP_L = {768: 64, 3072: 128}
WAN_VAE = {96: 8, 192: 16, 384: 32, 768: 64, 1152: 96}
FLUX2_VAE = {128: 32, 256: 64, 512: 64}
FLUX = {3072: 256, 9216: 768, 12288: 1024, 15360: 1280, 18432: 1536, 21504: 1792, 6144: 512, 4096: TEXT, 768: 64, 64: 64}
FLUX_LAYERS = (("double_blocks", 2), ("single_blocks", 2))
QWEN_IMAGE = {3072: 256, 12288: 512, 18432: 1536, 6144: 512, 3584: 128}


def small(tensors, sizes, layers=()):
    """Tensors with other sizes and fewer numbered modules; layers: pairs of what is before the number,
    and how many stay."""
    out = {}
    for name, (dtype, shape) in tensors.items():
        numbers = [(re.search(rf"(?:^|\.){at}\.(\d+)\.", name), keep) for at, keep in layers]
        if all(found is None or int(found[1]) < keep for found, keep in numbers):
            out[name] = (dtype, tuple(sizes.get(size, size) for size in shape))
    return out


def golden(folder, model, dtype="BF16", sizes=None, prefix=""):
    """A model of shapes.json."""
    told = json.loads((GOLDENS / folder / "shapes.json").read_text(encoding="utf-8"))[model]
    shapes = {name: shape[0] if shape and isinstance(shape[0], list) else shape for name, shape in told.items()}
    plain = flux_headers.expanded({name: (dtype, shape) for name, shape in shapes.items()})
    return {prefix + name: what for name, what in small(plain, sizes or {}).items()}


def with_vocabulary(tensors, file, rows, key):
    content = file.read_bytes()
    out = {name: what for name, what in tensors.items() if name != "spiece_model"}
    out[key] = (out[key][0], (rows, out[key][1][1]))
    return {**out, "spiece_model": ("U8", (len(content),), content)}


def lora(tensors, prefix="diffusion_model.", cut="", rank=4, inside=r"blocks\.\d+\."):
    """Of a file's blocks, by the names that ComfyUI's own files have."""
    out = {}
    for name, (_, shape, *_) in tensors.items():
        if len(shape) == 2 and name.endswith(".weight") and re.search(inside, name):
            module = prefix + name.removeprefix(cut).removesuffix(".weight")
            out[module + ".lora_A.weight"] = ("BF16", (rank, shape[1]))
            out[module + ".lora_B.weight"] = ("BF16", (shape[0], rank))
    return out
