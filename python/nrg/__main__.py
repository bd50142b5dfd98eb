"""`python -m nrg ARGUMENTS`, and the command `nrg` of a wheel: becomes the program nrg."""
import os
import sys

from . import _nrg, _program


def main():
    # Not PATH: the command found there may be this one. So may be NRG_BIN.
    given = os.environ.get("NRG_BIN")
    is_this = given and os.path.realpath(given) == os.path.realpath(sys.argv[0])
    program = given if given and not is_this else _program.beside(_nrg)
    if not program:
        sys.exit("nrg: the program was not found beside this package: set NRG_BIN to its path")
    try:
        os.execv(program, ["nrg"] + sys.argv[1:])
    except OSError as error:
        sys.exit("nrg: %s: %s" % (program, error.strerror))


if __name__ == "__main__":
    main()
