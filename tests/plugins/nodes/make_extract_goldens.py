"""Writes extract_goldens.safetensors beside this file: LoRAs that NumPy makes of weights, as LoraSave does.

    make_extract_goldens.py        (needs numpy and safetensors)

Of every matrix the RANK largest singular values: up = U S and down = V transposed, turned so that the largest number of each row
of down is positive, and limited to the 0.99 quantile of the numbers of both. Vectors are taken as they are. All in half precision.
The diffusion model is ../goldens/random/flux_original.safetensors; the text encoder is the one of extract_test.cpp, whose numbers
come from the same generator.
"""
import json
import os

import numpy as np
from safetensors.numpy import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
RANK, WIDTH = 4, 320


def weights_of(path):
    """f32 arrays of a file of bf16."""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "BF16"
            begin, end = entry["data_offsets"]
            bits = np.frombuffer(data[8 + size + begin:8 + size + end], dtype=np.uint16).astype(np.uint32) << 16
            yield name, bits.view(np.float32).reshape(entry["shape"])


def numbers(state, count):
    """As extract_test.cpp makes them."""
    values = np.empty(count, dtype=np.float32)
    for i in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values[i] = (np.float32(state >> 8) / np.float32(1 << 24) - np.float32(0.5)) * np.float32(0.2)
    return values


def encoder():
    prefix = "text_model.encoder.layers.0."
    shapes = {prefix + "mlp.fc1.weight": (2 * WIDTH, WIDTH), prefix + "mlp.fc2.weight": (WIDTH, 2 * WIDTH),
              prefix + "mlp.fc1.bias": (2 * WIDTH,), prefix + "layer_norm1.weight": (WIDTH,)}
    for name, shape in shapes.items():
        seed = sum(name.encode())
        yield name, numbers(seed, int(np.prod(shape))).reshape(shape)


def add(results, name, weight):
    module, kind = name.rsplit(".", 1)
    if kind not in ("weight", "bias"):
        return
    if weight.ndim < 2:
        results[module + (".diff" if kind == "weight" else ".diff_b")] = weight.astype(np.float16)
        return
    rank = min(RANK, *weight.shape)
    u, s, vh = np.linalg.svd(weight.astype(np.float64), full_matrices=False)
    up, down = u[:, :rank] * s[:rank], vh[:rank]
    signs = np.sign(down[np.arange(rank), np.abs(down).argmax(axis=1)])
    up, down = up * signs, down * signs[:, None]
    limit = np.quantile(np.concatenate([up.ravel(), down.ravel()]).astype(np.float32), 0.99)
    results[module + ".lora_up.weight"] = up.clip(-limit, limit).astype(np.float16)
    results[module + ".lora_down.weight"] = down.clip(-limit, limit).astype(np.float16)


def main():
    results = {}
    for name, weight in weights_of(os.path.join(HERE, "../goldens/random/flux_original.safetensors")):
        add(results, "diffusion_model." + name, weight)
    for name, weight in encoder():
        add(results, "text_encoders.clip_l.transformer." + name, weight)
    save_file(results, os.path.join(HERE, "extract_goldens.safetensors"))


if __name__ == "__main__":
    main()
