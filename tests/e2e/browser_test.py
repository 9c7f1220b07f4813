#!/usr/bin/env python3
"""A page of another origin meets a refusal and reads it from script, in a real browser."""

import http.server
import threading
import unittest

from harness import Service
from webdriver import Browser

# Asks until it is refused; gives back what script can see of the refusal and of the answer before.
SCRIPT = """
const [url, most, done] = arguments;
(async () => {
    let before = null;
    for (let tries = 0; tries < most; ++tries) {
        const answer = await fetch(url, {headers: {Authorization: 'Bearer pk_demo_lisbon'}});
        const body = await answer.json();
        const seen = {
            status: answer.status, type: body.error ? body.error.type : null,
            retryAfter: answer.headers.get('Retry-After'),
            remaining: answer.headers.get('RateLimit-Remaining'),
        };
        if (answer.status == 429) return {before, refused: seen, tries};
        before = seen;
    }
    return {before, refused: null};
})().then(done, error => done({error: String(error)}));
"""


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<!doctype html><title>shop</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *values):
        pass


class InABrowser(unittest.TestCase):
    def test_script_of_another_origin_reads_the_refusal(self):
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        service = self.enterContext(Service())
        browser = self.enterContext(Browser())
        browser.open(f"http://127.0.0.1:{site.server_port}/")
        # The Authorization field makes the browser send a preflight first.
        seen = browser.run(SCRIPT, f"http://127.0.0.1:{service.port}/v1/quote", 400)
        self.assertNotIn("error", seen)
        self.assertEqual(seen["before"], {"status": 200, "type": None, "retryAfter": None, "remaining": None})
        self.assertEqual(seen["refused"], {"status": 429, "type": "rate_limited", "retryAfter": "1", "remaining": "0"})
        self.assertGreaterEqual(seen["tries"], 60)


if __name__ == "__main__":
    unittest.main()
