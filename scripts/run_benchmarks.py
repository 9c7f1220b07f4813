"""Builds the benchmarks, runs them side by side, prints the table, writes benchmarks/RESULTS.md.

Figures are medians of interleaved rounds in one run, the server or the measured loop alone on core
0. A figure is judged by its bound and by its ratio to what stands beside it; nothing is asserted.
benchmarks/NOTES.md, where it exists, explains the rows that fall short and is copied in.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/bench"
ROUNDS = 3


@dataclasses.dataclass
class Row:
    work: str
    figure: float
    unit: str
    bound: float | None = None  # at most
    beside: str = ""
    other: float | None = None  # the figure of what stands beside
    detail: str = ""

    def ratio(self):
        return "" if not self.other else f"{self.figure / self.other:.2f}x"

    def met(self):
        return "" if self.bound is None else "yes" if self.figure <= self.bound else "no"

    def cells(self):
        other = f"{self.beside}: {shown(self.other)} {self.unit}" if self.other is not None else self.beside
        bound = "" if self.bound is None else f"{shown(self.bound)} {self.unit}"
        return [self.work, f"{shown(self.figure)} {self.unit}", bound, self.met(), other, self.ratio(), self.detail]


HEADINGS = ["work", "ration", "at most", "met", "beside", "ratio", ""]


def shown(number):
    return f"{number:.0f}" if number >= 100 or number == int(number) else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def google_benchmark(program, pattern, *options):
    """Medians by benchmark name: {"name": {"ns": ..., counter: ...}}."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run(["taskset", "-c", "0", BUILD / "benchmarks" / program, f"--benchmark_filter={pattern}",
                        f"--benchmark_repetitions={ROUNDS}", "--benchmark_enable_random_interleaving=true",
                        f"--benchmark_out={report.name}", "--benchmark_out_format=json", *options],
                       check=True, stdout=subprocess.DEVNULL)
        runs = json.load(open(report.name))["benchmarks"]
    names = {run["run_name"]: [] for run in runs if run["run_type"] == "iteration"}
    for run in runs:
        if run["run_type"] == "iteration":
            if run.get("error_occurred"):
                raise RuntimeError(f"{run['run_name']}: {run['error_message']}")
            names[run["run_name"]].append(run)
    return {name: medians(runs) for name, runs in names.items()}


def medians(runs):
    numbers = {key for key, value in runs[0].items() if isinstance(value, (int, float))}
    result = {key: statistics.median(run[key] for run in runs) for key in numbers}
    result["ns"] = result["cpu_time"] * {"ns": 1, "us": 1e3, "ms": 1e6}[runs[0]["time_unit"]]
    return result


def bucket_rows():
    measured = google_benchmark("bucket_bench", "take_one.*threads:1$", "--benchmark_min_time=0.5")
    for keys, label, bound, bytes_bound in ((1, "hot key", 25, None), (10**6, "1M keys uniform", 180, 36),
                                            (10**7, "10M keys uniform", 230, 28)):
        ours, other = (measured[f"take_one<{table}>/keys:{keys}/real_time/threads:1"]
                       for table in ("RationTable", "MapTable"))
        yield Row(f"take from one bucket, {label}", ours["ns"], "ns", bound, "sharded flat_hash_map + mutex",
                  other["ns"])
        if bytes_bound:
            yield Row(f"memory per live key, {label}", ours["bytes_per_key"], "bytes", bytes_bound,
                      "sharded flat_hash_map + mutex", other["bytes_per_key"])


def decision_rows():
    measured = google_benchmark("decision_bench", "BookingDecision|Growth")
    decision = measured["BookingDecision"]
    yield Row("a whole decision of the booking policy", decision["ns"], "ns", 600)
    yield Row("heap allocations in it", decision["allocations"], "", 0)
    few, many = measured["Growth/10"]["ns"], measured["Growth/200"]["ns"]
    yield Row("a decision with 200 limits that do not match", many, "ns", None, "the same with 10", few)


