"""Judges pictures of prompts by colour in regions; knows nothing of the model.

A prompt says what should be seen where: {"text", "objects": [[kind, colour or null, place or
null], ...], "sky", "ground"}. An object is found by the pixels near its main colour, so only
prompts may be judged whose objects stand out from each other and from the scene; `is_judgeable`
(prompts.py) tries that on rendered scenes.
"""

import numpy as np

from objects import COLOURS, OWN_COLOUR, SIZE
from scenes import GROUNDS, SKIES

NEAR = 22.0  # distance in CIE L*a*b* within which a pixel has a colour
FEWEST = 120  # pixels (of 65536) of its colour that show an object
SHARE = 0.6  # of its colour's pixels that an object in its place has there
THIRDS = {"left": (0.0, 0.36), "middle": (0.36, 0.64), "right": (0.64, 1.0)}  # between the places
SKY_ROWS, GROUND_ROWS = slice(2, 30), slice(240, 252)


def lab(picture):
    """CIE L*a*b* (D65) of sRGB values 0..255, over the last axis; formulas: IEC 61966-2-1 and
    CIE 15."""
    rgb = np.asarray(picture, dtype=np.float64) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722],
                       [0.0193, 0.1192, 0.9505]])
    xyz = linear @ to_xyz.T / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]),
                     200 * (f[..., 1] - f[..., 2])], -1)


def main_colour(kind, colour):
    """The RGB colour that an object is found by."""
    return COLOURS[colour] if colour else OWN_COLOUR[kind]


def colour_mask(picture_lab, rgb):
    return np.linalg.norm(picture_lab - lab(np.array(rgb)), axis=-1) < NEAR


def _columns(mask, span):
    first, last = (round(SIZE * x) for x in span)
    return int(mask[:, first:last].sum())


def dominates_half(masks, i, place):
    """Object i's colour is in the half that is named, more than in the other half by three times,
    and more than any other object's colour there."""
    here, there = ((0.0, 0.5), (0.5, 1.0))[::1 if place == "left" else -1]
    count = _columns(masks[i], here)
    others = [_columns(m, here) for k, m in enumerate(masks) if k != i]
    return bool(count >= FEWEST and count > 3 * _columns(masks[i], there)
                and all(count > other for other in others))


def is_in_third(mask, place):
    """Enough of the colour is there, and most of it around the place that is named."""
    count = _columns(mask, THIRDS[place])
    return bool(count >= FEWEST and count >= SHARE * mask.sum())


def _nearest(picture_lab, rows, colours):
    """Which of the colours the rows' median is nearest to, or None if it is near none."""
    seen = np.median(picture_lab[rows].reshape(-1, 3), axis=0)
    distances = {name: np.linalg.norm(seen - lab(np.array(c))) for name, c in colours.items()}
    name = min(distances, key=distances.get)
    return name if distances[name] < NEAR else None


def sky_of(picture_lab):
    return _nearest(picture_lab, SKY_ROWS, {name: c[0] for name, c in SKIES.items()})


def ground_of(picture_lab):
    return _nearest(picture_lab, GROUND_ROWS, {name: c[1] for name, c in GROUNDS.items()})


def judge(picture, prompt):
    """Verdicts (bools) on a (SIZE, SIZE, 3) uint8 picture: `objects`, one an object in the prompt's
    order; `sky` and `ground`, None where the prompt names none."""
    seen = lab(picture)
    masks = [colour_mask(seen, main_colour(kind, c)) for kind, c, _ in prompt["objects"]]
    places = [place for _, _, place in prompt["objects"]]
    verdicts = []
    for i, place in enumerate(places):
        if place is None:
            verdicts.append(bool(masks[i].sum() >= FEWEST))
        elif sorted(places) == ["left", "right"]:
            verdicts.append(dominates_half(masks, i, place))
        else:
            verdicts.append(is_in_third(masks[i], place))
    return {"objects": verdicts,
            "sky": sky_of(seen) == prompt["sky"] if prompt["sky"] else None,
            "ground": ground_of(seen) == prompt["ground"] if prompt["ground"] else None}


def tally(judged):
    """Counts over (prompt, verdicts) pairs: {name of the set: [right, judged]}. A picture is right
    when all its objects are; `sky and ground` counts the pictures whose prompt names both."""
    counts = {}
    for prompt, verdicts in judged:
        row = counts.setdefault(prompt["set"], [0, 0])
        row[0] += all(verdicts["objects"])
        row[1] += 1
        if prompt["sky"] and prompt["ground"]:
            row = counts.setdefault("sky and ground", [0, 0])
            row[0] += bool(verdicts["sky"] and verdicts["ground"])
            row[1] += 1
    return counts


def lines(counts):
    """The counts as lines of text, next to what is asked for."""
    asked = {"pairs": 95, "triples": 85, "singles": 98, "sky and ground": 99, "short": 95}
    return [f"{name}: {counts[name][0]} of {counts[name][1]} "
            f"({100 * counts[name][0] / max(1, counts[name][1]):.1f} %, asked {percent} %)"
            for name, percent in asked.items() if name in counts]
