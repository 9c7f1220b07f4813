"""The house rules that a compiler does not hold, each a function from sources to findings.

A rule takes one `Source` (or the whole `Tree`) and returns texts "path:line: what is wrong". The
tables at the top are the rules' data: who may include whom, which file may include which heavy
header, where a clock may be read.
"""

import ast
import os
import re
import statistics

from cpp_text import Source, blank_out

# An include points up this list only: a folder may include itself and what stands before it.
LAYERS = ["base", "limits", "wire", "client", "net", "request", "policy", "engine", "counters", "ledger",
          "server", "workbench", "cli"]

# Headers that cost seconds to compile or whose types must not spread, and who may include them.
HEAVY_HEADERS = {
    r"boost/": [r"src/server/http/head_parser\.cc", r"tests/counters/changed_numbers_test\.cc"],
    r"openssl/": [r"src/net/(stream|tls)\.cc", r"src/policy/directory_reader\.cc", r"tests/server/.*",
                 r"tests/client/raw_tls\.cc"],
    r"spdlog/": [r"src/server/process/log\.cc"],
    r"yaml-cpp/": [r"src/policy/yaml_source\.cc"],
    r"prometheus/": [r"src/server/metrics/exposition\.cc"],
    r"sqlite3": [r"src/ledger/sqlite_.*", r"tests/ledger/.*", r"tests/sim/disk\.cc"],
    r"nlohmann/json\.hpp": [r"src/(policy/schema|request/canonical_json|client/error_body)\.cc", r"src/server/admin/.*",
                            r"src/cli/call/job_list\.cc",
                            r"src/workbench/.*\.cc", r"tests/.*"],
    r"CLI/": [r"src/cli/.*"],
    r"curl/": [r"benchmarks/client_bench\.cc", r"src/client/(url|easy_pool|exchange|request_lines)\.(h|cc)", r"src/cli/admin_client\.cc"],
}

CLOCK_FILE = "src/base/system_clock.cc"
CLOCK_READS = re.compile(
    r"\b(steady_clock|system_clock|high_resolution_clock|utc_clock|file_clock)::now\b"
    r"|\b(clock_gettime|gettimeofday|timespec_get|ftime|__rdtsc|GetCurrentTimeNanos)\s*\("
    r"|(?<![\w.>])time\s*\(\s*(nullptr|NULL|0|&)"
    r"|\bstd::(time|clock)\s*\(|\babsl::Now\s*\(")

MAX_FILE_LINES, MAX_MEDIAN_LINES, MAX_FUNCTION_LINES = 600, 150, 60
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
SAT_OUT = re.compile(r"\bDISABLED" r"_|\bGTEST_" r"SKIP\b|\bunittest\.skip|\.skip" r"Test\(")
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|farm|root|home)/\w|(?<![\w.])/tm" r"p/\w+/|\.\./sha" r"red\b")
PROGRAMS = ["run", "test", "bench", ".ci/run", "examples/booking/booking_api.py"]


# Rules about one C++ file


def include_direction(source):
    layer = source.layer()
    for line, header, _ in source.includes():
        target = header.split("/")[0]
        if layer == "include/ration" and target in LAYERS:
            yield f"{source.path}:{line}: a public header includes {header}, which is not public"
        if layer in LAYERS and target in LAYERS and LAYERS.index(target) > LAYERS.index(layer):
            yield f"{source.path}:{line}: {layer} includes {header}, which stands below it"
    if source.path.startswith("src/") and layer not in LAYERS:
        yield f"{source.path}:1: {layer} is not in the list of layers"


def public_headers_are_light(source):
    if not source.path.startswith("include/ration/"):
        return
    for line, header, _ in source.includes():
        if "/" in header and not re.match(r"ration/|absl/(status|types|functional|strings/string_view)", header):
            yield f"{source.path}:{line}: a public header includes {header}"


def heavy_headers(source):
    for line, header, _ in source.includes():
        prefix = next((heavy for heavy in HEAVY_HEADERS if header.startswith(heavy)), None)
        if prefix and not any(re.fullmatch(may, source.path) for may in HEAVY_HEADERS[prefix]):
            yield f"{source.path}:{line}: {header} may not be included here"


def clock_reads(source):
    if source.path == CLOCK_FILE or not source.path.startswith(("src/", "include/")):
        return
    for match in CLOCK_READS.finditer(source.code):
        yield f"{source.path}:{source.line_of(match.start())}: reads a clock; time is an argument"


