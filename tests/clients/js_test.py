#!/usr/bin/env python3
"""The JavaScript client: its own tests on this machine's Node, what gets packed, and its types."""

import json
import os
import shutil
import subprocess
import unittest

import installed

PACKAGE = installed.ROOT / "clients" / "js"
SECONDS = 600  # for all of them, on a machine that does other things too


def node(*arguments, **options):
    return subprocess.run(["node", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=SECONDS, **options)


class JavaScript(unittest.TestCase):
    def test_its_own_tests(self):
        tests = sorted((PACKAGE / "test").glob("*.test.js"))
        self.assertGreaterEqual(len(tests), 6)
        done = node("--test", *tests)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:])
        self.assertRegex(done.stdout, r"(?m)^. pass [1-9]\d\d")
        self.assertRegex(done.stdout, r"(?m)^. skipped 0")

    def test_only_sources_are_packed(self):
        listing = json.loads(installed.run("npm", "pack", "--dry-run", "--json", "--silent", cwd=PACKAGE))
        names = {entry["path"] for entry in listing[0]["files"]}
        self.assertIn("package.json", names)
        self.assertEqual({name for name in names if not name.startswith("src/")}, {"package.json"})
        self.assertEqual(names - {"package.json"}, {f"src/{path.name}" for path in (PACKAGE / "src").iterdir()})

    def test_the_packed_package_has_no_dependency(self):
        folder = installed.js()
        self.assertEqual([path.name for path in (folder / "node_modules").iterdir() if not path.name.startswith(".")],
                         ["ration-client"])
        text = ("import {createClient, DEFAULT_POLICY} from 'ration-client'; import {decide} from 'ration-client/core';"
                "console.log(typeof createClient, typeof decide, DEFAULT_POLICY.maxRetries);")
        done = node("--input-type=module", "--eval", text, cwd=folder)
        self.assertEqual(done.stdout, "function function 5\n")

    def test_types(self):
        folder = installed.typescript()
        shutil.copy(PACKAGE / "test" / "types.ts", folder / "types.ts")
        done = node(folder / "node_modules" / "typescript" / "bin" / "tsc", "--noEmit", "--strict", "--target", "es2022",
                    "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom,dom.iterable",
                    "types.ts", cwd=folder)
        self.assertEqual((done.returncode, done.stdout), (0, ""))


assert os.path.exists(PACKAGE / "package.json")

if __name__ == "__main__":
    unittest.main()
