"""One call after another to a server on loopback, keep-alive: bare httpx or requests and the client, in short turns,
each pair of turns in an order of chance, so that what the machine does hits both.

    python_bench.py LIBRARY URL TURNS CALLS        prints {"bare": [{wall_us, cpu_us}, ...], "ours": [...]}
"""

import asyncio
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python" / "src"))

import httpx  # noqa: E402
import requests  # noqa: E402

import ration_client.httpx  # noqa: E402
import ration_client.requests  # noqa: E402

LIBRARY, URL, TURNS, CALLS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
WARMING = 5  # turns that are not told
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


def in_turns(sides):
    """The name and client of each turn, the warming ones first."""
    for _ in range(WARMING + TURNS):
        yield from random.sample(sorted(sides.items()), len(sides))


async def run_async():
    measured = {"bare": [], "ours": []}
    async with httpx.AsyncClient() as bare, httpx.AsyncClient(transport=ration_client.httpx.AsyncTransport()) as ours:
        for name, client in in_turns({"bare": bare, "ours": ours}):
            measured[name].append(await measure_async(client))
    return measured


def run():
    measured = {"bare": [], "ours": []}
    for name, client in in_turns(sync_sides()):
        measured[name].append(measure(client))
    return measured


result = asyncio.run(run_async()) if LIBRARY == "async" else run()
print(json.dumps({name: turns[WARMING:] for name, turns in result.items()}))
