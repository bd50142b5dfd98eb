"""nrg.torch with a current PyTorch: the same tests as with Debian's, and what only PyTorch 2 has.

Hugging Face's BERT and GPT-2 are built from their configurations (nothing is downloaded) and trained by
programs that know nothing of nrg, under `nrg run --torch`.
"""
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "support"))
import silent  # noqa: E402

BUILD = os.path.abspath(os.environ.get("NRG_BUILD") or os.path.join(TOP, "build"))
NRG = os.path.join(BUILD, "nrg")
PYTHON = os.environ.get("NRG_TORCH_PYTHON") or sys.executable
LIMIT_S = 600  # ends a hang; never a measure of speed


def has(module):
    return subprocess.run([PYTHON, "-c", "import " + module], stderr=subprocess.DEVNULL).returncode == 0


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="nrg-torch2-")
        self.addCleanup(self.folder.cleanup)
        self.out = os.path.join(self.folder.name, "out.nrg")

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON"))}
        env.update(PYTHONDONTWRITEBYTECODE="1", NRG_DEBUG="1", NRG_SOURCE=TOP, NRG_BIN=NRG, OMP_NUM_THREADS="1",
                   TORCHINDUCTOR_CACHE_DIR=self.folder.name, HF_HUB_OFFLINE="1")
        env.update(more)
        return env

    def write(self, text, name="program.py"):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))
        return path

    def run_process(self, *command, **env):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, cwd=self.folder.name, env=self.env(**env), timeout=LIMIT_S)

    def recorded(self, *command):
        for _ in range(silent.TRIES):
            done = self.run_process(NRG, "run", "--quiet", "--torch", "--force", "-o", self.out, "--", *command)
            if silent.GLOO_ABORT.decode() not in done.stderr:
                break
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("nrg: call of", done.stderr)
        return done

    def query(self, sql):
        db = sqlite3.connect(f"file:{self.out}?mode=ro", uri=True)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def names(self, kind):
        return {name for name, in self.query(f"SELECT name FROM span_name WHERE kind='{kind}'")}


class SameTests(Case):
    """Those of Debian's PyTorch, each file in a process of its own."""

    def check(self, name):
        done = self.run_process(PYTHON, os.path.join(TOP, "tests", "python", name))
        self.assertEqual(done.returncode, 0, done.stderr[-5000:])

    def test_calls(self):
        self.check("test_torch.py")

    def test_loop(self):
        self.check("test_torch_loop.py")

    def test_trace(self):
        self.check("test_torch_trace.py")


HUGGING_FACE = """
    import sys, warnings
    warnings.filterwarnings("ignore")
    import torch, transformers
    torch.manual_seed(0)
    if sys.argv[1] == "bert":
        config = transformers.BertConfig(vocab_size=100, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                                         intermediate_size=64, max_position_embeddings=32)
        model = transformers.BertForMaskedLM(config)
    else:
        config = transformers.GPT2Config(vocab_size=100, n_embd=32, n_layer=2, n_head=2, n_positions=32)
        model = transformers.GPT2LMHeadModel(config)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        ids = torch.randint(0, 100, (4, 16))
        loss = model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("loss %.6f" % loss.item())
    print(sorted(n for n, m in model.named_modules() if n))
"""

TRACE = """
    import torch, nrg.torch
    model.eval()
    traced = nrg.torch.trace(model, input_ids=ids, use_cache=False, nrg_way=sys.argv[2])
    traced.save(sys.argv[3])
    print(traced.format, traced.stored)
"""


@unittest.skipUnless(has("transformers"), "transformers is not installed")
class HuggingFace(Case):
    def check(self, which, deep, calls):
        script = self.write(HUGGING_FACE)
        done = self.recorded(PYTHON, script, which)
        alone = self.run_process(PYTHON, script, which)
        self.assertEqual(done.stdout, alone.stdout)
        known = set(eval(done.stdout.splitlines()[1]))
        modules, backward = self.names("module"), self.names("backward")
        root = modules - known - {"CrossEntropyLoss"}  # made anew in each call
        self.assertEqual(len(root), 1, root)
        self.assertIn(deep, modules)
        self.assertIn(deep, backward)
        self.assertLessEqual(backward, modules)
        self.assertGreaterEqual(len(modules), calls)

    def test_bert(self):
        self.check("bert", "bert.encoder.layer.1.attention.self.query", 40)

    def test_gpt2(self):
        self.check("gpt2", "transformer.h.1.attn.c_attn", 20)

    def test_graphs_join_the_spans(self):
        for which, deep in (("bert", "bert.encoder.layer.1.attention.self.query"),
                            ("gpt2", "transformer.h.1.attn.c_attn")):
            for way in ("script", "export"):
                with self.subTest(model=which, way=way):
                    script = self.write(textwrap.dedent(HUGGING_FACE) + textwrap.dedent(TRACE))
                    model = os.path.join(self.folder.name, "model")
                    done = self.recorded(PYTHON, script, which, way, model)
                    self.assertIn("True", done.stdout.splitlines()[-1])
                    shown = self.run_process(NRG, "graph", "--json", model)
                    self.assertEqual(shown.returncode, 0, shown.stderr)
                    graph = json.loads(shown.stdout)
                    modules = {m["name"]: m for m in graph["modules"] if m["name"]}
                    self.assertLessEqual(set(modules), self.names("module") | containers(modules))
                    width = 32 if which == "bert" else 96
                    self.assertEqual(modules[deep]["macs"], 4 * 16 * 32 * width)
                    self.assertEqual(len(self.query("SELECT name FROM graph")), 1)


