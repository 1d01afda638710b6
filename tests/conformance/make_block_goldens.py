"""Writes blocks.safetensors: block formats as the gguf package widens them, those of ComfyUI's quantised files as they are defined,
and floats of 8 bits as PyTorch does.

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


def e4m3(codes):
    return torch.from_numpy(codes.copy()).view(torch.float8_e4m3fn).float().numpy()


def halves(packed):
    """Numbers 0 to 255 of 128 bytes: 32 after another in 16 of them, low halves first."""
    groups = packed.reshape(len(packed), 8, 16)
    return np.concatenate([groups & 15, groups >> 4], axis=2).reshape(len(packed), 256)


def add_blocks_of_quantised_files(random, tensors, rotation):
    """As heddle/abi/value.h defines them."""
    count = ROWS * WIDTH // 256

    def add(name, blocks, values):
        tensors[name + ".bytes"] = torch.from_numpy(blocks.reshape(ROWS, -1))
        tensors[name + ".values"] = torch.from_numpy(values.astype(np.float32).reshape(ROWS, WIDTH))

    def start(size, scales):
        blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
        floats = random.normal(0, 0.05, (count, scales)).astype(np.float32)
        blocks[:, : 4 * scales] = floats.view(np.uint8)
        return blocks, floats

    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    blocks, scale = start(148, 1)
    blocks[:, 4:20] = np.where(blocks[:, 4:20] & 0x7F == 0x7F, 0x31, blocks[:, 4:20])  # no NaN
    of_groups = scale * e4m3(blocks[:, 4:20])
    add("nvfp4", blocks, np.repeat(of_groups, 16, axis=1) * numbers[halves(blocks[:, 20:])])

    blocks, scale = start(132, 1)
    signed = halves(blocks[:, 4:]).astype(np.float64)
    signed = np.where(signed > 7, signed - 16, signed)
    add("i4_rotated", blocks, signed @ rotation * scale)

    levels = np.array([-0.980602, -0.794529, -0.638165, -0.500986, -0.377321, -0.263187, -0.155210, -0.050720, 0.052541, 0.156985,
                       0.265284, 0.379533, 0.502636, 0.638953, 0.794876, 0.980671], np.float32)
    blocks, scale = start(148, 1)
    blocks[:, 4:20] = np.where(blocks[:, 4:20] & 0x7F == 0x7F, 0x31, blocks[:, 4:20])
    exact = levels[halves(blocks[:, 20:])] * np.repeat(e4m3(blocks[:, 4:20]), 16, axis=1)
    add("i4_coded", blocks, np.clip(np.rint(exact), -127, 127).astype(np.float64) @ rotation * scale)

    blocks = random.integers(0, 256, (count, 264), dtype=np.uint8)
    blocks[:, :8] = random.integers(110, 130, (count, 8))
    blocks[0, 0] = 0
    blocks[:, 8:] = np.where(blocks[:, 8:] & 0x7F == 0x7F, 0x31, blocks[:, 8:])
    powers = (blocks[:, :8].astype(np.uint32) << 23).view(np.float32)
    add("mxfp8", blocks, np.repeat(powers, 32, axis=1) * e4m3(blocks[:, 8:]))

    blocks, parts = start(160, 8)
    parts = torch.from_numpy(parts).bfloat16().float().numpy()  # as files have them: products are exact
    blocks[:, :32] = parts.view(np.uint8)
    shifted = halves(blocks[:, 32:]).astype(np.float64) - 8
    add("i4_grouped", blocks, shifted * np.repeat(parts[:, :4], 64, axis=1) + np.repeat(parts[:, 4:], 64, axis=1))


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
    add_blocks_of_quantised_files(random, tensors, rotation)
    save_file(tensors, str(output))


main()
