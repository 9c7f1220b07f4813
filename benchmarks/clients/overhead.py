#!/usr/bin/env python3
"""The clients beside the bare libraries that they send with, on loopback with connections kept alive.

The caller runs on core 0, the server (nginx `return 200`) on core 1. In Python bare and ours take short turns within one
process, so that a slow moment of the machine hits both; in Node each has processes of its own, in turns. How two programs
lie in memory moves a ratio by several hundredths and stays as it is while a process lives, so each library is measured in
several processes, and the median of their medians is told.

    overhead.py [--processes N] [--turns N] [--calls N] [--only NAME]

One JSON object to stdout: {"fetch": {"bare": {"wall_us": ..., "cpu_us": ...}, "ours": {...}}, "httpx": ..., ...}
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "clients"), str(HERE.parent / "gateway")]

import compare as gateway  # noqa: E402: benchmarks/gateway/compare.py: configurations, cores
import installed  # noqa: E402

NAMES = {"fetch": None, "httpx": "httpx", "httpx async": "async", "requests": "requests"}


def measure(name, library, url, options):
    """{"bare": {"wall_us": ..., "cpu_us": ...}, "ours": ...}."""
    print(f"{name}...", file=sys.stderr, flush=True)
    last = [url, options.turns, options.calls]
    if library is None:
        pairs = [{side: run("node", HERE / "js_bench.mjs", side, *last) for side in random.sample(["bare", "ours"], 2)}
                 for _ in range(options.processes)]
    else:
        pairs = [run(installed.python(), "-B", HERE / "python_bench.py", library, *last) for _ in range(options.processes)]
    return {side: {figure: statistics.median(statistics.median(turn[figure] for turn in pair[side]) for pair in pairs)
                   for figure in ("wall_us", "cpu_us")} for side in ("bare", "ours")}


def run(*command):
    command = ["taskset", "-c", gateway.CORE_PROXY, *command]
    return json.loads(subprocess.run([*map(str, command)], stdout=subprocess.PIPE, check=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=9)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--only", choices=NAMES)
    options = parser.parse_args()
    installed.python()
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder) / "log", "w") as log:
        port = gateway.free_port()
        server = gateway.start(gateway.CORE_LOAD, ["nginx", "-c", gateway.fill("upstream.conf", folder, PORT=port)], log)
        try:
            gateway.wait_for(port, "the server")
            url = f"http://127.0.0.1:{port}/"
            names = [options.only] if options.only else NAMES
            print(json.dumps({name: measure(name, NAMES[name], url, options) for name in names}))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
