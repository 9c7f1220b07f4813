"""Decisions on Redis counters beside redis-benchmark running the very same script, in one run.

    compare.py BENCH_PROGRAM

Redis has core 0, whoever asks has core 1; rounds are interleaved, and the one that is told is that of the
median ratio, for the machine's speed changes from round to round. The last line printed is one JSON
object: {"16": {"ours": decisions/s, "bare": calls/s}, "128": ..., "threads": ..., "calls": script
runs per decision, "memory": decisions/s}.
"""

import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ROUNDS = 7
SECONDS = 1
KEYS = 100_000
CLIENT = ["taskset", "-c", "1"]


def script():
    folder = ROOT / "src/counters/redis"
    return b"".join((folder / name).read_bytes() for name in ("script.lua", "script_more.lua", "script_run.lua"))


def arguments():
    """What the script gets for two buckets, 300 and 60 a minute. redis-benchmark takes its arguments as
    C strings, so every byte that would be zero is one: the numbers stay the same but for a trifle."""
    def charge(capacity, micros):
        return struct.pack("<BdBddddd", 1, 1, 1, capacity, 1, micros, 1, 1)
    header = struct.pack("<Bddddd8s", 1, 1, 1, 1e17, 1, 3.6e9, b"\1" * 8)
    return bytes(byte or 1 for byte in header + charge(300, 200_000) + charge(60, 1_000_000))


class Redis:
    def __init__(self, folder):
        self.socket = f"{folder}/socket"
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", "redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
             "--appendonly", "no", "--dir", folder], stdout=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            time.sleep(0.05)
        self.sha = self.command("-x", "SCRIPT", "LOAD", stdin=script()).strip()

    def command(self, *words, stdin=b""):
        done = subprocess.run(["redis-cli", "-s", self.socket, *words], input=stdin, stdout=subprocess.PIPE, check=True)
        return done.stdout.decode()

    def script_runs(self):
        found = re.search(r"cmdstat_evalsha:calls=(\d+)", self.command("INFO", "commandstats"))
        return int(found.group(1)) if found else 0

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def bare(self, depth):
        self.command("FLUSHALL")
        # Keys as long as ours: prefix, name, digest.
        names = ["{ration}:budget_:__rand_int__0123456789", "{ration}:caller_:__rand_int__0123456789"]
        rate = None
        for calls in (10_000, 40_000):  # the first to warm up
            done = subprocess.run(
                [*CLIENT, "redis-benchmark", "-s", self.socket, "-c", "1", "-P", str(depth), "-n", str(calls),
                 "-r", str(KEYS), "--csv", "-x", "EVALSHA", self.sha, "2", *names],
                input=arguments(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
            rate = float(done.stdout.decode().strip().split("\n")[-1].split('","')[1])
        return rate

    def stop(self):
        self.process.terminate()
        self.process.wait()


def ours(program, address, depth, threads):
    done = subprocess.run([*CLIENT, program, address, str(depth), str(threads), str(SECONDS)], stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


def main(program):
    result = {}
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(folder)
        address = "unix:" + redis.socket
        try:
            for depth in (16, 128):
                rounds = []
                for _ in range(ROUNDS):
                    bare = redis.bare(depth)
                    redis.command("FLUSHALL")
                    mine = ours(program, address, depth, 1)
                    rounds.append({"ours": mine["rate"], "cpu_us": mine["cpu_us"], "bare": bare})
                rounds.sort(key=lambda each: each["ours"] / each["bare"])
                result[str(depth)] = rounds[len(rounds) // 2]
            before, runs, start = redis.cpu_seconds(), redis.script_runs(), time.monotonic()
            both = ours(program, address, 64, 2)
            result["threads"] = {"rate": both["rate"],
                                 "redis_cpu": (redis.cpu_seconds() - before) / (time.monotonic() - start)}
            result["runs"] = redis.script_runs() - runs
            result["one"] = ours(program, address, 1, 1)
        finally:
            redis.stop()
    result["memory"] = ours(program, "memory", 1, 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1])
