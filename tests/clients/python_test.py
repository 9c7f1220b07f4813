#!/usr/bin/env python3
"""The Python client: its own tests on the installed wheel, what the wheel holds, and its type hints."""

import os
import pathlib
import subprocess
import unittest
import zipfile
from concurrent.futures import ThreadPoolExecutor

import installed

PACKAGE = installed.ROOT / "clients" / "python"
SECONDS = 600  # for all of them, on a machine that does other things too
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name != "PYTHONPATH" and not name.lower().endswith("_proxy")}


def run(*command):
    return subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, env=ENVIRONMENT)


class Python(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.interpreter = installed.python()
        cls.wheel = next(pathlib.Path(cls.interpreter).parents[2].glob("*.whl"))

    def test_its_own_tests(self):
        tests = sorted((PACKAGE / "tests").glob("*_test.py"))
        self.assertGreaterEqual(len(tests), 5)
        with ThreadPoolExecutor(2) as pool:
            for path, done in zip(tests, pool.map(lambda path: run(self.interpreter, "-B", path), tests)):
                with self.subTest(path.name):
                    self.assertEqual(done.returncode, 0, done.stdout[-6000:])
                    self.assertRegex(done.stdout, r"(?s)Ran [1-9]\d* tests? .*\nOK\n$")

    def test_the_wheel_holds_the_package(self):
        names = {name for name in zipfile.ZipFile(self.wheel).namelist() if ".dist-info/" not in name}
        sources = {f"ration_client/{path.name}" for path in (PACKAGE / "src" / "ration_client").iterdir() if path.is_file()}
        self.assertEqual(names, sources)
        self.assertIn("ration_client/py.typed", names)

    def test_the_core_needs_nothing_else(self):
        """All cases run with the wheel itself on the path and no other package."""
        text = (f"import sys, runpy; sys.path[:0] = [{str(self.wheel)!r}, {str(PACKAGE / 'tests')!r}];"
                f"runpy.run_path({str(PACKAGE / 'tests' / 'vectors_test.py')!r}, run_name='__main__')")
        done = run(self.interpreter, "-I", "-S", "-B", "-c", text)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])

    def test_type_hints(self):
        done = run(self.interpreter, "-m", "mypy", "--no-incremental", "--ignore-missing-imports", "--no-site-packages",
                   PACKAGE / "src" / "ration_client")
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
