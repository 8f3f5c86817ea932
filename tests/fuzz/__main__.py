"""`make fuzz`: inputs that coverage guides (atheris, libFuzzer) into every door, each in a process of its own.

    python -m tests.fuzz                          every door, 20,000 inputs each
    python -m tests.fuzz hello group_file         these
    python -m tests.fuzz --inputs 1000000 hello
    python -m tests.fuzz --seconds 60

An input that does what no input may is written to `fuzz_found/DOOR-…`, and the exit code is 1.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
from pathlib import Path

GUIDED = ["ppspeech", "yaml", "csv"]
"""What is watched for new paths."""
PACKAGE = Path(__file__).parents[2] / "ppspeech"
FOUND = Path("fuzz_found")


def compiled() -> list[str]:
    """Modules that numba compiles: it does not take functions that are watched."""
    using = [path.relative_to(PACKAGE.parent) for path in PACKAGE.rglob("*.py") if "import numba" in path.read_text()]
    return [".".join(path.with_suffix("").parts) for path in using]


def fuzz_one(name: str, corpus: str, options: list[str]) -> None:
    """Fuzz one door in this process, which libFuzzer ends."""
    import atheris

    with atheris.instrument_imports(include=GUIDED, exclude=compiled()):
        from tests.fuzz.catalog import DOORS
        from tests.fuzz.watch import enter
    door = DOORS[name]()
    for number, seed in enumerate(door.seeds):
        Path(corpus, f"seed-{number}").write_bytes(seed)

    def one(data: bytes) -> None:
        enter(door, data)

    atheris.Setup([sys.argv[0], corpus, *options], one)
    atheris.Fuzz()


def main() -> int:
    """Fuzz the doors that were asked for, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Coverage-guided fuzzing of every door.")
    parser.add_argument("doors", nargs="*", help="which; all of them without any")
    parser.add_argument("--inputs", type=int, default=20_000, help="of each door")
    parser.add_argument("--seconds", type=int, default=0, help="of each door at most; 0: as long as the inputs take")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        options = [
            f"-runs={asked.inputs}",
            "-timeout=60",
            "-rss_limit_mb=4096",
            "-max_len=300000",
            "-print_final_stats=1",
        ]
        options += [f"-artifact_prefix={FOUND.resolve()}/{asked.one}-", f"-max_total_time={asked.seconds}"]
        with tempfile.TemporaryDirectory() as corpus:
            fuzz_one(asked.one, corpus, options)
    from tests.fuzz.catalog import COSTS, DOORS

    if unknown := set(asked.doors) - set(DOORS):
        parser.error(f"no door {', '.join(sorted(unknown))}; there are {', '.join(sorted(DOORS))}")
    FOUND.mkdir(exist_ok=True)
    bad = []
    for name in asked.doors or sorted(DOORS):
        inputs = max(200, asked.inputs // max(1, COSTS[name] // 10))
        command = [sys.executable, "-m", "tests.fuzz", "--one", name, "--inputs", str(inputs)]
        ran = subprocess.run([*command, "--seconds", str(asked.seconds)], capture_output=True, text=True)
        said = [line for line in ran.stderr.splitlines() if " cov: " in line]
        counts = said[-1].split("\t")[-1].strip() if said else ""
        print(f"{'ok' if ran.returncode == 0 else 'FOUND':6}{name:24}{inputs:>9} inputs  {counts}", flush=True)
        if ran.returncode:
            bad.append(name)
            print(ran.stdout[-3000:] + ran.stderr[-3000:])
    with contextlib.suppress(OSError):
        FOUND.rmdir()  # if nothing was found
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
