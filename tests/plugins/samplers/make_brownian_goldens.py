"""Writes brownian_golden.json beside it: seeds by NumPy and noise by torchsde.

Run on x86-64 with AVX2, PyTorch, NumPy and torchsde: python make_brownian_goldens.py
The noise is what k-diffusion's BrownianTreeNoiseSampler makes of a torchsde.BrownianTree, with the
correctly rounded square root of NumPy: PyTorch's comes from MKL, and its last bit depends on the
processor.
"""
import json
import pathlib
import warnings
import zlib

import numpy as np
import torch
import torchsde

HERE = pathlib.Path(__file__).parent


def crc(values):
    return "%08x" % zlib.crc32(np.ascontiguousarray(values, dtype=np.float32).tobytes())


def seeds(entropy, key, pool, count):
    words = np.random.SeedSequence(entropy=entropy, spawn_key=key, pool_size=pool)
    return {"entropy": str(entropy), "key": list(key), "pool": pool,
            "words": [int(w) for w in words.generate_state(count)]}


def tree(seed, shape, levels, steps=None):
    """The noise of all steps of a schedule, or of the given pairs of its levels."""
    levels = torch.tensor(levels, dtype=torch.float32)
    t0, t1 = levels[levels > 0].min(), levels.max()
    motion = torchsde.BrownianTree(t0, torch.zeros(shape), t1, entropy=seed)
    pairs = steps or [(a, b) for a, b in zip(levels[:-1], levels[1:]) if b > 0]
    cases = []
    for a, b in pairs:
        a, b = torch.as_tensor(a), torch.as_tensor(b)
        low, high, sign = (a, b, 1) if a < b else (b, a, -1)
        spread = np.sqrt((b - a).abs().numpy())
        noise = motion(low, high) * sign / torch.tensor(spread)
        flat = noise.flatten()
        cases.append({"from": float(a), "to": float(b), "crc32": crc(flat),
                      "first": [float(v) for v in flat[:4]]})
    return {"seed": str(seed), "count": int(np.prod(shape)), "low": float(t0), "high": float(t1),
            "cases": cases}


KARRAS = [14.6146, 9.0171, 5.3422, 2.9993, 1.5786, 0.7616, 0.3265, 0.1201, 0.0292, 0.0]
FLOW = [1.0, 0.9546938, 0.900359, 0.833998, 0.7511211, 0.6446863, 0.5029851, 0.3050089, 0.0]
PAIRS = [(5.0, 4.0), (4.0, 3.5), (5.0, 3.5), (14.6146, 0.0292), (7.321915, 7.321914), (0.5, 2.5)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    golden = {
        "seeds": [seeds(0, (), 4, 6), seeds(42, (), 24, 3), seeds(42, (0, 0), 24, 4),
                  seeds(2**64 - 1, (5, 3), 24, 30), seeds(2**32, (2**33 + 1, 40), 8, 9),
                  seeds(7, (1, 2, 3), 4, 4)],
        "trees": [tree(42, (1, 4, 8, 8), KARRAS), tree(0, (1, 16, 64, 64), FLOW),
                  tree(2**63 + 5, (2, 4, 9, 11), KARRAS), tree(3, (1, 5), KARRAS),
                  tree(11, (1, 4, 37, 29), KARRAS, PAIRS), tree(1, (1, 1, 1, 4111), FLOW)],
    }
    text = json.dumps(golden, separators=(",", ":")).replace("},{", "},\n{")
    (HERE / "brownian_golden.json").write_text(text + "\n")
