"""One call after another to a server on loopback, keep-alive: bare httpx or requests and the client, in turns.

    python_bench.py LIBRARY URL ROUNDS CALLS        prints {"bare": [{wall_us, cpu_us}, ...], "ours": [...]}
"""

import asyncio
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python" / "src"))

import httpx  # noqa: E402
import requests  # noqa: E402

import ration_client.httpx  # noqa: E402
import ration_client.requests  # noqa: E402

LIBRARY, URL, ROUNDS, CALLS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
HEADERS = {"Authorization": "Bearer sk_bench"}


def figures(wall, cpu):
    return {"wall_us": wall / CALLS * 1e6, "cpu_us": cpu / CALLS * 1e6}


def measure(client):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        client.get(URL, headers=HEADERS).content
    return figures(time.perf_counter() - wall, time.process_time() - cpu)


async def measure_async(client):
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(CALLS):
        (await client.get(URL, headers=HEADERS)).content
    return figures(time.perf_counter() - wall, time.process_time() - cpu)


def sync_sides():
    if LIBRARY == "httpx":
        return {"bare": httpx.Client(), "ours": httpx.Client(transport=ration_client.httpx.Transport())}
    return {"bare": requests.Session(), "ours": ration_client.requests.Session()}


async def run_async():
    measured = {"bare": [], "ours": []}
    async with httpx.AsyncClient() as bare, httpx.AsyncClient(transport=ration_client.httpx.AsyncTransport()) as ours:
        for number in range(ROUNDS + 1):
            for name, client in (("bare", bare), ("ours", ours)):
                measured[name].append(await measure_async(client))
    return measured


def run():
    measured = {"bare": [], "ours": []}
    sides = sync_sides()
    for _ in range(ROUNDS + 1):
        for name, client in sides.items():
            measured[name].append(measure(client))
    return measured


result = asyncio.run(run_async()) if LIBRARY == "async" else run()
print(json.dumps({name: rounds[1:] for name, rounds in result.items()}))  # the first round warms
