"""Tries the checker on rendered scenes, where the right answer is known.

    python3 checker_test.py        about a minute; fails with the first sentence that is not true
"""

import random

import numpy as np

import prompts
from captions import LIGHT_WORDS
from checker import judge, tally
from scenes import GROUNDS, LIGHTS, PLACES, SEA_KINDS, SKIES, draw_scene


def render(prompt, rng, without=0):
    """A picture that shows what the prompt asks for, but for its first `without` objects; chance
    decides the rest."""
    kinds = [kind for kind, _, _ in prompt["objects"]]
    at_sea = any(k in SEA_KINDS and k != "lighthouse" for k in kinds)
    land = [g for g in GROUNDS if g != "sea"]
    sky = prompt["sky"] or rng.choice(list(SKIES))
    free = not (prompt["sky"] and prompt["ground"])
    light = next((name for name, words in LIGHT_WORDS.items() if words in prompt["text"]), None)
    places = rng.sample(list(PLACES), len(kinds))
    return np.asarray(draw_scene(dict(
        sky=sky, ground=prompt["ground"] or ("sea" if at_sea else rng.choice(land)),
        light=rng.choice(LIGHTS[sky]) if free else light,
        mountains=rng.random() < 0.3 if free else "mountains" in prompt["text"],
        objects=[(k, c, p or places[i])
                 for i, (k, c, p) in enumerate(prompt["objects"])][without:]), rng))


def shares(pairs):
    """Share of right pictures a set, of (prompt, picture) pairs."""
    counts = tally([(prompt, judge(picture, prompt)) for prompt, picture in pairs])
    return {name: right / judged for name, (right, judged) in counts.items()}


def expect(sentence, measured, holds):
    print(f"{sentence}:", ", ".join(f"{n} {100 * m:.1f} %" for n, m in measured.items()))
    assert all(holds(m) for m in measured.values()), sentence


def only(measured, *names):
    return {name: measured[name] for name in names}


def main():
    everything = prompts.load()
    drawn = [(p, render(p, random.Random(i))) for i, p in enumerate(everything)]
    expect("scenes rendered as asked are right", shares(drawn), lambda m: m >= 0.99)
    mirrored = shares([(p, picture[:, ::-1]) for p, picture in drawn])
    expect("mirrored scenes have their objects in the wrong place",
           only(mirrored, "pairs", "triples"), lambda m: m == 0)
    shifted = []
    for name in prompts.SETS:
        part = [pair for pair in drawn if pair[0]["set"] == name]
        shifted += [(p, part[i - 1][1]) for i, (p, _) in enumerate(part)]
    expect("scenes of other prompts are rarely right", shares(shifted), lambda m: m <= 0.2)
    empty = [(p, render(p, random.Random(i), without=3)) for i, p in enumerate(everything)]
    expect("scenes without objects show none",
           only(shares(empty), *prompts.SETS), lambda m: m == 0)
    one_less = [(p, render(p, random.Random(i), without=1)) for i, p in enumerate(everything)]
    expect("a missing object is missed", only(shares(one_less), *prompts.SETS), lambda m: m == 0)


if __name__ == "__main__":
    main()
