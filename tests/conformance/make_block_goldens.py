"""Writes blocks.safetensors: block formats as the gguf package widens them, and floats of 8 bits as PyTorch does.

TYPE.bytes (rows, bytes) u8 and TYPE.values (rows, 512) f32 for each block format: quantised random numbers where the package
can quantise, and everywhere random bytes with scales that are ordinary halves.
TYPE.bytes (256) u8 and TYPE.values (256) f32 for each f8 type; TYPE.wide (n) f32 and TYPE.narrow (n) u8: what a cast gives (by PyTorch before 2.15: what is
too large becomes NaN).

Usage: make_block_goldens.py [OUTPUT]
"""

import pathlib
import sys

import gguf
import numpy as np
import torch
from safetensors.torch import save_file

ROWS, WIDTH = 2, 512
# Where a block's halves stand.
HALVES = {"Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208]}
SEED = np.array([[1, 1, 1, -1], [1, 1, -1, 1], [1, -1, 1, 1], [-1, 1, 1, 1]], np.float64)


def random_blocks(random, name):
    kind = gguf.GGMLQuantizationType[name]
    size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (ROWS * WIDTH // size, block_bytes), dtype=np.uint8)
    for at in HALVES[name]:
        scales = random.normal(0, 0.05, len(blocks)).astype(np.float16)
        scales[0] = np.float16(6e-6)  # a subnormal half
        blocks[:, at : at + 2] = scales.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(ROWS, -1)


def main():
    output = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "blocks.safetensors")
    random = np.random.default_rng(20)
    tensors = {}
    for name in HALVES:
        kind = gguf.GGMLQuantizationType[name]
        rows = [random_blocks(random, name)]
        try:
            rows.append(gguf.quantize(random.normal(0, 0.1, (ROWS, WIDTH)).astype(np.float32), kind))
        except NotImplementedError:
            pass
        data = np.concatenate(rows)
        tensors[name.lower() + ".bytes"] = torch.from_numpy(data)
        tensors[name.lower() + ".values"] = torch.from_numpy(gguf.dequantize(data, kind).astype(np.float32))
    halfway = np.array([448, 464, 464.1, 480, 1e9, np.inf, np.nan, 57344, 61439, 61440, 61441, 0, 2**-10, 2**-10 * 1.01,
                        2**-9 * 1.5, 2**-6 * 0.99, 2**-17, 2**-17 * 1.01, 2**-14 * 0.99, 1.0625, 1.1875], np.float32)
    wide = torch.from_numpy(np.concatenate([halfway, -halfway, random.normal(0, 1, 200).astype(np.float32),
                                            random.normal(0, 0.004, 200).astype(np.float32)]))
    for name, kind in (("f8_e4m3", torch.float8_e4m3fn), ("f8_e5m2", torch.float8_e5m2)):
        tensors[name + ".bytes"] = torch.arange(256, dtype=torch.uint8)
        tensors[name + ".values"] = torch.arange(256, dtype=torch.uint8).view(kind).float()
        tensors[name + ".wide"] = wide.clone()
        tensors[name + ".narrow"] = wide.to(kind).view(torch.uint8)
    # 256 whole numbers behind their scale, an f32; rotated: times the regular Hadamard matrix over its root.
    rotation = np.kron(np.kron(SEED, SEED), np.kron(SEED, SEED)) / 16
    for name, turn in (("i8_scaled", np.eye(256)), ("i8_rotated", rotation)):
        blocks = random.integers(0, 256, (ROWS * WIDTH // 256, 260), dtype=np.uint8)
        scales = random.normal(0, 0.05, len(blocks)).astype(np.float32)
        blocks[:, :4] = scales.view(np.uint8).reshape(-1, 4)
        numbers = blocks[:, 4:].view(np.int8).astype(np.float64) @ turn
        tensors[name + ".bytes"] = torch.from_numpy(blocks.reshape(ROWS, -1))
        tensors[name + ".values"] = torch.from_numpy((numbers * scales[:, None]).astype(np.float32).reshape(ROWS, WIDTH))
    save_file(tensors, str(output))


main()
