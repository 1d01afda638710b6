"""The twenty things that a scene can hold, and the pen that draws them.

Coordinates of an object: x from its middle to the right, y from its foot up, in units of the
picture's side; an object is about 0.3 wide and 0.35 high. Colours are RGB triples, 0 to 255.
"""

import math

SIZE = 256
SCALE = 2  # drawn at SIZE * SCALE, then reduced, so that edges are smooth

COLOURS = {
    "red": (214, 48, 49), "orange": (240, 140, 40), "yellow": (250, 210, 60),
    "green": (46, 160, 90), "blue": (45, 110, 220), "purple": (140, 80, 190),
    "pink": (245, 130, 175), "white": (245, 245, 245), "black": (40, 40, 48),
}
WOOD, LEAF, CROWN, CACTUS = (120, 80, 50), (40, 120, 70), (70, 165, 75), (50, 150, 80)
SNOW, CREAM, STRIPE = (250, 250, 255), (235, 225, 205), (210, 55, 50)
DUCK, WHALE = (250, 205, 50), (70, 90, 130)
GLASS, SPRAY, INK = (200, 230, 245), (170, 215, 245), (40, 40, 48)


def shade(colour, factor):
    """The colour made darker (factor below 1) or lighter, clipped to 0..255."""
    return tuple(max(0, min(255, int(c * factor))) for c in colour)


class Pen:
    """Draws one object's shapes at the place `cx`, standing on `base`, `size` times as large."""

    def __init__(self, draw, cx=0.0, base=0.0, size=1.0):
        self.draw, self.cx, self.base, self.size = draw, cx, base, size

    def at(self, x, y):
        """Object coordinates to pixels."""
        k = SIZE * SCALE
        return ((self.cx + x * self.size) * k, (self.base - y * self.size) * k)

    def width(self, share):
        return max(1, int(share * self.size * SIZE * SCALE))

    def box(self, x0, y0, x1, y1, fill):
        self.draw.rectangle([*self.at(x0, y1), *self.at(x1, y0)], fill=fill)

    def disc(self, x, y, r, fill, squash=1.0):
        corners = [*self.at(x - r, y + r * squash), *self.at(x + r, y - r * squash)]
        self.draw.ellipse(corners, fill=fill)

    def poly(self, points, fill):
        self.draw.polygon([self.at(x, y) for x, y in points], fill=fill)

    def line(self, x0, y0, x1, y1, fill, width):
        self.draw.line([self.at(x0, y0), self.at(x1, y1)], fill=fill, width=self.width(width))

    def dome(self, x, y, r, fill):
        """The upper half of a disc."""
        self.draw.pieslice([*self.at(x - r, y + r), *self.at(x + r, y - r)], 180, 360, fill=fill)

    def arch(self, r, fill, width):
        """The upper half of a ring around the foot."""
        corners = [*self.at(-r, r), *self.at(r, -r)]
        self.draw.arc(corners, 180, 360, fill=fill, width=self.width(width))


def house(pen, c):
    pen.box(-0.13, 0, 0.13, 0.18, c)
    pen.poly([(-0.17, 0.18), (0, 0.33), (0.17, 0.18)], shade(c, 0.55))
    pen.box(-0.03, 0, 0.03, 0.10, WOOD)
    for x in (-0.08, 0.08):
        pen.box(x - 0.025, 0.09, x + 0.025, 0.14, (255, 240, 170))


def pine_tree(pen, _):
    pen.box(-0.02, 0, 0.02, 0.08, WOOD)
    for i, w in enumerate((0.13, 0.11, 0.08)):
        low, high = 0.06 + 0.09 * i, 0.20 + 0.09 * i
        pen.poly([(-w, low), (0, high), (w, low)], shade(LEAF, 0.85 + 0.12 * i))


def round_tree(pen, _):
    pen.box(-0.022, 0, 0.022, 0.16, WOOD)
    for x, y, r in ((-0.07, 0.2, 0.075), (0.07, 0.2, 0.075), (0, 0.27, 0.09)):
        pen.disc(x, y, r, CROWN)


def tent(pen, c):
    pen.poly([(-0.18, 0), (0, 0.24), (0.18, 0)], c)
    pen.poly([(-0.055, 0), (0, 0.17), (0.055, 0)], shade(c, 0.45))


