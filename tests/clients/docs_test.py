#!/usr/bin/env python3
"""The examples of docs/clients are true: each is run with the installed client and prints what the page shows.

A block is followed by a ```text block with its output. https://api.example is a server of this test.
"""

import http.server
import json
import os
import pathlib
import re
import subprocess
import unittest

import installed
from gateway_test import Server

DOCS = installed.ROOT / "docs" / "clients"
BLOCK = re.compile(r"^```(js|python)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?", re.M | re.S)


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    busy = {}

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, fields, body = self.answers()
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**fields, "Content-Type": "application/json", "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PUT = do_GET

    def answers(self):
        refusal = {"error": {"type": "rate_limited", "message": "Too many requests."}}
        if self.path == "/v1/busy":
            Api.busy[self.server] = Api.busy.get(self.server, 0) + 1
            return (503, {}, {}) if Api.busy[self.server] == 1 else (200, {}, {})
        if self.path in ("/v1/full", "/v1/slow"):
            return 429, {"Retry-After": "7200" if self.path == "/v1/full" else "30"}, refusal
        return (200, {}, {"price": 4000}) if self.path == "/v1/quote" else (201, {}, {"id": "bkg_1"})

    def log_message(self, *_):
        pass


def run_example(language, text):
    """What the example prints, on a server that has answered nobody yet."""
    with Server(("127.0.0.1", 0), Api) as server:
        text = text.replace("https://api.example", f"http://127.0.0.1:{server.server_address[1]}")
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        if language == "js":
            command, folder = ["node", "--input-type=module", "-"], installed.js()
        else:
            command, folder = [str(installed.python()), "-B", "-"], None
        done = subprocess.run(command, input=text, cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode or done.stderr:
        raise AssertionError(f"{text}\n{done.stdout}{done.stderr}")
    return done.stdout


class Examples(unittest.TestCase):
    def check(self, page, at_least):
        blocks = BLOCK.findall(pathlib.Path(DOCS / page).read_text())
        self.assertGreaterEqual(len(blocks), at_least)
        for language, text, expected in blocks:
            with self.subTest(text.splitlines()[0]):
                self.assertTrue(expected, "an example shows what it prints")
                self.assertEqual(run_example(language, text), expected)

    def test_javascript(self):
        self.check("javascript.md", 5)

    def test_python(self):
        self.check("python.md", 6)


if __name__ == "__main__":
    unittest.main()
