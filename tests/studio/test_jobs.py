"""What pages start: it runs, is watched, fails in words, is stopped, and ends with the studio."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ppspeech.cli import app
from ppspeech.errors import PpspeechError
from ppspeech.studio import Places, work
from ppspeech.studio import jobs as jobs_module
from ppspeech.studio.app import _door
from ppspeech.studio.jobs import LONGEST_LINE, MOST_LINES, Job, Jobs
from ppspeech.studio.runs import checkpoint_of, figures_of, new_run
from tests.studio.running import ask, running
from tests.studio.test_choices import FILTER

pytestmark = pytest.mark.timeout(600)

LONG = ["studio", "--no-browser"]
"""A command that goes on until it is stopped."""


async def ended(job: Job) -> Job:
    async for _ in job.watch():
        pass
    return job


async def said_something(job: Job) -> None:
    async for event in job.watch():
        if event["lines"]:
            return


def start(tmp_path: Path, *commands: list[str], until: Callable[[Job], Any] = ended) -> tuple[Job, Jobs]:
    async def run() -> tuple[Job, Jobs]:
        jobs = Jobs()
        job = jobs.start("any", commands, tmp_path, {"title": "the job"})
        try:
            with pytest.raises(PpspeechError, match="the job is still going on: wait for it, or stop it"):
                jobs.start("any", commands, tmp_path, {})
            await until(job)
        finally:
            await jobs.end()
        return job, jobs

    return asyncio.run(run())


def test_commands_run_one_after_the_other_until_one_fails(tmp_path: Path) -> None:
    job, jobs = start(tmp_path, ["--version"], ["inspect", "nothing-here"], ["--version"])
    assert job.state == "failed"
    assert len(job.lines) == 2
    assert job.lines[0].startswith("ppspeech ")
    assert job.lines[1].startswith("error: ")
    assert "nothing-here" in job.lines[1]
    assert jobs.latest("any") is job
    assert jobs.running("any") is None
    with pytest.raises(PpspeechError, match="there is no such job"):
        jobs.named("any-2")


def is_alive(process: int) -> bool:
    """Whether it runs; a dead one that nobody has asked about yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_is_stopped_is_gone(tmp_path: Path) -> None:
    async def stop(job: Job) -> None:
        await said_something(job)
        assert job._process is not None
        assert is_alive(job._process.pid)
        await job.stop()
        await ended(job)
        assert not is_alive(job._process.pid)

    job, _ = start(tmp_path, LONG, ["--version"], until=stop)
    assert job.state == "stopped"
    assert not any(line.startswith("ppspeech ") for line in job.lines)


def test_what_nobody_watches_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> Job:
        jobs = Jobs()
        job = jobs.start("any", [LONG], tmp_path, {})
        await said_something(job)
        assert not job.forgotten
        monkeypatch.setattr(jobs_module, "PATIENCE", 0.0)
        watching = asyncio.create_task(jobs.end_forgotten())
        await jobs._tasks[job.name]
        watching.cancel()
        return job

    assert asyncio.run(run()).state == "stopped"