def containers(modules):
    """Lists of layers: never called themselves, only part of a path in the graph."""
    return {name for name, m in modules.items() if m.get("class", "ModuleList").rsplit(".", 1)[-1] == "ModuleList"}


class Distributed(Case):
    def test_torchrun(self):
        script = self.write("""
            import os
            import torch
            import torch.distributed as dist
            from torch import nn
            dist.init_process_group("gloo")
            net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)))
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            for _ in range(3):
                optimizer.zero_grad()
                net(torch.ones(2, 4)).sum().backward()
                optimizer.step()
            os.write(1, b"pid %d\\n" % os.getpid())  # one write: ranks share the pipe
            dist.destroy_process_group()
            """)
        done = self.recorded(PYTHON, "-m", "torch.distributed.run", "--nproc_per_node", "2", "--master_addr",
                             "127.0.0.1", "--master_port", "0", "--standalone", script)
        pids = {int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("pid")}
        self.assertEqual(len(pids), 2)
        self.assertLessEqual(pids, {pid for pid, in self.query("SELECT pid FROM span_track")})
        self.assertLessEqual({"DistributedDataParallel", "Sequential", "0", "1", "2"}, self.names("module"))
        self.assertEqual(self.names("step"), {"step"})
        shown = json.loads(self.run_process(NRG, "attribute", "--json", self.out).stdout)
        steps = [row for row in shown["rows"] if row["kind"] == "step"]
        self.assertEqual(sorted(row["detail"] for row in steps), ["rank 0 of 2", "rank 1 of 2"])
        per = {unit["name"]: unit for unit in shown["per"]}
        self.assertEqual((per["step"]["amount"], per["step"]["ranks"]), (3, 2))
        self.assertAlmostEqual(per["step"]["energy_j"], sum(row["energy_j"] for row in steps))
        self.assertEqual(per["step"]["steady"]["amount"], 3)


