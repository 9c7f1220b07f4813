"""What the booking API remembers: workspaces, calendars and bookings in one SQLite file.

The rules that must hold under concurrency are the database's: one live booking per slot and
workspace, one booking per idempotency key. Every method is one transaction and may be called from
any thread; they take turns on a single connection. `Refused` carries the answer for the caller.
"""

import json
import secrets
import sqlite3
import threading

from http_service import Refused

SCHEMA = """
CREATE TABLE IF NOT EXISTS workspaces (
    id TEXT PRIMARY KEY, account TEXT NOT NULL, name TEXT NOT NULL, timezone TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS calendars (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS bookings (
    id TEXT PRIMARY KEY, workspace TEXT NOT NULL, slot TEXT NOT NULL, customer TEXT NOT NULL,
    extras TEXT NOT NULL, price INTEGER NOT NULL, status TEXT NOT NULL, manage_token TEXT NOT NULL UNIQUE,
    idempotency_key TEXT, created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ')));
CREATE UNIQUE INDEX IF NOT EXISTS one_booking_per_slot
    ON bookings (workspace, slot) WHERE status <> 'cancelled';
CREATE UNIQUE INDEX IF NOT EXISTS one_booking_per_key
    ON bookings (workspace, idempotency_key) WHERE idempotency_key IS NOT NULL;
"""

DEMO_WORKSPACES = [
    ("ws_lisbon", "acc_one", "Lisbon", "Europe/Lisbon"),
    ("ws_newyork", "acc_one", "New York", "America/New_York"),
    ("ws_tokyo", "acc_two", "Tokyo", "Asia/Tokyo"),
]


def slot_taken():
    return Refused(409, "slot_taken", "That slot is already booked.")


def not_found(what):
    return Refused(404, "not_found", f"No such {what}.")


def new_id(prefix):
    return f"{prefix}_{secrets.token_hex(8)}"


class Store:
    def __init__(self, path):
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)
        self._db.executemany("INSERT OR IGNORE INTO workspaces VALUES (?, ?, ?, ?)", DEMO_WORKSPACES)

    def close(self):
        with self._lock:
            self._db.close()

    def _all(self, sql, *values):
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def _one(self, sql, *values):
        rows = self._all(sql, *values)
        return rows[0] if rows else None

    def _changed(self, sql, *values):
        """Runs one statement, durable on return; how many rows it changed."""
        with self._lock:
            return self._db.execute(sql, values).rowcount

    # Workspaces

    def workspace(self, workspace):
        row = self._one("SELECT * FROM workspaces WHERE id = ?", workspace)
        if row is None:
            raise not_found("workspace")
        return dict(row)

    def workspaces_of(self, account):
        rows = self._all("SELECT id, name, timezone FROM workspaces WHERE account = ? ORDER BY id",
                         account)
        return [dict(row) for row in rows]

    def add_workspace(self, account, name, timezone):
        workspace = new_id("ws")
        self._changed("INSERT INTO workspaces VALUES (?, ?, ?, ?)", workspace, account, name, timezone)
        return {"id": workspace, "name": name, "timezone": timezone}

    def drop_workspace(self, account, workspace):
        if not self._changed("DELETE FROM workspaces WHERE id = ? AND account = ?", workspace, account):
            raise not_found("workspace")

    def usage(self, account):
        row = self._one(
            "SELECT (SELECT count(*) FROM workspaces WHERE account = ?1) AS workspaces,"
            " (SELECT count(*) FROM calendars JOIN workspaces w ON w.id = workspace"
            "  WHERE account = ?1) AS calendars,"
            " (SELECT count(*) FROM bookings JOIN workspaces w ON w.id = workspace"
            "  WHERE account = ?1) AS bookings", account)
        return {"account": account, **dict(row)}

    # Calendars

    def add_calendar(self, workspace, name):
        calendar = new_id("cal")
        self._changed("INSERT INTO calendars VALUES (?, ?, ?)", calendar, workspace, name)
        return {"id": calendar, "workspace": workspace, "name": name}

    def drop_calendar(self, workspace, calendar):
        if not self._changed("DELETE FROM calendars WHERE id = ? AND workspace = ?", calendar, workspace):
            raise not_found("calendar")

    # Bookings

    def taken_slots(self, workspace, date):
        rows = self._all("SELECT slot FROM bookings WHERE workspace = ? AND status <> 'cancelled'"
                         " AND slot >= ? AND slot < ?", workspace, date + "T", date + "U")
        return {row["slot"] for row in rows}

    def book(self, workspace, booking, key):
        """Writes a booking; the first one again when `key` was used before with the same content."""
        if key is not None:
            first = self._one("SELECT * FROM bookings WHERE workspace = ? AND idempotency_key = ?",
                              workspace, key)
            if first is not None:
                return self._repeated(first, booking)
        try:
            row = {"id": new_id("bkg"), "manage_token": secrets.token_urlsafe(18)}
            self._changed(
                "INSERT INTO bookings (id, workspace, slot, customer, extras, price, status,"
                " manage_token, idempotency_key) VALUES (?, ?, ?, ?, ?, ?, 'booked', ?, ?)",
                row["id"], workspace, booking["slot"], json.dumps(booking["customer"]),
                json.dumps(booking["extras"]), booking["price"], row["manage_token"], key)
        except sqlite3.IntegrityError:
            raise slot_taken() from None
        return self.booking(workspace, row["id"])

    def _repeated(self, first, booking):
        same = (first["slot"] == booking["slot"] and json.loads(first["extras"]) == booking["extras"]
                and json.loads(first["customer"]) == booking["customer"])
        if not same:
            raise Refused(422, "idempotency_mismatch",
                          "This Idempotency-Key was used for a different booking.")
        return self._shown(first)

    def booking(self, workspace, booking):
        row = self._one("SELECT * FROM bookings WHERE id = ? AND workspace = ?", booking, workspace)
        if row is None:
            raise not_found("booking")
        return self._shown(row)

    def booking_by_token(self, token):
        row = self._one("SELECT * FROM bookings WHERE manage_token = ?", token)
        if row is None:
            raise not_found("booking")
        return self._shown(row)

    def verify(self, workspace, booking):
        self._changed("UPDATE bookings SET status = 'verified' WHERE id = ? AND workspace = ?"
                      " AND status = 'booked'", booking, workspace)
        shown = self.booking(workspace, booking)
        if shown["status"] != "verified":
            raise Refused(409, "booking_cancelled", "That booking was cancelled.")
        return shown

    def cancel(self, token):
        """Cancelling twice is the same as once."""
        self._changed("UPDATE bookings SET status = 'cancelled' WHERE manage_token = ?", token)
        return self.booking_by_token(token)

    def reschedule(self, token, slot):
        try:
            moved = self._changed("UPDATE bookings SET slot = ? WHERE manage_token = ?"
                                  " AND status <> 'cancelled'", slot, token)
        except sqlite3.IntegrityError:
            raise slot_taken() from None
        booking = self.booking_by_token(token)
        if not moved:
            raise Refused(409, "booking_cancelled", "That booking was cancelled.")
        return booking

    @staticmethod
    def _shown(row):
        return {"id": row["id"], "workspace": row["workspace"], "slot": row["slot"],
                "status": row["status"], "customer": json.loads(row["customer"]),
                "extras": json.loads(row["extras"]), "price": row["price"],
                "manage_token": row["manage_token"], "created": row["created"]}
