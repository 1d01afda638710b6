"""Writes sequence_golden.json: CRC-32 of what PyTorch draws from one CPU generator over several calls.

Run on x86-64 with AVX2: python make_sequence_golden.py
"""
import json
import pathlib
import zlib

import torch

assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")


def crc(values):
    return "%08x" % zlib.crc32(values.contiguous().numpy().tobytes())


def sequence(seed, sizes):
    generator = torch.Generator().manual_seed(seed)
    calls = [{"n": n, "crc32": crc(torch.randn(n, generator=generator))} for n in sizes]
    return {"seed": seed, "calls": calls}


def batch(seed, shape, index):
    generator = torch.Generator().manual_seed(seed)
    items = [torch.randn([1, *shape], generator=generator) for _ in range(max(index) + 1)]
    noise = torch.cat([items[i] for i in index])
    return {"seed": seed, "item": items[0].numel(), "index": index, "crc32": crc(noise)}


golden = {
    "sequences": [
        sequence(3, [3, 5, 16, 1, 40, 2, 15, 17, 7]),
        sequence(2**63 + 12345, [1, 1, 1, 100, 1, 16, 16, 24, 24]),
        sequence(42, [16384, 16384, 16]),
    ],
    "batches": [
        batch(42, [4, 64, 64], [0, 1, 2]),
        batch(42, [4, 64, 64], [2]),
        batch(7, [4, 9, 9], [5, 0, 5, 3]),
        batch(7, [3, 1, 1], [1, 4, 2]),
        batch(2**64 - 1, [16, 3, 5], [2, 2, 0]),
    ],
}
path = pathlib.Path(__file__).with_name("sequence_golden.json")
path.write_text(json.dumps(golden, indent=1) + "\n")
