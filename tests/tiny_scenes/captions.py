"""English captions of a scene, of many kinds, and what each of them tells.

Two captions in five name no place (any place is right then), some name the objects only,
some neither sky nor ground. One caption in fifty, by its checksum, is held back: no picture is ever
trained with it, and the checker's prompts are taken from those.
"""

import zlib

from objects import COLOURS, KINDS
from scenes import GROUNDS, PLACES, SKIES

WHERE = {"left": ["on the left"], "middle": ["in the middle", "in the middle", "in the centre"],
         "right": ["on the right"]}
SKY_WORDS = {"day": ["a clear blue sky", "a sunny day"], "sunset": ["a sunset sky", "sunset"],
             "night": ["a starry night sky", "night"],
             "cloudy": ["a cloudy sky", "a grey cloudy day"]}
GROUND_WORDS = {"grass": ["on green grass", "in a meadow"],
                "snow": ["in the snow", "on white snow"],
                "sand": ["on the sand", "in the desert"], "sea": ["on the sea", "at sea"]}
LIGHT_WORDS = {"sun": "a yellow sun", "moon": "a full moon", "crescent": "a crescent moon"}

# Kind of caption: (weight, are places named, is the ground named, is the sky named).
KINDS_OF_CAPTION = {
    "full": (40, True, True, True), "place first": (8, True, True, True),
    "ground": (6, True, True, False), "objects": (6, True, False, False),
    "full anywhere": (14, False, True, True), "ground anywhere": (10, False, True, False),
    "sky anywhere": (7, False, False, True), "objects anywhere": (9, False, False, False),
}


def is_held_back(caption):
    return zlib.crc32(caption.encode()) % 50 == 0


def noun(kind, colour):
    words = f"{colour} {kind}" if colour else kind
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def _list(parts, rng):
    if len(parts) == 3 and rng.random() < 0.4:
        return f"{parts[0]}, {parts[1]} and {parts[2]}"
    return " and ".join(parts)


def _object_words(scene, kind, rng):
    parts = []
    for name, colour, place in rng.sample(scene["objects"], len(scene["objects"])):
        words = noun(name, colour)
        if kind == "place first":
            words = f"{rng.choice(WHERE[place])} {words}"
        elif KINDS_OF_CAPTION[kind][1]:
            words = f"{words} {rng.choice(WHERE[place])}"
        parts.append(words)
    return _list(parts, rng)


def word(scene, kind, rng):
    """One wording of the scene, of the given kind."""
    what = _object_words(scene, kind, rng)
    _, _, names_ground, names_sky = KINDS_OF_CAPTION[kind]
    ground = rng.choice(GROUND_WORDS[scene["ground"]])
    sky = rng.choice(SKY_WORDS[scene["sky"]])
    if not names_sky:
        return f"{what} {ground}" if names_ground else what
    if not names_ground:
        return rng.choice([f"{what}, {sky}", f"{what} under {sky}", f"{sky}, {what}"])
    extras = [LIGHT_WORDS[scene["light"]]] if scene["light"] else []
    extras += ["mountains in the background"] if scene["mountains"] else []
    tail = " with " + " and ".join(extras) if extras else ""
    return rng.choice([f"{what} {ground}, {sky}{tail}", f"{what} {ground} under {sky}{tail}",
                       f"{sky}{tail}, {what} {ground}"])


def describe(scene, rng):
    """A caption that is not held back, and (are places, ground, sky named) as 0 or 1."""
    names, weights = list(KINDS_OF_CAPTION), [k[0] for k in KINDS_OF_CAPTION.values()]
    while True:
        kind = rng.choices(names, weights)[0]
        caption = word(scene, kind, rng)
        if rng.random() < 0.12:  # as people write them, too
            caption = caption[0].upper() + caption[1:] + rng.choice(["", "."])
        if not is_held_back(caption):
            return caption, tuple(int(named) for named in KINDS_OF_CAPTION[kind][1:])


def facts(scene):
    """The scene as eight small numbers: the kind at each place (len(KINDS) for none), the colour at
    each place (len(COLOURS) for none), the sky, the ground."""
    at = {place: (kind, colour) for kind, colour, place in scene["objects"]}
    colours = list(COLOURS)
    kind_row = [KINDS.index(at[p][0]) if p in at else len(KINDS) for p in PLACES]
    colour_row = [colours.index(at[p][1]) if p in at and at[p][1] else len(colours) for p in PLACES]
    return (*kind_row, *colour_row, list(SKIES).index(scene["sky"]),
            list(GROUNDS).index(scene["ground"]))
