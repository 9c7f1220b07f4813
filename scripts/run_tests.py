"""Builds and runs the stages of ./test, then sums up.

Each stage has a build folder of its own; a stage that fails does not keep the next one from
running. The last line is "N passed, N failed" over every test of every stage; a step that could
not run at all (a build that fails, say) counts as one failed test.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = str(os.cpu_count() or 2)
FUZZ_SECONDS = int(os.environ.get("RATION_FUZZ_SECONDS", "20"))  # for each target
SCRATCH_BYTES = 2 << 30
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}


class Tally:
    def __init__(self):
        self.passed, self.failures, self.timings = 0, [], []

    def step(self, name, good):
        if good:
            self.passed += 1
        else:
            self.failures.append(name)
        return good

    def told(self):
        """The exit status, after the last lines."""
        for failure in self.failures:
            print(f"FAILED {failure}")
        print(f"{self.passed} passed, {len(self.failures)} failed", flush=True)
        return 1 if self.failures or not self.passed else 0


def call(*command, **options):
    print("$", *command[:12], *(["..."] if len(command) > 12 else []), flush=True)
    return subprocess.run(command, cwd=ROOT, **options).returncode == 0


def in_ci():
    return os.environ.get("CI", "").lower() in ("1", "true", "yes")


def build(tally, preset, folder, *settings, targets=()):
    """Configures and builds; on failure one failed step stands for all that could not run."""

    configured = call("cmake", "--preset", preset, *settings, stdout=subprocess.DEVNULL)
    built = configured and call("cmake", "--build", folder, "-j", JOBS,
                                *(["--target", *targets] if targets else []))
    if not built:
        tally.step(f"{preset}: build", False)
    return built


@contextlib.contextmanager
def scratch():
    """The tests' temporary files are in memory where there is room for them: a disk that stands still for seconds,
    as it may after a large build, is a ledger that fails."""
    memory = pathlib.Path("/dev/shm")
    good = (memory.is_dir() and os.access(memory, os.W_OK) and not os.statvfs(memory).f_flag & os.ST_NOEXEC
            and shutil.disk_usage(memory).free >= SCRATCH_BYTES)
    with tempfile.TemporaryDirectory(prefix="ration-tests-", dir=memory if good else None,
                                     ignore_cleanup_errors=True) as folder:
        yield {"TMPDIR": folder}


def run_ctest(tally, preset, folder, *selection):
    report = ROOT / folder / "test-report.xml"
    report.unlink(missing_ok=True)
    with scratch() as temporary:
        call("ctest", "--test-dir", folder, "-j", JOBS, "--output-on-failure", "--no-tests=error",
             "--output-junit", str(report), "--progress", *selection,
             env={**os.environ, **SANITIZER_OPTIONS, **temporary})
    if not report.exists():
        tally.step(f"{preset}: ctest", False)
        return
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        # Anything but "run" (failed, skipped, disabled) is not a pass: no test may sit out.
        tally.step(f"{preset}: {case.get('name')}", case.get("status") == "run")


def release(tally, *selection):
    preset = "ci" if in_ci() else "release"
    if build(tally, preset, "build", "-DRATION_TESTS=ON"):
        run_ctest(tally, preset, "build", *selection)


def quick(tally):
    release(tally, "-L", "unit|scenario")


def headers(tally):
    """Each public header stands alone; part of the release stage."""
    tally.step("public headers stand alone",
               call("cmake", "--build", "build", "--target", "all_verify_interface_header_sets"))


def full_release(tally):
    release(tally)
    headers(tally)
    layout(tally)


def sanitized(preset):
    def stage(tally):
        if build(tally, preset, f"build/{preset}", "-DRATION_WERROR=" + ("ON" if in_ci() else "OFF")):
            run_ctest(tally, preset, f"build/{preset}")
    return stage


def fuzz(tally):
    if not build(tally, "fuzz", "build/fuzz", "-DRATION_SANITIZE=address"):
        return
    programs = sorted(path for path in (ROOT / "build/fuzz/fuzz").glob("fuzz_*") if path.is_file())
    tally.step("fuzz targets exist", bool(programs))
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        for program, output in zip(programs, pool.map(fuzz_one, programs)):
            if not tally.step(f"fuzz: {program.name}", output is None):
                print(output, flush=True)


def fuzz_one(program):
    """None when the target found nothing, else what it printed."""
    corpus = ROOT / "fuzz/corpus" / program.name.removeprefix("fuzz_")
    with tempfile.TemporaryDirectory() as found:
        try:
            done = subprocess.run(
                [program, f"-max_total_time={FUZZ_SECONDS}", "-timeout=10", "-rss_limit_mb=2048",
                 f"-artifact_prefix={ROOT}/build/fuzz/", "-print_final_stats=1", found, corpus],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                timeout=FUZZ_SECONDS * 3 + 60)
        except subprocess.TimeoutExpired:
            return f"{program.name} did not end in time"
    print(f"{program.name}: {fuzz_summary(done.stdout)}", flush=True)
    return None if done.returncode == 0 else done.stdout[-6000:]


def fuzz_summary(output):
    runs = [line for line in output.splitlines() if "number_of_executed_units" in line]
    return runs[-1].split()[-1] + " inputs" if runs else "no summary"


def cpp_files(*folders):
    return sorted(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")
                  if path.suffix in (".h", ".cc"))


def layout(tally):
    files = cpp_files("include", "src", "tests", "fuzz", "benchmarks")
    tally.step("clang-format", call("clang-format-16", "--dry-run", "--Werror", *files))


def tidy(tally):
    """clang-tidy over src. Read by clang, so the compile commands are those of the fuzz build."""
    if not call("cmake", "--preset", "fuzz", "-DRATION_SANITIZE=address", stdout=subprocess.DEVNULL):
        tally.step("clang-tidy: configure", False)
        return
    files = [name for name in cpp_files("src") if name.endswith(".cc")]
    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        for name, output in zip(files, pool.map(tidy_one, files)):
            if not tally.step(f"clang-tidy: {name}", output is None):
                print(output, flush=True)


def tidy_one(name):
    done = subprocess.run(["clang-tidy-16", "--quiet", "--warnings-as-errors=*", "-p", "build/fuzz", name],
                          cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout


def crash(tally, kills):
    """The gateway is killed under load that often; part of the release stage with 200 kills."""
    program = "ration_killed_at_points"
    if build(tally, "release", "build", "-DRATION_TESTS=ON", targets=["ration", program]):
        with scratch() as temporary:
            environment = {**os.environ, **temporary, "RATION_KILLS": kills,
                           "RATION_BINARY": str(ROOT / "build/ration"),
                           "RATION_CRASHING_BINARY": str(ROOT / "build/tests/e2e" / program)}
            tally.step(f"{kills} kills", call(sys.executable, "-B", "tests/e2e/crash_test.py", env=environment))


def simulate(tally, lives):
    """That many lives of the simulation, which the release stage has some thousands of."""
    if build(tally, "release", "build", "-DRATION_TESTS=ON", targets=["sim_test"]):
        tally.step(f"{lives} lives", call("build/tests/sim/sim_test", "--gtest_filter=Simulation.EveryLifeHolds",
                                          env={**os.environ, "RATION_SIM_SEEDS": lives}))


STAGES = {"quick": quick, "release": full_release, "asan": sanitized("asan"),
          "tsan": sanitized("tsan"), "fuzz": fuzz, "tidy": tidy}
# clang-tidy takes as long as all of these together, and is asked for by name.
FULL = ["release", "asan", "tsan", "fuzz"]
# Asked for by name alone, with how much of it: ./test crash 1000
COUNTED = {"crash": (crash, "200"), "sim": (simulate, "20000")}


def main(names):
    if names and names[0] in COUNTED:
        return main_counted(*names)
    if names in ([], ["full"]):
        names = FULL
    if unknown := [name for name in names if name not in STAGES]:
        print(f"test: no stage {unknown[0]}; there are full, crash N, sim N, {', '.join(STAGES)}", file=sys.stderr)
        return 2
    tally = Tally()
    for name in names:
        print(f"\n== {name}", flush=True)
        begun = time.monotonic()
        STAGES[name](tally)
        tally.timings.append((name, time.monotonic() - begun))
    print("\n== summary")
    for name, seconds in tally.timings:
        print(f"{name:10} {seconds / 60:6.1f} min")
    return tally.told()


def main_counted(name, count=None, *more):
    stage, usual = COUNTED[name]
    if more or not (count or usual).isdigit():
        print(f"test: {name} takes one number", file=sys.stderr)
        return 2
    tally = Tally()
    stage(tally, count or usual)
    return tally.told()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
