"""Programs that must not notice nrg: run alone and under `nrg run --torch`, and compared byte for byte."""
import os
import sqlite3
import subprocess

PROGRAMS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "silent")
LIMIT_S = 300  # ends a hang; never a measure of speed
# A rank of PyTorch 2.13 with gloo aborts so at its end now and then, also without nrg (1 of 14 runs under load).
GLOO_ABORT = b"terminate called without an active exception"
TRIES = 4


def run(command, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON"))}
    env.update(PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
    for _ in range(TRIES):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              cwd=folder, env=env, timeout=LIMIT_S)
        if GLOO_ABORT not in done.stderr:
            break
    # nrg ends as a shell does for a command that was killed by a signal.
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout, done.stderr


def check(test, nrg, python, name, folder):
    """Fails the test when anything differs, or when nothing was recorded."""
    out = os.path.join(folder, name + ".nrg")
    command = [python, os.path.join(PROGRAMS, name + ".py")]
    alone = run(command, folder)
    seen = run([nrg, "run", "--quiet", "--torch", "--force", "-o", out, "--", *command], folder)
    test.maxDiff = None
    for what, a, b in zip(("exit code", "stdout", "stderr"), alone, seen):
        text = [part.decode("utf-8", "replace") if isinstance(part, bytes) else part for part in (a, b)]
        test.assertEqual(text[1], text[0], "%s of %s with nrg" % (what, name))
        test.assertEqual(b, a)
    with sqlite3.connect(f"file:{out}?mode=ro", uri=True) as recording:
        names = recording.execute("SELECT count(*) FROM span_name WHERE kind = 'module'").fetchone()
    test.assertGreater(names[0], 0, name + ": no module was marked")
