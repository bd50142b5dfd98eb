"""Reading a recording back: joules, tables, as plain dicts and lists.

Every number comes from the program (`nrg report --json`, `nrg attribute --json`), so that Python, the
terminal and other programs are told the same. A value that is not known is absent, never 0.
"""
import os
from typing import Any, Dict, List, NamedTuple, Optional

from . import _program


class Energy(NamedTuple):
    """Joules with their interval. `float(energy)` is the value."""
    joules: Optional[float]  # None: nothing could be measured
    low: Optional[float]
    high: Optional[float]
    provenance: Optional[str]  # measured, derived or estimated
    domains: List[str]  # what was added up

    def __float__(self):
        if self.joules is None:
            raise ValueError("this energy is not known")
        return float(self.joules)


class Table(List[Dict[str, Any]]):
    """Rows as dicts, and what belongs to none of them."""
    total_j = None  # type: Optional[float]
    unattributed_j = None  # type: Optional[float]
    idle_j = None  # type: Optional[float]
    scale = None  # type: Optional[Dict[str, Any]]  # of an estimate: "low", "high", "why", "domains"
    per = []  # type: List[Dict[str, Any]]  # joules per step, token and the like: "name", "of", "amount", "energy_per_unit_j"
    document = None  # type: Any  # the whole of what nrg attribute said

    def to_pandas(self):
        """The rows as a pandas DataFrame."""
        import pandas
        return pandas.DataFrame(list(self))


class Run:
    """A recording that is complete. Make one with nrg.open(path)."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self._report = None

    def __repr__(self):
        return "<nrg run %r>" % (self.path,)

    def _readable(self):
        """For those that are not: raises."""

    def report(self) -> Dict[str, Any]:
        """What `nrg report --json` says (docs/json.md), as a dict."""
        self._readable()
        if self._report is None:
            self._report = _program.run_json("report", "--json", self._file())
        return self._report

    def _file(self):
        # A name like an option is a file all the same.
        return os.path.join(".", self.path) if self.path.startswith("-") else self.path

    def energy(self, domain: Optional[str] = None) -> Energy:
        """Joules of the machine during the run: the total, or of one domain ("package-0", "gpu-0").
        What the program used of it: program_energy()."""
        from . import Error
        report = self.report()
        if domain is None:
            part = report.get("total", {})
            names = part.get("domains", [])
        else:
            found = [d for d in report.get("domains", []) if d.get("name") == domain]
            if not found:
                known = ", ".join(d["name"] for d in report.get("domains", []))
                raise Error("%s: no domain %r; there are: %s" % (self.path, domain, known or "none"))
            part, names = found[0], [domain]
        return Energy(part.get("energy_j"), part.get("low_j"), part.get("high_j"),
                      part.get("provenance"), list(names))

    def program_energy(self) -> Energy:
        """Joules of the measured program, its share of the total. `joules` is None where it can't be
        known; report()["program"]["why"] says why."""
        report = self.report()
        part, total = report.get("program", {}), report.get("total", {})
        return Energy(part.get("energy_j"), part.get("low_j"), part.get("high_j"),
                      total.get("provenance"), list(total.get("domains", [])))

    @property
    def duration_s(self) -> Optional[float]:
        return self.report().get("duration_s")

    @property
    def model(self) -> Dict[str, int]:
        """`params` and `macs` of the model that was given; empty when there was none."""
        return dict(self.report().get("model", {}))

    def table(self, by: str = "path", method: str = "auto", **options) -> Table:
        """Joules per "module", "path", "name", "step", "epoch" or "operator", as a list of dicts.

        The keys are those of `nrg attribute --json`: name, kind, parent, calls, time_s, energy_j,
        energy_self_j, low_j, high_j, method, flags. More options of the command are given by
        their names: lag="none", idle="share", domain=["package-0", "dram-0"]. What could not be
        given to any row is the list's `unattributed_j`, the idle machine's part its `idle_j`, the
        whole its `total_j`. `scale` is the factor that all rows of an estimate have in common:
        low_j and high_j leave it out, low_with_scale_j and high_with_scale_j have it. `per` has
        joules per step and per what was counted: "name" of that, "of" which spans the energy is,
        "amount", "energy_j", "energy_per_unit_j" with its interval. per="tokens/outer" asks for
        another divisor.
        """
        self._readable()
        arguments = ["attribute", "--json", "--by", by, "--method", method]
        for name, value in options.items():
            option = "--" + name.replace("_", "-")
            for one in value if isinstance(value, (list, tuple)) else [value]:
                if one is True:
                    arguments.append(option)
                elif one is not None and one is not False:
                    arguments.append("%s=%s" % (option, one))
        document = _program.run_json(*(arguments + [self._file()]))
        table = Table(document.get("rows", []))
        table.total_j = document.get("total_j")
        table.unattributed_j = document.get("unattributed_j")
        table.idle_j = document.get("idle_j")
        table.scale = document.get("scale")
        table.per = document.get("per", [])
        table.document = document
        return table

    def pandas(self, by: str = "path", method: str = "auto", **options):
        """The same as a pandas DataFrame."""
        return self.table(by, method, **options).to_pandas()


def open(path) -> Run:
    """Opens a recording; raises nrg.Error when it is none."""
    run = Run(path)
    run.report()
    return run
