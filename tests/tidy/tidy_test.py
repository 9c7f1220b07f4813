#!/usr/bin/env python3
"""Holds the house rules of rules.py over the whole tree, and shows that each of them bites."""

import os
import pathlib
import statistics
import unittest

import rules
from cpp_text import Source

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT_SUFFIXES = (".cc", ".h", ".py", ".sh", ".cmake", ".txt", ".md", ".yaml", ".yml", ".json", ".js", ".mjs", ".ts", ".toml", ".lua",
                 ".sql", ".html", ".conf", ".cfg")
TEXT_NAMES = ("run", "test", "bench", ".clang-tidy", ".clang-format", ".gitignore")
SKIPPED_FOLDERS = ("build", ".git", "__pycache__", "corpus", "node_modules", ".cache", ".claude")


def read_tree():
    tree = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith("build-")]
        for name in names:
            if name.endswith(TEXT_SUFFIXES) or name in TEXT_NAMES:
                path = pathlib.Path(folder, name)
                relative = path.relative_to(ROOT).as_posix()
                tree[relative] = Source(relative, path.read_text(encoding="utf-8"))
    return tree


def corpus_sizes():
    corpora = (ROOT / "fuzz/corpus").glob("*")
    return {corpus.name: sum(1 for _ in corpus.iterdir()) for corpus in corpora if corpus.is_dir()}


