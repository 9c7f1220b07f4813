#!/usr/bin/env python3
"""The budgets of the booking API's "Rate limits" page, asked of the running gateway."""

import unittest

from harness import DATE, Service, assert_budget, booking, new_address, spend

AVAILABILITY = ("GET", f"/v1/availability?date={DATE}", None)
QUOTE = ("GET", "/v1/quote?extras=gift_wrap", None)
VERIFY = ("POST", "/v1/bookings/bkg_none/verify", None)


def endpoint(template, key, addresses):
    """Requests to one endpoint, from the given addresses in turn."""
    method, path, body = template

    def request(number):
        return method, path, {"key": key, "address": addresses[number % len(addresses)], "body": body}
    return request


def bookings(key, addresses):
    def request(number):
        return "POST", "/v1/bookings", {"key": key, "address": addresses[number % len(addresses)],
                                        "body": booking(number)}
    return request


class Budgets(unittest.TestCase):
    """A fresh gateway for each test: all buckets are full."""

    def setUp(self):
        self.service = self.enterContext(Service())

    def check(self, requests, per_minute, **how):
        spending = spend(self.service, requests, **how)
        assert_budget(self, spending, per_minute)
        return spending


class PerCallerAddress(Budgets):
    def test_availability(self):
        self.check(endpoint(AVAILABILITY, "pk_demo_lisbon", [new_address()]), 60)

    def test_quote(self):
        self.check(endpoint(QUOTE, "pk_demo_lisbon", [new_address()]), 60)

    def test_bookings(self):
        self.check(bookings("pk_demo_lisbon", [new_address()]), 10)

    def test_verify(self):
        self.check(endpoint(VERIFY, "pk_demo_lisbon", [new_address()]), 10)

    def test_verify_is_one_bucket_for_all_bookings(self):
        address = new_address()
        self.check(lambda number: ("POST", f"/v1/bookings/bkg_{number}/verify",
                                   {"key": "pk_demo_lisbon", "address": address}), 10)

    def test_another_address_has_its_own(self):
        busy, other = new_address(), new_address()
        self.check(endpoint(QUOTE, "pk_demo_lisbon", [busy]), 60)
        self.check(endpoint(QUOTE, "pk_demo_lisbon", [other]), 60)

    def test_many_connections_at_once_get_one_budget(self):
        self.check(endpoint(QUOTE, "pk_demo_lisbon", [new_address()]), 60, threads=8, refusals=40)


class PerWorkspace(Budgets):
    def addresses(self, count):
        return [new_address() for _ in range(count)]

    def test_availability(self):
        self.check(endpoint(AVAILABILITY, "pk_demo_lisbon", self.addresses(40)), 300, threads=4)

    def test_quote(self):
        self.check(endpoint(QUOTE, "pk_demo_lisbon", self.addresses(40)), 300, threads=4)

    def test_bookings(self):
        self.check(bookings("pk_demo_lisbon", self.addresses(20)), 60)

    def test_verify(self):
        self.check(endpoint(VERIFY, "pk_demo_lisbon", self.addresses(20)), 60)

    def test_another_workspace_has_its_own(self):
        self.check(endpoint(VERIFY, "pk_demo_lisbon", self.addresses(20)), 60)
        self.check(endpoint(VERIFY, "pk_demo_newyork", self.addresses(20)), 60)

    def test_a_refusal_on_one_axis_spends_nothing_on_the_other(self):
        self.check(endpoint(VERIFY, "pk_demo_lisbon", self.addresses(20)), 60)
        visitor = new_address()
        refused = [self.service.ask("POST", VERIFY[1], key="pk_demo_lisbon", address=visitor)
                   for _ in range(20)]
        self.assertGreaterEqual(sum(answer.status == 429 for answer in refused), 18)
        spent = sum(answer.status != 429 for answer in refused)
        again = spend(self.service, endpoint(VERIFY, "pk_demo_newyork", [visitor]))
        self.assertGreaterEqual(again.admitted, 10 - spent)


