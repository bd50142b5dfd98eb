"""nrg.record: what reaches the recorder, and the messages when it can't record."""
import os
import unittest

from support import Case, balanced, tree


class Record(Case):
    def test_settings_and_notes_arrive(self):
        calls, _ = self.logged("""
            import nrg, pathlib
            with nrg.record(pathlib.Path("run.nrg"), rate=50, sensors=["rapl", "machine"], root=pathlib.Path("/r"),
                            overwrite=True, note={"batch": 32}) as run:
                with nrg.span("x"):
                    pass
            run.stop()
        """, active=False)
        self.assertEqual(calls, [
            (0, "start", os.path.realpath(self.path("run.nrg")), "50", "rapl,machine", "/r", "1"),
            (0, "note", "batch", "32"), (0, "begin", "x", "span", ""), (0, "end"), (0, "stop")])

    def test_start_and_stop(self):
        calls, _ = self.logged("""
            import nrg
            run = nrg.record("a.nrg", sensors="rapl").start()
            run.stop()
            run.stop()
        """, active=False)
        self.assertEqual([c[1] for c in calls], ["start", "stop"])

    def test_names_are_asked_for_again_by_the_next_recorder(self):
        calls, _ = self.logged("""
            import nrg
            kept = nrg.span("x")
            for path in ("a.nrg", "b.nrg", "c.nrg"):
                with nrg.record(path):
                    with kept, nrg.span("y", kind="step", number=1):
                        nrg.mark("m"); nrg.count("n", 1)
        """, active=False)
        self.assertEqual(tree(calls), ["x", "  y", "    m", "    n"] * 3)

    def test_one_at_a_time(self):
        calls, done = self.logged("""
            import nrg
            with nrg.record("a.nrg") as a:
                try:
                    nrg.record("b.nrg").start()
                except nrg.Error as error:
                    print(error)
                try:
                    a.start()
                except nrg.Error as error:
                    print(error)
        """, active=False)
        self.assertEqual(done.stdout, "b.nrg: a recording of this process is running: a.nrg\n"
                                      "a.nrg: this recording was started before: make another\n")
        self.assertEqual([c[1] for c in calls], ["start", "stop"])

    def test_a_refusal_is_an_error_with_the_reason(self):
        _, done = self.logged("""
            import errno, nrg
            try:
                with nrg.record("refuse.nrg"):
                    print("inside")
            except nrg.Error as error:
                print(error, error.errno == errno.EACCES, isinstance(error, RuntimeError))
            with nrg.record("fine.nrg"):
                pass
        """, active=False)
        self.assertEqual(done.stdout, os.path.realpath(self.path("refuse.nrg")) + ": refused True True\n")

    def test_an_exception_inside_stops_it(self):
        calls, done = self.logged("""
            import nrg
            try:
                with nrg.record("a.nrg"):
                    with nrg.span("x"):
                        raise ValueError("mine")
            except ValueError as error:
                print(error)
        """, active=False)
        self.assertEqual(done.stdout, "mine\n")
        self.assertEqual([c[1] for c in calls], ["start", "begin", "end", "stop"])

    def test_the_end_of_the_program_stops_it(self):
        calls, _ = self.logged("""
            import nrg
            nrg.record("a.nrg").start()
        """, active=False)
        self.assertEqual([c[1] for c in calls], ["start", "stop"])

    def test_a_child_does_not_stop_its_parents_recorder(self):
        calls, done = self.logged("""
            import os, sys, nrg
            run = nrg.record("a.nrg").start()
            pid = os.fork()
            if not pid:
                run.stop()
                sys.exit(0)
            print(os.waitpid(pid, 0)[1])
            nrg.mark("after")
            run.stop()
        """, active=False)
        self.assertEqual(done.stdout, "0\n")
        self.assertEqual([c[1] for c in calls], ["start", "mark", "stop"])

    def test_under_nrg_run_it_is_a_span(self):
        calls, done = self.logged("""
            import nrg
            for path in ("out/run.nrg", "second.nrg"):
                with nrg.record(path, note={"a": 1}) as run:
                    nrg._nrg.begin(nrg._nrg.name("left open"))
                try:
                    run.energy()
                except nrg.Error as error:
                    print(error)
        """)
        self.assertEqual(tree(calls), ["run.nrg", "  left open", "second.nrg", "  left open"])
        self.assertTrue(balanced(calls))
        self.assertEqual(done.stderr.count("this process is being recorded already"), 1)
        self.assertEqual(done.stdout.count("another recorder was at work"), 2)

    def test_results_only_when_it_has_ended(self):
        _, done = self.logged("""
            import nrg
            run = nrg.record("a.nrg")
            for step in (lambda: None, run.start):
                step()
                for read in (run.energy, run.report, run.table):
                    try:
                        read()
                    except nrg.Error as error:
                        print(error)
        """, active=False)
        self.assertEqual(done.stdout, "a.nrg: not recorded yet\n" * 3 + "a.nrg: still being recorded: read it after stop()\n" * 3)


