#!/usr/bin/env python3
"""booking-api: the small, real service that the example puts the gateway in front of.

It knows nothing about limits. Who is calling stands in the Ration-* headers, which the gateway
sets and no client can forge through it; so this service must be reachable by the gateway alone.

    booking_api.py --port 8090 --database bookings.sqlite --latency-ms 0
"""

import argparse
import datetime
import json
import re
import signal
import socket
import sys
import threading
import time
import zoneinfo
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from booking_store import Refused, Store

MAX_BODY_BYTES = 64 * 1024
MAX_TEXT = 200  # characters of a name, an address, a key
FIRST_SLOT, LAST_SLOT, SLOT_MINUTES = 9 * 60, 17 * 60, 30  # minutes of the workspace's own day
BASE_PRICE = 4000  # cents
EXTRAS = {"gift_wrap": 500, "long_session": 1500, "second_guest": 2500}  # cents


def invalid(message):
    return Refused(400, "invalid_request", message)


# What may be asked


def text_of(fields, name):
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT:
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
PATTERNS = [(re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", pattern)), methods)
            for pattern, methods in ROUTES]


def find_route(method, path):
    """The handler and the path's parts; HEAD is answered as GET."""
    for pattern, methods in PATTERNS:
        match = pattern.fullmatch(path)
        if match:
            handler = methods.get("GET" if method == "HEAD" else method)
            if handler is None:
                allowed = Refused(405, "method_not_allowed", "This path has no such method.")
                allowed.allow = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
                raise allowed
            return handler, match.groupdict()
    raise Refused(404, "not_found", "No such path.")


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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body leave in one write

    def setup(self):
        super().setup()
        self.server.opened(self.connection)

    def finish(self):
        self.server.closed(self.connection)
        super().finish()

    def version_string(self):
        return "booking-api"

    def log_message(self, format, *values):  # the gateway keeps the access log
        pass

    def answer(self):
        headers = {}
        try:
            request = Request(self.server.store, self.headers, self.path, self._read_body())
            handler, request.parts = find_route(self.command, request.path)
            time.sleep(self.server.latency)
            status, body, headers = handler(request)
        except Refused as refused:
            status = refused.status
            body = {"error": {"type": refused.kind, "message": refused.message}}
            if hasattr(refused, "allow"):
                headers = {"Allow": refused.allow}
        self._send(status, body, headers)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def _send(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
        if self.close_connection or self.server.stopping.is_set():
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return self._read_chunks()
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch(r"\d{1,18}", length):
            raise self._broken(400, "The Content-Length is not a number.")
        return self._read_exactly(int(length), b"")

    def _read_chunks(self):
        body = b""
        while True:
            size = self.rfile.readline(128).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", size):
                raise self._broken(400, "A chunk's size is not a number.")
            if int(size, 16) == 0:
                break
            body = self._read_exactly(int(size, 16), body)
            if self.rfile.readline(3).strip():
                raise self._broken(400, "A chunk is longer than it says.")
        while self.rfile.readline(8192).strip():
            pass  # trailers
        return body

    def _read_exactly(self, length, before):
        if len(before) + length > MAX_BODY_BYTES:
            raise self._broken(413, f"The body may have {MAX_BODY_BYTES} bytes.")
        data = self.rfile.read(length)
        if len(data) < length:
            raise self._broken(400, "The body ended early.")
        return before + data

    def _broken(self, status, message):
        """The rest of the connection can't be trusted: answer, then close."""
        self.close_connection = True
        return Refused(status, "too_large" if status == 413 else "invalid_request", message)


class Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 256

    def __init__(self, port, store, latency):
        self.store, self.latency = store, latency
        self.stopping = threading.Event()
        self._open, self._open_lock = set(), threading.Lock()
        super().__init__(("127.0.0.1", port), Handler)

    def opened(self, connection):
        with self._open_lock:
            self._open.add(connection)

    def closed(self, connection):
        with self._open_lock:
            self._open.discard(connection)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def stop(self):
        """Accepts no more; what runs is answered, idle connections end."""
        self.stopping.set()
        self.shutdown()
        with self._open_lock:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RD)
                except OSError:
                    pass  # the client was faster


def main():
    parser = argparse.ArgumentParser(description="The booking example's upstream service.")
    parser.add_argument("--port", type=int, default=8090, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--database", default="booking.sqlite", help="SQLite file, made if missing")
    parser.add_argument("--latency-ms", type=float, default=0, help="added to every answer")
    options = parser.parse_args()
    store = Store(options.database)
    try:
        server = Server(options.port, store, options.latency_ms / 1000)
    except OSError as error:
        sys.exit(f"booking-api: cannot listen on 127.0.0.1:{options.port}: {error.strerror}")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.stop).start())
    print(f"booking-api: listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever(poll_interval=0.05)
    server.server_close()
    store.close()


if __name__ == "__main__":
    main()
