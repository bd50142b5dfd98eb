"""Measurements against a clock that a busy machine can spoil: repeated, and said so.

What is wrong in the program that is tested fails each time; what the machine's load did does not. But
a fault that comes and goes would hide here, so every repetition is a line of the test's output that
tests/run_all shows and counts.
"""


def retried(why):
    """Says that a measurement is repeated."""
    print("# retried: " + " ".join(str(why).split())[:200], flush=True)


def steadily(check, measure, tries, first=None):
    """
    The first of at most `tries` results that check() lets pass; the last one's AssertionError when it lets
    none. measure(n) gives the results, n from 0 on; `first` is the first where that is there already.
    """
    for n in range(tries):
        result = measure(n) if n or first is None else first
        try:
            check(result)
            return result
        except AssertionError as error:
            if n + 1 == tries:
                raise
            retried(error)


def in_quiet(case, measure, tries=4):
    """
    What measure() gives when its report, the first of it, believes the baseline. Others' load spoils one, which
    the report says; a test of what follows from a baseline has nothing to look at then, and is skipped in the end.
    """
    for _ in range(tries):
        result = measure()
        doubt = [m["why"] for m in result[0]["missing"] if "baseline" in m["why"]]
        if not doubt:
            return result
        retried(doubt[0])
    case.skipTest(f"the machine was busy during {tries} baselines: {doubt[0]}")
