"""Writes curve_golden.json beside this file: tables of 256 values of curves (linear, and Fritsch and Carlson's monotone
cubic), at every fifth entry.

    make_curve_goldens.py        (needs numpy)
"""

import json
import os

import numpy as np


def table(points, interpolation):
    points = np.array(sorted(points, key=lambda p: p[0]), dtype=np.float64)
    at = np.arange(256) / 255
    x, y = points[:, 0], points[:, 1]
    if len(points) == 1 or interpolation == "linear":
        return np.interp(at, x, y)
    d = np.diff(y) / np.diff(x)
    m = np.concatenate([d[:1], (d[1:] + d[:-1]) / 2, d[-1:]])
    m[1:-1][np.sign(d[1:]) * np.sign(d[:-1]) <= 0] = 0
    for i, slope in enumerate(d):
        if slope == 0:
            m[i] = m[i + 1] = 0
        else:
            a, b = m[i] / slope, m[i + 1] / slope
            if a * a + b * b > 9:
                m[i], m[i + 1] = (3 / np.hypot(a, b) * v * slope for v in (a, b))
    i = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(x) - 2)
    h = x[i + 1] - x[i]
    t = np.clip((at - x[i]) / h, 0, 1)
    basis = np.stack([2 * t**3 - 3 * t**2 + 1, (t**3 - 2 * t**2 + t) * h, 3 * t**2 - 2 * t**3, (t**3 - t**2) * h])
    return (basis * np.stack([y[i], m[i], y[i + 1], m[i + 1]])).sum(0)


CURVES = [([[0, 0], [1, 1]], "monotone_cubic"), ([[0.8, 0.9], [0.1, 0.2], [0.4, 0.3]], "linear"),
          ([[0, 0], [0.3, 0.05], [0.35, 0.9], [0.6, 0.9], [1, 0.2]], "monotone_cubic"), ([[0.5, 0.7]], "other")]
golden = [{"points": p, "interpolation": k, "values": table(p, k)[::5].tolist()} for p, k in CURVES]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "curve_golden.json"), "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(g) for g in golden) + "\n]\n")
