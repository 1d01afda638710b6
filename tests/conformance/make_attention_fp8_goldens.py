"""Writes attention_fp8.safetensors: attention in float64, and how far the same attention in 8 bits is from it.

The operands are made of a hash, here and in attention_fp8_test.cpp, so the file has results alone. For each case NAME:
NAME.exact, (queries, heads, width) in float32, and NAME.rms, the root of the mean square of the difference between that
and the same operands rounded as plugins/blocks/attention_fp8.h says, computed in NumPy with float32 products and sums.

Usage: make_attention_fp8_goldens.py [OUTPUT]
"""

import pathlib
import sys

import numpy as np
from safetensors.numpy import save_file

# name: queries, keys, heads, width, a factor of the queries (how sharp the softmax is)
CASES = {
    "narrow": (20, 300, 2, 64, 1.0),
    "wide": (12, 333, 2, 128, 1.0),
    "sharp": (12, 270, 1, 128, 4.0),
    "long": (8, 2500, 1, 64, 1.0),
}


def mix(n):
    """A hash of 32 bits of each number (the finaliser of MurmurHash3)."""
    n = n.astype(np.uint64)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        n = ((n ^ (n >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return n ^ (n >> np.uint64(16))


def numbers(seed, shape):
    """Sums of four uniform numbers: mean 0, variance 1."""
    n = np.arange(int(np.prod(shape)), dtype=np.uint64)[:, None] * np.uint64(4) + np.arange(4, dtype=np.uint64)
    parts = mix((n + np.uint64(seed * 0x1000000)) & np.uint64(0xFFFFFFFF)).astype(np.float64) / 2**32
    return ((parts.sum(axis=1) - 2) * np.sqrt(3)).reshape(shape)


def bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def operands(index, queries, keys, heads, width, factor):
    """Keys and values have means, other ones in each channel, as those of models have."""
    seed = 16 * index
    q = numbers(seed, (queries, heads, width)) * factor
    k = numbers(seed + 1, (keys, heads, width)) + 2 * numbers(seed + 3, (heads, width))
    v = numbers(seed + 2, (keys, heads, width)) + 0.5 * numbers(seed + 4, (heads, width))
    return bf16(q), bf16(k), bf16(v)


def f8(x):
    """To the nearest number of e4m3, ties to even; beyond the largest, that."""
    x = x.astype(np.float32)
    exponent = np.floor(np.log2(np.maximum(np.abs(x), np.float32(2.0**-6)))).astype(np.int32)
    step = np.exp2((exponent - 3).astype(np.float32))
    return np.clip(np.round(x / step) * step, -448, 448).astype(np.float32)


def scaled(x):
    scale = np.float32(max(np.abs(x).max() / np.float32(448), np.float32(2.0**-60)))
    return f8(x * (np.float32(1) / scale)), scale


def in_8_bits(q, k, v, scale):
    """Of one head, all in float32."""
    count = len(k)
    sample = min(count, 256)
    rows = np.arange(sample) * count // sample
    mean = v[rows].mean(axis=0, dtype=np.float32)
    k, v = k - k[rows].mean(axis=0, dtype=np.float32), v - mean
    k8, v8, k_scale, v_scale = np.empty_like(k), np.empty_like(v), np.empty(count, np.float32), np.empty(count, np.float32)
    for begin in range(0, count, 64):
        part = slice(begin, begin + 64)
        k8[part], k_scale[part] = scaled(k[part])
        v8[part], v_scale[part] = scaled(v[part])
    out = np.empty_like(q)
    for i, row in enumerate(q):
        q8, q_scale = scaled(row)
        s = (k8 @ q8) * (k_scale * q_scale * np.float32(scale * np.log2(np.e))) + np.log2(v_scale)
        weights = np.exp2(s - s.max() + np.float32(8))
        out[i] = (f8(weights) @ v8) / (weights / v_scale).sum(dtype=np.float32) + mean
    return out


def exact(q, k, v, scale):
    q, k, v = q.astype(np.float64), k.astype(np.float64), v.astype(np.float64)
    s = (q @ k.T) * scale
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p @ v) / p.sum(axis=1, keepdims=True)


def main():
    tensors = {}
    for index, (name, (queries, keys, heads, width, factor)) in enumerate(CASES.items()):
        q, k, v = operands(index, queries, keys, heads, width, factor)
        scale = width**-0.5
        wanted = np.stack([exact(q[:, h], k[:, h], v[:, h], scale) for h in range(heads)], axis=1)
        small = np.stack([in_8_bits(q[:, h], k[:, h], v[:, h], scale) for h in range(heads)], axis=1)
        rms = np.sqrt(np.mean((small - wanted) ** 2))
        tensors[f"{name}.exact"] = wanted.astype(np.float32)
        tensors[f"{name}.rms"] = np.array([rms], np.float32)
        print(f"{name}: rms {rms:.6f} of {np.sqrt(np.mean(wanted**2)):.4f}")
    save_file(tensors, sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(__file__).with_name("attention_fp8.safetensors")))


main()
