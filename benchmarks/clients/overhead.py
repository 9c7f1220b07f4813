#!/usr/bin/env python3
"""The clients beside the bare libraries that they send with, on loopback with connections kept alive.

The caller runs on core 0, the server (nginx `return 200`) on core 1. Bare and ours take turns within one process, so
that a slow minute of the machine hits both; medians are told.

    overhead.py [--rounds N] [--calls N]

One JSON object to stdout: {"fetch": {"bare": {"wall_us": ..., "cpu_us": ...}, "ours": {...}}, "httpx": ..., ...}
"""

import argparse
import json
import pathlib
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
    if library is None:
        command = ["node", HERE / "js_bench.mjs", url, options.rounds, options.calls]
    else:
        command = [installed.python(), "-B", HERE / "python_bench.py", library, url, options.rounds, options.calls]
    print(f"{name}...", file=sys.stderr, flush=True)
    done = subprocess.run(["taskset", "-c", str(gateway.CORE_PROXY), *map(str, command)], stdout=subprocess.PIPE, check=True)
    rounds = json.loads(done.stdout)
    return {side: {figure: statistics.median(each[figure] for each in rounds[side]) for figure in ("wall_us", "cpu_us")}
            for side in rounds}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=1000)
    options = parser.parse_args()
    installed.python()
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder) / "log", "w") as log:
        port = gateway.free_port()
        server = gateway.start(gateway.CORE_LOAD, ["nginx", "-c", gateway.fill("upstream.conf", folder, PORT=port)], log)
        try:
            gateway.wait_for(port, "the server")
            url = f"http://127.0.0.1:{port}/"
            print(json.dumps({name: measure(name, library, url, options) for name, library in NAMES.items()}))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