def test_figures_are_kept_though_nobody_watches_the_end(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is loaded again, or another one, finds the run that ended meanwhile."""

    async def commanded(job: Job, _: Any) -> int:
        job.say('{"metric": "filter.attack.task", "value": 0.5}')
        return 0

    async def run() -> Job:
        jobs = Jobs()
        job = work.filter_run(jobs, places, FILTER)
        await jobs._tasks[job.name]
        return job

    monkeypatch.setattr(Job, "_command", commanded)
    job = asyncio.run(run())
    assert (job.state, figures_of(job.folder)) == ("done", {"filter.attack.task": 0.5})


def test_a_server_is_found_however_much_it_has_logged(tmp_path: Path) -> None:
    """Whoever is refused is logged: a page of somebody else must not make the studio forget its server."""
    job = Job("speak-1", "speak", (), tmp_path, {})
    job.say("a browser asks at http://127.0.0.1:4567/")
    for _ in range(2 * MOST_LINES):
        job.say('{"message": "no session: a page of another host"}')
    assert _door(job) == "127.0.0.1:4567"


def test_a_run_that_went_astray_does_not_hide_the_others(tmp_path: Path) -> None:
    asked = {"recipe": "keyword_dp", "corpus": "mine", "epsilon": 1.0}
    folder = new_run(tmp_path, "train", asked)
    log = folder / "runs" / "keyword_dp" / "version_0"
    log.mkdir(parents=True)
    (log / "metrics.csv").write_text("epoch,test_loss,test_accuracy\n0,nan,0.25\n")
    (folder / "figures.jsonl").write_text('{"metric": "worst", "value": Infinity}\n')
    with running(Places(tmp_path)) as studio:
        said = ask(studio, "/api/runs/train")
        assert said.status == 200
        assert [each["figures"] for each in said.plain] == [{"test_accuracy": 0.25}]


def test_pages_speak_to_the_server_and_not_to_where_a_name_points(tmp_path: Path) -> None:
    """A server prints the name of its bundle too, and whoever gave the bundle chose that."""
    job = Job("speak-1", "speak", (), tmp_path, {})
    job.say("serving a browser asks at http://203.0.113.7:80/ at 127.0.0.1:7")
    job.say("a browser asks at http://203.0.113.7:80/")
    assert _door(job) is None
    job.say("a browser asks at http://127.0.0.1:4567/")
    assert _door(job) == "127.0.0.1:4567"


def test_what_is_printed_is_kept_within_bounds(tmp_path: Path) -> None:
    job = Job("any-1", "any", (), tmp_path, {})
    for line in range(2 * MOST_LINES):
        job.say(f"{line} " + "x" * 2 * LONGEST_LINE)
    assert len(job.lines) == MOST_LINES
    assert job.lines[-1].startswith(f"{2 * MOST_LINES - 1} x")
    assert max(map(len, job.lines)) == LONGEST_LINE


def wait(studio: Any, name: str) -> tuple[str, list[str]]:
    """Watch a job as a page does, until its last event."""
    events = [
        json.loads(line[6:]) for line in ask(studio, f"/api/jobs/{name}/events").body.decode().split("\n\n") if line
    ]
    return events[-1]["state"], [line for event in events for line in event.get("lines", ())]


@pytest.mark.slow
def test_a_real_training_is_a_point_and_then_a_bundle(tmp_path: Path) -> None:
    made = CliRunner().invoke(
        app, ["synth", str(tmp_path / "mine"), "--words", "go,stop", "--speakers", "8", "--takes", "1", "--seed", "1"]
    )
    assert made.exit_code == 0, made.output
    asked = {"recipe": "keyword_dp", "corpus": "mine", "unit": "speaker", "epochs": 1, "epsilon": 8.0}
    with running(Places(tmp_path / "work", (), (tmp_path / "mine",))) as studio:
        job = ask(studio, "/api/start/train", asked).plain
        assert job["about"]["title"] == "keyword_dp on mine at epsilon 8"
        assert "still going on" in ask(studio, "/api/start/train", asked).plain["error"]
        state, lines = wait(studio, job["name"])
        assert state == "done", lines
        (run,) = ask(studio, "/api/runs/train").plain
        assert (run["epsilon"], run["unit"], run["released"]) == (8.0, "speaker", None)
        assert 0 <= run["figures"]["test_accuracy"] <= 1
        assert checkpoint_of(tmp_path / "work" / "train" / run["run"]).is_file()
        export = ask(studio, "/api/start/export", {"run": run["run"], "state": "no"}).plain
        state, lines = wait(studio, export["name"])
        assert state == "done", lines
        (bundle,) = ask(studio, "/api/models").plain
        assert "-DP for one speaker" in bundle["guarantee"]
        assert bundle["metrics"] == []  # what was measured on people whom no guarantee covers is not stated unasked
        assert ask(studio, "/api/runs/train").plain[0]["released"] == bundle["name"]
        again = ask(studio, "/api/start/export", {"run": run["run"], "state": "no"})
        assert (again.status, "is among the models already" in again.plain["error"]) == (400, True)


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(each) for each in found.read_text().split()] if found.exists() else []


def _hear_all_signals() -> None:
    """Whoever runs tests behind `nohup` has one of them ignored."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@contextmanager
def on_its_own(folder: Path, *arguments: str) -> Iterator[tuple["subprocess.Popen[str]", str, Callable[..., Any]]]:
    """A studio in a process, its token, and a way to ask it: by GET, or by POST with a body. Events are watched on."""
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "ppspeech", "studio", *arguments, "--no-browser"]
    studio = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder, preexec_fn=_hear_all_signals
    )
    assert studio.stdout is not None
    watched = ExitStack()
    try:
        port, token = re.search(r"127\.0\.0\.1:(\d+)/speak#token=(\S+)", studio.stdout.readline()).groups()  # type: ignore[union-attr]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

        def ask_it(path: str, body: Any = None) -> Any:
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            own = headers | {"Origin": f"http://127.0.0.1:{port}"}
            connection.request("GET" if body is None else "POST", path, body and json.dumps(body), own)
            said = connection.getresponse()
            if path.endswith("/events"):
                watched.callback(connection.close)
                return None
            with closing(connection):
                return json.load(said)

        yield studio, token, ask_it
    finally:
        watched.close()
        studio.kill()
        studio.wait()
        studio.stdout.close()


def until(there: Callable[[], Any]) -> Any:
    """What is there at last."""
    ends = time.monotonic() + 120
    while not (found := there()) and time.monotonic() < ends:
        time.sleep(0.05)
    assert found
    return found


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_leaves_nothing(which: signal.Signals, tmp_path: Path) -> None:
    """Neither a process nor a file: what was started, and where it worked, are gone; by a closed terminal too."""
    with on_its_own(tmp_path) as (studio, token, ask_it):
        asked = {"recipe": "keyword_hmm", "corpus": "synthetic", "unit": "speaker", "epochs": 9, "epsilon": None}
        assert ask_it("/api/start/train", asked)["state"] == "running"
        started = until(lambda: children(studio.pid))
        (place,) = tmp_path.glob("ppspeech_studio_*")  # beside it, what libraries keep for themselves
        studio.send_signal(which)
        rest = studio.communicate(timeout=120)[0]
        assert studio.returncode == 0
        assert "the studio has ended, and all that it started" in rest
        assert token not in rest
        assert not any(map(is_alive, started))
        assert not place.exists()


def test_a_server_ends_with_a_studio_that_was_killed(bundles: Path, tmp_path: Path) -> None:
    with on_its_own(tmp_path, str(bundles / "animals")) as (studio, _, ask_it):
        job = ask_it("/api/speak", {"bundle": "animals"})
        ask_it(f"/api/jobs/{job['name']}/events")  # and watched: what nobody watches ends by itself
        until(lambda: ask_it("/api/speak")["door"])
        started = children(studio.pid)
        assert all(map(is_alive, started))
        studio.kill()
        studio.wait()
        until(lambda: not any(map(is_alive, started)))
