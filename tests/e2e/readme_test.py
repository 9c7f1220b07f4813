#!/usr/bin/env python3
"""README's quick start is true: its commands are executed and print what it shows.

A ```console block holds commands ("$ ...") and what they print. "..." stands for anything: alone on
a line for any number of lines, inside a line for any text.
"""

import datetime
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest
import zoneinfo

from harness import ROOT, accepts, wait_for

PORTS = (8080, 8081, 8090)


def console_steps(text):
    """(command, expected lines) in the order of the file."""
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


def pattern_of(expected):
    """The expected lines as one regular expression over the whole output."""
    parts = []
    for line in expected:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.split("...")) + r"[ \r]*\n")
    return "".join(parts)


def seconds_to_midnight():
    """Of the day in Lisbon, where the demo's first workspace is."""
    now = datetime.datetime.now(zoneinfo.ZoneInfo("Europe/Lisbon"))
    midnight = datetime.datetime.combine(now.date() + datetime.timedelta(days=1), datetime.time(),
                                         now.tzinfo)
    return midnight.timestamp() - now.timestamp()


def stay_clear_of_midnight():
    """Fifteen bookings of a day take half a minute; they must be of one day."""
    left = seconds_to_midnight()
    if left < 300:
        time.sleep(left + 1)


class ReadmeConsole(unittest.TestCase):
    def test_patterns(self):
        shown = ["HTTP/1.1 200 OK", "...", '{"a": 1, ...']
        self.assertRegex('HTTP/1.1 200 OK\r\nX: y\r\n\r\n{"a": 1, "b": 2}\n', f"^{pattern_of(shown)}$")
        self.assertNotRegex('HTTP/1.1 201 OK\r\n\r\n{"a": 1, "b": 2}\n', f"^{pattern_of(shown)}$")
        self.assertNotRegex('HTTP/1.1 200 OK\r\n{"a": 2}\n', f"^{pattern_of(shown)}$")

    def test_quick_start(self):
        for port in PORTS:
            self.assertFalse(accepts(port), f"port {port} is in use: stop the ./run that holds it")
        steps = console_steps((ROOT / "README.md").read_text())
        self.assertEqual(steps[0][0], "./run")
        self.assertGreaterEqual(len(steps), 5)
        output = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "run.out"
        with open(output, "wb") as out:
            # From another folder: ./run works from anywhere.
            running = subprocess.Popen([ROOT / "run"], cwd="/", stdout=out, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=self.plain_environment())
        try:
            self.wait_until_served(running, output)
            self.assertRegex(output.read_text(), pattern_of(steps[0][1]))
            self.check_printed_commands(output.read_text(), [command for command, _ in steps])
            stay_clear_of_midnight()
            for command, expected in steps[1:]:
                self.check_step(command, expected)
            self.check_plan()
            self.check_second_run()
        finally:
            running.send_signal(signal.SIGINT)
            code = running.wait(60)
        self.assertEqual(code, 0)
        for port in PORTS:
            self.assertFalse(accepts(port), f"something still listens on {port}")

    @staticmethod
    def plain_environment():
        return {name: value for name, value in os.environ.items() if name != "CI"}

    def wait_until_served(self, running, output):
        def served():
            self.assertIsNone(running.poll(), output.read_text())
            return "Ctrl-C stops everything" in output.read_text()
        wait_for(served, "./run serves", 240)

    def check_printed_commands(self, printed, commands):
        """What ./run suggests is what README shows."""
        suggested = re.findall(r"^  (curl .*)$", printed, re.M)
        self.assertEqual(len(suggested), 3)
        for command in suggested:
            self.assertIn(command, commands)

    def check_step(self, command, expected):
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=120)
        printed = done.stdout if done.stdout.endswith("\n") else done.stdout + "\n"
        self.assertRegex(printed, f"^{pattern_of(expected)}$", command)
        if "daily_booking_limit" in printed:
            told = int(re.search(r"^Retry-After: (\d+)", printed, re.M)[1])
            self.assertAlmostEqual(told, seconds_to_midnight(), delta=60)

    def check_plan(self):
        """The workspaces that the demo begins with count: this account's plan has room for that one only."""
        for key, status in (("ak_demo_two", 402), ("ak_demo_one", 201)):
            done = subprocess.run(["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", "-X", "POST", "-d", '{"name":"More","timezone":"Europe/Lisbon"}',
                                   "-H", f"Authorization: Bearer {key}", "-H", "Content-Type: application/json",
                                   "http://127.0.0.1:8080/v1/account/workspaces"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.stdout, str(status), key)

    def check_second_run(self):
        second = subprocess.run([ROOT / "run"], capture_output=True, text=True, timeout=60)
        self.assertEqual(second.returncode, 1)
        self.assertIn("port 8080 on 127.0.0.1 is in use", second.stderr)


if __name__ == "__main__":
    unittest.main()