@unittest.skipUnless(has("transformers"), "transformers is not installed")
class Generation(Case):
    """generate() of Hugging Face's transformers: the numbers of tokens are counted by the programs themselves."""

    PROGRAM = """
        import sys
        import torch
        from transformers import {config}, {model}

        torch.manual_seed(0)
        model = {model}({config}({arguments})).eval()
        calls = 0
        forward = model.forward
        def counted(*args, **kwargs):
            global calls
            calls += 1
            return forward(*args, **kwargs)
        model.forward = counted
        {body}
    """

    def generate(self, config, model, arguments, body):
        text = self.PROGRAM.format(config=config, model=model, arguments=arguments, body=body.replace("\n", "\n        "))
        done = self.recorded(PYTHON, self.write(text))
        shown = subprocess.run([NRG, "attribute", "--json", self.out], check=True, capture_output=True, text=True).stdout
        return json.loads(shown), done.stdout

    def amounts(self, got):
        return {(u["name"], u.get("phase", "")): u["amount"] for u in got["per"] if u["kind"] == "counter"}

    def test_a_batch_with_padding_and_ends(self):
        got, out = self.generate("GPT2Config", "GPT2LMHeadModel",
                                 "n_layer=2, n_embd=32, n_head=2, vocab_size=50, bos_token_id=1, eos_token_id=2, pad_token_id=0",
                                 "ids = torch.randint(3, 50, (3, 9))\n"
                                 "mask = torch.ones_like(ids)\n"
                                 "mask[0, :4] = 0\n"
                                 "out = model.generate(ids, attention_mask=mask, max_new_tokens=12, do_sample=True)\n"
                                 "new = out[:, 9:].tolist()\n"
                                 "made = sum(row.index(2) + 1 if 2 in row else len(row) for row in new)\n"
                                 "print(made)")
        made = int(out)
        amounts = self.amounts(got)
        self.assertEqual(amounts["input tokens", "prefill"], 3 * 9 - 4)
        self.assertEqual(amounts["requests", ""], 3)
        self.assertEqual(amounts["generated tokens", ""], made)
        self.assertEqual(amounts.get(("output tokens", "decode"), 0), made - 3)
        llm = got["llm"]
        for key in ("j_per_input_token", "j_per_request", "tokens_per_joule"):
            self.assertLessEqual(llm[key]["low"], llm[key]["value"])
            self.assertGreaterEqual(llm[key]["high"], llm[key]["value"])
        rows = {r["name"]: r for r in got["rows"] if r["kind"] in ("span", "phase")}
        self.assertAlmostEqual(llm["j_per_request"]["value"] * 3, rows["generate"]["energy_j"], delta=1e-9)
        self.assertAlmostEqual(llm["j_per_input_token"]["value"] * 23, rows["prefill"]["energy_j"], delta=1e-9)
        idle = llm["idle_share"]
        self.assertTrue(0 <= idle["low"] <= idle["value"] <= idle["high"] <= 1 and idle["value"] > 0, idle)

    def test_without_a_cache_and_with_an_encoder(self):
        got, out = self.generate("GPT2Config", "GPT2LMHeadModel",
                                 "n_layer=1, n_embd=32, n_head=2, vocab_size=50, bos_token_id=1, eos_token_id=None, pad_token_id=0",
                                 "model.generate(torch.randint(3, 50, (2, 7)), max_new_tokens=5, use_cache=False)\nprint(calls)")
        self.assertEqual((self.amounts(got)["output tokens", "decode"], int(out)), (2 * 4, 5))
        phases = {r["name"]: r["calls"] for r in got["rows"] if r["kind"] == "phase"}
        self.assertEqual(phases, {"prefill": 1, "decode": 1})
        got, out = self.generate("T5Config", "T5ForConditionalGeneration",
                                 "d_model=32, d_kv=16, d_ff=32, num_layers=1, num_heads=2, vocab_size=50, "
                                 "decoder_start_token_id=0, eos_token_id=None",
                                 "out = model.generate(torch.randint(3, 50, (2, 7)), max_new_tokens=5)\nprint(out.shape[1] - 1)")
        amounts = self.amounts(got)
        self.assertEqual((amounts["input tokens", "prefill"], amounts["generated tokens", ""]), (14, 2 * int(out)))

    TINY = "n_layer=2, n_embd=32, n_head=2, vocab_size=50, bos_token_id=1, eos_token_id=2, pad_token_id=0"

    def phases(self, got):
        return {r["name"]: r["calls"] for r in got["rows"] if r["kind"] in ("span", "phase")}

    def test_a_loop_of_the_program_itself(self):
        """Two prompts, the second with padding; the function drops the cache when it returns."""
        got, out = self.generate("GPT2Config", "GPT2LMHeadModel", self.TINY,
                                 "@torch.no_grad()\n"
                                 "def answer(ids, mask, n):\n"
                                 "    past, new = None, ids\n"
                                 "    for _ in range(n):\n"
                                 "        out = model(new, attention_mask=mask, past_key_values=past, use_cache=True)\n"
                                 "        past, new = out.past_key_values, out.logits[:, -1:].argmax(-1)\n"
                                 "        mask = torch.cat([mask, torch.ones_like(new)], 1)\n"
                                 "ids = torch.randint(3, 50, (2, 9))\n"
                                 "mask = torch.ones_like(ids)\n"
                                 "answer(ids, mask, 6)\n"
                                 "mask[0, :4] = 0\n"
                                 "answer(ids[:, :7], mask[:, :7], 3)\n"
                                 "model(ids)\n"
                                 "print(calls)")
        amounts = self.amounts(got)
        self.assertEqual(int(out), 6 + 3 + 1)
        self.assertEqual(amounts["input tokens", "prefill"], 2 * 9 + 2 * 7 - 4)
        self.assertEqual(amounts["requests", ""], 4)
        self.assertEqual(amounts["generated tokens", ""], 2 * 6 + 2 * 3)
        self.assertEqual(amounts["output tokens", "decode"], 2 * 5 + 2 * 2)
        self.assertEqual(self.phases(got), {"generate": 2, "prefill": 2, "decode": 2})
        self.assertEqual(got["unclosed"], 0)
        rows = {r["name"]: r for r in got["rows"] if r["kind"] in ("span", "phase")}
        llm = got["llm"]
        self.assertAlmostEqual(llm["j_per_request"]["value"] * 4, rows["generate"]["energy_j"], delta=1e-9)
        self.assertAlmostEqual(llm["j_per_output_token"]["value"] * 14, rows["decode"]["energy_j"], delta=1e-9)
        self.assertEqual([(r["name"], r["calls"]) for r in got["rows"] if r["name"] == "GPT2LMHeadModel" and "parent" not in r],
                         [("GPT2LMHeadModel", 1)])  # the call without a cache is beside them

    def test_chunks_turns_and_other_caches(self):
        got, out = self.generate("GPT2Config", "GPT2LMHeadModel", self.TINY,
                                 "from transformers import DynamicCache, StaticCache\n"
                                 "torch.set_grad_enabled(False)\n"
                                 "ids = torch.randint(3, 50, (1, 40))\n"
                                 "cache = DynamicCache()\n"
                                 "model(ids[:, :16], past_key_values=cache)\n"   # a prompt in two chunks
                                 "model(ids[:, 16:32], past_key_values=cache)\n"
                                 "for i in range(3):\n"
                                 "    model(ids[:, i:i + 1], past_key_values=cache)\n"
                                 "model(ids[:, :20], past_key_values=cache)\n"   # the next turn
                                 "model(ids[:, :1], past_key_values=cache)\n"
                                 "with torch.enable_grad():\n"                   # not a part of it
                                 "    model.train()\n"
                                 "    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
                                 "    model(ids, labels=ids).loss.backward()\n"
                                 "    optimizer.step()\n"
                                 "model.eval()\n"
                                 "fixed = StaticCache(config=model.config, max_cache_len=64)\n"
                                 "model(ids[:, :12], past_key_values=fixed, cache_position=torch.arange(12))\n"
                                 "model(ids[:, :1], past_key_values=fixed, cache_position=torch.tensor([12]))\n"
                                 "model.generate(ids[:, :5], max_new_tokens=3, min_new_tokens=3)")
        amounts = self.amounts(got)
        self.assertEqual(amounts["input tokens", "prefill"], 32 + 20 + 12 + 5)
        self.assertEqual(amounts["output tokens", "decode"], 3 + 1 + 1 + 2)
        self.assertEqual(amounts["requests", ""], 4)
        self.assertEqual(amounts["generated tokens", ""], 4 + 2 + 2 + 3)
        self.assertEqual(self.phases(got), {"generate": 3, "prefill": 4, "decode": 4, "optimizer.step": 1})
        self.assertEqual(got["unclosed"], 0)
        steps = [r for r in got["rows"] if r["kind"] == "step"]
        self.assertEqual([("parent" in r, r["calls"]) for r in steps], [(False, 1)])

    def test_an_exception_and_scoring_with_a_cache(self):
        got, _ = self.generate("GPT2Config", "GPT2LMHeadModel", self.TINY,
                               "torch.set_grad_enabled(False)\n"
                               "ids = torch.randint(3, 50, (3, 7))\n"
                               "for _ in range(4):\n"
                               "    model(ids, use_cache=True)\n"       # nothing is generated
                               "out = model(ids, use_cache=True)\n"
                               "try:\n"
                               "    model(torch.full((3, 1), 77), past_key_values=out.past_key_values)\n"
                               "except IndexError:\n"
                               "    pass\n"
                               "print('on')")
        amounts = self.amounts(got)
        self.assertEqual(amounts["input tokens", "prefill"], 5 * 21)
        self.assertEqual(amounts["requests", ""], 3)
        self.assertEqual(got["unclosed"], 0)

    def test_an_exception_in_the_middle(self):
        got, _ = self.generate("GPT2Config", "GPT2LMHeadModel",
                               "n_layer=1, n_embd=32, n_head=2, vocab_size=50, bos_token_id=1, eos_token_id=2, pad_token_id=0",
                               "try:\n"
                               "    model.generate(torch.full((1, 3), 77), max_new_tokens=5)\n"
                               "except IndexError:\n"
                               "    pass\n"
                               "model.generate(torch.full((1, 3), 7), max_new_tokens=5, min_new_tokens=5)")
        depths = {r["name"]: r for r in got["rows"] if r["kind"] in ("span", "phase")}
        self.assertEqual((depths["generate"]["calls"], depths["prefill"]["calls"], depths["decode"]["calls"]), (2, 2, 1))
        self.assertEqual(got["unclosed"], 0)


if __name__ == "__main__":
    unittest.main()
