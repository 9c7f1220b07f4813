#!/usr/bin/env python3
"""The JavaScript client in a real browser, on a page of another origin: it waits as told, keeps its keys, and sends no
field that the policy's CORS rules do not know."""

import http.server
import sys
import unittest

import installed
from gateway_test import HERE, Server

sys.path.insert(0, str(HERE.parent / "e2e"))

from harness import Service, booking  # noqa: E402
from webdriver import Browser  # noqa: E402

# Asks until it had to wait; gives back what the client tells of that call.
WAITS = """
const [url, most, done] = arguments;
(async () => {
    const {createClient} = await import('/src/index.js');
    const waits = [];
    const client = createClient({hooks: {onWait: ({source, ms}) => waits.push([source, ms])}});
    for (let tries = 0; tries < most; ++tries) {
        const answer = await client(url, {headers: {Authorization: 'Bearer pk_demo_lisbon'}});
        await answer.text();
        if (waits.length > 0) return {status: answer.status, waits, tries, ...client.info(answer)};
    }
    return {error: 'it was never refused'};
})().then(done, error => done({error: String(error)}));
"""

BOOKS = """
const [url, body, done] = arguments;
(async () => {
    const {createClient} = await import('/src/index.js');
    const client = createClient({idempotency: ['POST /v1/bookings']});
    const answer = await client(url, {
        method: 'POST', body: JSON.stringify(body), signal: AbortSignal.timeout(60000),
        headers: {Authorization: 'Bearer pk_demo_lisbon', 'Content-Type': 'application/json'}});
    const again = await client(url, {
        method: 'POST', body: JSON.stringify(body),
        headers: {Authorization: 'Bearer pk_demo_lisbon', 'Content-Type': 'application/json',
                  'Idempotency-Key': client.info(answer).idempotencyKey}});
    const [first, second] = [await answer.text(), await again.text()];
    return {statuses: [answer.status, again.status], same: first === second, replayed: again.headers.get('Idempotent-Replayed')};
})().then(done, error => done({error: String(error)}));
"""


class Page(http.server.BaseHTTPRequestHandler):
    """An empty page, and beside it the installed client's modules."""

    def do_GET(self):
        folder = installed.js() / "node_modules" / "ration-client"
        script = folder / self.path.lstrip("/")
        good = self.path.startswith("/src/") and script.is_file()
        body = script.read_bytes() if good else b"<!doctype html><title>shop</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if good else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class InABrowser(unittest.TestCase):
    def setUp(self):
        installed.js()
        site = self.enterContext(Server(("127.0.0.1", 0), Page))
        self.service = self.enterContext(Service())
        self.browser = self.enterContext(Browser())
        self.browser.open(f"http://127.0.0.1:{site.server_port}/")

    def test_it_waits_as_told(self):
        seen = self.browser.run(WAITS, f"http://127.0.0.1:{self.service.port}/v1/quote", 400)
        self.assertNotIn("error", seen)
        self.assertEqual((seen["status"], seen["attempts"], seen["reason"]), (200, 2, "success"))
        self.assertEqual(seen["waits"][0][0], "retry_after")
        self.assertTrue(1000 <= seen["waits"][0][1] <= 1500, seen)

    def test_it_books_once_under_a_key_of_its_own(self):
        seen = self.browser.run(BOOKS, f"http://127.0.0.1:{self.service.port}/v1/bookings", booking(0))
        self.assertEqual(seen, {"statuses": [201, 201], "same": True, "replayed": "true"})


if __name__ == "__main__":
    unittest.main()
