"""The table of docs/uncertainty.md: written from the figures of a run of `truth`, so that nobody copies them by hand.

What 0.1.0 reached stands in the last column and stays as it is.
"""
import os

DOCUMENT = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "uncertainty.md")
HEAD = "| simulated | error | hold, resolved |"
LEAST = 0.00005  # of what is less, two digits would say nothing


def part(x):
    """A width or an error, to two digits."""
    if x != x:
        return "-"
    if x < LEAST:
        return "< 0.005 %"
    return f"{x * 100:.2f} %" if x < 0.01 else f"{x * 100:.2g} %"


def share(x):
    return "-" if x != x else f"{x * 100:.0f} %"


def row(name, figures, before):
    a, s, t = figures["layers"], figures["step"], figures["total"]
    step = ", ".join((part(s["error"]), part(s["half_width"]), share(s["cover"])))
    cells = (name, part(a["error"]), share(a["cover_resolved"]), share(a["cover"]), share(a["resolved"]), part(a["half_width"]), step,
             share(t["cover"]), before)
    return "| " + " | ".join(cells) + " |\n"


def place(lines):
    """Of the table's rows: the first line and the one after the last."""
    begin = next(i for i, line in enumerate(lines) if line.startswith(HEAD)) + 2
    return begin, next(i for i in range(begin, len(lines)) if not lines[i].startswith("|"))


def names(lines):
    return [line.split("|")[1].strip() for line in lines[slice(*place(lines))]]


def rewritten(lines, results):
    """The document's lines with the table of these results; 0.1.0 did not see scenarios that are new."""
    begin, end = place(lines)
    before = {line.split("|")[1].strip(): line.split("|")[-2].strip() for line in lines[begin:end]}
    return lines[:begin] + [row(name, figures, before.get(name, "-")) for name, figures in results.items()] + lines[end:]


def write(results, path=DOCUMENT):
    with open(path, encoding="utf-8") as f:
        lines = rewritten(f.readlines(), results)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(lines)