class OneBucketEach(Budgets):
    def test_quote_does_not_spend_availability(self):
        address = new_address()
        self.check(endpoint(QUOTE, "pk_demo_lisbon", [address]), 60)
        self.check(endpoint(AVAILABILITY, "pk_demo_lisbon", [address]), 60)

    def test_bookings_do_not_spend_verify(self):
        address = new_address()
        self.check(bookings("pk_demo_lisbon", [address]), 10)
        self.check(endpoint(VERIFY, "pk_demo_lisbon", [address]), 10)

    def test_head_spends_the_budget_of_get(self):
        address = new_address()

        def request(number):
            return ("GET", "HEAD")[number % 2], QUOTE[1], {"key": "pk_demo_lisbon", "address": address}
        self.check(request, 60)

    def test_a_head_refusal_has_the_headers_and_no_body(self):
        spending = self.check(endpoint(("HEAD", QUOTE[1], None), "pk_demo_lisbon", [new_address()]), 60)
        refusal = spending.refusals[0]
        self.assertEqual((refusal.body, refusal.headers["RateLimit-Remaining"]), (b"", "0"))

    def test_spellings_of_a_path_are_one_bucket(self):
        address = new_address()
        spellings = ["/v1/quote", "//v1/quote", "/v1//quote", "/v1/./quote", "/v1/x/../quote",
                     "/v1/%71uote", "/%761/quote", "/v1/quote/", "/v1/quote?extras="]

        def request(number):
            return "GET", spellings[number % len(spellings)], {"key": "pk_demo_lisbon", "address": address}
        self.check(request, 60)

    def test_a_method_override_is_not_obeyed(self):
        address = new_address()

        def request(number):
            return "POST", VERIFY[1], {"key": "pk_demo_lisbon", "address": address,
                                       "headers": {"X-HTTP-Method-Override": "GET"}}
        self.check(request, 10)


class PublicRoutes(Budgets):
    CALLS = [("GET", "/v1/public/bootstrap", None), ("POST", "/v1/public/cancel", {"token": "none"}),
             ("POST", "/v1/public/reschedule", {"token": "none", "slot": f"{DATE}T09:00"})]

    def public(self, addresses, **what):
        def request(number):
            method, path, body = self.CALLS[number % len(self.CALLS)]
            return method, path, {"address": addresses[number % len(addresses)], "body": body, **what}
        return request

    def test_thirty_shared_by_all_of_them(self):
        self.check(self.public([new_address()]), 30)

    def test_a_key_gives_no_fresh_capacity(self):
        address = new_address()
        self.check(self.public([address]), 30)
        answer = self.service.ask("GET", "/v1/public/bootstrap", address=address, key="pk_demo_lisbon")
        self.assertEqual(answer.status, 429)

    def test_per_address(self):
        self.check(self.public([new_address()]), 30)
        self.check(self.public([new_address()]), 30)


class Backstops(Budgets):
    def test_secret_keys_of_a_workspace_share_3000(self):
        keys = ["sk_demo_lisbon", "sk_demo_lisbon_2"]
        calls = [AVAILABILITY, QUOTE, VERIFY]

        def request(number):
            method, path, _ = calls[number % 3]
            return method, path, {"key": keys[number % 2], "address": f"203.0.113.{number % 200 + 1}"}
        self.check(request, 3000, threads=8, refusals=50)
        other = self.service.ask("GET", QUOTE[1], key="sk_demo_newyork", address=new_address())
        self.assertEqual(other.status, 200)

    def test_account_keys_share_600(self):
        keys = ["ak_demo_one", "ak_demo_one_2"]
        calls = [("GET", "/v1/account/usage"), ("GET", "/v1/account/workspaces"),
                 ("POST", "/v1/account/workspaces"), ("DELETE", "/v1/account/workspaces/ws_none")]

        def request(number):
            method, path = calls[number % 4]
            return method, path, {"key": keys[number // 4 % 2], "address": f"203.0.113.{number % 200 + 1}"}
        self.check(request, 600, threads=4, refusals=20)
        other = self.service.ask("GET", "/v1/account/usage", key="ak_demo_two", address=new_address())
        self.assertEqual(other.status, 200)

    def test_a_secret_key_is_not_held_to_a_visitors_budget(self):
        address = new_address()
        answers = [self.service.ask("GET", QUOTE[1], key="sk_demo_tokyo", address=address) for _ in range(90)]
        self.assertEqual({answer.status for answer in answers}, {200})


if __name__ == "__main__":
    unittest.main()