class TheTree(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = read_tree()

    def assert_nothing(self, findings):
        findings = list(findings)
        self.assertFalse(findings, "\n" + "\n".join(findings))

    def test_every_file_keeps_the_rules(self):
        self.assert_nothing(finding for source in self.tree.values() for finding in rules.check_source(source))

    def test_files_are_short(self):
        lengths = sorted(source.text.count("\n") for path, source in self.tree.items()
                         if path.startswith(("src/", "include/")) and path.endswith((".h", ".cc")))
        print(f"{len(lengths)} files in src and include: median {statistics.median(lengths)} lines, "
              f"longest {lengths[-1]}")
        self.assert_nothing(rules.median_length(self.tree))

    def test_everything_is_built(self):
        self.assert_nothing(rules.everything_is_built(self.tree))

    def test_fuzz_targets_have_corpora(self):
        self.assert_nothing(rules.fuzz_targets_have_corpora(self.tree, corpus_sizes()))

    def test_programs_can_run(self):
        self.assert_nothing(rules.programs_can_run(lambda path: os.access(ROOT / path, os.X_OK)))


def lines(count):
    return "    step();\n" * count


# (rule, path, a text that must be found at fault, a text that must not)
SAMPLES = [
    (rules.include_direction, "src/limits/a.cc", '#include "engine/engine.h"\n', '#include "base/x.h"\n'),
    (rules.include_direction, "src/policy/a.cc", '#include "engine/engine.h"\n', '#include "request/x.h"\n'),
    (rules.include_direction, "include/ration/a.h", '#include "limits/gcra.h"\n', '#include "ration/time.h"\n'),
    (rules.public_headers_are_light, "include/ration/a.h", "#include <boost/asio.hpp>\n",
     '#include "absl/status/status.h"\n'),
    (rules.heavy_headers, "src/engine/a.cc", "#include <boost/asio/ip/tcp.hpp>\n", "#include <vector>\n"),
    (rules.heavy_headers, "src/server/gateway.cc", "#include <boost/beast/http/parser.hpp>\n",
     '#include "server/http/head_parser.h"\n'),
    (rules.heavy_headers, "src/engine/a.cc", "#include <spdlog/spdlog.h>\n", "// #include spdlog\n"),
    (rules.heavy_headers, "src/policy/policy.cc", "#include <yaml-cpp/yaml.h>\n",
     '#include "policy/yaml_source.h"\n'),
    (rules.clock_reads, "src/engine/a.cc", "auto t = std::chrono::steady_clock::now();\n",
     "// steady_clock::now() is banned\nauto t = clock.now();\n"),
    (rules.clock_reads, "src/engine/a.cc", "time_t t = time(nullptr);\n", "set_time(0); x.time(0);\n"),
    (rules.clock_reads, "src/engine/a.cc", "clock_gettime(CLOCK_REALTIME, &ts);\n", "read_clock(ts);\n"),
    (rules.coroutine_shapes, "src/server/a.cc", "co_await send(Options{1, 2});\n",
     "Options options{1, 2};\nco_await send(std::move(options));\n"),
    (rules.coroutine_shapes, "src/server/a.cc", "co_await send(socket, {data, size});\n",
     "if (co_await done(x)) {\n    go();\n}\n"),
    (rules.coroutine_shapes, "src/server/a.cc",
     "co_await asio::co_spawn(io, [v = std::move(v)]() { return f(v); }, asio::use_awaitable);\n",
     "asio::co_spawn(io, [v = std::move(v)]() { return f(v); }, asio::detached);\n"),
    (rules.absl_locks, "src/server/a.cc", "absl::Mutex mutex_;\n", "std::mutex mutex_;\n"),
    (rules.absl_locks, "src/net/a.cc", "return absl::ErrnoToStatus(errno, name);\n", "return errno_status(errno, name);\n"),
    (rules.pragma_once, "src/server/a.h", "int x;\n", "#pragma once\nint x;\n"),
    (rules.function_length, "src/engine/a.cc", "namespace r {\nvoid f(int a) {\n" + lines(61) + "}\n}\n",
     "namespace r {\nvoid f(int a) {\n" + lines(60) + "}\n}\n"),
    (rules.function_length, "src/engine/a.h", "class X {\n    int f() const {\n" + lines(61) + "    }\n};\n",
     "class X {\n    int f() const;\n" + "    int y();\n" * 80 + "};\n"),
    (rules.function_length, "tests/a_test.cc", "TEST(X, y) {\n" + lines(61) + "}\n",
     "TEST(X, y) {\n    const Row rows[] = {\n" + "        {1, 2},\n" * 99 + "    };\n" + lines(50) + "}\n"),
    (rules.file_length, "docs/a.md", "x\n" * 601, "x\n" * 600),
    (rules.clean_text, "src/a.cc", "int\tx;\n", "int x;\n"),
    (rules.clean_text, "src/a.cc", "int x; \n", "int x;\n"),
    (rules.clean_text, "src/a.cc", "int x;", "int x;\n"),
    (rules.clean_text, "src/a.cc", "// TO" "DO: more\n", "// to do\n"),
    (rules.clean_text, "tests/a_test.cc", "TEST(X, DISABLED" "_y) {}\n", "TEST(X, y) {}\n"),
    (rules.clean_text, "docs/a.md", "see /wo" "rk/x\n", "see /v1/wo" "rk/x\n"),
    (rules.python_function_length, "scripts/a.py", "def f():\n" + "    x = 1\n" * 61,
     "def f():\n" + "    x = 1\n" * 60),
]


class EachRuleBites(unittest.TestCase):
    def test_samples(self):
        for rule, path, bad, good in SAMPLES:
            with self.subTest(rule=rule.__name__, path=path, bad=bad[:60]):
                self.assertTrue(list(rule(Source(path, bad))))
                self.assertEqual(list(rule(Source(path, good))), [])

    def test_every_rule_has_a_sample(self):
        sampled = {rule for rule, *_ in SAMPLES}
        self.assertEqual([rule.__name__ for rule in rules.CPP_RULES + rules.TEXT_RULES if rule not in sampled], [])

    def test_unknown_layer(self):
        self.assertTrue(list(rules.include_direction(Source("src/extras/a.cc", ""))))

    def test_median(self):
        def tree(count):
            return {"src/base/a.cc": Source("src/base/a.cc", "x\n" * count)}
        self.assertTrue(list(rules.median_length(tree(151))))
        self.assertFalse(list(rules.median_length(tree(150))))

    def test_unbuilt_test(self):
        def tree(build_file):
            texts = {"tests/x/a_test.cc": "", "tests/x/CMakeLists.txt": build_file}
            return {path: Source(path, text) for path, text in texts.items()}
        self.assertTrue(list(rules.everything_is_built(tree("ration_test(a SOURCES extra_a_test.cc)"))))
        self.assertFalse(list(rules.everything_is_built(tree("ration_test(a SOURCES a_test.cc)"))))

    def test_fuzz_target_without_corpus(self):
        texts = {"fuzz/path.cc": "int LLVMFuzzerTestOneInput(const uint8_t*, size_t);\n",
                 "fuzz/CMakeLists.txt": "ration_fuzz(path LINKS ration_request)\n"}
        tree = {path: Source(path, text) for path, text in texts.items()}
        self.assertTrue(list(rules.fuzz_targets_have_corpora(tree, {"path": 4})))
        self.assertFalse(list(rules.fuzz_targets_have_corpora(tree, {"path": 5})))
        del tree["fuzz/CMakeLists.txt"]
        self.assertTrue(list(rules.fuzz_targets_have_corpora(tree, {"path": 5})))

    def test_program_without_run_bit(self):
        self.assertEqual(len(list(rules.programs_can_run(lambda path: path != "run"))), 1)


if __name__ == "__main__":
    unittest.main()
