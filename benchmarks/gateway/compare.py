#!/usr/bin/env python3
"""The gateway beside nginx and HAProxy, doing the same: two limits per request, an access log, a
kept-alive upstream. CPU time per request is what is compared.

Each proxy runs on core 0, its upstream (nginx `return 200`) and wrk on core 1. Rounds are
interleaved and their order turns, so that a slow minute of the machine hits all alike; medians are
told. CPU time is user + system of all of a proxy's processes, from /proc/PID/stat.

    compare.py BUILD/ration [--rounds N] [--seconds N] [--connections N] [--only NAME,...]

Progress goes to stderr, one JSON object to stdout:
{"ration": {"us": 12.3, "rps": 60000, "rounds_us": [...], "what": "..."}, "nginx": ..., "haproxy": ...}
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
PATH = "/v1/availability"
KEY = "pk_live_benchmark"
CORE_PROXY, CORE_LOAD = 0, 1


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fill(template, folder, **values):
    """Writes a configuration from configs/, @NAME@ replaced; returns its path."""
    text = (HERE / "configs" / template).read_text()
    for name, value in {"FOLDER": folder, **values}.items():
        text = text.replace(f"@{name}@", str(value))
    assert "@" not in re.sub(r"@\w*[^A-Z@]\w*", "", text), f"{template}: unfilled place"
    path = pathlib.Path(folder) / template
    path.write_text(text)
    return str(path)


def start(core, command, log):
    return subprocess.Popen(["taskset", "-c", str(core), *command], stdout=log, stderr=log, start_new_session=True)


def wait_for(port, what):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"{what} does not listen on port {port}")


def family(pid):
    """A process and all below it."""
    pids, found = [pid], []
    while pids:
        at = pids.pop()
        found.append(at)
        try:
            pids += map(int, pathlib.Path(f"/proc/{at}/task/{at}/children").read_text().split())
        except FileNotFoundError:
            pass
    return found


def cpu_seconds(pid):
    total = 0
    for each in family(pid):
        try:
            fields = pathlib.Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
        except FileNotFoundError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


class Proxy:
    def __init__(self, name, what, command, port, folder):
        self.name, self.what, self.command, self.port, self.folder = name, what, command, port, folder
        self.process, self.us, self.rps = None, [], []

    def start(self):
        log = open(pathlib.Path(self.folder) / f"{self.name}.out", "wb")
        self.process = start(CORE_PROXY, self.command, log)
        wait_for(self.port, self.name)

    def measure(self, seconds, connections):
        before = cpu_seconds(self.process.pid)
        requests, rps = load(self, seconds, connections)
        self.us.append((cpu_seconds(self.process.pid) - before) / requests * 1e6)
        self.rps.append(rps)


class Disturbed(Exception):
    """The machine stood still: wrk gave up waiting. The round is measured again."""


def load(proxy, seconds, connections):
    done = subprocess.run(
        ["taskset", "-c", str(CORE_LOAD), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
         "-H", f"Authorization: Bearer {KEY}", f"http://127.0.0.1:{proxy.port}{PATH}"],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    bad = re.search(r"Non-2xx or 3xx responses: \d+", done)
    if bad:
        sys.exit(f"{proxy.name}: {bad.group(0)}: not what is to be measured")
    if broken := re.search(r"Socket errors: .*", done):
        raise Disturbed(f"{proxy.name}: {broken.group(0)}")
    return (int(re.search(r"(\d+) requests in", done).group(1)),
            float(re.search(r"Requests/sec:\s+([\d.]+)", done).group(1)))


def persistently(action, attempts=5):
    for attempt in range(attempts):
        try:
            return action()
        except Disturbed as disturbed:
            print(f"again: {disturbed}", file=sys.stderr)
    sys.exit("the machine is too busy to measure anything")


def proxies(ration, folder, upstream):
    ports = {name: free_port() for name in ("ration", "nginx", "haproxy", "admin")}
    fill("policy.yaml", folder)
    fill("directory.yaml", folder)
    yield Proxy("ration", "ration", [ration, "serve", fill("serve.yaml", folder, PORT=ports["ration"],
                                                           ADMIN=ports["admin"], UPSTREAM=upstream)],
                ports["ration"], folder)
    if shutil.which("nginx"):
        yield Proxy("nginx", "nginx limit_req + proxy_pass",
                    ["nginx", "-c", fill("nginx.conf", folder, PORT=ports["nginx"], UPSTREAM=upstream)],
                    ports["nginx"], folder)
    if shutil.which("haproxy"):
        yield Proxy("haproxy", "HAProxy stick tables",
                    ["haproxy", "-f", fill("haproxy.cfg", folder, PORT=ports["haproxy"], UPSTREAM=upstream)],
                    ports["haproxy"], folder)


def run(arguments, folder, started):
    upstream = free_port()
    process = start(CORE_LOAD, ["nginx", "-c", fill("upstream.conf", folder, PORT=upstream)], subprocess.DEVNULL)
    started.append(process)
    wait_for(upstream, "the upstream")
    wanted = arguments.only.split(",") if arguments.only else None
    chosen = [p for p in proxies(arguments.ration, folder, upstream) if wanted is None or p.name in wanted]
    for proxy in chosen:
        proxy.start()
        started.append(proxy.process)
        persistently(lambda proxy=proxy: load(proxy, 1, arguments.connections))
    for number in range(arguments.rounds):
        for proxy in chosen if number % 2 == 0 else reversed(chosen):
            persistently(lambda proxy=proxy: proxy.measure(arguments.seconds, arguments.connections))
            print(f"round {number + 1}: {proxy.name:8} {proxy.us[-1]:6.2f} us/request {proxy.rps[-1]:8.0f}/s",
                  file=sys.stderr, flush=True)
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ration")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    arguments.ration = str(pathlib.Path(arguments.ration).resolve())
    started = []
    with tempfile.TemporaryDirectory(prefix="ration-bench-") as folder:
        try:
            chosen = run(arguments, folder, started)
        finally:
            for process in started:
                os.killpg(process.pid, signal.SIGTERM)
            for process in started:
                process.wait()
    result = {p.name: {"us": statistics.median(p.us), "rps": statistics.median(p.rps), "rounds_us": p.us,
                       "what": p.what} for p in chosen}
    for name, row in result.items():
        base = result.get("nginx", row)["us"]
        print(f"{name:8} {row['us']:6.2f} us/request {row['rps']:8.0f}/s {row['us'] / base:5.2f}x nginx", file=sys.stderr)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
