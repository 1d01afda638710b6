"""Names of tensors that differ by the number of a layer alone, as one name: "layers.{0-27}.norm.weight"."""

import json
import re


def compressed(tensors):
    """Equal tensors of consecutive layers under one name."""
    numbers = {}
    for name, what in tensors.items():
        found = re.search(r"\.(\d+)\.", name)
        pattern = name if found is None else f"{name[:found.start()]}.{{}}.{name[found.end():]}"
        numbers.setdefault((pattern, json.dumps(what)), []).append(None if found is None else int(found[1]))
    out = {}
    for (pattern, what), found in numbers.items():
        while found:
            first = last = found.pop(0)
            while found and first is not None and found[0] == last + 1:
                last = found.pop(0)
            number = "" if first is None else f"{first}" if first == last else f"{{{first}-{last}}}"
            out[pattern.replace("{}", number)] = json.loads(what)
    return out


def expanded(told):
    """The inverse: {name: (type, shape)} of what a JSON file tells."""
    out = {}
    for name, (dtype, shape) in told.items():
        found = re.search(r"\{(\d+)-(\d+)\}", name)
        numbers = [""] if found is None else range(int(found[1]), int(found[2]) + 1)
        for number in numbers:
            out[name if found is None else name.replace(found[0], str(number))] = (dtype, tuple(shape))
    return out
