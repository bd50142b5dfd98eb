"""Spans, marks and counts from Python, seen as the calls that reach libnrg."""
import glob
import os
import re
import shutil
import unittest

from support import Case, LOG_LIBRARY, PACKAGE, balanced, tree


class Spans(Case):
    def test_with_nests(self):
        calls, _ = self.logged("""
            import nrg
            with nrg.span("outer"):
                with nrg.span("inner", kind="step", number=7):
                    nrg.mark("here")
                nrg.count("tokens", 128)
                nrg.count("tokens")
        """)
        self.assertEqual(calls, [
            (0, "begin", "outer", "span", ""), (1, "begin", "inner", "step", "", "7"), (2, "mark", "here", "mark", ""),
            (1, "end"), (1, "count", "tokens", "counter", "", "128"), (1, "count", "tokens", "counter", "", "1"), (0, "end")])

    def test_parts_are_there_when_they_are_used(self):
        done = self.python("""
            import sys
            import nrg
            print("nrg.gpu_load" in sys.modules, nrg.gpu_load.__name__, "torch" in dir(nrg), "torch" in sys.modules)
            try:
                print(nrg.torch.watch.__module__)
            except ModuleNotFoundError as error:
                print("nrg.torch" if error.name == "torch" else error)
            print(hasattr(nrg, "nothing"))
        """)
        self.assertEqual(done.stdout, "False nrg.gpu_load True False\nnrg.torch\nFalse\n")

    def test_an_exception_closes_and_goes_on(self):
        calls, done = self.logged("""
            import nrg
            try:
                with nrg.span("a"), nrg.span("b"):
                    raise KeyError("mine")
            except KeyError as error:
                print(error, nrg._nrg.depth())
            @nrg.span("f")
            def f():
                raise ValueError
            try:
                f()
            except ValueError:
                print(nrg._nrg.depth())
        """)
        self.assertEqual(done.stdout, "'mine' 0\n0\n")
        self.assertTrue(balanced(calls))

    def test_the_decorator_keeps_the_function(self):
        calls, done = self.logged('''
            import inspect, nrg
            @nrg.span("work", kind="phase")
            def work(a, *, b=2):
                """What it does."""
                return a + b
            print(work(1, b=5), work.__name__, work.__doc__, inspect.signature(work))
            class Net:
                @nrg.span("method")
                def run(self, x):
                    return x
            print(Net().run(3))
        ''')
        self.assertEqual(done.stdout, "6 work What it does. (a, *, b=2)\n3\n")
        self.assertEqual(tree(calls), ["work", "method"])
        self.assertEqual(calls[0][3], "phase")

    def test_a_recursive_function_nests(self):
        calls, _ = self.logged("""
            import nrg
            @nrg.span("f")
            def f(n):
                return n and f(n - 1)
            f(2)
        """)
        self.assertEqual(tree(calls), ["f", "  f", "    f"])
        self.assertTrue(balanced(calls))

    def test_coroutines_do_not_hold_a_span_while_they_wait(self):
        calls, done = self.logged("""
            import asyncio, inspect, nrg
            @nrg.span("a")
            async def a():
                await asyncio.sleep(0.01)
                return 1
            @nrg.span("b")
            async def b():
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    nrg.mark("cancelled")
                    raise
            @nrg.span("c")
            async def c():
                try:
                    await asyncio.wait_for(asyncio.sleep(60), 0.01)
                except asyncio.TimeoutError:
                    return 3
            async def main():
                task = asyncio.ensure_future(b())
                print(await asyncio.gather(a(), a(), c()))
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    print("cancelled", nrg._nrg.depth())
            print(inspect.iscoroutinefunction(a))
            asyncio.run(main())
        """)
        self.assertEqual(done.stdout, "True\n[1, 1, 3]\ncancelled 0\n")
        self.assertTrue(balanced(calls))
        # Side by side, never inside each other; the mark is inside the one that was cancelled.
        self.assertEqual({c[0] for c in calls if c[1] == "begin"}, {0})
        self.assertIn((1, "mark", "cancelled", "mark", ""), calls)

    def test_a_generator_is_refused(self):
        _, done = self.logged("""
            import nrg
            def g():
                yield 1
            async def h():
                yield 1
            for f in (g, h, 5):
                try:
                    nrg.span("g")(f)
                except TypeError as error:
                    print(error)
        """)
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertIn("generator", done.stdout)

    def test_threads_have_their_own_depth(self):
        calls, done = self.logged("""
            import threading, nrg
            inside, leave = threading.Event(), threading.Event()
            def other():
                with nrg.span("other"):
                    inside.set(); leave.wait()
            with nrg.span("main"):
                t = threading.Thread(target=other); t.start(); inside.wait()
                print(nrg._nrg.depth())
            leave.set(); t.join()
        """)
        self.assertEqual(done.stdout, "1\n")
        self.assertEqual(tree(calls), ["main", "other"])

    def test_names_of_all_kinds(self):
        calls, done = self.logged(r"""
            import nrg
            for name in ("", "a'b\"c", "two\nlines", "<b>&amp;", "Größe ∑", "\udc80", "x" * 10000):
                with nrg.span(name):
                    pass
            for bad in (3, None, b"x", ["y"]):
                try:
                    nrg.span(bad)
                except TypeError as error:
                    print(error)
            for bad in (lambda: nrg.span("a\0b"), lambda: nrg.span("a", kind="b\0")):
                try:
                    bad()
                except ValueError as error:
                    print(error)
            for bad in (lambda: nrg.mark(1), lambda: nrg.mark(), lambda: nrg.count(), lambda: nrg.count("a", "b"), lambda: nrg.count(2),
                        lambda: nrg.span(), lambda: nrg.span("a", nonsense=1), lambda: nrg.span("a", "b", 1, "c", 5),
                        lambda: nrg.span("a", number="x"), lambda: nrg.span("a", kind=1), lambda: nrg.span("a")(1, 2)):
                try:
                    bad()
                    print("not refused")
                except TypeError:
                    pass
            try:
                nrg.span("a", number=2**63)
            except OverflowError:
                print("too large")
        """)
        names = [c[2] for c in calls if c[1] == "begin"]
        self.assertEqual(names, ["", "a'b\"c", "two\\x0alines", "<b>&amp;", "Größe ∑", "\\x5cudc80", "x" * 10000])
        lines = done.stdout.splitlines()
        self.assertEqual(lines[:4], ["the name of a span must be a str"] * 4)
        self.assertEqual(lines[4:], ["the name of a span has a zero character in it",
                                     "the kind of a span has a zero character in it", "too large"])

    def test_a_span_is_one_object_and_the_memory_stays_bounded(self):
        _, done = self.logged("""
            import sys, nrg
            print(nrg.span("x") is nrg.span("x"), nrg.span("x") is nrg.span("x", kind="step"))
            print(isinstance(nrg.span("x"), nrg.Span), repr(nrg.span("x")), repr(nrg.span("y", number=1)))
            def fill(start):
                for i in range(start, start + 60000):
                    nrg.span("request %d" % i)
                    nrg.span("s", number=i)
                    nrg.mark("m%d" % i)
                    nrg.count("c%d" % i, i)
                return sys.getallocatedblocks()
            first = fill(0)
            print(fill(60000) - first < 5000)
        """, active=False)
        self.assertEqual(done.stdout, "True False\nTrue <nrg span 'x'> <nrg span 'y'>\nTrue\n")

    def test_low_level_calls(self):
        calls, done = self.logged("""
            from nrg import _nrg
            a = _nrg.name("a", "module", "Linear"); b = _nrg.name("b", kind="step")
            _nrg.begin(a); _nrg.begin_numbered(b, -3)
            print(_nrg.depth()); _nrg.unwind(1); print(_nrg.depth()); _nrg.end()
            _nrg.past(a, "gpu-0", None, 10, 20); _nrg.past(b, None, "gpu-1", 30, 40)
            _nrg.mark(a); _nrg.count(b, 5)
            print(_nrg.active(), _nrg.version() == _nrg.built, _nrg.name("a", "module", "Linear") == a, a != b)
            for bad in (lambda: _nrg.begin("x"), lambda: _nrg.begin_numbered(1), lambda: _nrg.past(1, 2),
                        lambda: _nrg.past(a, 1, None, 1, 2), lambda: _nrg.count(1), lambda: _nrg.name()):
                try:
                    bad(); print("not refused")
                except TypeError:
                    pass
            for bad in (lambda: _nrg.begin(-1), lambda: _nrg.unwind(-1)):
                try:
                    bad(); print("not refused")
                except OverflowError:
                    pass
        """)
        self.assertEqual(done.stdout, "2\n1\nTrue True True True\n")
        self.assertEqual(calls, [
            (0, "begin", "a", "module", "Linear"), (1, "begin", "b", "step", "", "-3"), (1, "end"), (0, "end"),
            (0, "past", "a", "module", "Linear", "gpu-0", "", "10", "20"),
            (0, "past", "b", "step", "", "", "gpu-1", "30", "40"),
            (0, "mark", "a", "module", "Linear"), (0, "count", "b", "step", "", "5")])

    def test_nothing_is_called_without_a_recorder(self):
        calls, done = self.logged("""
            import nrg
            with nrg.span("x"):
                nrg.mark("m"); nrg.count("c", 1)
            print(nrg.active())
        """, active=False)
        self.assertEqual((calls, done.stdout), ([], "False\n"))


