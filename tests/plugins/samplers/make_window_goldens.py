"""Writes window_golden.json beside it: context windows, their weights and repeated noise, of window_reference.py.

    python make_window_goldens.py        (needs PyTorch)
"""
import json
import pathlib

import torch

from window_reference import region, repeat_noise, shares, windows_at

HERE = pathlib.Path(__file__).parent
SCHEDULES = ("standard_static", "standard_uniform", "looped_uniform", "batched")
FUSES = ("pyramid", "relative", "flat", "overlap-linear")
SHAPES = [  # full, length, overlap, stride, closed loop
    (33, 16, 4, 1, False), (20, 6, 2, 1, True), (17, 5, 0, 1, False), (48, 8, 3, 3, True), (12, 5, 1, 3, False), (9, 8, 1, 2, False)]
STEPS = (0, 1, 2, 5, 11)


def case(schedule, full, length, overlap, stride, closed, step):
    windows = windows_at(schedule, full, length, overlap, stride, closed, step)
    made = {"schedule": schedule, "full": full, "length": length, "overlap": overlap, "stride": stride, "closed_loop": closed,
            "step": step}
    if any(not 0 <= place < full for w in windows for place in w):
        return made  # refused
    made["windows"] = windows
    made["regions"] = [region(w, full, 3) for w in windows]
    if step in (0, 5):
        made["weights"] = {fuse: [[round(float(part.get(i, 0)), 9) for i in range(len(w))]
                                  for w, part in zip(windows, shares(windows, fuse, full, overlap))] for fuse in FUSES}
    return made


cases = [case(schedule, *shape, step) for schedule in SCHEDULES for shape in SHAPES
         for step in (STEPS if "uniform" in schedule else STEPS[:1])]
noise = [{"full": full, "length": length, "overlap": overlap, "seed": seed,
          "places": repeat_noise(torch.arange(full), 0, length, overlap, seed).tolist()}
         for full, length, overlap, seed in ((33, 16, 4, 7), (20, 6, 2, 2**40 + 5), (9, 8, 1, 0), (7, 3, 0, 123))]

(HERE / "window_golden.json").write_text(json.dumps({"cases": cases, "noise": noise}, separators=(",", ":")) + "\n")
print(len(cases), "cases,", sum("windows" not in c for c in cases), "refused")