def snowman(pen, _):
    for y, r in ((0.08, 0.085), (0.2, 0.065), (0.295, 0.048)):
        pen.disc(0, y, r, SNOW)
    pen.box(-0.045, 0.33, 0.045, 0.385, INK)
    pen.box(-0.065, 0.325, 0.065, 0.338, INK)
    pen.poly([(0, 0.30), (0.07, 0.288), (0, 0.282)], COLOURS["orange"])
    for x in (-0.018, 0.018):
        pen.disc(x, 0.312, 0.007, (30, 30, 30))


def cactus(pen, _):
    pen.box(-0.03, 0, 0.03, 0.28, CACTUS)
    pen.disc(0, 0.28, 0.03, CACTUS)
    pen.box(-0.11, 0.12, -0.03, 0.16, CACTUS)
    pen.box(-0.11, 0.12, -0.07, 0.21, CACTUS)
    pen.disc(-0.09, 0.21, 0.02, CACTUS)
    pen.box(0.03, 0.16, 0.11, 0.20, CACTUS)
    pen.box(0.07, 0.16, 0.11, 0.25, CACTUS)
    pen.disc(0.09, 0.25, 0.02, CACTUS)


def windmill(pen, _):
    pen.poly([(-0.08, 0), (-0.045, 0.22), (0.045, 0.22), (0.08, 0)], CREAM)
    pen.poly([(-0.055, 0.22), (0, 0.28), (0.055, 0.22)], (170, 70, 60))
    for k in range(4):
        a = math.pi / 4 + k * math.pi / 2
        dx, dy = math.cos(a) * 0.16, math.sin(a) * 0.16
        nx, ny = -math.sin(a) * 0.028, math.cos(a) * 0.028
        sail = [(0, 0.22), (dx, 0.22 + dy), (dx + nx, 0.22 + dy + ny), (nx, 0.22 + ny)]
        pen.poly(sail, (120, 85, 60))


def lighthouse(pen, _):
    pen.poly([(-0.075, 0), (-0.045, 0.29), (0.045, 0.29), (0.075, 0)], COLOURS["white"])
    for y in (0.04, 0.15):
        w0, w1 = 0.075 - y * 0.1034, 0.075 - (y + 0.06) * 0.1034
        pen.poly([(-w0, y), (-w1, y + 0.06), (w1, y + 0.06), (w0, y)], STRIPE)
    pen.box(-0.032, 0.29, 0.032, 0.335, (255, 235, 130))
    pen.poly([(-0.045, 0.335), (0, 0.375), (0.045, 0.335)], (60, 60, 70))


def car(pen, c):
    pen.box(-0.17, 0.035, 0.17, 0.11, c)
    pen.poly([(-0.10, 0.11), (-0.06, 0.18), (0.07, 0.18), (0.12, 0.11)], c)
    pen.poly([(-0.08, 0.113), (-0.05, 0.165), (-0.005, 0.165), (-0.005, 0.113)], GLASS)
    pen.poly([(0.01, 0.113), (0.01, 0.165), (0.06, 0.165), (0.095, 0.113)], GLASS)
    for x in (-0.095, 0.095):
        pen.disc(x, 0.035, 0.038, (35, 35, 40))
        pen.disc(x, 0.035, 0.016, (190, 190, 195))


def umbrella(pen, c):
    pen.line(0, 0, 0, 0.24, (90, 70, 60), 0.014)
    pen.dome(0, 0.19, 0.17, c)
    pen.dome(0, 0.19, 0.057, shade(c, 0.7))


def mushroom(pen, c):
    pen.box(-0.038, 0, 0.038, 0.13, (245, 235, 215))
    pen.dome(0, 0.11, 0.13, c)
    spot = (180, 180, 180) if c == COLOURS["white"] else (250, 250, 250)
    for x, y, r in ((-0.06, 0.16, 0.02), (0.05, 0.15, 0.022), (0, 0.205, 0.018)):
        pen.disc(x, y, r, spot)


def castle(pen, c):
    pen.box(-0.11, 0, 0.11, 0.15, c)
    for x in (-0.14, 0.14):
        pen.box(x - 0.04, 0, x + 0.04, 0.23, shade(c, 0.85))
        pen.poly([(x - 0.05, 0.23), (x, 0.33), (x + 0.05, 0.23)], shade(c, 0.5))
    for x in (-0.07, 0.0, 0.07):
        pen.box(x - 0.018, 0.15, x + 0.018, 0.18, c)
    pen.box(-0.03, 0, 0.03, 0.07, (60, 45, 40))
    pen.dome(0, 0.07, 0.03, (60, 45, 40))


def flag(pen, c):
    pen.line(-0.08, 0, -0.08, 0.33, (110, 110, 115), 0.016)
    pen.poly([(-0.075, 0.33), (0.13, 0.28), (-0.075, 0.21)], c)