class Absence(Case):
    PROGRAM = """
        import nrg
        with nrg.span("x", kind="step", number=1):
            nrg.mark("m"); nrg.count("c")
        @nrg.span("f")
        def f():
            return 3
        print(f(), nrg.active(), nrg._nrg.library())
        try:
            with nrg.record("run.nrg"):
                print("recorded")
        except nrg.Error as error:
            print(error)
    """

    def test_without_the_library(self):
        done = self.python(self.PROGRAM, NRG_LIBRARY="/nowhere/libnrg.so.0")
        first, second = done.stdout.splitlines()
        self.assertEqual(first, "3 False None")
        self.assertRegex(second, r"^cannot record: there is no libnrg to use \(/nowhere/libnrg.*\)\. .*NRG_LIBRARY")
        self.assertFalse(os.path.exists(self.path("run.nrg")))

    def test_with_a_library_of_another_kind(self):
        other = next(iter(glob.glob("/lib/*/libm.so.6") + glob.glob("/lib*/libm.so.6")))
        done = self.python(self.PROGRAM, NRG_LIBRARY=other)
        self.assertIn("libm.so.6 has no nrg_version: it is of another version", done.stdout)

    def test_with_a_library_of_another_version(self):
        done = self.python(self.PROGRAM, NRG_LIBRARY=LOG_LIBRARY, NRG_SPAN_LOG=self.log, NRG_SPAN_LOG_ACTIVE="1",
                           NRG_SPAN_LOG_VERSION="0.0.1")
        self.assertTrue(done.stdout.startswith("3 False None\n"), done.stdout)
        self.assertRegex(done.stdout, r"is of nrg 0\.0\.1, this package of [\d.]+: install both from one wheel or package")

    def test_with_an_extension_of_another_version(self):
        package = self.path("older", "nrg")
        shutil.copytree(os.path.join(PACKAGE, "nrg"), package)
        with open(os.path.join(package, "__init__.py"), encoding="utf-8") as text:
            changed = re.sub(r'__version__ = ".*"', '__version__ = "0.0.1"', text.read())
        with open(os.path.join(package, "__init__.py"), "w", encoding="utf-8") as out:
            out.write(changed)
        done = self.python(self.PROGRAM, PYTHONPATH=self.path("older"))
        self.assertTrue(done.stdout.startswith("3 False None\n"), done.stdout)
        self.assertRegex(done.stdout, r"_nrg\.abi3\.so is of nrg [\d.]+, this package of 0\.0\.1: install nrg again")

    def test_without_the_extension(self):
        package = self.path("elsewhere", "nrg")
        os.makedirs(package)
        for source in glob.glob(os.path.join(PACKAGE, "nrg", "*.py")):
            os.symlink(source, os.path.join(package, os.path.basename(source)))
        done = self.python(self.PROGRAM, PYTHONPATH=self.path("elsewhere"))
        self.assertRegex(done.stdout, r"^3 False None\ncannot record: .*_nrg.*\n$")

    def test_the_stand_in_has_every_name(self):
        done = self.python("""
            from nrg import _absent, _nrg
            print(sorted(n for n in dir(_nrg) if not n.startswith("_") and not hasattr(_absent, n)))
            print(sorted(n for n in dir(_nrg.Span) if not hasattr(_absent.Span, n)))
        """, NRG_LIBRARY=LOG_LIBRARY)
        self.assertEqual(done.stdout, "[]\n[]\n")


if __name__ == "__main__":
    unittest.main()
