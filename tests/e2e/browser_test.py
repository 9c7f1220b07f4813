#!/usr/bin/env python3
"""A page of another origin meets refusals and replays, and reads them from script, in a real browser."""

import http.server
import threading
import unittest

from harness import Service, booking
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


# Sends what it is given, one after the other; gives back what script can see of each answer.
POSTS = """
const [url, posts, done] = arguments;
(async () => {
    const seen = [];
    for (const [key, body] of posts) {
        const answer = await fetch(url, {
            method: 'POST', body: JSON.stringify(body),
            headers: {Authorization: 'Bearer pk_demo_lisbon', 'Content-Type': 'application/json',
                      'Idempotency-Key': key}});
        const text = await answer.text();
        const json = JSON.parse(text);
        seen.push({
            status: answer.status, type: json.error ? json.error.type : null, text,
            retryAfter: answer.headers.get('Retry-After'),
            remaining: answer.headers.get('RateLimit-Remaining'),
            replayed: answer.headers.get('Idempotent-Replayed'),
        });
    }
    return {seen};
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
    def enter(self, **what):
        """A gateway and its booking API, and a browser that shows a page of another origin."""
        site = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(site.server_close)
        self.addCleanup(site.shutdown)
        service = self.enterContext(Service(**what))
        browser = self.enterContext(Browser())
        browser.open(f"http://127.0.0.1:{site.server_port}/")
        return service, browser

    def test_script_of_another_origin_reads_the_refusal(self):
        service, browser = self.enter()
        # The Authorization field makes the browser send a preflight first.
        seen = browser.run(SCRIPT, f"http://127.0.0.1:{service.port}/v1/quote", 400)
        self.assertNotIn("error", seen)
        self.assertEqual(seen["before"], {"status": 200, "type": None, "retryAfter": None, "remaining": None})
        self.assertEqual(seen["refused"], {"status": 429, "type": "rate_limited", "retryAfter": "1", "remaining": "0"})
        self.assertGreaterEqual(seen["tries"], 60)

    def test_script_reads_replays_and_the_refusal_of_the_day(self):
        # A visitor may try 10 times a minute; here the ceiling of 15 a day is what is met first.
        service, browser = self.enter(policy={"create_booking: 60/min": "create_booking: 900/min",
                                              "create_booking: 10/min": "create_booking: 900/min"})
        posts = [["again", booking(0)], ["again", booking(0)], ["again", booking(1)]]
        posts += [[f"other-{number}", booking(number)] for number in range(2, 17)]
        result = browser.run(POSTS, f"http://127.0.0.1:{service.port}/v1/bookings", posts)
        self.assertNotIn("error", result)
        first, again, mismatch, *others = result["seen"]
        self.assertEqual((first["status"], first["replayed"]), (201, None))
        self.assertEqual((again["status"], again["replayed"], again["text"]), (201, "true", first["text"]))
        self.assertEqual((mismatch["status"], mismatch["type"]), (422, "idempotency_mismatch"))
        *written, refused = others
        self.assertEqual([answer["status"] for answer in written], [201] * 14)
        self.assertEqual((refused["status"], refused["type"]), (429, "daily_booking_limit"))
        # Until the next midnight of Lisbon, a day of 23 to 25 hours; no number of the ceiling.
        self.assertTrue(0 < int(refused["retryAfter"]) <= 25 * 3600, refused)
        self.assertIsNone(refused["remaining"])
        self.assertIsNone(refused["replayed"])


if __name__ == "__main__":
    unittest.main()
