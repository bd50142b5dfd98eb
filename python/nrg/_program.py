"""The program nrg, which reads recordings: where it is, and what it says.

Results are computed in one place, the program; here its JSON is read. It is looked for in NRG_BIN,
beside the package (a wheel, the build tree, the place where the same `meson install` put it), and
in PATH.
"""
import functools
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def beside(native):
    """The program that belongs to this package, or None. PATH is not looked at."""
    places = [os.path.join(HERE, "bin", "nrg"), os.path.join(HERE, "..", "..", "nrg")]
    if native.program_place:
        places.append(os.path.join(HERE, native.program_place, "nrg"))
    for place in places:
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.normpath(place)
    return None


@functools.lru_cache(maxsize=None)
def check_version(program):
    """Raises Error for a program of another version than the package's. It was not installed with it."""
    from . import Error, __version__
    try:
        done = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Error("%s: %s" % (program, error.strerror)) from error
    said = done.stdout.decode("utf-8", "replace").strip()
    if said != "nrg " + __version__:
        raise Error("%s is %s, this package is of nrg %s: install both from one wheel or package, or set NRG_BIN"
                    % (program, said or "no nrg", __version__))


def find():
    """The program's path; raises Error when there is none."""
    from . import Error, _nrg
    given = os.environ.get("NRG_BIN")
    if given:
        return given
    found = beside(_nrg) or shutil.which("nrg")
    if not found:
        raise Error("the program nrg was not found: install it, put it in PATH, or set NRG_BIN to its path")
    return found


def run(arguments):
    """Runs `nrg ARGUMENTS`: its exit code, what it printed as bytes, and what it said."""
    from . import Error, _nrg
    program = find()
    if program != beside(_nrg):
        check_version(program)
    try:
        done = subprocess.run([program] + [os.fspath(a) for a in arguments], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Error("%s: %s" % (program, error.strerror)) from error
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace").strip()


def run_json_code(arguments, good=(0,)):
    """The JSON that `nrg ARGUMENTS` prints, its exit code and what it said; raises Error with nrg's own words."""
    from . import Error
    code, printed, said = run(arguments)
    if code not in good:
        raise Error(said or "nrg %s ended with code %d" % (arguments[0], code))
    try:
        return json.loads(printed.decode("utf-8")), code, said
    except ValueError as error:
        raise Error("%s %s: no JSON came back (%s)" % (find(), arguments[0], error)) from error


def run_json(*arguments):
    """The same of a command that ends with 0: the JSON alone."""
    return run_json_code(arguments)[0]
