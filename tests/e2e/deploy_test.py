#!/usr/bin/env python3
"""deploy/: what the descriptors set is what the program understands."""

import configparser
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from harness import AXUZ, RATION, ROOT, Service

DEPLOY = ROOT / "deploy"
SWITCHES = {"RATE_LIMIT_FAIL_CLOSED": "personal token", "MUTATION_RATE_LIMIT_FAIL_CLOSED": "team mutations"}


def unit():
    """The unit's sections; a key that stands several times has its values one a line."""
    class Many(dict):
        def __setitem__(self, key, value):
            if isinstance(value, list) and key in self:
                self[key].extend(value)
            else:
                super().__setitem__(key, value)

    parser = configparser.RawConfigParser(strict=False, dict_type=Many)
    parser.optionxform = str
    parser.read(DEPLOY / "ration.service")
    return parser


def unit_environment():
    lines = unit()["Service"]["Environment"].split("\n")
    return dict(line.split("=", 1) for line in lines if line)


def compose_environment():
    text = (DEPLOY / "compose.yaml").read_text()
    return {name: value for name, value in re.findall(r'^      ([A-Z_]+): "?([^"\n]+)"?$', text, re.M)}


class Deploy(unittest.TestCase):
    def choices(self, environment):
        before = {name: os.environ.pop(name, None) for name in SWITCHES}
        os.environ.update(environment)
        try:
            with Service(example=AXUZ) as service:
                limits = service.admin("/v1/policy").json()["limits"]
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value
        return {limit["name"]: limit["store_down"] for limit in limits}

    def test_the_program_by_itself_lets_through(self):
        self.assertEqual(set(self.choices({}).values()), {"open"})

    def test_both_descriptors_refuse(self):
        for environment in (unit_environment(), compose_environment()):
            self.assertEqual(set(environment), set(SWITCHES))
            choices = self.choices(environment)
            self.assertEqual([choices[name] for name in SWITCHES.values()], ["closed", "closed"])

    def test_each_switch_is_its_own(self):
        for switch, name in SWITCHES.items():
            choices = self.choices({switch: "true"})
            self.assertEqual([other for other in SWITCHES.values() if choices[other] == "closed"], [name])

    def test_the_commands_are_ones_that_the_program_has(self):
        command = unit()["Service"]["ExecStart"].split()
        self.assertEqual(command[1:3], ["serve", "/etc/ration/serve.yaml"])
        help_text = subprocess.run([RATION, "serve", "--help"], capture_output=True, text=True).stdout
        for option in [word for word in command if word.startswith("--")]:
            self.assertIn(option, help_text)
        compose = (DEPLOY / "compose.yaml").read_text()
        for path in re.findall(r"^      - (\.\.?/[^:]+):", compose, re.M):
            self.assertTrue((DEPLOY / path).exists(), path)

    def test_what_the_unit_names_is_there_when_its_own_words_are_followed(self):
        text = (DEPLOY / "ration.service").read_text()
        with tempfile.TemporaryDirectory() as root:
            for line in re.findall(r"^#   (install .*)$", text, re.M):
                there = re.sub(r" (/(?:usr|etc)/)", rf" {root}\1", line.replace("build/ration", RATION))
                subprocess.run(["bash", "-ec", f"mkdir -p {root}/usr/local/bin {root}/etc/systemd/system; {there}"],
                               cwd=ROOT, check=True)
            service = unit()
            named = [service["Service"]["ExecStart"].split()[0], service["Service"]["ExecStart"].split()[2],
                     service["Unit"]["Documentation"].removeprefix("file://"), "/etc/systemd/system/ration.service"]
            for path in named:
                self.assertTrue(pathlib.Path(root + path).is_file(), path)
            checked = subprocess.run([RATION, "check", f"{root}/etc/ration/serve.yaml"], capture_output=True, text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_the_image_gets_a_package_for_every_library(self):
        self.assertIn("packages_of_libraries build/ration", (DEPLOY / "Dockerfile").read_text())
        script = 'source scripts/packages.sh && packages_of_libraries "$0"'
        packages = subprocess.run(["bash", "-c", script, RATION], cwd=ROOT, capture_output=True, text=True, check=True)
        files = subprocess.run(["dpkg", "-L", *packages.stdout.split()], capture_output=True, text=True, check=True)
        names = {pathlib.Path(line).name for line in files.stdout.splitlines()}
        libraries = re.findall(r"=> (/\S+)", subprocess.run(["ldd", RATION], capture_output=True, text=True).stdout)
        self.assertGreater(len(libraries), 10)
        self.assertEqual({pathlib.Path(library).name for library in libraries} - names, set())
        unknown = f'ldd() {{ echo "libx.so => /nowhere/libx.so (0x1)"; }}; {script}'
        self.assertEqual(subprocess.run(["bash", "-c", unknown, "x"], cwd=ROOT, capture_output=True).returncode, 1)

    def test_the_composed_service_runs_what_the_image_has(self):
        compose = (DEPLOY / "compose.yaml").read_text()
        prefix = "/opt/ration/share/ration/"
        for path in re.findall(rf"{prefix}(\S+?)[,\]]", compose):
            self.assertTrue((ROOT / path).is_file(), path)
        self.assertIn(prefix, compose)
        listeners = (DEPLOY / "serve.compose.yaml").read_text()
        self.assertIn("listeners: 0.0.0.0:8080", listeners)
        self.assertIn('ports: ["127.0.0.1:8080:8080"]', compose)
        self.assertIn("http://127.0.0.1:8081/readyz", compose)
        self.assertIn("admin: 127.0.0.1:8081", listeners)

    def test_the_composed_settings_are_the_examples_but_for_the_listener(self):
        def lines(path):
            return [line for line in path.read_text().splitlines()
                    if line and not line.startswith(("#", "listeners:"))]

        self.assertEqual(lines(DEPLOY / "serve.compose.yaml"), lines(AXUZ / "serve.yaml"))


if __name__ == "__main__":
    unittest.main()
