"""Says of every workflow of a folder whether it binds, or what it lacks: classes and files.

    fixtures.py HEDDLE FOLDER [--object-info FILE ...] [HEDDLE'S OPTIONS ...]

HEDDLE is the program. FOLDER holds workflows (*.json, of either form). One line each:

    binds            `heddle plan` takes it
    lacks            what the one report of `heddle plan` names: classes that no plugin has, files
    report is short  a class or a file that it lacks is not named in that report
    other            anything else that it says

then the counts, and the classes by how many workflows lack them. Exit code 1 where a report is
short. Only the standard library is needed.
"""

import collections
import json
import re
import subprocess
import sys
from pathlib import Path

FILE = re.compile(r"there is no (?:file|folder) '([^']+)'")


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


def judge(heddle, path, known, object_info, options):
    nodes, reason = nodes_of(heddle, path, object_info)
    if nodes is None:
        return "other", set(), set(), reason
    used = {node["class_type"] for node in nodes.values() if isinstance(node, dict)}
    lacking = used - known
    code, _, report = ask(heddle, "plan", str(path), *options)
    named = {name for name in lacking if f"'{name}'" in report or name in report.split()}
    files = set(FILE.findall(report))
    if code == 0:
        return "binds", set(), set(), ""
    if lacking - named:
        return "report is short", lacking, files, ", ".join(sorted(lacking - named))
    if lacking or files:
        return "lacks", lacking, files, ""
    return "other", set(), set(), report.strip()


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
    counts, missing = collections.Counter(), collections.Counter()
    for path in sorted(Path(folder).glob("*.json")):
        verdict, classes, files, note = judge(heddle, path, known, object_info, options)
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
    sys.exit(1 if counts["report is short"] else 0)


if __name__ == "__main__":
    main()