def gateway_rows():
    """benchmarks/gateway/compare.py prints one JSON object: {"name": {"us": CPU per request, "rps": ...}}."""
    done = subprocess.run([sys.executable, ROOT / "benchmarks/gateway/compare.py", str(BUILD / "ration")],
                          check=True, stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    ours = measured["ration"]
    for name, bound in (("nginx", measured["nginx"]["us"]), ("haproxy", None)):
        other = measured[name]
        yield Row("gateway, small answers, keep-alive: CPU per request", ours["us"], "us", bound, other["what"],
                  other["us"], f"{ours['rps']:.0f} and {other['rps']:.0f} requests/s")


def ledger_rows():
    """benchmarks/ledger_bench prints {"ration": {"rate": creates/s, "p99_ms": ..., "cpu_us": ...}, "bare": ...}."""
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        done = subprocess.run([BUILD / "benchmarks/ledger_bench", folder, str(ROUNDS), "5"], check=True,
                              stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout)
    ours, bare = measured["ration"], measured["bare"]
    yield Row("keyed create through the ledger, two durable commits, 64 callers", 1e6 / ours["rate"], "us", 50,
              "bare SQLite, the same rows in the same two group commits", 1e6 / bare["rate"],
              f"{ours['rate']:.0f} and {bare['rate']:.0f} creates/s (at least 0.8 of the bare rate is asked for);"
              f" CPU of the writing thread {ours['cpu_us']:.1f} and {bare['cpu_us']:.1f} us")
    yield Row("keyed create through the ledger, 99th percentile", ours["p99_ms"], "ms", 8, "bare SQLite, a pair of commits",
              bare["p99_ms"])
    measured = google_benchmark("decision_bench", "NoLedgerRule|BookingDecision")
    yield Row("a decision on a route that no ledger rule speaks about", measured["BookingDecision"]["ns"], "ns", None,
              "the same policy without ledger rules", measured["NoLedgerRule"]["ns"])


def redis_rows():
    """benchmarks/redis/compare.py prints one JSON object of rates."""
    done = subprocess.run([sys.executable, ROOT / "benchmarks/redis/compare.py",
                           str(BUILD / "benchmarks/redis_bench")], check=True, stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout.splitlines()[-1])
    for depth in ("16", "128"):
        at = measured[depth]
        yield Row(f"decision on Redis counters, two limits, {depth} in flight", 1e6 / at["ours"], "us",
                  1e6 / at["bare"] / 0.9, "redis-benchmark of the same script", 1e6 / at["bare"],
                  f"{at['ours']:.0f} and {at['bare']:.0f} a second; our CPU {at['cpu_us']:.1f} us")
    threads = measured["threads"]
    yield Row("the same by two threads", 1e6 / threads["rate"], "us",
              detail=f"{threads['rate']:.0f} a second; Redis has its core {threads['redis_cpu']:.0%} of the time")
    yield Row("the same on memory counters", 1e6 / measured["memory"]["rate"], "us")


def client_rows():
    """benchmarks/client_bench prints {"ration": {"ns": per call}, "libcurl": {"ns": ...}};
    benchmarks/clients/overhead.py prints {"fetch": {"bare": {"wall_us", "cpu_us"}, "ours": ...}, "httpx": ...}."""
    done = subprocess.run([BUILD / "benchmarks/client_bench"], check=True, stdout=subprocess.PIPE, text=True)
    measured = json.loads(done.stdout)
    ours, bare = measured["ration"]["ns"] / 1000, measured["libcurl"]["ns"] / 1000
    yield Row("a call of the C++ client, keep-alive on loopback", ours, "us", bare * 1.1, "bare libcurl", bare)
    done = subprocess.run([sys.executable, ROOT / "benchmarks/clients/overhead.py"], check=True, stdout=subprocess.PIPE,
                          text=True)
    for name, sides in json.loads(done.stdout).items():
        bare, ours = sides["bare"], sides["ours"]
        yield Row(f"a call through the client over {name}, loopback, keep-alive", ours["wall_us"], "us",
                  1.1 * bare["wall_us"], f"bare {name}", bare["wall_us"],
                  f"CPU {ours['cpu_us']:.0f} and {bare['cpu_us']:.0f} us")


PARTS = {"bucket": bucket_rows, "decision": decision_rows, "ledger": ledger_rows, "gateway": gateway_rows,
         "redis": redis_rows, "clients": client_rows}


def machine():
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    memory = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    model = re.search(r"model name\s*: (.*)", cpuinfo)
    cache = re.search(r"cache size\s*: (.*)", cpuinfo)
    flags = re.search(r"flags\s*: (.*)", cpuinfo)
    virtual = "virtual machine" if flags and "hypervisor" in flags.group(1).split() else "bare metal"
    compiler = first_line("g++", "--version")
    versions = [first_line("nginx", "-v"), first_line("haproxy", "-v"), first_line("wrk", "-v")]
    return [f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} cores, cache "
            f"{cache.group(1) if cache else 'unknown'}, {memory / 2**20:.0f} GiB, {virtual}",
            f"Linux {platform.release()}; {compiler}", "; ".join(version for version in versions if version)]


def first_line(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout.strip().split("\n")[0]


def table(rows):
    cells = [HEADINGS, *[row.cells() for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def results(rows):
    notes = ROOT / "benchmarks/NOTES.md"
    return "\n".join([
        "# Results", "",
        "Written by `./bench`; run it to measure again. The measured side has core 0 to itself, the load core 1;",
        f"figures are medians of {ROUNDS} interleaved rounds of one run, CPU time where a time is given. A ratio is",
        "ration's figure over that of what stands beside it: below 1 is less time or memory.", "",
        *[f"- {line}" for line in machine()],
        f"- measured on {datetime.date.today().isoformat()}", "",
        table(rows), "", *([notes.read_text().rstrip(), ""] if notes.exists() else [])])


def main(names):
    if unknown := [name for name in names if name not in PARTS]:
        print(f"bench: no row {unknown[0]}; there are {', '.join(PARTS)}", file=sys.stderr)
        return 2
    subprocess.run(["cmake", "--preset", "bench"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build/bench"], cwd=ROOT, check=True)
    rows, failures = [], []
    for name in names or PARTS:
        print(f"measuring: {name}", flush=True)
        try:
            rows += PARTS[name]()
        except (OSError, KeyError, RuntimeError, subprocess.CalledProcessError) as error:
            failures.append(f"{name}: {error!r}")
    print(table(rows))
    if not names and not failures:
        (ROOT / "benchmarks/RESULTS.md").write_text(results(rows))
    for failure in failures:
        print(f"bench: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
