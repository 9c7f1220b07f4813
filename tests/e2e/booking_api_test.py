#!/usr/bin/env python3
"""The booking API by itself: what it keeps true, and that it speaks clean HTTP."""

import concurrent.futures
import json
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import threading
import unittest

from harness import DATE, EXAMPLE, Client, Process, accepts, booking, free_port, wait_for

LISBON = {"Ration-Workspace": "ws_lisbon", "Ration-Account": "acc_one"}
TOKYO = {"Ration-Workspace": "ws_tokyo", "Ration-Account": "acc_two"}


class BookingApi(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ration-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.port = free_port()
        self.start()

    def start(self):
        self.process = Process([sys.executable, str(EXAMPLE / "booking_api.py"), "--port", str(self.port),
                                "--database", str(self.folder / "b.sqlite")], self.folder, "upstream")
        self.addCleanup(self.process.end)
        wait_for(lambda: accepts(self.port), "the booking API is ready")

    def ask(self, method, path, headers=None, body=None, caller=LISBON):
        client = Client(self.port)
        try:
            return client.ask(method, path, headers={**caller, **(headers or {})}, body=body)
        finally:
            client.close()

    def book(self, number=0, key=None, caller=LISBON, **changes):
        headers = {"Idempotency-Key": key} if key else {}
        return self.ask("POST", "/v1/bookings", headers, {**booking(number), **changes}, caller)

    def assert_error(self, answer, status, kind):
        self.assertEqual((answer.status, answer.error_type()), (status, kind), answer)
        self.assertTrue(answer.json()["error"]["message"])

    def test_a_slot_is_booked_once_in_each_workspace(self):
        first = self.book()
        self.assertEqual(first.status, 201)
        self.assertEqual(first.headers["Location"], f"/v1/bookings/{first.json()['id']}")
        self.assert_error(self.book(), 409, "slot_taken")
        self.assertEqual(self.book(caller=TOKYO).status, 201)

    def test_of_many_at_once_one_gets_the_slot(self):
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: self.book().status, range(32)))
        self.assertEqual((answers.count(201), answers.count(409)), (1, 31))

    def test_a_repeated_key_gets_the_first_booking(self):
        first, second = self.book(key="k1"), self.book(key="k1")
        self.assertEqual((second.status, second.json()), (201, first.json()))
        self.assert_error(self.book(number=1, key="k1"), 422, "idempotency_mismatch")
        self.assertEqual(self.book(key="k1", caller=TOKYO).status, 201)

    def test_bookings_outlive_the_process(self):
        first = self.book(key="k1").json()
        self.process.child.kill()
        self.process.child.wait()
        self.start()
        self.assertEqual(self.book(key="k1").json(), first)

    def test_availability_shows_what_is_taken(self):
        day = booking(0)["slot"][:10]
        self.book()
        slots = self.ask("GET", f"/v1/availability?date={day}").json()["slots"]
        self.assertEqual([slot["slot"] for slot in slots if not slot["free"]], [booking(0)["slot"]])
        self.assertEqual(len(slots), 16)

    def test_quote(self):
        self.assertEqual(self.ask("GET", "/v1/quote").json()["price"], 4000)
        self.assertEqual(self.ask("GET", "/v1/quote?extras=gift_wrap,long_session").json()["price"], 6000)
        self.assert_error(self.ask("GET", "/v1/quote?extras=gold"), 400, "invalid_request")

    def test_verify_then_manage_by_link(self):
        made = self.book().json()
        path = f"/v1/bookings/{made['id']}/verify"
        self.assert_error(self.ask("POST", path, caller=TOKYO), 404, "not_found")
        self.assertEqual(self.ask("POST", path).json()["status"], "verified")
        token = {"token": made["manage_token"]}
        moved = self.ask("POST", "/v1/public/reschedule", body={**token, "slot": booking(5)["slot"]}, caller={})
        self.assertEqual(moved.json()["slot"], booking(5)["slot"])
        shown = self.ask("GET", f"/v1/public/bootstrap?token={made['manage_token']}", caller={})
        self.assertEqual(shown.json()["booking"], moved.json())
        for _ in range(2):
            cancelled = self.ask("POST", "/v1/public/cancel", body=token, caller={})
            self.assertEqual((cancelled.status, cancelled.json()["status"]), (200, "cancelled"))
        self.assertEqual(self.book(number=5).status, 201)
        self.assert_error(self.ask("POST", path), 409, "booking_cancelled")
        self.assert_error(self.ask("POST", "/v1/public/cancel", body={"token": "x"}), 404, "not_found")

    def test_account_routes(self):
        made = self.ask("POST", "/v1/account/workspaces", body={"name": "Porto", "timezone": "Europe/Lisbon"})
        self.assertEqual(made.status, 201)
        self.assertEqual(self.ask("GET", "/v1/account/usage").json()["workspaces"], 3)
        path = made.headers["Location"]
        self.assert_error(self.ask("DELETE", path, caller=TOKYO), 404, "not_found")
        self.assertEqual(self.ask("DELETE", path).status, 204)
        names = [space["id"] for space in self.ask("GET", "/v1/account/workspaces").json()["workspaces"]]
        self.assertEqual(names, ["ws_lisbon", "ws_newyork"])

    def test_calendars(self):
        made = self.ask("POST", "/v1/calendars", body={"name": "Studio"})
        self.assertEqual(made.status, 201)
        self.assertEqual(self.ask("DELETE", f"/v1/calendars/{made.json()['id']}").status, 204)
        self.assert_error(self.ask("DELETE", f"/v1/calendars/{made.json()['id']}"), 404, "not_found")

    def test_bad_input_is_400(self):
        good = booking(0)
        for body in (b"", b"[]", b"{", b"[" * 60_000, {**good, "slot": "2027-01-01T09:15"}, {**good, "slot": 7},
                     {**good, "customer": None}, {**good, "customer": {"name": "", "email": "a@b"}},
                     {**good, "customer": {"name": "a", "email": "nobody"}}, {**good, "extras": "gift_wrap"},
                     {**good, "customer": {"name": "a" * 201, "email": "a@b"}}):
            self.assert_error(self.ask("POST", "/v1/bookings", body=body), 400, "invalid_request")
        for path in ("/v1/availability?date=2026-02-30", "/v1/availability?date=today"):
            self.assert_error(self.ask("GET", path), 400, "invalid_request")
        self.assert_error(self.ask("GET", "/v1/quote", caller={}), 400, "invalid_request")

    def test_half_a_character_is_bad_input(self):
        half, good = "\ud800", booking(0)
        for path, body in (("/v1/calendars", {"name": half}), ("/v1/public/cancel", {"token": half}),
                           ("/v1/public/reschedule", {"token": half, "slot": good["slot"]}),
                           ("/v1/account/workspaces", {"name": half, "timezone": "Europe/Lisbon"}),
                           ("/v1/account/workspaces", {"name": "Porto", "timezone": half}),
                           ("/v1/bookings", {**good, "slot": half}), ("/v1/bookings", {**good, "extras": [half]}),
                           ("/v1/bookings", {**good, "customer": {"name": half, "email": "a@b"}}),
                           ("/v1/bookings", {**good, "customer": {"name": "a", "email": f"a@{half}"}})):
            for sent in (json.dumps(body).encode(), json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")):
                self.assert_error(self.ask("POST", path, body=sent), 400, "invalid_request")
        self.assertEqual(self.ask("POST", "/v1/calendars", body={"name": "\U0001f600"}).status, 201)

    def test_unknown_paths_and_methods(self):
        self.assert_error(self.ask("GET", "/v1/nothing"), 404, "not_found")
        answer = self.ask("GET", "/v1/public/cancel")
        self.assert_error(answer, 405, "method_not_allowed")
        self.assertEqual(answer.headers["Allow"], "POST")

    def test_head_has_the_length_and_no_body(self):
        path = f"/v1/availability?date={DATE}"
        head, get = self.ask("HEAD", path), self.ask("GET", path)
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(head.headers["Content-Length"], get.headers["Content-Length"])

    def test_one_connection_serves_many_requests_of_any_framing(self):
        client = Client(self.port)
        self.addCleanup(client.close)
        for number in range(3):
            self.assertEqual(client.ask("GET", "/v1/nothing", headers=LISBON).status, 404)
            body = b'{"name": "c"}'
            self.assertEqual(client.ask("POST", "/v1/calendars", headers=LISBON, body=iter([body[:4], body[4:]])).status,
                             201)
            self.assertEqual(client.ask("GET", "/v1/quote", headers=LISBON).status, 200)

    def test_a_body_that_is_too_long(self):
        self.assert_error(self.ask("POST", "/v1/calendars", body=b" " * 65_537), 413, "too_large")
        self.assert_error(self.ask("POST", "/v1/calendars", body=b" " * 65_536), 400, "invalid_request")

    def test_sigterm_ends_it_with_idle_connections_open(self):
        with socket.create_connection(("127.0.0.1", self.port)):
            self.process.signal(signal.SIGTERM)
            self.assertEqual(self.process.wait(10), 0)

    def test_sigterm_while_callers_ask(self):
        statuses = []

        def call():
            for number in range(400):
                try:
                    statuses.append(self.ask("GET", "/v1/quote").status)
                except OSError:
                    return
        caller = threading.Thread(target=call)
        caller.start()
        wait_for(lambda: len(statuses) > 5, "some calls")
        self.process.signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(10), 0)
        caller.join()
        self.assertEqual(set(statuses), {200})


if __name__ == "__main__":
    unittest.main()