def sailboat(pen, c):
    pen.poly([(-0.15, 0.06), (0.15, 0.06), (0.10, 0), (-0.10, 0)], (140, 90, 55))
    pen.line(0, 0.06, 0, 0.32, (90, 70, 50), 0.012)
    pen.poly([(0.012, 0.08), (0.012, 0.31), (0.13, 0.08)], c)
    pen.poly([(-0.012, 0.08), (-0.012, 0.27), (-0.10, 0.08)], shade(c, 0.8))


def duck(pen, _):
    pen.disc(0, 0.05, 0.11, DUCK, 0.55)
    pen.disc(0.09, 0.13, 0.05, DUCK)
    pen.poly([(0.13, 0.14), (0.18, 0.125), (0.13, 0.11)], (240, 130, 40))
    pen.disc(0.10, 0.145, 0.008, (30, 30, 30))


def whale(pen, _):
    pen.dome(0, 0.0, 0.17, WHALE)
    pen.poly([(-0.15, 0.03), (-0.22, 0.12), (-0.13, 0.10)], WHALE)
    pen.disc(0.09, 0.07, 0.012, (250, 250, 250))
    pen.line(0.02, 0.17, 0.02, 0.25, SPRAY, 0.012)
    pen.line(0.02, 0.25, -0.03, 0.28, SPRAY, 0.012)
    pen.line(0.02, 0.25, 0.07, 0.28, SPRAY, 0.012)


def balloon(pen, c):
    pen.disc(0, 0.22, 0.12, c, 1.1)
    pen.disc(0, 0.22, 0.045, shade(c, 0.75), 2.9)
    pen.line(-0.05, 0.11, -0.025, 0.05, (90, 70, 60), 0.008)
    pen.line(0.05, 0.11, 0.025, 0.05, (90, 70, 60), 0.008)
    pen.box(-0.032, 0, 0.032, 0.05, (150, 100, 60))


def rocket(pen, c):
    hull = [(-0.05, 0.05), (-0.05, 0.2), (0, 0.31), (0.05, 0.2), (0.05, 0.05)]
    pen.poly(hull, (235, 235, 240))
    pen.poly([(-0.038, 0.225), (0, 0.31), (0.038, 0.225)], c)
    pen.poly([(-0.05, 0.05), (-0.10, 0.02), (-0.05, 0.13)], c)
    pen.poly([(0.05, 0.05), (0.10, 0.02), (0.05, 0.13)], c)
    pen.disc(0, 0.18, 0.022, (90, 170, 230))
    pen.poly([(-0.03, 0.05), (0, -0.05), (0.03, 0.05)], (255, 170, 50))


def kite(pen, c):
    pen.poly([(0, 0.27), (0.09, 0.17), (0, 0.03), (-0.09, 0.17)], c)
    pen.poly([(0, 0.27), (0.09, 0.17), (0, 0.17)], shade(c, 0.7))
    pen.line(0, 0.03, -0.05, -0.05, (110, 90, 80), 0.008)
    pen.line(-0.05, -0.05, 0.0, -0.11, (110, 90, 80), 0.008)


def rainbow(pen, _):
    for i, name in enumerate(("red", "orange", "yellow", "green", "blue", "purple")):
        pen.arch(0.30 - 0.026 * i, COLOURS[name], 0.027)


DRAW = {
    "house": house, "pine tree": pine_tree, "round tree": round_tree, "tent": tent,
    "snowman": snowman, "cactus": cactus, "windmill": windmill, "lighthouse": lighthouse,
    "car": car, "umbrella": umbrella, "mushroom": mushroom, "castle": castle, "flag": flag,
    "sailboat": sailboat, "duck": duck, "whale": whale, "balloon": balloon, "rocket": rocket,
    "kite": kite, "rainbow": rainbow,
}
KINDS = list(DRAW)
COLOURED = {"house", "tent", "car", "umbrella", "mushroom", "flag", "sailboat", "balloon",
            "rocket", "kite", "castle"}
# The colour that most of an object without a colour of its own has.
OWN_COLOUR = {"pine tree": LEAF, "round tree": CROWN, "snowman": SNOW, "cactus": CACTUS,
              "windmill": CREAM, "lighthouse": STRIPE, "duck": DUCK, "whale": WHALE}


def draw_object(pen, kind, colour):
    """Draws one object with the pen; `colour` is a name of COLOURS, None for kinds of one look."""
    DRAW[kind](pen, COLOURS.get(colour))
