"""After a call has ended, however it ended, nothing of it is left: no wait, task, thread or socket."""

import asyncio
import contextlib
import gc
import os
import sys
import threading
import time
import unittest
import warnings

import httpx
import requests

import ration_client.httpx
import ration_client.requests
from hostile import HostileServer, reply
from ration_client import CancelToken

OK = reply(200, {}, "good")


def sockets():
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return count


def until(condition, what):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(what)


class Leaks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = HostileServer()
        cls.addClassCleanup(cls.server.stop)

    def test_task_cancelled_in_a_wait(self):
        target, times = self.server.script(reply(429, {"Retry-After": "30"})), []

        async def once():
            waiting = asyncio.Event()
            transport = ration_client.httpx.AsyncTransport(hooks={"on_wait": lambda event: waiting.set()})
            async with httpx.AsyncClient(transport=transport) as client:
                call = asyncio.create_task(client.get(target.url))
                await waiting.wait()
                await asyncio.sleep(0)
                begun = time.monotonic()
                call.cancel("enough")
                with self.assertRaises(asyncio.CancelledError) as raised:
                    await call
                times.append(time.monotonic() - begun)
                if sys.version_info >= (3, 11):  # before, asyncio itself lost the reason
                    self.assertEqual(raised.exception.args, ("enough",))
                self.assertEqual(len(asyncio.all_tasks()), 1)
                self.assertEqual(transport.stats()["gates"][0]["in_flight"], 0)
        for _ in range(5):
            asyncio.run(once())
        self.assertLess(min(times), 0.02)
        self.assertEqual(len(target.log()), 5)

    def test_task_cancelled_at_the_gate_and_while_sending(self):
        target = self.server.script(reply(429, {"Retry-After": "30"}))
        stalled = self.server.script({"end": "stall"})

        async def both():
            transport = ration_client.httpx.AsyncTransport(max_retries=0)
            async with httpx.AsyncClient(transport=transport) as client:
                await client.get(target.url)
                held, sent = asyncio.create_task(client.get(target.url)), asyncio.create_task(client.get(stalled.url))
                while not stalled.log():
                    await asyncio.sleep(0.01)
                self.assertEqual([gate["waiting"] for gate in transport.stats()["gates"]], [1, 0])
                for call in (held, sent):
                    call.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await call
                for gate in transport.stats()["gates"]:
                    self.assertEqual((gate["waiting"], gate["in_flight"]), (0, 0))
        before = sockets()
        asyncio.run(both())
        until(lambda: sockets() <= before, "a socket is left")
        self.assertEqual(len(target.log()), 1)

    def cancelled(self, ask, stop, waiting):
        """Runs `ask` on a thread, `stop`s it once it waits; gives (what it raised, seconds until then)."""
        raised = []

        def work():
            try:
                ask()
            except Exception as error:
                raised.append((error, time.monotonic()))
        thread = threading.Thread(target=work)
        thread.start()
        self.assertTrue(waiting.wait(20))
        time.sleep(0.05)
        begun = time.monotonic()
        stop()
        thread.join(20)
        self.assertFalse(thread.is_alive())
        return raised[0][0], raised[0][1] - begun

    def test_token_ends_a_wait_on_another_thread(self):
        threads = threading.active_count()
        for library in ("httpx", "requests"):
            with self.subTest(library):
                self.assertLess(min(self.cut_by_token(library) for _ in range(5)), 0.02)
        self.assertEqual(threading.active_count(), threads)

    def cut_by_token(self, library):
        """How many seconds a wait lasts after the token is cancelled."""
        target, waiting, token = self.server.script(reply(429, {"Retry-After": "30"})), threading.Event(), CancelToken()
        with self.client(library, hooks={"on_wait": lambda event: waiting.set()}) as client:
            def ask():
                with token.scope():
                    client.get(target.url)
            error, seconds = self.cancelled(ask, token.cancel, waiting)
            self.assertEqual((error.info.reason, len(target.log())), ("cancelled", 1))
            client.get(self.server.script(OK).url)  # outside the scope the client goes on
        return seconds

    def test_token_does_not_end_a_send_and_nothing_follows_it(self):
        """Whatever is on its way comes: the answer is given back, or what broke it off is raised, and there is no retry."""
        cases = (OK, 200), (reply(404), 404), (reply(429, {"Retry-After": "30"}), 429), (reply(503), 503), ({"end": "close"}, None)
        for library in ("httpx", "requests"):
            for step, status in cases:
                with self.subTest(library, status=status):
                    target, token = self.server.script(step), CancelToken()
                    hooks = {"on_send": lambda event, token=token: token.cancel()}
                    with self.client(library, hooks=hooks) as client, token.scope():
                        try:
                            answer = client.get(target.url)
                            told, info = answer.status_code, (answer.ration if library == "requests"
                                                              else answer.extensions["ration"])
                        except (httpx.TransportError, requests.exceptions.ConnectionError) as error:
                            told, info = None, error.ration
                    self.assertEqual((told, info.reason, info.attempts), (status, "cancelled", 1))
                    self.assertEqual(len(target.log()), 1)

    def test_token_that_is_cancelled_already_sends_nothing(self):
        for library in ("httpx", "requests"):
            target, token = self.server.script(OK), CancelToken()
            token.cancel()
            refused = ration_client.httpx.CallRefused if library == "httpx" else ration_client.requests.CallRefused
            with self.client(library) as client, token.scope(), self.assertRaises(refused) as raised:
                client.get(target.url)
            self.assertEqual((raised.exception.info.reason, raised.exception.info.attempts), ("cancelled", 0))
            self.assertEqual(target.log(), [])

    def test_closing_ends_waits(self):
        for library in ("httpx", "requests"):
            target, waiting = self.server.script(reply(429, {"Retry-After": "30"})), threading.Event()
            client = self.client(library, hooks={"on_wait": lambda event, waiting=waiting: waiting.set()})
            error, _ = self.cancelled(lambda client=client, target=target: client.get(target.url), client.close, waiting)
            self.assertEqual(error.info.reason, "cancelled")

    @staticmethod
    def client(library, **options):
        if library == "httpx":
            return httpx.Client(transport=ration_client.httpx.Transport(**options))
        session = ration_client.requests.Session(**options)
        session.trust_env = False
        return session

    def test_refused_answers_give_their_connection_back(self):
        refusal = reply(503, {"Content-Type": "application/json"}, '{"error":"busy"}')
        for library in ("httpx", "requests"):
            target = self.server.script(refusal, refusal, refusal, OK)
            with self.subTest(library), self.client(library, backoff_base_ms=5) as client:
                self.assertEqual(client.get(target.url).status_code, 200)
                self.assertEqual(len({entry["connection"] for entry in target.log()}), 1)

    def test_no_socket_is_left_behind(self):
        endless = {"reply": "HTTP/1.1 503 No\nTransfer-Encoding: chunked\n\n", "chunks": "endless", "end": "close"}
        before = sockets()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            for library in ("httpx", "requests"):
                target = self.server.script(endless, {"end": "reset"}, OK)
                with self.client(library, backoff_base_ms=5) as client:
                    self.assertEqual(client.get(target.url).status_code, 200)
            gc.collect()
        self.assertEqual([str(warning.message) for warning in caught], [])
        until(lambda: sockets() <= before, "a socket is left")


if __name__ == "__main__":
    unittest.main()
