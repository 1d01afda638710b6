"""The strings that the tokenizers are compared on: captions, scripts, random Unicode, emoji, white space, marks,
special tokens, empty and very long ones. The same strings come from the same seed in Python (here) and in C++
(test_strings.cpp), so that no string has to be committed; what they are made of is in data/string_source.json."""

import json
import os

MASK = (1 << 64) - 1


class Random:
    """SplitMix64 (Steele, Lea, Flood 2014)."""

    def __init__(self, seed):
        self.state = seed & MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, limit):
        return self.next() % limit

    def pick(self, items):
        return items[self.below(len(items))]


class Source:
    def __init__(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "string_source.json")
        with open(path, encoding="utf-8") as file:
            parts = json.load(file)
        self.words = parts["words"]
        self.joints = parts["joints"]
        self.blocks = parts["blocks"]
        self.emoji = parts["emoji"]
        self.spaces = parts["spaces"]
        self.marks = parts["marks"]
        self.tokens = parts["tokens"]


def upper(word):
    return "".join(chr(ord(c) - 32) if "a" <= c <= "z" else c for c in word)


def caption(source, random, count):
    text = ""
    for i in range(count):
        if i > 0:
            text += random.pick(source.joints)
        word = random.pick(source.words)
        style = random.below(12)
        if style == 0:
            word = upper(word)
        elif style == 1:
            word = upper(word[:1]) + word[1:]
        elif style == 2:
            word = word + str(random.below(100000))
        text += word
    return text


def from_block(source, random, size):
    first, last = random.pick(source.blocks)
    return "".join(chr(first + random.below(last - first + 1)) for _ in range(size))


def script_words(source, random):
    words = [from_block(source, random, 1 + random.below(8)) for _ in range(1 + random.below(12))]
    return random.pick(source.joints).join(words)


def random_code_point(random):
    point = random.below(0x110000 - 0x800)
    return chr(point if point < 0xD800 else point + 0x800)


def random_text(random):
    return "".join(random_code_point(random) for _ in range(random.below(40)))


def mixed(source, random, pieces, count):
    text = ""
    for _ in range(count):
        kind = random.below(3)
        if kind == 0:
            text += random.pick(source.words)
        elif kind == 1:
            text += random.pick(pieces)
        else:
            text += random.pick(pieces) + random.pick(pieces)
    return text


def marked(source, random):
    text = ""
    for _ in range(1 + random.below(12)):
        text += from_block(source, random, 1) if random.below(2) else random.pick(source.words)
        for _ in range(random.below(5)):
            text += random.pick(source.marks)
    return text


def very_long(source, random):
    kind = random.below(3)
    if kind == 0:
        return caption(source, random, 1500 + random.below(1500))
    if kind == 1:
        return "".join(from_block(source, random, 40) for _ in range(100))
    return random.pick(source.words) * (500 + random.below(500))


def one_string(source, seed, index):
    random = Random(seed * 1000003 + index)
    if index % 1000 == 0:
        return ""
    if index % 400 == 1:
        return very_long(source, random)
    kind = index % 10
    if kind < 4:
        return caption(source, random, 1 + random.below(30))
    if kind == 4:
        return script_words(source, random)
    if kind == 5:
        return random_text(random)
    if kind == 6:
        return mixed(source, random, source.emoji, 1 + random.below(12))
    if kind == 7:
        return mixed(source, random, source.spaces, 1 + random.below(20))
    if kind == 8:
        return marked(source, random)
    return mixed(source, random, source.tokens, 1 + random.below(10))


def strings(count, seed):
    source = Source()
    return [one_string(source, seed, index) for index in range(count)]
