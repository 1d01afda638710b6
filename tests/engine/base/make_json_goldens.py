"""Writes json_goldens.json: texts of numbers with the bits of the double that Python reads, and JSON texts that Python's
json module accepts or refuses. Run it in this folder; the result is committed. Deterministic.
"""

import json
import random
import struct


def bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def real(number):
    return struct.unpack("<d", struct.pack("<Q", number))[0]


def number_texts():
    rng = random.Random(7)
    for _ in range(60):
        value = real(rng.getrandbits(64))
        if value == value and abs(value) != float("inf"):
            yield repr(value)
            yield f"{value:.25e}"
            yield f"{value:.3e}"
    for _ in range(60):  # exactly between two doubles, and a little beside
        low = rng.getrandbits(53) | 1 << 52
        power = rng.randrange(0, 40)
        middle = (2 * low + 1) << power
        yield f"{middle}.0"
        yield f"{middle}.0000000000000000000000000000001"
        yield f"{middle - 1}.9999999999999999999999999999999"
    yield from ("0.0", "-0.0", "1e0", "1E+2", "1.5e-3", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324",
                "1.7976931348623157e308", "2.2250738585072014e-308", "2.2250738585072011e-308", "0e5", "1e-400",
                "-1e-5000", "0." + "0" * 400 + "1", "100000000000000000000")


TEXTS = ["", " ", "{}", "[]", "null", "true", "fals", "nul", "[1,]", "[,1]", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{a:1}",
         "{'a':1}", "[1 2]", "[1]]", "[[1]", "\"a", "\"a\\\"", "01", "-", "-a", "+1", ".5", "5.", "1e", "1e+", "0x10", "1_000",
         "NaN", "-NaN", "Infinity", "-Infinity", "nan", "inf", "\"\\x41\"", "\"\\u12\"", "\"\\u00e4\"", "\"\t\"", "\"\n\"",
         "\"\\/\"", "// c\n1", "/* c */1", "1 // c", "[1,\t\r\n 2]", "[1,\v2]", "[1,\f2]", "[1,\u00a02]", "\"\u007f\"", "\"\u2028\"",
         "{\"a\":1,\"a\":2}", "1\u0000", "[1,[2,[3,{}]]]", "\"\\ud83d\\ude00\"", "{\"\":0}", "{1:2}", "tru\u0065", "- 1", "1 e5", "True"]


def accepts(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def main():
    numbers = [[text, bits(float(json.loads(text)))] for text in number_texts()]
    texts = [[text, accepts(text)] for text in TEXTS]
    with open("json_goldens.json", "w", encoding="utf-8") as file:
        file.write('{"numbers": [\n' + ",\n".join(json.dumps(n) for n in numbers))
        file.write('\n], "texts": [\n' + ",\n".join(json.dumps(t) for t in texts) + "\n]}\n")


if __name__ == "__main__":
    main()
