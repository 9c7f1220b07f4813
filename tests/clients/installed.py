"""The clients as a user has them: packed, and installed into clean environments, once for all tests of a build.

`js()` gives a folder in which `import 'ration-client'` works, `python()` the interpreter of an environment with the
wheel, httpx and requests. Both are made anew when the clients' sources have changed.
"""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = pathlib.Path(os.environ.get("RATION_CLIENTS_DIR", str(ROOT / "build" / "clients")))
LIBRARIES = ["httpx[http2]>=0.28,<1", "requests>=2.32,<3", "mypy>=1.10,<3"]
TYPESCRIPT = ["typescript@5", "@types/node@20"]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def sources(folder):
    """A digest of what gets packed."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


@contextlib.contextmanager
def made(name, digest):
    """The folder of that name, and whether it must be made; one process at a time."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with open(PLACE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder, stamp = PLACE / name, PLACE / f"{name}.stamp"
        fresh = not (stamp.exists() and stamp.read_text() == digest and folder.exists())
        if fresh:
            stamp.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder, fresh
        stamp.write_text(digest)


def js():
    package = ROOT / "clients" / "js"
    with made("js", sources(package / "src") + (package / "package.json").read_text()) as (folder, fresh):
        if fresh:
            archive = run("npm", "pack", "--silent", "--pack-destination", folder, cwd=package).split()[-1]
            (folder / "package.json").write_text('{"name": "user", "private": true, "type": "module"}\n')
            run("npm", "install", "--silent", "--no-audit", "--no-fund", "--offline", folder / archive, cwd=folder)
        return folder


def typescript():
    """A folder with the package and a compiler of TypeScript."""
    package = js()
    with made("types", (package.parent / "js.stamp").read_text() + repr(TYPESCRIPT)) as (folder, fresh):
        if fresh:
            (folder / "package.json").write_text('{"name": "user", "private": true, "type": "module"}\n')
            run("npm", "install", "--silent", "--no-audit", "--no-fund", next(package.glob("*.tgz")), *TYPESCRIPT, cwd=folder)
        return folder


def wheel(folder):
    """Builds the wheel into the folder; the sources are copied, for a build leaves its marks beside them."""
    copy = folder / "source"
    shutil.copytree(ROOT / "clients" / "python", copy, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    run(folder / "venv" / "bin" / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, copy)
    return next(folder.glob("*.whl"))


def python():
    package = ROOT / "clients" / "python"
    digest = sources(package / "src") + (package / "pyproject.toml").read_text() + repr(LIBRARIES)
    with made("python", digest) as (folder, fresh):
        interpreter = folder / "venv" / "bin" / "python"
        if fresh:
            run(sys.executable, "-m", "venv", folder / "venv")
            built = wheel(folder)
            run(interpreter, "-m", "pip", "install", "--quiet", built, *LIBRARIES)
        return interpreter
