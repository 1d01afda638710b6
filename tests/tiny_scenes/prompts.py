"""Chooses the held-back prompts that the checker judges, and writes them to prompts.json.

    python3 prompts.py        the committed prompts.json, again

200 pairs (left and right), 200 triples, 200 singles and 50 short prompts that name no place; each
caption is one that training leaves out (captions.is_held_back), and each is judgeable by colour.
"""

import itertools
import json
import os
import random

import numpy as np

from captions import is_held_back, word
from checker import FEWEST, NEAR, colour_mask, judge, lab, main_colour
from objects import COLOURED, COLOURS, OWN_COLOUR
from scenes import (GROUNDS, LAND_KINDS, LIGHT_COLOURS, LIGHTS, PLACES, SEA_KINDS, SKIES, SKY_KINDS,
                    draw_scene)

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "prompts.json")
SETS = {"pairs": 200, "triples": 200, "singles": 200, "short": 50}


def load():
    with open(PATH) as file:
        return json.load(file)


def _object(rng, ground, place, colours):
    """A random object with one of the colours, or one of a kind's own where colours is None."""
    while True:
        kinds = (SEA_KINDS if ground == "sea" else LAND_KINDS) + SKY_KINDS
        kind = rng.choice(kinds)
        if kind in COLOURED:
            return kind, rng.choice(colours or list(COLOURS)), place
        if colours is None and kind in OWN_COLOUR:
            return kind, None, place


def _scene(rng, name):
    """A random scene of the set, and the kind of its caption."""
    ground, sky = rng.choice(list(GROUNDS)), rng.choice(list(SKIES))
    places = {"pairs": ["left", "right"], "triples": list(PLACES),
              "singles": [rng.choice(list(PLACES))],
              "short": rng.sample(list(PLACES), rng.choice((1, 2)))}[name]
    palette = rng.sample(list(COLOURS), len(places))
    free = name in ("singles", "short")
    objects = [_object(rng, ground, p, None if free and len(places) == 1 else [c])
               for p, c in zip(places, palette)]
    scene = dict(ground=ground, sky=sky, light=rng.choice(LIGHTS[sky]),
                 mountains=rng.random() < 0.3, objects=objects)
    if name == "short":
        return scene, rng.choice(["ground anywhere", "sky anywhere", "objects anywhere"])
    return scene, rng.choice(["full"] * 5 + ["place first"])


def _prompt(scene, kind, name, rng):
    anywhere, full = name == "short", name != "short"
    return {"set": name, "text": word(scene, kind, rng),
            "objects": [[k, c, None if anywhere else p] for k, c, p in scene["objects"]],
            "sky": scene["sky"] if full or kind == "sky anywhere" else None,
            "ground": scene["ground"] if full or kind == "ground anywhere" else None}


def _variants(scene, kind, rng):
    """Scenes that all fit the caption; they differ in what it leaves open."""
    open_sky = kind in ("ground anywhere", "objects anywhere")
    sea_only = any(k in SEA_KINDS and k != "lighthouse" for k, _, _ in scene["objects"])
    land_only = any(k in LAND_KINDS and k != "lighthouse" for k, _, _ in scene["objects"])
    for sky in SKIES if open_sky else [scene["sky"]] * 3:
        variant = dict(scene, sky=sky)
        if open_sky or kind == "sky anywhere":
            variant.update(light=rng.choice(LIGHTS[sky]), mountains=rng.random() < 0.5)
        if kind in ("sky anywhere", "objects anywhere"):
            grounds = [g for g in GROUNDS if not (g == "sea" and land_only)
                       and not (g != "sea" and sea_only)]
            for ground in grounds:
                yield dict(variant, ground=ground)
        else:
            yield variant


def is_judgeable(scene, kind, prompt, rng):
    """Rendered as asked, the checker says yes; without one object, that one's colour is gone."""
    for variant in _variants(scene, kind, rng):
        seed = rng.random()
        if not all(judge(np.asarray(draw_scene(variant, random.Random(seed))), prompt)["objects"]):
            return False
        for gone in variant["objects"]:
            rest = dict(variant, objects=[o for o in variant["objects"] if o is not gone])
            seen = lab(np.asarray(draw_scene(rest, random.Random(seed))))
            if colour_mask(seen, main_colour(*gone[:2])).sum() > FEWEST / 3:
                return False
    return True


def has_lookalike(prompt):
    """Whether a sun or a moon that the caption leaves open has the colour of an object."""
    if prompt["ground"] and prompt["sky"]:
        return False  # a full caption names its lights
    lights = {light for sky in ([prompt["sky"]] if prompt["sky"] else SKIES)
              for light in LIGHTS[sky] if light}
    return any(np.linalg.norm(lab(np.array(LIGHT_COLOURS[light])) - lab(np.array(
        main_colour(kind, colour)))) < NEAR for light in lights
        for kind, colour, _ in prompt["objects"])


def judgeable(name):
    """Endless different prompts of the set; a fixed seed for each set."""
    rng, seen = random.Random(name), set()
    while True:
        scene, kind = _scene(rng, name)
        prompt = _prompt(scene, kind, name, rng)
        if prompt["text"] in seen or not is_held_back(prompt["text"]):
            continue
        seen.add(prompt["text"])
        if is_judgeable(scene, kind, prompt, rng):
            yield prompt


def choose(name, count):
    """The set's prompts. One with a lookalike makes room for a later one in its own place, so that
    the others keep their numbers, which are their noise seeds."""
    source = judgeable(name)
    chosen = list(itertools.islice(source, count))
    return [prompt if not has_lookalike(prompt) else
            next(p for p in source if not has_lookalike(p)) for prompt in chosen]


def main():
    prompts = [prompt for name, count in SETS.items() for prompt in choose(name, count)]
    with open(PATH, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(p) for p in prompts) + "\n]\n")
    print(len(prompts), "prompts")


if __name__ == "__main__":
    main()
