"""Procedural picture-book scenes: the training pictures of the small text-to-image model.

A scene is a dictionary: `ground`, `sky`, `light` (None, sun, moon, crescent), `mountains` (bool),
`objects` (a list of (kind, colour or None, place)). Everything is derived from the random generator
that is passed in, so a seed reproduces a scene and its picture.
"""

from PIL import Image, ImageDraw

from objects import COLOURED, COLOURS, SCALE, SIZE, Pen, draw_object, shade

SKIES = {
    "day": ((120, 190, 245), (205, 232, 250)), "sunset": ((245, 120, 90), (255, 205, 120)),
    "night": ((16, 22, 58), (52, 60, 120)), "cloudy": ((150, 162, 178), (205, 212, 220)),
}
GROUNDS = {
    "grass": ((110, 185, 85), (70, 145, 65)), "snow": ((248, 250, 255), (215, 226, 242)),
    "sand": ((240, 214, 150), (220, 186, 115)), "sea": ((50, 130, 190), (25, 85, 150)),
}
LIGHTS = {"day": [None, "sun", "sun"], "sunset": [None, "sun"],
          "night": [None, "moon", "crescent"], "cloudy": [None]}
LIGHT_COLOURS = {"sun": (255, 225, 80), "moon": (245, 243, 225), "crescent": (245, 243, 225)}
PLACES = {"left": 0.22, "middle": 0.5, "right": 0.78}  # the middle of an object, of the side
LAND_KINDS = ["house", "pine tree", "round tree", "tent", "snowman", "cactus", "windmill",
              "lighthouse", "car", "umbrella", "mushroom", "castle", "flag"]
SEA_KINDS = ["sailboat", "lighthouse", "duck", "whale"]
SKY_KINDS = ["balloon", "rocket", "kite", "rainbow"]


def random_objects(rng, ground, places):
    """One object a place; the first stands on the ground most of the time."""
    objects = []
    for i, place in enumerate(places):
        in_sky = rng.random() < (0.35 if i else 0.12)
        kinds = SKY_KINDS if in_sky else SEA_KINDS if ground == "sea" else LAND_KINDS
        kind = rng.choice(kinds)
        if any(other[0] == kind == "rainbow" for other in objects):
            kind = "balloon"
        colour = rng.choice(list(COLOURS)) if kind in COLOURED else None
        objects.append((kind, colour, place))
    return objects


def random_scene(rng):
    ground, sky = rng.choice(list(GROUNDS)), rng.choice(list(SKIES))
    count = rng.choices((1, 2, 3), (3, 4, 3))[0]
    objects = random_objects(rng, ground, rng.sample(list(PLACES), count))
    return dict(ground=ground, sky=sky, light=rng.choice(LIGHTS[sky]),
                mountains=rng.random() < 0.3, objects=objects)


def _gradient(colours, height, width):
    """A vertical gradient from the first colour (above) to the second."""
    top, bottom = colours
    strip = Image.new("RGB", (1, height))
    for y in range(height):
        f = y / max(1, height - 1)
        strip.putpixel((0, y), tuple(int(a + (b - a) * f) for a, b in zip(top, bottom)))
    return strip.resize((width, height))


def _disc(draw, x, y, rx, ry, fill):
    draw.ellipse([x - rx, y - ry, x + rx, y + ry], fill=fill)


def _draw_stars(draw, rng, k, horizon):
    for _ in range(45):
        x, y, r = rng.uniform(0, k), rng.uniform(0, horizon * 0.95), rng.uniform(1.0, 2.6)
        _disc(draw, x, y, r, r, (255, 255, 230))


def _draw_light(draw, rng, k, horizon, light):
    x, y, r = k * rng.uniform(0.12, 0.88), k * rng.uniform(0.1, 0.2), k * 0.065
    _disc(draw, x, y, r, r, LIGHT_COLOURS[light])
    if light == "crescent":
        dark = _gradient(SKIES["night"], horizon, 1).getpixel((0, int(y)))
        _disc(draw, x + r * 0.55, y - r * 0.05, r, r, dark)


def _draw_clouds(draw, rng, k):
    for _ in range(4):
        x, y = rng.uniform(0, k), rng.uniform(0.05, 0.35) * k
        for dx, dy, r in ((-34, 6, 24), (0, -6, 34), (34, 6, 24), (60, 10, 16)):
            _disc(draw, x + dx, y + dy, r, r * 0.7, (232, 236, 241))


def _draw_mountains(draw, rng, k, horizon, sky):
    tint = {"day": (130, 150, 180), "sunset": (150, 90, 110), "night": (40, 45, 85),
            "cloudy": (120, 130, 145)}[sky]
    for i in range(4):
        x = k * (0.1 + 0.27 * i + rng.uniform(-0.06, 0.06))
        w, h = k * rng.uniform(0.2, 0.28), k * rng.uniform(0.16, 0.28)
        draw.polygon([(x - w, horizon), (x, horizon - h), (x + w, horizon)],
                     fill=shade(tint, 0.9 + 0.06 * (i % 3)))
        low = horizon - h * 0.78
        draw.polygon([(x - w * 0.22, low), (x, horizon - h), (x + w * 0.22, low)],
                     fill=(240, 243, 250))


def _draw_waves(draw, rng, k, horizon):
    for _ in range(14):
        x, y = rng.uniform(0, k), rng.uniform(horizon + 12, k - 10)
        draw.arc([x - 22, y - 7, x + 22, y + 9], 200, 340, fill=(150, 205, 235), width=3)


def draw_scene(scene, rng):
    """The scene as a SIZE x SIZE RGB picture; `rng` decides what the scene leaves open."""
    k = SIZE * SCALE
    horizon = int(k * rng.uniform(0.58, 0.66))
    picture = Image.new("RGB", (k, k))
    picture.paste(_gradient(SKIES[scene["sky"]], horizon, k), (0, 0))
    draw = ImageDraw.Draw(picture)
    if scene["sky"] == "night":
        _draw_stars(draw, rng, k, horizon)
    if scene["light"]:
        _draw_light(draw, rng, k, horizon, scene["light"])
    if scene["sky"] == "cloudy":
        _draw_clouds(draw, rng, k)
    if scene["mountains"]:
        _draw_mountains(draw, rng, k, horizon, scene["sky"])
    picture.paste(_gradient(GROUNDS[scene["ground"]], k - horizon, k), (0, horizon))
    if scene["ground"] == "sea":
        _draw_waves(draw, rng, k, horizon)
    for kind, colour, place in sorted(scene["objects"], key=lambda o: o[0] not in SKY_KINDS):
        x = PLACES[place] + rng.uniform(-0.03, 0.03)
        if kind in SKY_KINDS:
            base = horizon / k - (0.0 if kind == "rainbow" else rng.uniform(0.16, 0.24))
        else:
            base = horizon / k + rng.uniform(0.06, 0.2)
        draw_object(Pen(draw, x, base, rng.uniform(0.85, 1.05)), kind, colour)
    return picture.resize((SIZE, SIZE), Image.LANCZOS)
