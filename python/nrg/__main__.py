"""`python -m nrg ARGUMENTS`, and the command `nrg` of a wheel: becomes the program nrg."""
import os
import sys

from . import _nrg, _program


def main():
    # Not PATH: the command found there may be this one.
    program = os.environ.get("NRG_BIN") or _program.beside(_nrg)
    if not program:
        sys.exit("nrg: the program was not found beside this package: set NRG_BIN to its path")
    try:
        os.execv(program, ["nrg"] + sys.argv[1:])
    except OSError as error:
        sys.exit("nrg: %s: %s" % (program, error.strerror))


if __name__ == "__main__":
    main()
