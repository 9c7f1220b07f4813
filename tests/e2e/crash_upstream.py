"""The booking API, which kills the gateway between its own commit and its reply.

    crash_upstream.py VICTIM --port 8090 --database bookings.sqlite

VICTIM is a file that says whom and when: "PID N" kills process PID after the N-th booking from when
the file was read; the file is taken away with it.
"""

import contextlib
import os
import pathlib
import signal
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "booking"))

import booking_api  # noqa: E402
from booking_store import Store  # noqa: E402


class Assassin:
    def __init__(self, order):
        self._order, self._lock, self._pid, self._left = order, threading.Lock(), None, 0

    def booked(self):
        with self._lock:
            if self._pid is None:
                with contextlib.suppress(FileNotFoundError):
                    self._pid, self._left = map(int, self._order.read_text().split())
                    self._order.unlink()
            if self._pid is None:
                return
            self._left -= 1
            if self._left <= 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGKILL)
                self._pid = None


assassin = Assassin(pathlib.Path(sys.argv.pop(1)))
book = Store.book


def book_then_kill(*arguments):
    booking = book(*arguments)
    assassin.booked()
    return booking


Store.book = book_then_kill
booking_api.main()
