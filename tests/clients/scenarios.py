"""What a caller does against the running gateway, with the Python client. Prints one line of JSON.

    scenarios.py LIBRARY SCENARIO URL        LIBRARY: httpx, async, requests
"""

import asyncio
import json
import sys
import threading

import httpx

import ration_client.httpx
import ration_client.requests

LIBRARY, SCENARIO, URL = sys.argv[1:4]
TOLD = ("x-ratelimit-remaining", "x-ratelimit-reset", "retry-after")
EVENTS = []


def on_send(event):
    EVENTS.append({"now_ms": event["now_ms"], "at_ms": event["wall_ms"], "kind": "send"})


def on_answer(event):
    EVENTS.append({"now_ms": event["now_ms"], "at_ms": event["wall_ms"], "kind": "answer", "status": event["status"],
                   "error": event["error"], "headers": {name: event["header"](name) for name in TOLD}})


HOOKS = {"on_send": on_send, "on_answer": on_answer}
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=100)


class Sync:
    """`ask` may be called from many threads."""

    def __init__(self, **options):
        if LIBRARY == "httpx":
            self.transport = ration_client.httpx.Transport(httpx.HTTPTransport(limits=LIMITS), **options)
            self.client = httpx.Client(transport=self.transport, timeout=None)
            self.stats = self.transport.stats
        else:
            self.client = ration_client.requests.Session(pool_maxsize=100, **options)
            self.client.trust_env = False
            self.stats = self.client.stats

    def ask(self, method, url, headers, body):
        try:
            content = {"content": body} if LIBRARY == "httpx" else {"data": body}
            answer = self.client.request(method, url, headers=headers, **content)
        except Exception as error:
            return failed(error)
        info = answer.extensions["ration"] if LIBRARY == "httpx" else answer.ration
        return {**info._asdict(), "status": answer.status_code, "text": answer.text}

    def crowd(self, callers, calls, key, method="GET", body=None, progress=None):
        results, left, lock = [], [calls], threading.Lock()

        def work():
            while True:
                with lock:
                    if not left[0]:
                        return
                    left[0] -= 1
                results.append(self.ask(method, URL, bearer(key), body))
                if len(results) == progress:
                    print("half-way", flush=True)
        workers = [threading.Thread(target=work) for _ in range(callers)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return {"results": results, "events": EVENTS, "stats": self.stats()}


class Async:
    def __init__(self, **options):
        self.loop = asyncio.new_event_loop()
        self.transport = ration_client.httpx.AsyncTransport(httpx.AsyncHTTPTransport(limits=LIMITS), **options)
        self.client = httpx.AsyncClient(transport=self.transport, timeout=None)
        self.stats = self.transport.stats

    async def ask_async(self, method, url, headers, body):
        try:
            answer = await self.client.request(method, url, headers=headers, content=body)
        except Exception as error:
            return failed(error)
        return {**answer.extensions["ration"]._asdict(), "status": answer.status_code, "text": answer.text}

    def ask(self, *what):
        return self.loop.run_until_complete(self.ask_async(*what))

    def crowd(self, *what, **how):
        return self.loop.run_until_complete(self.crowd_async(*what, **how))

    async def crowd_async(self, callers, calls, key, method="GET", body=None, progress=None):
        results, left = [], [calls]

        async def work():
            while left[0]:
                left[0] -= 1
                results.append(await self.ask_async(method, URL, bearer(key), body))
                if len(results) == progress:
                    print("half-way", flush=True)
        await asyncio.gather(*[work() for _ in range(callers)])
        return {"results": results, "events": EVENTS, "stats": self.stats()}


def failed(error):
    info = getattr(error, "ration", None)
    return {**(info._asdict() if info else {}), "status": None, "error": repr(error)}


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def bookings(client, key, count):
    results = []
    for number in range(count):
        body = json.dumps({"slot": f"2027-01-{1 + number // 16:02}T{9 + number % 16 // 2:02}:{'30' if number % 2 else '00'}",
                           "customer": {"name": "ana", "email": "ana@example.org"}})
        headers = {**bearer(key), "Content-Type": "application/json"}
        results.append(client.ask("POST", f"{URL}/v1/bookings", headers, body))
    return {"results": results, "stats": client.stats()}


def minute(client, key):
    results = [client.ask("GET", URL, bearer(key), None) for _ in range(8)]
    return {"results": results, "events": EVENTS, "stats": client.stats()}


Client = Async if LIBRARY == "async" else Sync
SCENARIOS = {
    "crowd": lambda: Client(hooks=HOOKS).crowd(50, 600, f"sk_{LIBRARY}"),
    "posts": lambda: Client(hooks=HOOKS).crowd(70, 70, f"sk_{LIBRARY}_posts", "POST", "x"),
    "restart": lambda: Client(hooks=HOOKS, max_retries=10).crowd(20, 2000, f"sk_{LIBRARY}_fast", progress=400),
    "office": lambda: Client(hooks=HOOKS).crowd(50, 600, "axp_demo_ana_ci"),
    "minute": lambda: minute(Client(hooks=HOOKS, total_deadline_ms=5_000), "axp_demo_ben"),
    "day": lambda: bookings(Client(idempotency=["POST /v1/bookings"]), "pk_demo_lisbon", 17),
    "volume": lambda: bookings(Client(idempotency=["POST /v1/bookings"]), "sk_demo_tokyo", 5),
}
print(json.dumps(SCENARIOS[SCENARIO]()))
