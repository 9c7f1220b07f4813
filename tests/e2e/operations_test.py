#!/usr/bin/env python3
"""The gateway as its operator sees it: what the upstream is told, reload, drain, ends of a life."""

import http.server
import json
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import RATION, Client, Process, Service, accepts, new_address, spend, wait_for

VERIFY = "/v1/bookings/bkg_none/verify"


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with the request as it arrived."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        seen = {"path": self.path, "headers": [list(item) for item in self.headers.items()]}
        body = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Access-Control-Allow-Origin", "https://upstream.example")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, format, *values):
        pass


class WhatTheUpstreamSees(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        cls.addClassCleanup(server.server_close)
        cls.addClassCleanup(server.shutdown)
        cls.service = cls.enterClassContext(Service(upstream_port=server.server_port))

    def seen(self, path, **what):
        """The answer, and the fields that the upstream got, by lower-case name."""
        answer = self.service.ask("GET", path, **what)
        self.assertEqual(answer.status, 200, answer)
        fields = {}
        for name, value in answer.json()["headers"]:
            fields.setdefault(name.lower(), []).append(value)
        return answer, fields

    def test_who_is_calling(self):
        answer, fields = self.seen("/v1/quote", key="pk_demo_lisbon", address="192.0.2.77")
        self.assertEqual(fields["ration-credential"], ["publishable"])
        self.assertEqual(fields["ration-workspace"], ["ws_lisbon"])
        self.assertEqual(fields["ration-account"], ["acc_one"])
        self.assertEqual(fields["ration-address"], ["192.0.2.77"])
        self.assertEqual(fields["ration-request-id"], [answer.headers["Ration-Request-Id"]])

    def test_forged_fields_are_replaced(self):
        forged = {"Ration-Workspace": "ws_tokyo", "ration-account": "acc_two", "Ration-Credential": "secret",
                  "Ration-Address": "192.0.2.1", "Ration-Request-Id": "mine", "Ration-Admin": "yes"}
        _, fields = self.seen("/v1/quote", key="pk_demo_lisbon", address="192.0.2.78", headers=forged)
        self.assertEqual(fields["ration-workspace"], ["ws_lisbon"])
        self.assertEqual(fields["ration-account"], ["acc_one"])
        self.assertEqual(fields["ration-credential"], ["publishable"])
        self.assertEqual(fields["ration-address"], ["192.0.2.78"])
        self.assertNotEqual(fields["ration-request-id"], ["mine"])
        self.assertNotIn("ration-admin", fields)

    def test_a_keyless_request_names_no_entity(self):
        _, fields = self.seen("/v1/public/bootstrap", address="192.0.2.79",
                              headers={"Ration-Workspace": "ws_tokyo"})
        self.assertNotIn("ration-workspace", fields)
        self.assertEqual(fields["ration-address"], ["192.0.2.79"])

    def test_one_spelling_reaches_the_upstream(self):
        answer, _ = self.seen("//v1/./%71uote?b=%2F&a", key="pk_demo_lisbon", address=new_address())
        self.assertEqual(answer.json()["path"], "/v1/quote?b=%2F&a")

    def test_cors_of_the_upstream_is_replaced(self):
        answer, _ = self.seen("/v1/quote", key="pk_demo_lisbon", address=new_address(),
                              headers={"Origin": "https://shop.example"})
        self.assertEqual(answer.headers.get_all("Access-Control-Allow-Origin"), ["*"])


class Reload(unittest.TestCase):
    def setUp(self):
        self.service = self.enterContext(Service())
        self.policy = self.service.folder / "policy.yaml"

    def ask(self, address):
        return self.service.ask("POST", VERIFY, key="pk_demo_lisbon", address=address)

    def rewrite(self, old, new):
        text = self.policy.read_text()
        self.assertIn(old, text)
        self.policy.write_text(text.replace(old, new))
        self.service.reload()

    def test_new_numbers_hold_at_once_and_use_stays_used(self):
        address = new_address()
        for _ in range(10):
            self.assertNotEqual(self.ask(address).status, 429)
        self.assertEqual(self.ask(address).status, 429)
        self.rewrite("verify_booking: 10/min", "verify_booking: 14/min")
        wait_for(lambda: self.ask(address).status != 429, "the new number holds", 10)
        spending = spend(self.service, lambda _: ("POST", VERIFY, {"key": "pk_demo_lisbon", "address": address}))
        self.assertLessEqual(spending.admitted, 4 + int(spending.seconds))  # not a fresh fourteen

    def test_a_bad_file_changes_nothing_and_says_where(self):
        address = new_address()
        self.rewrite("token_bucket: 30/min", "token_bukcet: 30/min")
        message = wait_for(lambda: re.search(r"policy\.yaml:\d+:\d+: .*token_bucket", self.all_output()),
                           "the reason is logged", 10)
        self.assertTrue(message)
        spending = spend(self.service, lambda _: ("POST", VERIFY, {"key": "pk_demo_lisbon", "address": address}))
        self.assertGreaterEqual(spending.admitted, 10)
        self.assertEqual(self.service.admin("/healthz").status, 200)

    def all_output(self):
        return self.service.gateway.error_text() + self.service.gateway.output.read_text(errors="replace")


class Drain(unittest.TestCase):
    def test_what_runs_is_answered_then_exit_0(self):
        with Service(latency_ms=1500) as service:
            idle = Client(service.port)
            answers = []
            caller = threading.Thread(target=lambda: answers.append(
                Client(service.port).ask("GET", "/v1/quote", key="sk_demo_lisbon", address=new_address())))
            caller.start()
            time.sleep(0.5)
            service.gateway.signal(signal.SIGTERM)
            wait_for(lambda: not accepts(service.port), "no new connections", 10)
            caller.join()
            self.assertEqual(answers[0].status, 200)
            self.assertEqual(service.gateway.wait(), 0)
            idle.close()

    def test_idle_connections_do_not_hold_it(self):
        with Service() as service:
            with socket.create_connection(("127.0.0.1", service.port)) as idle:
                self.assertEqual(service.ask("GET", "/v1/public/bootstrap", address=new_address()).status, 200)
                begun = time.monotonic()
                service.gateway.signal(signal.SIGTERM)
                self.assertEqual(service.gateway.wait(), 0)
                self.assertLess(time.monotonic() - begun, 10)
                idle.settimeout(5)
                self.assertEqual(idle.recv(1), b"")


class Admin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(Service())

    def test_health_and_readiness(self):
        self.assertEqual(self.service.admin("/healthz").status, 200)
        self.assertEqual(self.service.admin("/readyz").status, 200)

    def test_metrics_count_decisions_by_rule(self):
        address = new_address()
        spend(self.service, lambda _: ("GET", "/v1/public/bootstrap", {"address": address}))
        text = self.service.admin("/metrics").body.decode()
        self.assertRegex(text, r'(?m)^ration_\w+\{[^}]*public routes[^}]*\} [1-9]')

    def test_the_policy_in_force(self):
        answer = self.service.admin("/v1/policy")
        self.assertEqual(answer.status, 200)
        self.assertIn(b"public routes", answer.body)
        policy = answer.json()
        patterns = {route["name"]: route["patterns"] for route in policy["routes"]}
        self.assertEqual(patterns["create_booking"], ["POST /v1/bookings"])
        self.assertEqual([rule["name"] for rule in policy["ceilings"]], ["daily bookings", "booking volume"])
        self.assertEqual([rule["name"] for rule in policy["quotas"]], ["active calendars", "workspaces"])
        self.assertEqual([rule["header"] for rule in policy["idempotency"]], ["Idempotency-Key"])

    def test_the_gateway_port_has_no_admin(self):
        self.assertEqual(self.service.ask("GET", "/metrics", address=new_address()).status, 404)


class Logs(unittest.TestCase):
    def test_no_secret_is_written(self):
        with Service() as service:
            for key in ("pk_demo_lisbon", "sk_demo_lisbon", "ak_demo_one", "pk_guess_123"):
                service.ask("GET", "/v1/quote", key=key, address=new_address())
            service.gateway.end()
            written = service.gateway.output.read_text() + service.gateway.error_text()
            self.assertIn('"route"', written)
            self.assertNotRegex(written, r"pk_demo|sk_demo|ak_demo|pk_guess")


class StartUp(unittest.TestCase):
    def test_a_port_in_use_is_said(self):
        with Service() as service:
            second = Process([RATION, "serve", str(service.serve_file)], service.folder, "second")
            self.assertNotEqual(second.wait(), 0)
            self.assertIn(str(service.port), second.error_text() + second.output.read_text())

    def test_a_missing_file_is_said(self):
        done = subprocess.run([RATION, "serve", "nowhere.yaml"], capture_output=True, text=True, timeout=30)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nowhere.yaml", done.stderr)


if __name__ == "__main__":
    unittest.main()
