"""What settings may be: what cannot be meant is told at once, by name, and all that the manual shows is taken."""

import dataclasses
import http
import math
import random
import re
import types
import unittest

import httpx
from virtual import VirtualClock

import ration_client.httpx
import ration_client.requests
from ration_client import core

MAKERS = (ration_client.httpx.Transport, ration_client.httpx.AsyncTransport, ration_client.requests.Session,
          ration_client.requests.Adapter)
FIELDS = {field.name: field.default for field in dataclasses.fields(core.Policy)}
NUMBERS = [name for name, standard in FIELDS.items() if isinstance(standard, (int, float)) and not isinstance(standard, bool)]

NO_NUMBERS = (-1, math.nan, -math.inf, "1", True, None, [], {}, 1j)
NO_WHOLES = (*NO_NUMBERS, 1.5, 2.0)
NO_FLAGS = ("no", 0, 1, None, [])
NO_FUNCTIONS = ("x", 1, True, {}, [])
NO_TEXTS = ("x", 7, True, None, {}, [7], [None], ["x", b"y"], (["x"],), {7}, iter(["x"]))
NO_NAMES = ("X-Secret", b"X-Secret", 7, None, {}, {"X-Secret": 1}, [7], [b"X"], [""], ["a b"], ("X-Secret:",), ["X-Api-Key", None],
            ["ü"], ["X\n"], iter(["X"]))
NO_PARTS = ("x", "", 0, 1, [], [("k", 2)], {1}, len)

BAD_FIELDS = {
    **dict.fromkeys(NUMBERS, NO_NUMBERS),
    "max_retries": NO_WHOLES,
    "max_redirects": NO_WHOLES,
    "backoff_factor": (*NO_NUMBERS, 0, 0.5),
    "retry_statuses": (429, "503", ["503"], [200], (399,), {600}, [0], [503.5], [503.0], [math.nan], [True], [429, None], {503: 1}, None),
    "retry_types": NO_TEXTS,
    "never_retry_types": NO_TEXTS,
    "narrow_types": NO_TEXTS,
    "safe_methods": (*NO_TEXTS, [""], ["GET /x"]),
    "retry_error_kinds": (*NO_TEXTS, ["connection_lots"], ["cancelled"], ["dns_failed", "OSError"], [[]]),
    "nothing_sent_kinds": (*NO_TEXTS, ["connect_fialed"]),
    "idempotency": ("x", "", "POST /v1/x", True, None, 1, {}, ["POST"], ["/v1/x"], ["POST v1/x"], ["post /v1/x"], ["POST  /v1/x"],
                    ["POST /v1/x "], ["POST /v1/x\n"], ["POST /v1/x?y=1"], ("POST /a", 7), [""]),
    "idempotency_header": ("a b", "", 7, None, ["X"], "X:", b"X"),
    "redirect_to_get": NO_FLAGS,
}
BAD_SETTINGS = {
    **BAD_FIELDS,
    "policy": ("x", None, {}, {"max_retries": 1}, core.Policy),
    "bucket": ("x", "", 7, True, None, ["path"]),
    "whole_answers": (*NO_WHOLES, "x"),
    "secret_headers": NO_NAMES,
    "attempt_header": ("a b", 7, True, False, 0, ["X"], "X:", "ü", b"X"),
    "hooks": ("x", 1, True, None, [], len, {"on_wiat": len}, {"on_wiat": 1}, {"on_wait": 1}, {"on_wait": None}, {"onWait": len}, {1: len}),
    "buffer_body": NO_WHOLES,
    "max_gates": (*NO_WHOLES, 0),
    "nested": NO_FLAGS,
    "random": (*NO_FUNCTIONS, None),
    "new_key": (*NO_FUNCTIONS, None),
    "credential": NO_FUNCTIONS,
    "clock": ("x", None, 1, {}, types.SimpleNamespace(now=lambda: 0), types.SimpleNamespace(now=1, wall=1)),
    "breaker": (*NO_PARTS, {"window_ms": 0}, {"min_outcomes": 0}, {"min_outcomes": "9"}, {"failure_ratio": 0}, {"failure_ratio": 50},
                {"open_ms": -1}, {"open_ms": None}, {"window_ms": True}),
    "throttle": (*NO_PARTS, {"k": 0}, {"k": 0.5}, {"k": "2"}, {"k": math.nan}, {"window_ms": 0}),
    "concurrency": (*NO_PARTS, {"min": 0}, {"initial": 200}, {"decrease_factor": 1}, {"initial": "10"}, {"increase_per_window": -1},
                    {"decrease_at_most_every_ms": "x"}),
    "pace": (*NO_PARTS, True, {}, {"burst": 1}, {"rate_per_min": 0}, {"rate_per_min": "60"}, {"rate_per_min": 60, "burst": 0},
             {"rate_per_min": 60, "burst": "2"}),
}
MISSPELT = ({"max_retrys": 3}, {"breaker": {"opens_ms": 1}}, {"throttle": {"window": 1}}, {"concurrency": {"most": 1}},
            {"pace": {"rate_per_min": 1, "bursts": 2}})

