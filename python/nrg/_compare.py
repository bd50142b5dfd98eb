"""nrg.compare: whether one set of runs really uses less than another, as `nrg compare` says it (docs/compare.md)."""
import html
import os
from typing import Any, Dict, List, NamedTuple, Optional

from . import _program
from ._results import Run, Table

EXIT_GATE, EXIT_NOT_COMPARABLE = 3, 4


class Effect(NamedTuple):
    """B over A. low, high, p_value and verdict are None where there are too few runs to tell."""
    ratio: float
    low: Optional[float]
    high: Optional[float]
    p_value: Optional[float]
    verdict: Optional[str]  # less, more or none


class Comparison:
    """What `nrg compare --json` said; `document` is all of it. bool() is true when the energy differs."""

    def __init__(self, document, failed):
        self.document = document  # type: Dict[str, Any]
        self.failed = failed  # type: List[str]  # conditions of fail_if that are met, in nrg's words
        self.answer = document.get("answer", "")  # type: str
        self.warnings = list(document.get("warnings", []))  # type: List[str]
        self.runs_needed = document.get("runs_needed")  # type: Optional[int]
        self.rows = Table(document.get("rows", []))

    def effect(self, name: str = "energy") -> Optional[Effect]:
        """Of energy, program_energy, duration, mean_power, energy_delay or peak_memory; None where it is not known."""
        part = self.document.get(name)
        return Effect(part["ratio"], part.get("low"), part.get("high"), part.get("p_value"), part.get("verdict")) if part else None

    @property
    def energy(self) -> Optional[Effect]:
        return self.effect("energy")

    @property
    def duration(self) -> Optional[Effect]:
        return self.effect("duration")

    def __bool__(self):
        return self.energy is not None and self.energy.verdict in ("less", "more")

    def __repr__(self):
        return "<nrg comparison: %s>" % self.answer

    def _repr_html_(self):
        notes = "".join("<li>%s</li>" % html.escape(text) for text in self.warnings)
        return "<p><b>%s</b></p>%s" % (html.escape(self.answer), "<ul>%s</ul>" % notes if notes else "")


def _paths(runs, side):
    from . import Error
    if isinstance(runs, (str, bytes, os.PathLike, Run)):
        runs = [runs]
    paths = []
    for run in runs:
        if isinstance(run, Run):
            run._readable()
        path = os.fsdecode(run.path if isinstance(run, Run) else run)
        paths.append(os.path.join(".", path) if path.startswith("-") else path)
    if not paths:
        raise Error("%s: no recordings to compare" % side)
    return paths


def compare(runs_a, runs_b, confidence: float = 95, detect: float = 1, fail_if=(), force: bool = False) -> Comparison:
    """Compares two sets of recordings: paths, or runs as nrg.record and nrg.open give them.

        result = nrg.compare(["a1.nrg", "a2.nrg", "a3.nrg"], ["b1.nrg", "b2.nrg", "b3.nrg"])
        print(result.answer, result.energy.ratio, result.energy.low, result.energy.high)

    confidence: of the intervals, in percent. detect: the difference in percent that `runs_needed` is for. fail_if: conditions such as
    "energy > +2%"; those that are met are in `failed`, one that can't be decided (a run a side) raises nrg.Error. force: compare also what is
    not comparable, which raises nrg.Error otherwise.
    """
    arguments = ["compare", "--json", "--confidence=%r" % float(confidence), "--detect=%r" % float(detect)]
    arguments += ["--fail-if=" + condition for condition in ([fail_if] if isinstance(fail_if, str) else fail_if)]
    arguments += ["--force"] if force else []
    document, code, said = _program.run_json_code(arguments + _paths(runs_a, "A") + ["--"] + _paths(runs_b, "B"), (0, EXIT_GATE))
    met = [line[len("nrg: met: "):] for line in said.splitlines() if line.startswith("nrg: met: ")]
    return Comparison(document, met if code == EXIT_GATE else [])
