"""Writes format_cases.json beside this file: what Python's str.format() makes of values, or null where it refuses.

    make_format_goldens.py        (needs nothing but Python 3.11 or later)
"""

import json
import os

VALUES = {"a": 42, "b": -1234567, "c": 3.14159, "d": 1e20, "e": "héllo", "f": True, "g": None, "h": 0.0001, "i": -0.0,
          "j": {"x": 1, "y": "two"}, "k": 100.0, "l": 255, "m": 9, "n": 2**63 + 5, "o": 1e-7, "p": 12345.678, "q": "'"}
SPECS = {
    "abflmn": ["5", "<5", ">12", "^9", "=+8", "08", "+", " ", "b", "#b", "o", "#x", "#X", "012,", ",", "_", "#_x", "_b", "c",
               "d", "n", "e", ".2f", "%", ".1%", "g", "*^12", "x<6d", ".3", "s", ",x", "é>8", "z", "+010_b"],
    "cdhikop": ["", "8.3f", "+.2e", "010.2f", "E", "g", ".3g", ".3", ".1", ".0f", ".2%", ",.2f", "_.3f", "#.0f", "#.3g", "n",
                "z.0f", "^12.1f", "=12", "+", " ", ".10", "12", "G", "F", "d", "s", ".20g", "012,.1f", "<012.3"],
    "e": ["", "8", ">8", "^9", ".2", "*<8.3", "s", "08", "d", "=8", "+", ","],
    "g": ["", "5"],
    "j": ["", "5"],
}
TEMPLATES = ["plain", "", "{{}}", "{{{a}}}", "{a} {e}!", "{e!r} {q!r} {e!a} {a!s:>5}", "{a:{m}}", "{c:{m}.{m}f}", "{j[x]} {j[y]}",
             "{j}", "{j[z]}", "{", "}", "{a", "{a:", "{a!}", "{a!x}", "{z}", "{}", "{0}", "{a:{b:{m}}}", "{e:{{}", "{a}{b:,}\n{f}",
             "{j[y]!r:>8}", "{a.}", "{a[0]}", "{n}", "{d} {o} {k}"]

values = {k: v for k, v in VALUES.items()}
templates = TEMPLATES + [f"{{{n}:{s}}}" for names, specs in SPECS.items() for n in names for s in specs]
cases = []
for template in templates:
    try:
        cases.append([template, template.format(**values)])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError):
        cases.append([template, None])
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "format_cases.json"), "w", encoding="utf-8") as f:
    f.write(json.dumps(values, ensure_ascii=False).join(['{"values": ', ',\n"cases": [\n']))
    f.write(",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n")
