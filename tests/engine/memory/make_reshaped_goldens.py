"""Writes reshaped.gguf: filters in blocks of every format that is read, with random bytes, in another shape than their own, as
converters of UNets store what ggml has no room for, and reshaped.safetensors, the numbers that the gguf package reads in them.

    make_reshaped_goldens.py

Needs gguf, numpy and safetensors from PyPI.
"""

import pathlib

import gguf
import numpy as np
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
FORMATS = ("Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K")
SHAPE, MATRIX = (64, 4, 3, 3), (16, 48)  # rows of 36 and 48 numbers: blocks hold parts of several


def main():
    random = np.random.default_rng(12)
    writer, values = gguf.GGUFWriter(str(HERE / "reshaped.gguf"), "sdxl"), {}
    for name in FORMATS:
        kind = gguf.GGMLQuantizationType[name]
        size, block_bytes = gguf.GGML_QUANT_SIZES[kind]
        for place, shape in (("filter", SHAPE), ("matrix", MATRIX)):
            data = random.integers(0, 256, (int(np.prod(shape)) // size, block_bytes), dtype=np.uint8)
            halves = {"Q6_K": [208]}.get(name, [0, 2] if name[3] in "1K" else [0])
            for at in halves:
                data[:, at : at + 2] = random.uniform(0.01, 0.1, len(data)).astype(np.float16).view(np.uint8).reshape(-1, 2)
            whole = data if size == 256 else data.reshape(-1, 8 * block_bytes)  # rows of 256 numbers
            key = f"{name}.{place}"
            writer.add_array(f"comfy.gguf.orig_shape.{key}", list(shape))
            writer.add_tensor(key, whole, raw_dtype=kind)
            values[key] = gguf.dequantize(whole, kind).astype(np.float32).reshape(shape)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(values, str(HERE / "reshaped.safetensors"))


main()
