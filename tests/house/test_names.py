"""Names in comments and documents are names of things: identifiers, files and functions that a text mentions exist
somewhere in the project. And a struct tag names one thing."""
import collections
import os
import re
import unittest

import house

TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NAME = re.compile(r"\b(nrg_\w+|NRG_\w+)")
CALL = re.compile(r"(?<![\w.:>/-])([a-z_]\w+)\(\)")
STRUCT = re.compile(r"\b(?:struct|enum|union) ((?:nrg_)\w+)")
FILE = re.compile(r"(?<![\w.*/~-])((?:[\w.-]+/)*[\w*]+\.(?:c|h|py|build|map))\b(?!\()")
TAG = re.compile(r"^[ \t]*(?:typedef |static |const )*(?:struct|union|enum) (\w+) \{", re.M)

# Of the kernel, and examples of what stands in an archive of TorchScript.
ELSEWHERE = {"include/linux/proc_ns.h", "code/a/b.py", "file.py"}


def split_c(text):
    """The code without comments, and the comments as (line number, text)."""
    comments = []

    def taken(match):
        if match[0].startswith(("/*", "//")):
            comments.append((text.count("\n", 0, match.start()) + 1, match[0]))
            return " "
        return match[0]

    return TEXT.sub(taken, text), comments


class Project:
    """All names that exist."""

    def __init__(self):
        self.files = house.tracked_files("*")
        self.by_base = collections.defaultdict(list)
        for name in self.files:
            self.by_base[os.path.basename(name)].append("/" + name)
        self.words, self.headers, self.comments, self.code = set(), set(), {}, {}
        for name in self.files:
            if name.startswith("tests/fuzz/corpus/") or "/data/" in name or name.endswith("test_names.py"):
                continue
            if name.endswith((".c", ".h")):
                self.code[name], self.comments[name] = split_c(house.text(name))
                self.words.update(re.findall(r"\w+", self.code[name]))
                self.headers.update(re.findall(r"#include <(\S+)>", self.code[name]))
            elif name.endswith((".py", ".build", ".map", ".sh", ".txt", ".toml")) or "." not in os.path.basename(name):
                try:
                    self.words.update(re.findall(r"\w+", re.sub(r"(?m)^\s*#.*", "", house.text(name))))
                except UnicodeDecodeError:
                    pass
        self.prefixes = set()
        for word in self.words:
            if word[:4] in ("nrg_", "NRG_"):
                self.prefixes.update(word[:i + 1] for i, c in enumerate(word) if c == "_")

    def has_name(self, name):
        return name in self.words or name in self.prefixes or os.path.basename(name) in self.by_base

    def has_file(self, name):
        if name in ELSEWHERE or name in self.headers:
            return True
        name = name.replace("NAME", "*")
        pattern = re.compile(".*/" + re.escape(name).replace(r"\*", "[^/]*") + "$")
        if "*" in name:
            return any(pattern.match("/" + file) for file in self.files)
        return any(pattern.match(file) for file in self.by_base[os.path.basename(name)])

    def unknown(self, text):
        """(offset, name) of what the text mentions and the project does not have."""
        for match in NAME.finditer(text):
            if not self.has_name(match[1]):
                yield match.start(), match[1]
        for match in STRUCT.finditer(text):
            if match[1] not in self.words:
                yield match.start(), match[0]
        for match in CALL.finditer(text):
            if match[1] not in self.words:
                yield match.start(), match[0]
        for match in FILE.finditer(text):
            if not self.has_file(match[1]):
                yield match.start(), match[1]


def without_blocks(document):
    """A Markdown text whose fenced blocks are empty lines, so that line numbers stay."""
    return re.sub(r"^```[^\n]*\n.*?^```\s*$", lambda m: "\n" * m[0].count("\n"), document, flags=re.M | re.S)


class Names(house.Case):
    project = None

    @classmethod
    def setUpClass(cls):
        cls.project = Project()

    def test_names_in_comments_exist(self):
        wrong, seen = [], 0
        for name, comments in self.project.comments.items():
            for line, comment in comments:
                seen += 1
                for offset, word in self.project.unknown(comment):
                    wrong.append(f"{name}:{line + comment.count(chr(10), 0, offset)}: {word}")
        self.assertGreater(seen, 3000)
        self.assertEqual(wrong, [], "\n".join(["names of nothing:"] + wrong))

    def test_names_in_documents_exist(self):
        wrong = []
        for document in ("docs/ARCHITECTURE.md", "HACKING.md"):
            text = house.text(document)
            made = {m for m in re.findall(r"file=(\S+)", text)}  # by the examples of HACKING.md
            for offset, word in self.project.unknown(without_blocks(text)):
                if not any(("/" + file).endswith("/" + word) for file in made):
                    wrong.append(f"{document}:{text.count(chr(10), 0, offset) + 1}: {word}")
        self.assertEqual(wrong, [], "\n".join(["names of nothing:"] + wrong))

    def test_the_search_finds_what_is_not_there(self):
        for text in ("see nrg_no_such_thing", "NRG_NO_SUCH is it", "in attribute/no_such_file.c",
                     "domains.h", "struct nrg_no_such", "no_such_function() does", "base/registry.c"):
            with self.subTest(text):
                self.assertTrue(list(self.project.unknown(text)))
        for text in ("see nrg_root_read", "NRG_ROW_ flags", "total.h", "sensors/total.c", "struct nrg_channel",
                     "main() does", "table_*.c"):
            with self.subTest(text):
                self.assertEqual(list(self.project.unknown(text)), [])

    def test_a_struct_tag_names_one_thing(self):
        places = collections.defaultdict(list)
        for name, code in self.project.code.items():
            if name.startswith(("src/", "include/")):
                for tag in TAG.findall(code):
                    places[tag].append(name)
        self.assertGreater(len(places), 300)
        # A tag without nrg_ belongs to its file; one in a header belongs to everybody.
        twice = {tag: files for tag, files in places.items()
                 if len(files) > 1 and (tag.startswith("nrg_") or any(f.endswith(".h") for f in files))}
        self.assertEqual(twice, {})


if __name__ == "__main__":
    unittest.main()
