"""Random numbers of the types that model files have, as bytes, by the standard library alone."""

import math
import struct

BYTES = {"F32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "U8": 1, "I8": 1, "I64": 8}
# Bits of the mantissa, the exponent's bias, the least exponent of a normal number.
FORMS = {"F32": (23, 127, -126), "BF16": (7, 127, -126), "F16": (10, 15, -14), "F8_E4M3": (3, 7, -6)}
AROUND_ONE = ("gamma", "running_var", "std-of-means", "mel_basis", "norm.weight")
INT8_MOST = 127


def power_of(name, shape):
    """An exponent: of such numbers products keep their size."""
    if len(shape) < 2:
        return -4
    return round(-0.5 * math.log2(math.prod(shape[1:])) - 0.6)


def floats(dtype, count, exponent, source, positive=False):
    """Numbers of a size from 2^exponent to twice that; positive ones to one and a half times that."""
    mantissa, bias, least = FORMS[dtype]
    size = BYTES[dtype]
    sign = 1 << (8 * size - 1)
    fixed = (max(exponent, least) + bias) << mantissa
    free = (1 << mantissa) - 1
    mask = free >> 1 if positive else free | sign
    every = lambda word: int.from_bytes(word.to_bytes(size, "little") * count, "little")  # noqa: E731
    bits = int.from_bytes(source.randbytes(size * count), "little") & every(mask) | every(fixed)
    return bits.to_bytes(size * count, "little")


def scale_of(module, tensors):
    """What stands beside a packed matrix: its numbers have the size that power_of says."""
    dtype, shape, *_ = tensors[module + ".weight"]
    power = 2.0 ** power_of(module, shape)
    return power / {"I8": INT8_MOST, "U8": 4, "F8_E4M3": 1}[dtype]


def number_of(name, tensors):
    """A scale, or another number by itself; None of a tensor that has none."""
    module, _, last = name.rpartition(".")
    if last == "input_scale":
        return 1.0
    if last in ("weight_scale", "weight_scale_2", "scale_weight"):
        return scale_of(module, tensors)
    return {"timestep_scale_multiplier": 1000.0}.get(last)


def bytes_of(name, dtype, shape, tensors, source):
    """The content of a tensor of a file's tensors {name: (dtype, shape, ...)}."""
    count = math.prod(shape)
    number = number_of(name, tensors) if dtype == "F32" else None
    if number is not None:
        return struct.pack("<f", number) * count
    if dtype in ("U8", "I8"):
        return source.randbytes(count)
    if dtype == "I64":
        return struct.pack(f"<{count}q", *range(count))
    if count == 0:
        return b""
    if name.endswith(".filter"):
        return struct.pack("<f", 1 / shape[-1]) * count
    is_scale = dtype == "F8_E4M3" and name.endswith(".weight_scale")
    is_norm = name.endswith(AROUND_ONE) or (len(shape) == 1 and name.endswith(".weight"))
    if is_scale or is_norm:
        return floats(dtype, count, 0, source, positive=True)
    is_scaled = dtype == "F8_E4M3" and any(
        name.removesuffix("weight") + scale in tensors for scale in ("weight_scale", "scale_weight")
    )
    return floats(dtype, count, 0 if is_scaled else power_of(name, shape), source)
