"""What the Axuz API remembers while it runs: users, teams, tasks, invitations, files, codes.

Everything is in memory and starts from the same demo data. Every method may be called from any
thread; they take turns. `Refused` carries the answer for the caller.
"""

import hashlib
import hmac
import secrets
import string
import threading

from http_service import Refused

MAX_ITEMS = 10_000  # of each sort; the oldest go first
CODE_DIGITS = 6

DEMO_USERS = {
    "u_ana": {"email": "ana@example.org", "name": "Ana", "password": "ana-demo-password",
              "session": "sess_demo_ana", "teams": ["t_red", "t_blue"]},
    "u_ben": {"email": "ben@example.org", "name": "Ben", "password": "ben-demo-password",
              "session": "sess_demo_ben", "teams": ["t_red"]},
}
DEMO_TEAMS = {"t_red": "Red", "t_blue": "Blue"}


ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def account_name(email):
    """One account's spellings are those that the gateway counts as one (docs/policy.md), or guesses in
    other spellings would be counted apart."""
    return email.strip(" \t\r\n").translate(ASCII_LOWER)


def digest_of(password, salt):
    return hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 1000)


class Store:
    def __init__(self):
        self._lock = threading.Lock()
        self._tasks, self._invitations, self._files, self._codes = {}, {}, {}, {}
        self._verified, self._oauth = set(), {}
        self._users = {}
        for user, facts in DEMO_USERS.items():
            salt = secrets.token_bytes(16)
            self._users[user] = {**facts, "salt": salt, "digest": digest_of(facts["password"], salt)}

    def _keep(self, items, name, value):
        items[name] = value
        while len(items) > MAX_ITEMS:
            del items[next(iter(items))]
        return value

    def _user_of(self, email):
        wanted = account_name(email)
        return next((user for user, facts in self._users.items() if facts["email"] == wanted), None)

    # users

    def user(self, user):
        facts = self._users.get(user)
        if facts is None:
            raise Refused(404, "not_found", "No such user.")
        return {"id": user, "name": facts["name"], "email": facts["email"],
                "email_verified": user in self._verified}

    def summary(self, user):
        with self._lock:
            teams = self._users.get(user, {}).get("teams", [])
            return {"user": self.user(user), "teams": [{"id": team, "name": DEMO_TEAMS[team]} for team in teams],
                    "open_tasks": sum(1 for task in self._tasks.values()
                                      if task["team"] in teams and not task["done"])}

    def sign_in(self, email, password):
        """The user's session, or a 401 that says nothing about which of the two was wrong."""
        with self._lock:
            user = self._user_of(email)
            facts = self._users[user or "u_ana"]
        right = hmac.compare_digest(digest_of(password, facts["salt"]), facts["digest"])
        if user is None or not right:
            raise Refused(401, "invalid_credentials", "The e-mail address or the password is wrong.")
        return {"user": user, "session": facts["session"]}

    # teams

    def check_team(self, team, user, key_team):
        """A user's own teams; a team key is good for its own team alone."""
        with self._lock:
            member = team in self._users.get(user, {}).get("teams", []) or (not user and team == key_team)
        if team not in DEMO_TEAMS or not member:
            raise Refused(404, "not_found", "No such team.")

    def tasks_of(self, team):
        with self._lock:
            return [task for task in self._tasks.values() if task["team"] == team]

    def add_task(self, team, title):
        with self._lock:
            task = {"id": f"task_{secrets.token_hex(6)}", "team": team, "title": title, "done": False}
            return self._keep(self._tasks, task["id"], task)

    def _task(self, team, task):
        found = self._tasks.get(task)
        if found is None or found["team"] != team:
            raise Refused(404, "not_found", "No such task.")
        return found

    def task(self, team, task):
        with self._lock:
            return self._task(team, task)

    def change_task(self, team, task, changes):
        with self._lock:
            self._task(team, task).update(changes)
            return dict(self._tasks[task])

    def drop_task(self, team, task):
        with self._lock:
            self._task(team, task)
            del self._tasks[task]

    def invite(self, team, email):
        with self._lock:
            invitation = {"id": f"inv_{secrets.token_hex(6)}", "team": team, "email": email}
            return self._keep(self._invitations, invitation["id"], invitation)

    # files

    def add_file(self, name, content):
        with self._lock:
            facts = {"id": f"file_{secrets.token_hex(6)}", "name": name, "bytes": len(content),
                     "sha256": hashlib.sha256(content).hexdigest()}
            return self._keep(self._files, facts["id"], facts)

    # codes by e-mail; the demo sends no mail and shows the code in the answer

    def issue_code(self, email):
        code = f"{secrets.randbelow(10 ** CODE_DIGITS):0{CODE_DIGITS}}"
        with self._lock:
            self._keep(self._codes, account_name(email), code)
        return code

    def verify_email(self, email, code):
        wanted = account_name(email)
        with self._lock:
            issued = self._codes.get(wanted)
            if issued is None or not hmac.compare_digest(issued.encode(), code.encode()):
                raise Refused(400, "invalid_code", "The code is wrong or was used.")
            del self._codes[wanted]
            user = self._user_of(wanted)
            if user is not None:
                self._verified.add(user)

    # oauth

    def issue_access_token(self, client):
        with self._lock:
            token = f"at_{secrets.token_urlsafe(24)}"
            self._keep(self._oauth, token, client)
            return token

    def revoke_access_token(self, token):
        with self._lock:
            self._oauth.pop(token, None)

    def client_of(self, token):
        with self._lock:
            return self._oauth.get(token)
