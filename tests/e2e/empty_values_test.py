#!/usr/bin/env python3
"""An empty value, as a script's unset variable leaves it, is wrong use of every option of every command."""

import re
import subprocess
import unittest

from harness import RATION

SECTION = re.compile(r"^(Positionals|Options|Subcommands):\n((?:  .*\n)+)", re.M)
# What may well be empty: a body, no proxy, no name, from the beginning.
MAY_BE_EMPTY = {("call", "--data"), ("call", "--proxy"), ("token create", "--name"), ("token list", "--after")}


def run(*words):
    done = subprocess.run([RATION, *words], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout + done.stderr


def commands(words=()):
    """Each command without commands below it, with the sections of its help."""
    sections = dict(SECTION.findall(run(*words, "--help")[1]))
    names = re.findall(r"^  ([a-z]+) ", sections.get("Subcommands", ""), re.M)
    for name in names:
        yield from commands((*words, name))
    if not names:
        yield words, sections


def options(sections):
    """(Names, type) of each option that takes a value."""
    for names, kind in re.findall(r"^  (-\S+) (TEXT|U?INT|FLOAT)", sections["Options"], re.M):
        yield names.split(","), kind


class EmptyValues(unittest.TestCase):
    def test_every_option_of_every_command(self):
        tried = []
        for words, sections in commands():
            for names, kind in options(sections):
                long = names[-1]
                tried.append((" ".join(words), long))
                if tried[-1] in MAY_BE_EMPTY:
                    continue
                spellings = [[name, ""] for name in names] + [[f"{long}="]]
                for spelling in spellings:
                    with self.subTest(words=words, spelling=spelling):
                        self.assert_wrong(long, "the value is empty", *words, *spelling, "1")
                if kind != "TEXT":
                    with self.subTest(words=words, blank=long):
                        self.assert_wrong(long, "", *words, long, " ", "1")
        self.assertTrue(MAY_BE_EMPTY <= set(tried), tried)
        self.assertGreater(len(tried), 50)
        for one in (("call", "--retries"), ("token create", "--rate-limit-per-min"), ("ledger doubts", "--after"),
                    ("block list", "--limit"), ("replay", "--upstream-timeout"), ("serve", "--ledger")):
            self.assertIn(one, tried)

    def test_every_argument_of_every_command(self):
        tried = 0
        for words, sections in commands():
            for number, name in enumerate(re.findall(r"^  (\S+) (?:TEXT|U?INT)", sections.get("Positionals", ""), re.M)):
                with self.subTest(words=words, name=name):
                    self.assert_wrong(name, "the value is empty", *words, *["1"] * number, "")
                    tried += 1
        self.assertGreater(tried, 8)

    def test_a_list_of_nothing_is_empty(self):
        for option in ("--retry-status", "--retry-type"):
            for spelling in ([option, ","], [option, ",,"], [f"{option}=,"]):
                with self.subTest(spelling=spelling):
                    self.assert_wrong(option, "the value is empty", "call", *spelling, "http://127.0.0.1:1/")

    def test_what_may_be_empty_is_taken(self):
        for words, option in sorted(MAY_BE_EMPTY):
            for spelling in ([option, ""], [f"{option}="]):
                more = ["--retries", "0", "http://127.0.0.1:1/"] if words == "call" else ["--admin", "http://127.0.0.1:1"]
                with self.subTest(words=words, spelling=spelling):
                    _, said = run(*words.split(), *spelling, *more)
                    self.assertRegex(said, "Couldn't connect|connect_failed")

    def test_a_value_that_only_looks_empty_is_a_value(self):
        """What stands where a value is due is it, and behind -- nothing is an option."""
        for words in (["-H", "--data=", "http://127.0.0.1:1/"], ["--", "--data="]):
            code, said = run("call", *words)
            self.assertEqual(code, 2)
            self.assertRegex(said, "-H: no colon|no such URL")

    def assert_wrong(self, name, why, *words):
        code, said = run(*words)
        self.assertEqual(code, 2, said)
        self.assertIn(f"{name}: {why}" if why else name, said)


if __name__ == "__main__":
    unittest.main()
