"""Headless Chromium, driven through chromedriver's WebDriver protocol (W3C WebDriver 2)."""

import http.client
import json
import shutil
import subprocess
import tempfile

from harness import accepts, free_port, wait_for

# No sandbox: the tests run as root in a container. The rest keeps the browser off the network.
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--proxy-server=direct://"]


class Browser:
    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="ration-browser-")
        self._port = free_port()
        self._driver = subprocess.Popen(["chromedriver", f"--port={self._port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._session = None

    def __enter__(self):
        try:
            wait_for(lambda: accepts(self._port), "chromedriver is ready")
            options = {"args": [*ARGUMENTS, f"--user-data-dir={self._profile}"], "binary": "/usr/bin/chromium"}
            wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options,
                                                       "timeouts": {"script": 60_000}}}}
            self._session = self._call("POST", "/session", wanted)["sessionId"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self._session:
            self._call("DELETE", f"/session/{self._session}")
        self._driver.terminate()
        self._driver.wait(30)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        connection.request(method, path, json.dumps(body) if body is not None else None)
        value = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"{value['error']}: {value['message']}")
        return value

    def open(self, url):
        self._call("POST", f"/session/{self._session}/url", {"url": url})

    def run(self, script, *arguments):
        """Runs a script whose last argument is the function that takes its result."""
        return self._call("POST", f"/session/{self._session}/execute/async",
                          {"script": script, "args": list(arguments)})
