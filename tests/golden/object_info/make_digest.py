"""Writes definitions.txt beside this file: a line for each node class that ComfyUI serves, short enough to be
kept, and made so that a difference tells which part differs.

    make_digest.py CORE.json [LATER.json]            CORE, LATER: what /object_info answers; the later entry holds
    make_digest.py CORE.json [LATER.json] --show KSampler

Fields of a line, with tabs between: the class; "core" when CORE has it; "certain" when LATER read it in a source;
category; name for people; flags that are set; then hashes of the outputs and of each input in its order
(r: required, o: optional, h: hidden). What is told to people (tooltips, descriptions) and the lists of files are left
out. Only the standard library is needed.
"""

import json
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = ("deprecated", "dev_only", "experimental", "has_intermediate_output", "is_input_list", "output_node")

# Lists of files that are not empty without any.
FILES = {
    ("VAELoader", "vae_name"),
    ("LoadImageDataSetFromFolder", "folder"),
    ("LoadImageTextDataSetFromFolder", "folder"),
    ("LoadVideoDataSetFromFolder", "folder"),
    ("LoadVideoTextDataSetFromFolder", "folder"),
    ("LoadImageSetFromFolderNode", "folder"),
    ("LoadImageTextSetFromFolderNode", "folder"),
}


def canonical(value):
    """The same text for equal JSON, with 5 apart from 5.0."""
    if value is None:
        return "n"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, int):
        return f"i{value};"
    if isinstance(value, float):
        return "d" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return f"s{len(value.encode())}:{value}"
    if isinstance(value, list):
        return "[" + "".join(map(canonical, value)) + "]"
    return "{" + "".join(canonical(k) + canonical(value[k]) for k in sorted(value)) + "}"


def short_hash(text):
    """FNV-1a, folded to 24 bits."""
    number = 0xCBF29CE484222325
    for byte in text.encode():
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{(number ^ number >> 24 ^ number >> 48) & 0xFFFFFF:06x}"


def plain_input(name, key, spec, hidden):
    if hidden:
        return spec if isinstance(spec, str) else spec[0]
    kind, options = spec[0], dict(spec[1]) if len(spec) > 1 else {}
    options.pop("tooltip", None)
    files = (name, key) in FILES
    if isinstance(kind, list) and (files or not kind):
        kind = "files"
    if "options" in options and (files or not options["options"]):
        options["options"] = "files"
    return [kind, options]


def parts(name, info):
    """What is hashed, by its name in the line."""
    lists = info.get("output_is_list") or [False] * len(info["output"])
    outputs = [[kind, name, bool(is_list)] for kind, name, is_list in zip(info["output"], info["output_name"], lists)]
    matches = info.get("output_matchtypes") or []
    found = {"outputs": [outputs, matches if any(matches) else []]}
    for section in ("required", "optional", "hidden"):
        for key, spec in info["input"].get(section, {}).items():
            found[f"{section[0]}:{key}"] = plain_input(name, key, spec, section == "hidden")
    return found


def line(name, info, in_core, certain):
    info = {**info, "is_input_list": info.get("is_input_list") or info.get("_input_is_list")}
    flags = ",".join(flag for flag in FLAGS if info.get(flag))
    fields = [name, "core" if in_core else "", "certain" if certain else "", info["category"],
              info.get("display_name") or name, flags]
    fields += [f"{key}={short_hash(canonical(part))}" for key, part in parts(name, info).items()]
    return "\t".join(fields)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    shown = arguments.pop() if "--show" in sys.argv else None
    core, *later = [json.load(open(path)) for path in arguments]
    newest = later[0] if later else {}
    everything = {**core, **newest}
    if shown:
        print(json.dumps(parts(shown, everything[shown]), indent=1))
        return
    lines = [line(name, info, name in core, bool(newest.get(name, {}).get("certain")))
             for name, info in sorted(everything.items())]
    with open(os.path.join(HERE, "definitions.txt"), "w") as out:
        out.write("\n".join(lines) + "\n")


main()
