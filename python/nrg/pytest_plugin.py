"""A plugin for pytest: measures tests, and fails those that use more than they may.

    pytest --nrg                      # a table of what each test used
    pytest -p nrg.pytest_plugin ...   # where the package was not installed by pip

    @pytest.mark.nrg(joules=5)        # fails when the program used more than that
    def test_training(): ...

    def test_inference(nrg_energy):   # measured, and can say so itself
        nrg_energy.limit(joules=2)
        model(x)

What is measured is the call of the test, without its fixtures. Tests without the mark, the fixture and --nrg run as without the plugin. An energy that can't be known is no reason to fail: a warning says so.
"""
import hashlib
import os
import tempfile
import warnings

import pytest

MAX_SHOWN = 30
NAME_BYTES = 120  # of a recording; a test's id may have any characters and length
SHOWN_LETTERS = 200


def file_name(nodeid):
    """Of a test's recording: ASCII, and another one for each test, whatever its id holds and wherever it had to be cut."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in nodeid[-NAME_BYTES:])
    digest = hashlib.sha256(nodeid.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return "%s-%s.nrg" % (name.lstrip("-.") or "test", digest)


def shown(nodeid):
    """One line for people: what can't be printed, or would turn or move the rest, is written as its number."""
    cut = nodeid if len(nodeid) <= SHOWN_LETTERS else nodeid[:SHOWN_LETTERS] + "..."
    return "".join(c if c.isprintable() else c.encode("unicode-escape").decode("ascii") for c in cut)


class Limit:
    """of: "program" (its own part) or "machine". sure: fail only when the whole interval is above."""

    def __init__(self, joules, of="program", sure=False):
        if of not in ("program", "machine"):
            raise ValueError("nrg: of is 'program' or 'machine', not %r" % (of,))
        self.joules, self.of, self.sure = float(joules), of, sure

    def exceeded(self, energy):
        """What to say, or None."""
        value = energy.low if self.sure else energy.joules
        if value is None:
            warnings.warn("nrg: the energy of this test is not known: its limit of %g J was not checked" % self.joules)
            return None
        if value <= self.joules:
            return None
        return "nrg: the %s used %.4g J (%.4g to %.4g J, %s), more than %g J" % (
            self.of, energy.joules, energy.low, energy.high, energy.provenance, self.joules)


class Measured:
    """What the fixture `nrg_energy` gives: limits of the test, and its recording once it is over."""

    def __init__(self, path):
        self.path, self.run, self.limits = path, None, []
        self.figures = None  # of the table: program_j, machine_j, duration_s, provenance

    def limit(self, joules, of="program", sure=False):
        self.limits.append(Limit(joules, of, sure))

    def start(self):
        import nrg
        run = nrg.record(self.path, overwrite=True)
        try:
            run.start()
            self.run = run
        except (nrg.Error, OSError, ValueError) as error:
            warnings.warn("nrg: not measured: %s" % error)

    def stop(self):
        """The first limit that is exceeded, in words, or None."""
        import nrg
        if self.run is None:
            return None
        try:
            self.run.stop()
            program, machine = self.run.program_energy(), self.run.energy()
        except (nrg.Error, OSError, ValueError) as error:
            warnings.warn("nrg: not measured: %s" % error)
            return None
        self.figures = (program.joules, machine.joules, self.run.duration_s, machine.provenance)
        said = [limit.exceeded(program if limit.of == "program" else machine) for limit in self.limits]
        return next((text for text in said if text), None)


def pytest_addoption(parser):
    group = parser.getgroup("nrg", "energy of tests")
    group.addoption("--nrg", action="store_true", help="measure the energy of every test and show a table")
    group.addoption("--nrg-folder", metavar="FOLDER", help="keep the tests' recordings there")


def pytest_configure(config):
    config.addinivalue_line("markers", "nrg(joules=None, of='program', sure=False): measure this test; fail it when it uses more")
    config._nrg_rows = []


def _folder(item):
    """Of its recording. One that can't be made is no reason to fail: starting the recorder then says why."""
    folder = item.config.getoption("--nrg-folder")
    try:
        if folder:
            os.makedirs(folder, exist_ok=True)
            return folder
        item._nrg_folder = tempfile.TemporaryDirectory(prefix="nrg-test-")
        return item._nrg_folder.name
    except (OSError, ValueError) as error:
        warnings.warn("nrg: no place for recordings: %s" % error)
        return folder or "/nonexistent"


def _measured(item):
    """Of an item that is to be measured, made once; else None."""
    if not hasattr(item, "_nrg"):
        mark, wanted = item.get_closest_marker("nrg"), item.config.getoption("--nrg")
        if not (mark or wanted or "nrg_energy" in getattr(item, "fixturenames", ())):
            return None
        item._nrg = Measured(os.path.join(_folder(item), file_name(item.nodeid)))
        if mark and (mark.args or mark.kwargs):
            item._nrg.limit(*mark.args, **mark.kwargs)
    return item._nrg


@pytest.fixture
def nrg_energy(request):
    """Measures this test. `.limit(joules, of="program", sure=False)` fails it when it uses more."""
    return _measured(request.node)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    measured = _measured(item)
    if measured is None:
        yield
        return
    measured.start()
    try:
        yield
    finally:
        item._nrg_said = measured.stop()
        if measured.figures:
            item.config._nrg_rows.append((item.nodeid,) + measured.figures)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    said = getattr(item, "_nrg_said", None)
    if report.when == "call" and report.passed and said:
        report.outcome, report.longrepr = "failed", said
    if report.when == "teardown" and hasattr(item, "_nrg_folder"):
        item._nrg_folder.cleanup()


def pytest_terminal_summary(terminalreporter, config):
    rows = sorted(config._nrg_rows, key=lambda row: -(row[1] if row[1] is not None else row[2] or 0))
    if not config.getoption("--nrg") or not rows:
        return
    terminalreporter.section("energy of tests")
    terminalreporter.write_line("%12s %12s %10s  %s" % ("program", "machine", "time", ""))
    for nodeid, program_j, machine_j, duration_s, provenance in rows[:MAX_SHOWN]:
        joules = ["%.4g J" % j if j is not None else "-" for j in (program_j, machine_j)]
        terminalreporter.write_line("%12s %12s %8.3g s  %s (%s)" % (*joules, duration_s or 0, shown(nodeid), provenance))
    if len(rows) > MAX_SHOWN:
        terminalreporter.write_line("and %d more" % (len(rows) - MAX_SHOWN))
