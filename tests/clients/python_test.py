#!/usr/bin/env python3
"""The Python client: its own tests on the installed wheel, what the wheel holds, and its type hints."""

import ast
import os
import pathlib
import re
import subprocess
import sys
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

    def test_each_extra_names_what_its_modules_import(self):
        """What another package happens to bring may be gone in that one's next version."""
        metadata = zipfile.ZipFile(self.wheel).read(next(name for name in zipfile.ZipFile(self.wheel).namelist()
                                                         if name.endswith(".dist-info/METADATA"))).decode()
        named = {}
        for package, extra in re.findall(r"""^Requires-Dist: ([\w-]+).*; extra == ['"](\w+)['"]$""", metadata, re.M):
            named.setdefault(extra, set()).add(package)
        used = {}
        for path in (PACKAGE / "src" / "ration_client").glob("*.py"):
            extra = next((name for name in named if path.stem.startswith(name)), "")
            extra = "httpx" if path.stem == "drive" else extra  # its part for event loops is httpx's alone
            for node in ast.walk(ast.parse(path.read_text())):
                modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else \
                    [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
                used.setdefault(extra, set()).update(module.split(".")[0] for module in modules)
        used = {extra: modules - sys.stdlib_module_names for extra, modules in used.items()}
        self.assertEqual(used, {**named, "": set()})

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
