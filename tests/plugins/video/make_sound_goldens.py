"""Writes data/stereo_a.wav, data/mono_b.wav and sound_goldens.safetensors beside this script: what ComfyUI's nodes of
sound make of the two, computed by PyTorch in 64 bits. Resampling is torchaudio's sinc_interp_hann, filters are those of the
Audio EQ Cookbook.

    make_sound_goldens.py        (needs torch, numpy)
"""

import math
import struct
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from make_goldens import DATA, HERE, write_safetensors

RATE_A, RATE_B = 8000, 11025


def write_wav(path, samples, rate):
    """32-bit floats, channels interleaved."""
    data = np.ascontiguousarray(samples.T, np.float32).tobytes()
    channels = samples.shape[0]
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 3, channels, rate, rate * channels * 4, channels * 4, 32)
    path.write_bytes(b"RIFF" + struct.pack("<I", 4 + len(head) + 8 + len(data)) + b"WAVE" + head + b"data" + struct.pack("<I", len(data)) + data)


def resample(x, old, new, zeros=6, rolloff=0.99):
    g = math.gcd(old, new)
    old, new = old // g, new // g
    base = min(old, new) * rolloff
    width = math.ceil(zeros * old / base)
    steps = torch.arange(-width, width + old, dtype=torch.float64)
    t = ((steps[None] / old - torch.arange(new, dtype=torch.float64)[:, None] / new) * base).clamp(-zeros, zeros)
    kernel = torch.sinc(t) * torch.cos(t * math.pi / zeros / 2) ** 2 * base / old
    length = x.shape[-1]
    out = F.conv1d(F.pad(x, (width, width + old)).reshape(-1, 1, length + 2 * width + old), kernel[:, None], stride=old)
    out = out.transpose(1, 2).reshape(*x.shape[:-1], -1)
    return out[..., : math.ceil(new * length / old)]


def lfilter(x, b, a):
    out = torch.zeros_like(x)
    for n in range(x.shape[-1]):
        y = sum(b[k] * x[..., n - k] for k in range(3) if n >= k)
        y = y - sum(a[k] * out[..., n - k] for k in (1, 2) if n >= k)
        out[..., n] = y / a[0]
    return out.clamp(-1, 1)


def equalised(x, rate, low, mid, high):
    def terms(gain, freq, q):
        w = 2 * math.pi * freq / rate
        return 10 ** (gain / 40), math.cos(w), math.sin(w) / (2 * q)

    A, c, al = terms(*low, 0.707)
    r = 2 * math.sqrt(A) * al
    x = lfilter(x, [A * ((A + 1) - (A - 1) * c + r), 2 * A * ((A - 1) - (A + 1) * c), A * ((A + 1) - (A - 1) * c - r)],
                [(A + 1) + (A - 1) * c + r, -2 * ((A - 1) + (A + 1) * c), (A + 1) + (A - 1) * c - r])
    x = x.float().double()
    A, c, al = terms(*mid)
    x = lfilter(x, [1 + al * A, -2 * c, 1 - al * A], [1 + al / A, -2 * c, 1 - al / A])
    x = x.float().double()
    A, c, al = terms(*high, 0.707)
    r = 2 * math.sqrt(A) * al
    return lfilter(x, [A * ((A + 1) + (A - 1) * c + r), -2 * A * ((A - 1) + (A + 1) * c), A * ((A + 1) + (A - 1) * c - r)],
                   [(A + 1) - (A - 1) * c + r, 2 * ((A - 1) - (A + 1) * c), (A + 1) - (A - 1) * c - r])


if __name__ == "__main__":
    generator = np.random.default_rng(7)
    a32 = (generator.random((2, 96), np.float32) * 2 - 1) * np.float32(0.9)
    b32 = (generator.random((1, 80), np.float32) * 2 - 1) * np.float32(0.9)
    write_wav(DATA / "stereo_a.wav", a32, RATE_A)
    write_wav(DATA / "mono_b.wav", b32, RATE_B)
    a, b = torch.tensor(a32[None]).double(), torch.tensor(b32[None]).double()
    up = resample(a, RATE_A, RATE_B).float().double()
    goldens = {"up": up, "down": resample(b, RATE_B, RATE_A)}
    b2 = b.repeat(1, 2, 1)
    goldens["after"] = torch.cat([up, b2], -1)
    goldens["before"] = torch.cat([b2, up], -1)
    length = up.shape[-1]
    padded = F.pad(b, (0, length - b.shape[-1]))
    for name, value in (("add", up + padded), ("mean", (up + padded) / 2), ("subtract", up - padded), ("multiply", up * padded)):
        most = value.abs().max()
        goldens[name] = value / most if most > 1 else value
    goldens["quieter"] = a * 10 ** (-7 / 20)
    goldens["equalised"] = equalised(a, RATE_A, (6, 100), (-4, 1000, 2.0), (9, 3000))
    shorter = min(length, b.shape[-1])
    goldens["joined"] = torch.cat([up[:, :1, :shorter], b[..., :shorter]], 1)
    goldens["trimmed"] = a[..., 96 - 40 : 96 - 40 + 16]
    write_safetensors(HERE / "sound_goldens.safetensors", {k: v.numpy().astype(np.float32) for k, v in goldens.items()})
