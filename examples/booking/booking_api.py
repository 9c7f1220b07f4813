#!/usr/bin/env python3
"""booking-api: the small, real service that the example puts the gateway in front of.

It knows nothing about limits. Who is calling stands in the Ration-* headers, which the gateway
sets and no client can forge through it; so this service must be reachable by the gateway alone.

    booking_api.py --port 8090 --database bookings.sqlite --latency-ms 0
"""

import argparse
import datetime
import json
import pathlib
import re
import sys
import zoneinfo
from urllib.parse import parse_qs, unquote, urlsplit

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from booking_store import Store
from http_service import Refused, Routes, run

MAX_TEXT = 200  # characters of a name, an address, a key
HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # what JSON may say and no encoding can write
FIRST_SLOT, LAST_SLOT, SLOT_MINUTES = 9 * 60, 17 * 60, 30  # minutes of the workspace's own day
BASE_PRICE = 4000  # cents
EXTRAS = {"gift_wrap": 500, "long_session": 1500, "second_guest": 2500}  # cents


def invalid(message):
    return Refused(400, "invalid_request", message)


# What may be asked


def text_of(fields, name):
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT or HALF_A_CHARACTER.search(value):
        raise invalid(f"{name} must be a text of 1 to {MAX_TEXT} characters.")
    return value


def slots_of_day(date):
    minutes = range(FIRST_SLOT, LAST_SLOT, SLOT_MINUTES)
    return [f"{date}T{minute // 60:02}:{minute % 60:02}" for minute in minutes]


def checked_date(date):
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
            return datetime.date.fromisoformat(date).isoformat()
    except ValueError:
        pass
    raise invalid("date must be a day such as 2026-12-01.")


def checked_slot(fields):
    slot = text_of(fields, "slot")
    if slot not in slots_of_day(checked_date(slot[:10])):
        raise invalid("slot must be one that availability lists, such as 2026-12-01T09:30.")
    return slot


def checked_extras(extras):
    if not isinstance(extras, list) or not all(isinstance(extra, str) for extra in extras):
        raise invalid("extras must be a list of names.")
    unknown = sorted(set(extras) - set(EXTRAS))
    if unknown:
        raise invalid(f"Unknown extra {unknown[0]}; there are {', '.join(EXTRAS)}.")
    return sorted(set(extras))


def price_of(extras):
    return BASE_PRICE + sum(EXTRAS[extra] for extra in extras)


def checked_customer(fields):
    customer = fields.get("customer")
    if not isinstance(customer, dict):
        raise invalid("customer must be an object with name and email.")
    email = text_of(customer, "email")
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", email):
        raise invalid("email must be an address such as ana@example.org.")
    return {"name": text_of(customer, "name"), "email": email}


# The routes. Each takes the request and returns (status, body or None, more headers).


def availability(request):
    workspace = request.store.workspace(request.workspace)
    date = request.query.get("date")
    if date is None:
        date = datetime.datetime.now(zoneinfo.ZoneInfo(workspace["timezone"])).date().isoformat()
    date = checked_date(date)
    taken = request.store.taken_slots(workspace["id"], date)
    slots = [{"slot": slot, "free": slot not in taken} for slot in slots_of_day(date)]
    return 200, {"workspace": workspace["id"], "date": date, "slots": slots}, {}


def quote(request):
    extras = checked_extras([name for name in request.query.get("extras", "").split(",") if name])
    return 200, {"workspace": request.workspace, "extras": extras, "price": price_of(extras),
                 "currency": "EUR"}, {}


def create_booking(request):
    fields = request.json()
    extras = checked_extras(fields.get("extras", []))
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 0 < len(key) <= MAX_TEXT:
        raise invalid(f"Idempotency-Key must have 1 to {MAX_TEXT} characters.")
    wanted = {"slot": checked_slot(fields), "customer": checked_customer(fields),
              "extras": extras, "price": price_of(extras)}
    workspace = request.store.workspace(request.workspace)
    booking = request.store.book(workspace["id"], wanted, key)
    return 201, booking, {"Location": f"/v1/bookings/{booking['id']}"}


