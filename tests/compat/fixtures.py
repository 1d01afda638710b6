"""Says of every workflow of a folder whether it binds, or what it lacks: classes and files.

    fixtures.py HEDDLE FOLDER [--object-info FILE ...] [HEDDLE'S OPTIONS ...]

HEDDLE is the program. FOLDER holds workflows (*.json, of either form). The files of object_info
define the classes that no plugin has, and what their inputs choose from: a choice that is none of
those is a file that is lacking. One line for each workflow:

    binds            `heddle plan` takes it
    lacks            what the one report of `heddle plan` names: exactly these classes and files
    report is short  a class or a file that it lacks is not named in that report
    report is long   one is named that it does not lack
    other            anything else that it says

then the counts, and the classes by how many workflows lack them. Exit code 1 where a report is
short, long or of another kind. Only the standard library is needed.
"""

import collections
import json
import re
import subprocess
import sys
from pathlib import Path

FILE = re.compile(r"there is no (?:file|folder) '([^']+)'")
ADDRESS = re.compile(r"a model file is missing, which `heddle fetch` downloads: [^/\s]+/([^:\n]+)")
CLASS = re.compile(r"no loaded plugin brings the class '([^']+)'")
ENDING = re.compile(r"\.[A-Za-z]\w{1,10}$")


def ask(heddle, *arguments):
    done = subprocess.run([heddle, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def nodes_of(heddle, path, object_info):
    """The nodes in API form, or the reason why there are none."""
    options = [part for file in object_info for part in ("--object-info", file)]
    code, out, err = ask(heddle, "convert", str(path), *options)
    if code != 0:
        return None, err.strip()
    flow = json.loads(out)
    return flow.get("prompt", flow), ""


def choices_of(definition, name):
    """What an input chooses from, or None."""
    for group in ("required", "optional"):
        config = definition.get("input", {}).get(group, {}).get(name)
        if config is None:
            continue
        if isinstance(config[0], list):
            return config[0]
        if config[0] == "COMBO":
            return config[1].get("options", [])
    return None


def files_of(nodes, definitions):
    """The files that nodes name, as their classes are defined."""
    files = set()
    for node in nodes.values():
        definition = definitions.get(node["class_type"], {})
        for name, value in node.get("inputs", {}).items():
            choices = choices_of(definition, name)
            is_name = isinstance(value, str) and ENDING.search(value)
            if choices is not None and is_name and value not in choices:
                files.add(value)
    return files


def judge(heddle, path, known, definitions, object_info, options):
    nodes, reason = nodes_of(heddle, path, object_info)
    if nodes is None:
        return "other", set(), set(), reason
    lacking = {node["class_type"] for node in nodes.values()} - known
    files = files_of(nodes, definitions)
    code, _, report = ask(heddle, "plan", str(path), *options)
    if code == 0:
        return "binds", set(), set(), ""
    named = set(CLASS.findall(report))
    named_files = set(FILE.findall(report)) | set(ADDRESS.findall(report))
    if not named and not named_files:
        return "other", set(), set(), report.strip()
    there = {name for name in files - named_files if is_there(name, options)}
    short = (lacking - named) | (files - named_files - there)
    if short:
        return "report is short", lacking, files, "not named: " + ", ".join(sorted(short))
    long = (named - lacking) | (named_files - files)
    if long:
        return "report is long", lacking, files, "not lacking: " + ", ".join(sorted(long))
    return "lacks", named, named_files, ""


def is_there(name, options):
    """Whether a folder among the options has the file."""
    return any(next(Path(o).rglob(Path(name).name), None) for o in options if Path(o).is_dir())


def main():
    heddle, folder, *rest = sys.argv[1:]
    object_info, options = [], []
    while rest:
        if rest[0] == "--object-info":
            object_info.append(rest[1])
            rest = rest[2:]
        else:
            options.append(rest.pop(0))
    code, listed, error = ask(heddle, "nodes", "--json")
    if code != 0:
        sys.exit(error)
    known = set(json.loads(listed))
    definitions = {}
    for name in object_info:
        definitions.update(json.loads(Path(name).read_text(encoding="utf-8")))
    counts, missing = collections.Counter(), collections.Counter()
    for path in sorted(Path(folder).glob("*.json")):
        verdict, classes, files, note = judge(heddle, path, known, definitions, object_info, options)
        counts[verdict] += 1
        if verdict == "lacks":
            counts["lacks only files"] += not classes
        missing.update(classes)
        told = []
        if classes:
            told.append("classes: " + ", ".join(sorted(classes)))
        if files:
            told.append("files: " + ", ".join(sorted(files)))
        if note:
            told.append(note.splitlines()[0][:300])
        print(f"{path.stem}: {verdict}" + "".join("; " + part for part in told), flush=True)
    print()
    for verdict, count in sorted(counts.items()):
        print(f"{count:4} {verdict}")
    for name, count in missing.most_common():
        print(f"{count:4} {name}")
    sys.exit(any(counts[bad] for bad in ("report is short", "report is long", "other")))


if __name__ == "__main__":
    main()
