#!/usr/bin/env python3
"""axuz-api: the small, real service that the example puts the gateway in front of.

It knows nothing about limits or tokens. Who is calling stands in the Ration-* headers, which the
gateway sets and no client can forge through it; so this service must be reachable by the gateway
alone. Passwords, codes and OAuth clients are its own matter.

    axuz_api.py --port 8090 --latency-ms 0
"""

import argparse
import base64
import hmac
import json
import pathlib
import re
import sys
from urllib.parse import parse_qs, unquote, urlsplit

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from axuz_store import Store
from http_service import Refused, Routes, run

MAX_TEXT = 2000  # characters of a title, a message, a name
HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")  # what JSON may say and no encoding can write
OAUTH_CLIENTS = {"demo-client": "demo-client-secret"}
COOKIE = "axuz_session={}; Path=/; HttpOnly; SameSite=Lax"


class OAuthError(Refused):
    """The error form of RFC 6749, section 5.2."""


def invalid(message):
    return Refused(400, "invalid_request", message)


# What may be asked


def text_of(fields, name):
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TEXT or HALF_A_CHARACTER.search(value):
        raise invalid(f"{name} must be a text of 1 to {MAX_TEXT} characters.")
    return value


def email_of(fields):
    email = text_of(fields, "email")
    if not re.fullmatch(r"[^@\s]+@[^@\s]+", email.strip()):
        raise invalid("email must be an address such as ana@example.org.")
    return email


def task_changes(fields):
    changes = {}
    if "title" in fields:
        changes["title"] = text_of(fields, "title")
    if "done" in fields:
        if not isinstance(fields["done"], bool):
            raise invalid("done must be true or false.")
        changes["done"] = fields["done"]
    return changes


# The routes. Each takes the request and returns (status, body or None, more headers).


def me_summary(request):
    return 200, request.store.summary(request.user), {}


def assistant(request):
    return 200, {"user": request.user, "reply": f"You said: {text_of(request.json(), 'message')}"}, {}


def list_tasks(request):
    return 200, {"tasks": request.store.tasks_of(request.team)}, {}


def add_task(request):
    task = request.store.add_task(request.team, text_of(request.json(), "title"))
    return 201, task, {"Location": f"/teams/{request.team}/tasks/{task['id']}"}


def read_task(request):
    return 200, request.store.task(request.team, request.part("taskId")), {}


def change_task(request):
    changes = task_changes(request.json())
    return 200, request.store.change_task(request.team, request.part("taskId"), changes), {}


def drop_task(request):
    request.store.drop_task(request.team, request.part("taskId"))
    return 204, None, {}


def invite(request):
    return 201, request.store.invite(request.team, email_of(request.json())), {}


def upload(request):
    name = request.query.get("name", "unnamed")
    if len(name) > MAX_TEXT:
        raise invalid(f"name has at most {MAX_TEXT} characters.")
    return 201, request.store.add_file(name, request.body), {}


def login(request):
    fields = request.json()
    signed_in = request.store.sign_in(text_of(fields, "email"), text_of(fields, "password"))
    return 200, {"user": signed_in["user"]}, {"Set-Cookie": COOKIE.format(signed_in["session"])}


def issue_code(request):
    return 202, {"sent": True, "demo_code": request.store.issue_code(email_of(request.json()))}, {}


def verify_email(request):
    fields = request.json()
    request.store.verify_email(email_of(fields), text_of(fields, "code"))
    return 200, {"verified": True}, {}


def oauth_token(request):
    client, form = request.oauth_client()
    if form.get("grant_type") != "client_credentials":
        raise OAuthError(400, "unsupported_grant_type", "This server knows client_credentials.")
    return 200, {"access_token": request.store.issue_access_token(client), "token_type": "Bearer",
                 "expires_in": 3600}, {}


def oauth_revoke(request):
    _, form = request.oauth_client()
    request.store.revoke_access_token(form.get("token", ""))
    return 200, {}, {}


def oauth_introspect(request):
    _, form = request.oauth_client()
    client = request.store.client_of(form.get("token", ""))
    return 200, {"active": True, "client_id": client} if client else {"active": False}, {}


def healthz(request):
    return 200, {"status": "alive"}, {}


ROUTES = [
    ("/healthz", {"GET": healthz}),
    ("/me/summary", {"GET": me_summary}),
    ("/me/ai/chat", {"POST": assistant}),
    ("/teams/{teamId}/tasks", {"GET": list_tasks, "POST": add_task}),
    ("/teams/{teamId}/tasks/{taskId}", {"GET": read_task, "PATCH": change_task, "PUT": change_task,
                                        "DELETE": drop_task}),
    ("/teams/{teamId}/invitations", {"POST": invite}),
    ("/files", {"POST": upload}),
    ("/auth/login", {"POST": login}),
    ("/auth/codes", {"POST": issue_code}),
    ("/auth/verify-email", {"POST": verify_email}),
    ("/oauth/token", {"POST": oauth_token}),
    ("/oauth/revoke", {"POST": oauth_revoke}),
    ("/oauth/introspect", {"POST": oauth_introspect}),
]
class Request:
    """One request as the routes see it."""

    def __init__(self, store, headers, target, body):
        url = urlsplit(target)
        self.store, self.headers, self.path, self.body = store, headers, url.path, body
        self.query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        self.parts = {}

    def part(self, name):
        return unquote(self.parts[name])

    @property
    def user(self):
        user = self.headers.get("Ration-User")
        if not user:
            raise Refused(401, "unauthorized", "This needs a user: a personal token or a session.")
        return user

    @property
    def team(self):
        """The path's team, when the caller belongs to it."""
        team, user = self.part("teamId"), self.headers.get("Ration-User")
        key_team = self.headers.get("Ration-Team")
        if not user and not key_team:
            raise Refused(401, "unauthorized", "This needs a token, a team key or a session.")
        self.store.check_team(team, user, key_team)
        return team

    def json(self):
        try:
            fields = json.loads(self.body)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise invalid("The body must be a JSON object.")
        return fields

    def oauth_client(self):
        """The client that authenticated (RFC 6749, section 2.3.1), and the form."""
        form = {name: values[-1] for name, values in
                parse_qs(self.body.decode("utf-8", "replace"), keep_blank_values=True).items()}
        client, secret = form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, basic = self.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "basic":
            try:
                client, _, secret = base64.b64decode(basic).decode().partition(":")
            except ValueError:
                pass
        known = OAUTH_CLIENTS.get(client, "")
        if not known or not hmac.compare_digest(known.encode(), secret.encode()):
            raise OAuthError(401, "invalid_client", "The client is unknown or its secret wrong.",
                             {"WWW-Authenticate": 'Basic realm="axuz"'})
        return client, form


class AxuzApi:
    name, max_body_bytes = "axuz-api", 1024 * 1024

    def __init__(self, latency):
        self.latency, self._store, self._routes = latency, Store(), Routes(ROUTES)

    def handle_call(self, method, headers, target, body):
        request = Request(self._store, headers, target, body)
        handler, request.parts = self._routes.find(method, request.path)
        return handler(request)

    def error_body(self, refused):
        text = "error_description" if isinstance(refused, OAuthError) else "message"
        return {"error": refused.kind, text: refused.message}


def main():
    parser = argparse.ArgumentParser(description="The Axuz example's upstream service.")
    parser.add_argument("--port", type=int, default=8090, help="on 127.0.0.1; 0: any free one")
    parser.add_argument("--latency-ms", type=float, default=0, help="added to every answer")
    options = parser.parse_args()
    run(options.port, AxuzApi(options.latency_ms / 1000))


if __name__ == "__main__":
    main()
