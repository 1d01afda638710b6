"""Context windows written out in Python, for make_window_goldens.py here and in ../nodes: which places of an axis a model sees
at a step, and how much each counts. By the definitions of ComfyUI's ContextWindowsManual. Weights are exact fractions.
"""
from fractions import Fraction
import math

import torch


def bit_reversal(step):
    """0, 1/2, 1/4, 3/4, 1/8, 5/8, ...: the van der Corput sequence."""
    return Fraction(int(format(step, "b")[::-1], 2), 2 ** step.bit_length()) if step else Fraction(0)


def sliding(full, length, overlap):
    starts = [0]
    while starts[-1] + length < full:
        starts.append(starts[-1] + length - overlap)
    return [[min(s, full - length) + i for i in range(length)] for s in starts]


def blocks(full, length):
    return [list(range(full))[s:s + length] for s in range(0, full, length)]


def around(full, length, overlap, stride, step, closed):
    """Windows on a ring, with strides 1, 2, 4, ...; every step turns the ring."""
    at, windows = bit_reversal(step), []
    turned = round(full * at)  # half to even
    for power in range(min(stride, 1 + math.ceil(math.log2(full / length)))):
        s = 2 ** power
        start = math.floor(at * s) + turned
        while start < full + turned - (0 if closed else overlap):
            windows.append([(start + s * i) % full for i in range(length)])
            start += s * length - overlap
    return windows


def straightened(windows, full, length):
    """Those that pass the end lie before it instead; where the next one lacks the first place behind the end, one more comes."""
    windows = [list(w) for w in windows]
    kept, k = [], 0
    while k < len(windows):
        w = windows[k]
        turns = [i for i in range(1, length) if w[i] < w[i - 1]]
        if turns:
            behind = w[turns[0]]
            moved = [(p - w[0]) % full for p in w]
            windows[k] = w = [p + full - 1 - moved[-1] for p in moved]
            if behind not in windows[(k + 1) % len(windows)]:
                windows.insert(k + 1, [behind + i for i in range(length)])
        if w not in windows[:k]:
            kept.append(w)
        k += 1
    return kept


def windows_at(schedule, full, length, overlap, stride, closed, step):
    if schedule == "standard_static":
        return sliding(full, length, overlap)
    if schedule == "batched":
        return blocks(full, length)
    ring = around(full, length, overlap, stride, step, closed and schedule == "looped_uniform")
    return ring if schedule == "looped_uniform" else straightened(ring, full, length)


def shares(windows, fuse, full, overlap):
    """For each window a {place in it: share of the result}."""
    raw = []
    for w in windows:
        n, one = len(w), {}
        for i, place in enumerate(w):
            if fuse == "pyramid":
                one[i] = Fraction(1 + min(i, n - 1 - i))
            elif fuse == "flat":
                one[i] = Fraction(1)
            elif fuse == "relative":
                one[i] = max(Fraction(1, 100), 1 - abs(place - Fraction(w[0] + w[-1], 2)) / (Fraction(w[-1] - w[0]) + Fraction(1, 100)) * 2)
            else:
                rise, fall = [t.tolist() for t in (torch.linspace(1e-37, 1, overlap), torch.linspace(1, 1e-37, overlap))]
                weight = 1.0
                if min(w) > 0 and i < overlap:
                    weight = rise[i]
                if max(w) < full - 1 and i >= n - overlap:
                    weight = fall[i - (n - overlap)]
                one[i] = Fraction(weight)
        if fuse != "relative":  # indexed addition: of places that come twice the last one stays
            one = {i: weight for i, weight in one.items() if w[i] not in w[i + 1:]}
        raw.append(one)
    sums = [sum(weight for w, one in zip(windows, raw) for i, weight in one.items() if w[i] == p) for p in range(full)]
    return [{i: weight / sums[w[i]] for i, weight in one.items()} for w, one in zip(windows, raw)]


def repeat_noise(noise, dim, length, overlap, seed):
    """FreeNoise."""
    generator = torch.Generator().manual_seed(seed)
    parts, full = [noise.narrow(dim, 0, length)], noise.shape[dim]
    start = 0
    while start + length < full:
        count = min(length - overlap, full - start - length)
        order = start + torch.randperm(count, generator=generator)
        parts.append(torch.cat(parts, dim).index_select(dim, order))
        start += length - overlap
    return torch.cat(parts, dim)


def region(window, full, count):
    return min(int((min(window) + max(window)) / (2 * full) * count), count - 1)


def look(window, tensor, dim, retained=(), anchored=True):
    """What a model sees of a tensor in a window, with the place before it where there is one."""
    before = [window[0] - 1] if anchored and window[0] > 0 else []
    rows = before + list(window)
    for place in retained:
        rows[place] = place % tensor.shape[dim]
    return tensor.index_select(dim, torch.tensor(rows)), len(before)


def predict(model, x, dim, windows, parts, retained=(), anchored=True):
    """model(window's number, tensor) -> prediction of it; all of them put together."""
    total = torch.zeros_like(x)
    for k, (window, part) in enumerate(zip(windows, parts)):
        seen, before = look(window, x, dim, retained, anchored)
        made = model(k, seen)
        for i, share in part.items():
            at = (slice(None),) * dim
            total[at + (window[i],)] += made[at + (before + i,)] * float(share)
    return total