def verify_booking(request):
    return 200, request.store.verify(request.workspace, request.part("id")), {}


def public_bootstrap(request):
    answer = {"slot_minutes": SLOT_MINUTES, "base_price": BASE_PRICE, "extras": EXTRAS}
    if "token" in request.query:
        answer["booking"] = request.store.booking_by_token(request.query["token"])
    return 200, answer, {}


def public_cancel(request):
    return 200, request.store.cancel(text_of(request.json(), "token")), {}


def public_reschedule(request):
    fields = request.json()
    return 200, request.store.reschedule(text_of(fields, "token"), checked_slot(fields)), {}


def account_usage(request):
    return 200, request.store.usage(request.account), {}


def list_workspaces(request):
    return 200, {"workspaces": request.store.workspaces_of(request.account)}, {}


def add_workspace(request):
    fields = request.json()
    timezone = text_of(fields, "timezone")
    if timezone not in zoneinfo.available_timezones():
        raise invalid("timezone must be a zone such as Europe/Lisbon.")
    workspace = request.store.add_workspace(request.account, text_of(fields, "name"), timezone)
    return 201, workspace, {"Location": f"/v1/account/workspaces/{workspace['id']}"}


def drop_workspace(request):
    request.store.drop_workspace(request.account, request.part("id"))
    return 204, None, {}


def create_calendar(request):
    calendar = request.store.add_calendar(request.workspace, text_of(request.json(), "name"))
    return 201, calendar, {"Location": f"/v1/calendars/{calendar['id']}"}


def delete_calendar(request):
    request.store.drop_calendar(request.workspace, request.part("id"))
    return 204, None, {}


ROUTES = [
    ("/v1/availability", {"GET": availability}),
    ("/v1/quote", {"GET": quote}),
    ("/v1/bookings", {"POST": create_booking}),
    ("/v1/bookings/{id}/verify", {"POST": verify_booking}),
    ("/v1/public/bootstrap", {"GET": public_bootstrap}),
    ("/v1/public/cancel", {"POST": public_cancel}),
    ("/v1/public/reschedule", {"POST": public_reschedule}),
    ("/v1/account/usage", {"GET": account_usage}),
    ("/v1/account/workspaces", {"GET": list_workspaces, "POST": add_workspace}),
    ("/v1/account/workspaces/{id}", {"DELETE": drop_workspace}),
    ("/v1/calendars", {"POST": create_calendar}),
    ("/v1/calendars/{id}", {"DELETE": delete_calendar}),
]
class Request:
    """One request as the routes see it."""

    def __init__(self, store, headers, target, body):
        url = urlsplit(target)
        self.store, self.headers, self.path, self._body = store, headers, url.path, body
        self.query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        self.parts = {}

    def part(self, name):
        return unquote(self.parts[name])

    def _from_gateway(self, name):
        value = self.headers.get(name)
        if not value:
            raise invalid(f"No {name} header: this service expects to stand behind the gateway.")
        return value

    @property
    def workspace(self):
        return self._from_gateway("Ration-Workspace")

    @property
    def account(self):
        return self._from_gateway("Ration-Account")

    def json(self):
        try:
            fields = json.loads(self._body)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise invalid("The body must be a JSON object.")
        return fields


class BookingApi:
    name, max_body_bytes = "booking-api", 64 * 1024

    def __init__(self, store, latency):
        self.latency, self._store, self._routes = latency, store, Routes(ROUTES)

    def handle_call(self, method, headers, target, body):
        request = Request(self._store, headers, target, body)
        handler, request.parts = self._routes.find(method, request.path)
        return handler(request)

    def error_body(self, refused):
        return {"error": {"type": refused.kind, "message": refused.message}}


def main():
    parser = argparse.ArgumentParser(description="The booking example's upstream service.")
    parser.add_argument("--port", type=int, default=8090, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--database", default="booking.sqlite", help="SQLite file, made if missing")
    parser.add_argument("--latency-ms", type=float, default=0, help="added to every answer")
    options = parser.parse_args()
    store = Store(options.database)
    run(options.port, BookingApi(store, options.latency_ms / 1000))
    store.close()


if __name__ == "__main__":
    main()
