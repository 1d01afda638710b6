"""Matrices of numbered modules as ComfyUI's files in 4 and 8 bits have them (engine/files/packed_rows.h), of files in 16 bits: what
tests/plugins/families/quantised_files_test.cpp holds the families against. A tensor is (type, shape), or (type, shape, content).
Needs nothing but Python."""

import re


def is_inner(name, shape):
    return len(shape) == 2 and re.search(r"\.\d+\..*\.weight$", name) is not None


def told(module, text):
    return {module + ".comfy_quant": ("U8", (len(text),), text.encode())}


def in_8_bits(tensors):
    """As the published files of the name int8_convrot."""
    out = {}
    for name, (dtype, shape, *content) in tensors.items():
        is_packed = is_inner(name, shape) and shape[1] % 256 == 0
        out[name] = ("I8", shape) if is_packed else (dtype, shape, *content)
        if is_packed:
            module = name.removesuffix(".weight")
            out[module + ".weight_scale"] = ("F32", (shape[0], 1))
            out |= told(module, '{"format": "int8_tensorwise", "convrot": true, "convrot_groupsize": 256}')
    return out


def in_4_bits(tensors):
    """As fp4_mixed: what goes down is in 8 bits."""
    out = {}
    for name, (dtype, shape, *content) in tensors.items():
        module = name.removesuffix(".weight")
        if not is_inner(name, shape):
            out[name] = (dtype, shape, *content)
        elif name.endswith("down_proj.weight"):
            out |= in_8_bit_floats(name, shape)
        else:
            rows, columns = shape
            out[name] = ("U8", (rows, columns // 2))
            out[module + ".weight_scale"] = ("F8_E4M3", (-(-rows // 128) * 128, -(-columns // 64) * 4))
            out[module + ".weight_scale_2"] = ("F32", ())
            out |= told(module, '{"format": "nvfp4"}')
    return out


def in_8_bit_floats(name, shape):
    module = name.removesuffix(".weight")
    return {name: ("F8_E4M3", shape), module + ".weight_scale": ("F32", ())} | told(module, '{"format": "float8_e4m3fn"}')


def mixed(tensors):
    """As fp8_mixed."""
    out = {}
    for name, (dtype, shape, *content) in tensors.items():
        out |= in_8_bit_floats(name, shape) if is_inner(name, shape) else {name: (dtype, shape, *content)}
    return out


def in_fp8(tensors):
    """As the checkpoints of LTX 2 in fp8: the transformer's layers alone, each with a scale of what goes in, too."""
    out = {}
    for name, (dtype, shape, *content) in tensors.items():
        is_packed = is_inner(name, shape) and ".transformer_blocks." in name
        out[name] = ("F8_E4M3", shape) if is_packed else (dtype, shape, *content)
        if is_packed:
            for scale in ("weight_scale", "input_scale"):
                out[name.removesuffix("weight") + scale] = ("F32", ())
    return out