class Model(Case):
    def test_parameters_of_a_model_without_tracing(self):
        calls, done = self.logged("""
            import nrg
            class P:
                def numel(self):
                    return 14
            class Torchlike:
                def parameters(self):
                    return iter([P(), P()])
            class Keraslike:
                def count_params(self):
                    return 99
            class Unbuilt:
                def count_params(self):
                    raise ValueError("not built")
            for model in (Torchlike(), Keraslike(), Unbuilt(), object()):
                with nrg.record("a.nrg", model=model):
                    pass
        """, active=False)
        notes = [c[2:] for c in calls if c[1] == "note"]
        self.assertEqual([value for _, value in notes], ["28", "99"])
        self.assertEqual(done.stderr.count("can't be counted"), 2)

    def test_a_graph_is_traced_with_zeros_of_the_size(self):
        """With stand-ins for PyTorch and nrg.torch: which calls reach them."""
        calls, done = self.logged("""
            import sys, types, nrg
            torch = types.ModuleType("torch")
            class Parameter:
                dtype, device = "float", "cpu"
                def numel(self):
                    return 6
            class Module:
                def __init__(self, takes):
                    self.takes = takes
                def parameters(self):
                    return iter([Parameter()])
            torch.nn = types.SimpleNamespace(Module=Module)
            torch.long = "long"
            torch.empty = lambda n: Parameter()
            torch.zeros = lambda *size, dtype, device: (size, dtype, device)
            tracing = types.ModuleType("nrg.torch")
            def trace(model, *args):
                if args[0][1] != model.takes:
                    raise RuntimeError("takes no " + args[0][1])
                nrg._nrg.model("net", "torchscript-text", repr(args).encode())
                return types.SimpleNamespace(stored=True)
            tracing.trace = trace
            sys.modules.update({"torch": torch, "nrg.torch": tracing})
            nrg.torch = tracing
            for takes, size in (("float", (1, 3, 8, 8)), ("long", [(1, 16), [1, 4]]), ("nothing", (2, 2))):
                with nrg.record("a.nrg", model=Module(takes), input_size=size):
                    pass
            with nrg.record("a.nrg", model=object(), input_size=(1, 2)):
                pass
        """, active=False)
        self.assertEqual([c[2:] for c in calls if c[1] == "note"], [("model_params", "6")] * 3)
        self.assertEqual([c[4] for c in calls if c[1] == "model"],
                         ["(((1, 3, 8, 8), 'float', 'cpu'),)", "(((1, 16), 'long', 'cpu'), ((1, 4), 'long', 'cpu'))"])
        self.assertEqual([c[1] for c in calls][-2:], ["start", "stop"])
        self.assertEqual(done.stderr.count("could not be traced, so that its MACs are not known: takes no long"), 1)
        self.assertEqual(done.stderr.count("only PyTorch models can be traced"), 1)


if __name__ == "__main__":
    unittest.main()