def coroutine_shapes(source):
    """The two shapes that gcc 12 compiles into heap corruption."""
    for start, expression in source.await_expressions():
        line = source.line_of(start)
        if re.search(r"[\w>]\{|[(,]\s*\{", expression):
            yield f"{source.path}:{line}: an aggregate made inside co_await; name it first"
        if "co_spawn" in expression and re.search(r"[(,\s]\[[^\]]+\]\s*[({]", expression):
            yield f"{source.path}:{line}: a capturing lambda inside an awaited co_spawn"


def absl_locks(source):
    """Debian's Abseil is built without the thread sanitizer, which then reports what such a lock guards."""
    for match in re.finditer(r"absl::Mutex\b|absl/synchronization/mutex|absl::ErrnoToStatus\(", source.text):
        yield f"{source.path}:{source.line_of(match.start())}: {match[0].strip('(')} blinds the thread sanitizer"


def pragma_once(source):
    if source.path.endswith(".h") and "#pragma once" not in source.code:
        yield f"{source.path}:1: no #pragma once"


def function_length(source):
    for line, name, length in source.functions():
        if length > MAX_FUNCTION_LINES:
            yield f"{source.path}:{line}: {name} has {length} lines, {MAX_FUNCTION_LINES} are allowed"


CPP_RULES = [include_direction, public_headers_are_light, heavy_headers, clock_reads, coroutine_shapes,
             absl_locks, pragma_once, function_length]


# Rules about any text file


def file_length(source):
    if source.path.endswith(".json"):
        return  # written by a program
    lines = source.text.count("\n")
    if lines > MAX_FILE_LINES:
        yield f"{source.path}:1: {lines} lines, {MAX_FILE_LINES} are allowed"


def clean_text(source):
    for number, line in enumerate(source.text.split("\n"), 1):
        where = f"{source.path}:{number}"
        if "\t" in line:
            yield f"{where}: a tab"
        if line != line.rstrip():
            yield f"{where}: blanks at the end of the line"
        if UNFINISHED.search(line):
            yield f"{where}: an unfinished mark"
        if SAT_OUT.search(line):
            yield f"{where}: a test that does not run"
        if MACHINE_PATH.search(line):
            yield f"{where}: the path of one machine"
    if source.text and not source.text.endswith("\n"):
        yield f"{source.path}: the last line has no end"


def python_function_length(source):
    if not source.path.endswith(".py"):
        return
    for node in ast.walk(ast.parse(source.text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = node.end_lineno - node.lineno
            if length > MAX_FUNCTION_LINES:
                yield f"{source.path}:{node.lineno}: {node.name} has {length} lines"


TEXT_RULES = [file_length, clean_text, python_function_length]


# Rules about the whole tree: `tree` is a dict from path to Source


def median_length(tree):
    lengths = [source.text.count("\n") for path, source in tree.items()
               if path.startswith(("src/", "include/")) and path.endswith((".h", ".cc"))]
    if lengths and statistics.median(lengths) > MAX_MEDIAN_LINES:
        yield f"the median file has {statistics.median(lengths)} lines, {MAX_MEDIAN_LINES} are aimed at"


def everything_is_built(tree):
    """Each source and each test stands in the CMakeLists.txt of its folder, or of one above it."""
    for path in tree:
        if path.startswith("tests/consumer/") or not path.startswith(("src/", "tests/")):
            continue
        if path.endswith(".cc") or path.endswith("_test.py"):
            if not listed(tree, path):
                yield f"{path}:1: in no CMakeLists.txt: it is never built or run"


def listed(tree, path):
    folder = path
    while folder := os.path.dirname(folder):
        build_file = tree.get(folder + "/CMakeLists.txt")
        name = os.path.relpath(path, folder)
        if build_file and re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", build_file.text):
            return True
    return False


def fuzz_targets_have_corpora(tree, corpus_sizes):
    build_file = tree.get("fuzz/CMakeLists.txt")
    for path, source in tree.items():
        if path.startswith("fuzz/") and "LLVMFuzzerTestOneInput(" in source.text and path != "fuzz/run_corpus.cc":
            name = os.path.basename(path).removesuffix(".cc")
            if not build_file or not re.search(rf"ration_fuzz\({name}\b", build_file.text):
                yield f"{path}:1: not registered in fuzz/CMakeLists.txt"
            if corpus_sizes.get(name, 0) < 5:
                yield f"{path}:1: fuzz/corpus/{name} has fewer than 5 inputs"


def programs_can_run(executable):
    """`executable` tells of a path whether it has its run bit."""
    for path in PROGRAMS:
        if not executable(path):
            yield f"{path}:1: missing, or without a run bit"


def check_source(source):
    rules = TEXT_RULES + (CPP_RULES if source.path.endswith((".h", ".cc")) else [])
    return [finding for rule in rules for finding in rule(source)]


__all__ = ["Source", "blank_out", "check_source"]