GOOD_FIELDS = {
    **dict.fromkeys(NUMBERS, (1, 3.5, math.inf)),
    "max_retries": (0, 5),
    "max_redirects": (0, 5),
    "budget_success_deposit": (0, 0.2),
    "retry_statuses": ([], [429, 503], (400, 502, 599), {503}, frozenset([503]), [http.HTTPStatus.BAD_GATEWAY]),
    "retry_types": ([], ["still_running"], {"x"}),
    "never_retry_types": ((), ("x", "y")),
    "narrow_types": ([], ["x"]),
    "safe_methods": ([], ["GET", "QUERY"], {"get"}),
    "retry_error_kinds": ([], ["connection_lost"]),
    "nothing_sent_kinds": ([], ["dns_failed"]),
    "idempotency": ("caller", "auto", [], ["POST /v1/bookings", "PATCH /v1/x/{id}", "POST /v1/**", "POST /{name}", "POST **"],
                    ("POST /a",), lambda method, path: True),
    "idempotency_header": ("Idempotency-Key", "X-Key"),
    "redirect_to_get": (True, False),
}
GOOD_SETTINGS = {
    **GOOD_FIELDS,
    "policy": (core.Policy(), core.Policy(max_retries=1)),
    "bucket": ("path", "origin", lambda facts: "x"),
    "whole_answers": (0, 65536),
    "secret_headers": ([], ["X-Api-Key", "x_secret"], ("X-Secret",), {"X-Secret"}),
    "attempt_header": (None, "", "Attempt"),
    "hooks": ({}, {"on_send": len, "on_answer": len, "on_wait": len, "on_done": len}, types.MappingProxyType({"on_wait": len})),
    "buffer_body": (0, 1024),
    "max_gates": (1, 100),
    "nested": (True, False),
    "random": (random.random, lambda: 0.5),
    "new_key": (lambda: "k",),
    "credential": (None, lambda facts: "me"),
    "clock": (VirtualClock(0), core.Settings().clock),
    "breaker": (None, True, False, {}, {"window_ms": 1000, "min_outcomes": 1, "failure_ratio": 1, "open_ms": 0}),
    "throttle": (None, True, False, {}, {"k": 1}, {"k": 1.5, "window_ms": 1000}),
    "concurrency": (None, True, False, {}, {"initial": 1, "min": 1, "max": 1, "increase_per_window": 1, "decrease_factor": 0,
                                            "decrease_at_most_every_ms": 0}),
    "pace": (None, {"rate_per_min": 60, "burst": 1}, {"rate_per_min": 0.5}),
}


def each(table):
    return ((name, value) for name, values in table.items() for value in values)


class Settings(unittest.TestCase):
    def refused(self, name, make, value):
        with self.subTest(name, value=value), self.assertRaisesRegex(ValueError, rf"\b{re.escape(name)}\b"):
            make(**{name: value})

    def test_no_transport_takes_what_cannot_be_meant(self):
        for make in MAKERS:
            for name, value in each(BAD_SETTINGS):
                self.refused(name, make, value)
        for make in MAKERS[:2]:
            for value in ("no", 0, 1, None):
                self.refused("follow_redirects", make, value)

    def test_nor_what_is_misspelt(self):
        for make in MAKERS:
            for options in MISSPELT:
                with self.subTest(options), self.assertRaises(TypeError):
                    make(**options)

    def test_nor_does_a_policy_and_no_request_with_its_own_is_sent(self):
        transport = ration_client.httpx.Transport(httpx.MockTransport(lambda request: self.fail("sent")))
        with httpx.Client(transport=transport) as client:
            for name, value in each(BAD_FIELDS):
                self.refused(name, core.Policy, value)
                self.refused(name, lambda **own: client.get("https://api.example/a", extensions={"ration": own}), value)
            for name in ("gate_guard_ms", "budget_capacity", "budget_retry_cost", "budget_success_deposit", "budget_floor_ms"):
                self.refused(name, lambda **own: client.get("https://api.example/a", extensions={"ration": own}), 1)  # of all calls
            for value in ("x", 5, True, ["max_retries"]):
                with self.subTest(value), self.assertRaisesRegex(ValueError, "ration"):
                    client.get("https://api.example/a", extensions={"ration": value})

    def test_what_the_manual_shows_is_taken(self):
        for make in MAKERS:
            for name, value in each(GOOD_SETTINGS):
                with self.subTest(name, value=value):
                    make(**{name: value})

    def test_each_setting_is_in_the_tables(self):
        settings = {*FIELDS, *(field.name for field in dataclasses.fields(core.Settings))}
        self.assertEqual((set(BAD_SETTINGS), set(GOOD_SETTINGS), set(BAD_FIELDS)), (settings, settings, set(FIELDS)))

    def test_a_message_shows_no_value_which_may_be_a_secret_in_the_wrong_place(self):
        for name in ("credential", "secret_headers", "attempt_header", "new_key", "bucket", "idempotency", "idempotency_header"):
            with self.subTest(name), self.assertRaises(ValueError) as raised:
                core.make_settings({name: "Bearer s3cret"})
            self.assertNotIn("s3cret", str(raised.exception))

    def test_an_empty_mapping_asks_for_a_part_with_its_standard_numbers(self):
        origin = core.Shared(core.make_settings({"breaker": {}, "throttle": {}, "concurrency": {}})).origin("x")
        self.assertNotIn(None, (origin.breaker, origin.throttle, origin.concurrency))

    def test_methods_are_safe_in_any_case(self):
        self.assertEqual(core.Policy(safe_methods=["get", "QUERY"]).safe_methods, ("GET", "QUERY"))


if __name__ == "__main__":
    unittest.main()
