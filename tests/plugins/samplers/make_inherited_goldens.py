"""Writes inherited_golden.json beside it: which negative conditionings get the ControlNet or the boxes of which positive one.

    python make_inherited_goldens.py

The rule, of what ComfyUI 0.33 does before it samples: entries that have an area, or a mask that bounds one, take no part. With m negative
entries left, none of which has its own, and n positive ones that give, the k-th gives to the negative entry k modulo m, and the last that gives to
an entry stays. So entry t keeps the greatest k below n with k = t modulo m. No entry is added.
"""
import json
import pathlib
import random

HERE = pathlib.Path(__file__).parent
AREAS = ("", "", "", "area", "area_fractions", "bounded", "mask")  # a mask that does not bound leaves the entry whole


def is_whole(entry):
    return entry["where"] in ("", "mask")


def kept(positive, negative, for_negatives_too):
    """Of each negative entry the place of the positive one whose ControlNet (or boxes) it has at last; -1: its own, -2: none."""
    givers = [i for i, e in enumerate(positive) if is_whole(e) and e["has"] and (e["asks"] or not for_negatives_too)]
    takers = [i for i, e in enumerate(negative) if is_whole(e)]
    result = [-1 if e["has"] else -2 for e in negative]
    if any(negative[i]["has"] for i in takers):
        return result
    for t, place in enumerate(takers):
        turns = [k for k in range(len(givers)) if k % len(takers) == t]
        if turns:
            result[place] = givers[max(turns)]
    return result


def main():
    draw = random.Random(23)
    entry = lambda share: {"where": draw.choice(AREAS), "has": draw.random() < share, "asks": draw.random() < 0.7}
    cases = []
    for _ in range(120):
        positive = [entry(0.8) for _ in range(draw.randint(1, 5))]
        negative = [entry(0.1) for _ in range(draw.randint(1, 3))]
        cases.append({"positive": positive, "negative": negative, "controls": kept(positive, negative, True),
                      "boxes": kept(positive, negative, False)})
    (HERE / "inherited_golden.json").write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()
