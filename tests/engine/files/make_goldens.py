"""Writes safetensors_goldens.json: small files, good and broken, as hexadecimal text, each with what the reference
implementation (the Python package `safetensors`) makes of it.

Run it in this folder with a Python that has safetensors and numpy; the result is committed. Deterministic.
"""

import json
import re
import struct
import tempfile

import numpy as np
import safetensors
from safetensors import safe_open
from safetensors.numpy import save


def raw(header, data=b"", length=None):
    """A file of this header (text or value) with the right length in front, or a wrong one."""
    text = header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))
    text = text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def good():
    rng = np.random.default_rng(1)
    mixed = {
        "f64": rng.standard_normal((2, 3)),
        "f32.scalar": np.array(1.5, np.float32),
        "f16": rng.standard_normal(5).astype(np.float16),
        "i64": np.arange(3, dtype=np.int64),
        "i32": np.array([[-1], [2**31 - 1]], np.int32),
        "i16": np.array([-2, 3], np.int16),
        "i8": np.array([-128, 127, 0], np.int8),
        "u64": np.array([2**64 - 1], np.uint64),
        "u32": np.array([2**32 - 1], np.uint32),
        "u16": np.array([65535], np.uint16),
        "u8": np.array([255, 1], np.uint8),
        "bool": np.array([True, False, True]),
        "empty": np.zeros((0, 7), np.float32),
    }
    yield "mixed", save(mixed, metadata={"note": "ä \"quoted\" \n"})
    yield "no_tensors", raw({})
    yield "only_metadata", raw({"__metadata__": {"a": "b"}})
    yield "null_metadata", raw({"__metadata__": None, "x": tensor("U8", [1], 0, 1)}, b"\7")
    yield "low_precision", raw({
        "bf16": tensor("BF16", [2], 0, 4),
        "e4m3": tensor("F8_E4M3", [2], 4, 6),
        "e5m2": tensor("F8_E5M2", [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], 6, 7),
    }, bytes(range(7)))
    yield "unaligned", raw({"x": tensor("U8", [1], 0, 1), "y": tensor("F32", [1], 1, 5)}, b"\1\0\0\xc0\x3f")
    yield "padded_header", raw('{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}      ', b"\3")
    yield "order_of_members", raw('{"b":{"data_offsets":[0,1],"shape":[1],"dtype":"U8"},'
                                  '"a":{"shape":[],"dtype":"I8","data_offsets":[1,2]}}', b"\4\5")
    yield "unknown_member", raw('{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":[{}]}}', b"\6")
    yield "escaped_name", raw('{"a\\u00e4\\u0000\\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\7")
    yield "empty_name", raw({"": tensor("U8", [1], 0, 1)}, b"\1")
    yield "two_empty_at_one_offset", raw({"a": tensor("U8", [0], 1, 1), "b": tensor("U8", [1], 0, 1),
                                          "c": tensor("F32", [3, 0], 1, 1)}, b"\1")


def broken():
    one = {"x": tensor("U8", [4], 0, 4)}
    yield "empty_file", b""
    yield "seven_bytes", b"\0" * 7
    yield "zero_length_header", struct.pack("<Q", 0)
    yield "huge_header_length", raw(one, b"abcd", 100_000_000_000)
    yield "largest_header_length", raw(one, b"abcd", 2**64 - 1)
    yield "header_longer_than_file", raw(one, b"abcd", 1000)
    yield "header_one_byte_too_long", raw(one, b"", len(raw(one)) - 7)
    yield "not_json", raw("{x}")
    yield "leading_space", raw(" {}")
    yield "trailing_text", raw("{} x")
    yield "header_is_array", raw("[]")
    yield "invalid_utf8", raw('{"\udcff":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"\0")
    yield "missing_dtype", raw({"x": {"shape": [1], "data_offsets": [0, 1]}}, b"\0")
    yield "missing_shape", raw({"x": {"dtype": "U8", "data_offsets": [0, 1]}}, b"\0")
    yield "missing_offsets", raw({"x": {"dtype": "U8", "shape": [1]}}, b"\0")
    yield "unknown_dtype", raw({"x": tensor("Q9", [1], 0, 1)}, b"\0")
    yield "dtype_is_number", raw({"x": tensor(7, [1], 0, 1)}, b"\0")
    yield "negative_dimension", raw({"x": tensor("U8", [-1], 0, 1)}, b"\0")
    yield "real_dimension", raw({"x": tensor("U8", [1.0], 0, 1)}, b"\0")
    yield "shape_is_number", raw({"x": tensor("U8", 1, 0, 1)}, b"\0")
    yield "overflowing_shape", raw({"x": tensor("U8", [2**32, 2**32, 2], 0, 1)}, b"\0")
    yield "overflowing_bytes", raw({"x": tensor("F64", [2**61], 0, 0)})
    yield "overflow_before_zero", raw({"x": tensor("U8", [2**40, 2**40, 0], 0, 0)})
    yield "shape_too_small", raw({"x": tensor("U8", [3], 0, 4)}, b"abcd")
    yield "shape_too_large", raw({"x": tensor("F32", [2], 0, 4)}, b"abcd")
    yield "one_offset", raw('{"x":{"dtype":"U8","shape":[1],"data_offsets":[0]}}', b"\0")
    yield "three_offsets", raw('{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}', b"\0")
    yield "offsets_backwards", raw({"x": tensor("U8", [1], 1, 0)}, b"\0")
    yield "negative_offset", raw({"x": tensor("U8", [1], -1, 0)}, b"\0")
    yield "offset_of_2_to_64", raw({"x": tensor("U8", [1], 0, 2**64)}, b"\0")
    yield "end_behind_file", raw(one, b"abc")
    yield "far_behind_file", raw({"x": tensor("U8", [4], 2**63, 2**63 + 4)}, b"abcd")
    yield "bytes_behind_last_tensor", raw(one, b"abcdef")
    yield "data_without_tensors", raw({}, b"abc")
    yield "hole_at_start", raw({"x": tensor("U8", [2], 2, 4)}, b"abcd")
    yield "hole_in_between", raw({"x": tensor("U8", [1], 0, 1), "y": tensor("U8", [1], 2, 3)}, b"abc")
    yield "overlap", raw({"x": tensor("U8", [3], 0, 3), "y": tensor("U8", [3], 2, 5)}, b"abcde")
    yield "same_bytes_twice", raw({"x": tensor("U8", [3], 0, 3), "y": tensor("U8", [3], 0, 3)}, b"abc")
    yield "metadata_of_numbers", raw({"__metadata__": {"a": 1}})
    yield "metadata_is_text", raw({"__metadata__": "a"})
    yield "tensor_is_null", raw({"x": None})
    yield "repeated_name", raw('{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                               '"x":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"\0")


def verdict(content):
    """What the reference implementation reads, or its refusal."""
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        file.write(content)
        file.flush()
        try:
            with safe_open(file.name, framework="np") as opened:
                metadata = opened.metadata()
            tensors = dict(safetensors.deserialize(content))
        except Exception as error:
            # Which of several bad tensors it names differs from run to run.
            return {"accepted": False, "reason": re.sub(r"for tensor `.`", "for a tensor", str(error))}
    return {"accepted": True, "metadata": metadata or {},
            "tensors": {name: {"dtype": t["dtype"], "shape": list(t["shape"]), "data": bytes(t["data"]).hex()}
                        for name, t in sorted(tensors.items())}}


def main():
    cases = []
    for name, content in good():
        cases.append({"name": name, "content": content.hex(), **verdict(content)})
        if not cases[-1]["accepted"]:
            raise SystemExit(f"{name} should be good: {cases[-1]['reason']}")
    for name, content in broken():
        cases.append({"name": name, "content": content.hex(), **verdict(content)})
    lines = ",\n".join(json.dumps(case) for case in cases)
    with open("safetensors_goldens.json", "w", encoding="utf-8") as file:
        file.write(f'{{"safetensors": "{safetensors.__version__}", "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
