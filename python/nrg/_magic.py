"""%%nrg: measures a cell of a notebook, and shows a table and the page below it.

    %load_ext nrg
    %%nrg --by path
    train()

The cell runs as it would without: its last value is shown, its exception is its own. Under `nrg run` there is no recording of the cell alone; that is said, and the cell runs all the same.
"""
import ast
import html
import os
import shlex
import tempfile

from . import _nrg, _program
from ._record import record

USAGE = """%%nrg [-o FILE] [--by module|path|name|step|operator] [--rate HZ] [--top N] [--no-page]
-o FILE    keep the recording; an existing file is replaced
--by BY    rows of the table (path)
--rate HZ  readings per second (10, with spans 100)
--top N    rows that are shown (20)
--no-page  the table alone"""
FRAME_HEIGHT = 640


class _Options:
    def __init__(self, line):
        self.path, self.by, self.rate, self.top, self.page = None, "path", None, 20, True
        words = shlex.split(line)
        while words:
            word = words.pop(0)
            if word == "--no-page":
                self.page = False
            elif word in ("-o", "--by", "--rate", "--top") and words:
                self._set(word, words.pop(0))
            else:
                raise ValueError("%%%%nrg does not know %r\n%s" % (word, USAGE))

    def _set(self, word, value):
        if word == "-o":
            self.path = value
        elif word == "--by":
            self.by = value
        elif word == "--rate":
            self.rate = float(value)
        else:
            self.top = int(value)


def _joules(value):
    if value is None:
        return "not known"
    for factor, unit in ((1e3, "kJ"), (1, "J"), (1e-3, "mJ")):
        if abs(value) >= factor:
            return "%.4g %s" % (value / factor, unit)
    return "%.3g mJ" % (value * 1e3)


def _band(energy, low, high):
    """± where both ends are about as far, else the ends: as the tables of nrg have it."""
    below, above = energy - low, high - energy
    wide = max(below, above)
    if min(below, above) < 0.5 * wide or wide > energy:
        return "%s .. %s" % (_joules(low), _joules(high))
    return "± " + _joules(wide)


class Shown:
    """What a cell used, for notebooks (HTML) and terminals (text). `run` is the recording."""

    def __init__(self, run, by, top, page):
        self.run = run
        self._program, self._machine = run.program_energy(), run.energy()
        marked = int(run.report().get("metadata", {}).get("spans") or 0)
        self._rows = sorted((row for row in (run.table(by) if marked else []) if row.get("energy_j") is not None), key=lambda row: -row["energy_j"])
        self._more, self._rows = max(0, len(self._rows) - top), self._rows[:top]
        self._page = page

    def _line(self):
        text = "this cell: %s of the machine's %s in %.3g s" % (_joules(self._program.joules), _joules(self._machine.joules), self.run.duration_s or 0)
        energy = self._program if self._program.joules is not None else self._machine
        if energy.low is not None:
            text += ", %s to %s" % (_joules(energy.low), _joules(energy.high))
        return text + (", " + energy.provenance if energy.provenance else "")

    def _cells(self):
        for row in self._rows:
            band = "" if row.get("low_j") is None else _band(row["energy_j"], row["low_j"], row["high_j"])
            yield (row["name"], str(row.get("calls", "")), "%.3g s" % row["time_s"] if "time_s" in row else "", _joules(row["energy_j"]),
                   band, ", ".join(row.get("flags", [])))

    def __repr__(self):
        lines = ["%-40.40s %8s %10s %12s %22s  %s" % cells for cells in self._cells()]
        return "\n".join([self._line()] + lines + (["and %d more" % self._more] if self._more else []))

    def _repr_html_(self):
        head = "".join("<th>%s</th>" % name for name in ("span", "calls", "time", "energy", "", ""))
        body = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % html.escape(cell) for cell in cells) for cells in self._cells())
        table = "<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>" % (head, body) if self._rows else ""
        more = "<p>and %d more</p>" % self._more if self._more else ""
        return "<p><b>%s</b></p>%s%s%s" % (html.escape(self._line()), table, more, self._frame() if self._page else "")

    def _frame(self):
        """
        The page, in a frame of its own. Its policy lets no script run but its own, by its hash, and no request out. It needs the notebook's origin, because a
        browser lets a frame without one not write its selection into its address.
        """
        code, page, said = _program.run(["report", self.run._file(), "--html", "-"])
        if code:
            return "<p>%s</p>" % html.escape(said)
        return ('<iframe title="nrg: the energy of this cell" sandbox="allow-scripts allow-same-origin allow-downloads" style="width:100%%;height:%dpx;border:0" '
                'srcdoc="%s"></iframe>' % (FRAME_HEIGHT, html.escape(page.decode("utf-8"), quote=True)))


def _run_cell(shell, cell):
    """Runs the cell in the notebook's names; the value of a last expression, as without the magic."""
    source = shell.transform_cell(cell)
    tree = shell.transform_ast(ast.parse(source))
    name = shell.compile.cache(source)  # so that tracebacks show its lines
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), shell.user_global_ns, shell.user_ns)
    return eval(compile(ast.Expression(last.value), name, "eval"), shell.user_global_ns, shell.user_ns) if last else None


def _show(recording, options):
    from IPython.display import display
    try:
        display(Shown(recording, options.by, options.top, options.page))
    except _nrg.Error as error:
        print("nrg: %s" % error)


def nrg_cell(shell, line, cell):
    """The magic itself."""
    options = _Options(line)
    with tempfile.TemporaryDirectory(prefix="nrg-cell-") as folder:
        recording = record(options.path or os.path.join(folder, "cell.nrg"), rate=options.rate, overwrite=True)
        try:
            recording.start()
        except _nrg.Error as error:  # the cell is what matters
            print("nrg: not measured: %s" % error)
            return _run_cell(shell, cell)
        try:
            return _run_cell(shell, cell)
        finally:
            recording.stop()
            _show(recording, options)


def load(shell):
    def nrg(line, cell):
        return nrg_cell(shell, line, cell)
    nrg.__doc__ = USAGE
    shell.register_magic_function(nrg, "cell", "nrg")
