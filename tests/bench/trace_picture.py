#!/usr/bin/env python3
"""Draws a timeline of `heddle run --trace FILE` as SVG: python3 trace_picture.py TRACE.json OUT.svg [BEGIN_MS END_MS]

A row for each stream of a device; rows of the host's clock are left out, because devices may be simulated ones."""
import json
import sys
from xml.sax.saxutils import escape

COLOURS = {"node": "#d9d9d9", "block": "#80b1d3", "transfer": "#fb8072", "page-in": "#b3de69"}
WIDTH, LEFT, ROW, TOP = 1000, 130, 26, 40


def rows_of(events):
    names, rows = {}, {}
    for event in events:
        key = event["pid"], event["tid"]
        if event["ph"] == "M":
            names[key] = event["args"]["name"]
        elif names[key] != "host":
            rows.setdefault(f'{names[key[0], 0]} {names[key]}', []).append(event)
    return rows


def size(count):
    return f"{count / 1024:.1f} KiB" if count >= 1024 else f"{count} B"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = rows_of(json.load(file)["traceEvents"])
    spans = [e for row in rows.values() for e in row]
    begin = float(sys.argv[3]) * 1e3 if len(sys.argv) > 4 else min(e["ts"] for e in spans)
    end = float(sys.argv[4]) * 1e3 if len(sys.argv) > 4 else max(e["ts"] + e["dur"] for e in spans)
    scale = (WIDTH - LEFT - 10) / (end - begin)
    height = TOP + ROW * len(rows) + 30
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>']
    for i, (kind, colour) in enumerate(COLOURS.items()):
        out.append(f'<rect x="{LEFT + 90 * i}" y="12" width="14" height="14" fill="{colour}"/>'
                   f'<text x="{LEFT + 90 * i + 19}" y="23">{kind}</text>')
    for r, (name, row) in enumerate(rows.items()):
        y = TOP + ROW * r
        out.append(f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y + ROW - 1}" y2="{y + ROW - 1}" stroke="#eeeeee"/>')
        for e in sorted(row, key=lambda e: (e["ts"], -e["dur"])):
            first, last = max(e["ts"], begin), min(e["ts"] + e["dur"], end)
            if last <= first:
                continue
            width = max((last - first) * scale, 0.4)
            inset = 0 if e["cat"] == "node" else 4
            moved = f', {size(e["args"]["bytes"])}' if "bytes" in e.get("args", {}) else ""
            title = escape(f'{e["name"]}: {e["dur"] / 1e3:.3f} ms{moved}')
            out.append(f'<rect x="{LEFT + (first - begin) * scale:.2f}" y="{y + inset}" width="{width:.2f}" height="{ROW - 4 - 2 * inset}" '
                       f'fill="{COLOURS[e["cat"]]}" stroke="white" stroke-width="0.3"><title>{title}</title></rect>')
            if inset and width > 7 * len(e["name"]):
                out.append(f'<text x="{LEFT + (first - begin) * scale + 3:.2f}" y="{y + 15}" font-size="9">{escape(e["name"])}</text>')
    y = TOP + ROW * len(rows) + 16
    for tick in range(6):
        at = begin + (end - begin) * tick / 5
        out.append(f'<text x="{LEFT + (at - begin) * scale:.1f}" y="{y}" text-anchor="{"end" if tick == 5 else "middle"}">{at / 1e3:.2f} ms</text>')
    out.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


main()
