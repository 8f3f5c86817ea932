"""Without a cluster, and on one of our own: what is refused, what is said, who can come in."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ppspeech.cli import app
from ppspeech.cli.ray import with_address
from ppspeech.cluster import HERE, Slices, in_order, pool, ray_cluster, shards
from ppspeech.cluster.connection import exposure, takes_anybody
from ppspeech.errors import AudioError, ClusterError, OpenClusterWarning
from tests.cluster.parts import Part, picky, square

CLIP = str(Path(__file__))


def test_in_this_process() -> None:
    with shards([partial(Part, factor) for factor in (2, 3)]) as group:
        assert len(group) == 2
        assert [each.tolist() for each in group.ask("times", np.arange(2))] == [[0, 2], [0, 3]]
        group.tell("put", np.arange(2))
        assert [each.tolist() for each in group.ask("kept_times")] == [[0, 2], [0, 3]]
        with pytest.raises(AudioError, match="too quiet"):
            group.ask("refuse", np.arange(2))
        with pytest.raises(ClusterError, match="arrays and bytes, got dict"):
            group.ask("times", {})  # type: ignore[arg-type]
        with pytest.raises(ClusterError, match="arrays and bytes"):
            group.ask("times", np.array([object()]))
    with pool() as workers:
        assert workers is HERE
        assert in_order(workers, square, [3, 4]) == [9, 16]
        with pytest.raises(AudioError, match="no sound"):
            in_order(workers, picky, ["bad.wav"])
    assert list(Slices(range(5), 2)) == [[0, 1], [2, 3], [4]]


def test_nothing_to_hold() -> None:
    with pytest.raises(ClusterError, match="one factory for each shard"), shards([]):
        pass


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["a", "--ray"], ["a", "--ray", "local"]),
        (["--ray", "--json"], ["--ray", "local", "--json"]),
        (["--ray", "a"], ["--ray", "local", "a"]),
        (["--ray", "local"], ["--ray", "local"]),
        (["--ray", "h:1", "a"], ["--ray", "h:1", "a"]),
        (["--ray=x", "a"], ["--ray=x", "a"]),
        (["--", "--ray"], ["--", "--ray"]),
    ],
)
def test_an_address_may_be_left_out(given: list[str], meant: list[str]) -> None:
    assert with_address(given) == meant


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["features", CLIP, "--ray=nowhere"], "local or at HOST:PORT, got 'nowhere'"),
        (["features", CLIP, "--ray", "host:99999"], "local or at HOST:PORT"),
        (["features", str(Path(__file__).parent), "--ray"], "give --out FOLDER"),
        (["features", CLIP, "synthetic"], "one corpus, or sound files"),
        (["recognize", "model", "a.wav", "--ray"], "go with --corpus"),
        (["attack", "127.0.0.1:7", "--ray", "--insecure"], "disturb each other"),
        (["bench", "features", "--ray", "--store"], "give one of them"),
    ],
)
def test_what_cannot_be_spread_is_refused(words: list[str], message: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = CliRunner().invoke(app, ["features", CLIP, "--ray"])
    assert result.exit_code == 2
    assert "pip install 'ppspeech[scale]'" in " ".join(result.output.split())


def test_who_answers_is_no_cluster() -> None:
    """Nobody, or somebody else."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with (
        pytest.warns(OpenClusterWarning, match="asks for no token"),
        pytest.raises(ClusterError, match="no Ray cluster answers"),
        ray_cluster(f"127.0.0.1:{port}"),
    ):
        pass
    program = (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
        "s.accept()[0].sendall(b'220 mail at your service')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        address = f"127.0.0.1:{int(other.stdout.readline())}"
        with (
            pytest.warns(OpenClusterWarning),
            pytest.raises(ClusterError, match="something else answers there"),
            ray_cluster(address),
        ):
            pass


@pytest.mark.parametrize(
    ("address", "environment", "said"),
    [
        ("127.0.0.1:6379", {}, "asks for no token"),
        ("10.0.0.2:6379", {"RAY_AUTH_MODE": "disabled"}, "asks for no token"),
        ("10.0.0.2:6379", {"RAY_AUTH_MODE": "token"}, "can be read on the way"),
        ("10.0.0.2:6379", {"RAY_AUTH_MODE": "token", "RAY_USE_TLS": "0"}, "can be read on the way"),
        ("10.0.0.2:6379", {"RAY_AUTH_MODE": "token", "RAY_USE_TLS": "1"}, None),
        ("127.0.0.1:6379", {"RAY_AUTH_MODE": "token"}, None),
        ("localhost:6379", {"RAY_AUTH_MODE": "token"}, None),
        ("[::1]:6379", {"RAY_AUTH_MODE": "token"}, None),
    ],
)
def test_what_others_may_do_to_a_cluster_is_said(address: str, environment: dict[str, str], said: str | None) -> None:
    found = exposure(address, environment)
    assert found is None if said is None else found is not None and said in found


def test_a_cluster_of_our_own_is_closed_to_others() -> None:
    """It listens on loopback alone, asks for a token that nobody else has, and its files are its owner's; when its head
    dies, that is said, and nothing of it stays.
    """
    outside = {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH")}
    with pytest.raises(ClusterError, match="is gone"), ray_cluster("local", 1) as ray:  # noqa: PT012
        node = ray._private.worker._global_node
        folder = Path(node.get_temp_dir_path()).parent
        assert folder.stat().st_mode & 0o077 == 0
        assert not takes_anybody(ray.get_runtime_context().gcs_address)
        started = [each.process.pid for several in node.all_processes.values() for each in several]
        found = _listening(started)
        assert found
        assert all(address.startswith("127.") for address in found), found
        told = dict(line.split("=", 1) for line in _environment(node.all_processes["gcs_server"][0].process.pid))
        assert told["RAY_AUTH_MODE"] == "token"
        assert len(told["RAY_AUTH_TOKEN"]) == 64
        assert told["RAY_AUTH_TOKEN"] != outside.get("RAY_AUTH_TOKEN")
        with pool("local") as workers:
            for place, _ in workers.each(square, list(range(20)), "Squaring"):
                if place == 0:
                    for pid in started:
                        os.kill(pid, signal.SIGKILL)
    assert not folder.exists()
    assert {name: value for name, value in os.environ.items() if name.startswith("RAY_AUTH")} == outside


def test_what_outlives_its_cluster_starts_no_other(tmp_path: Path) -> None:
    """Ray would start one of its own accord, when a process ends: open to the network, with a token in one's home."""
    program = (
        "import atexit\nfrom contextlib import ExitStack\nfrom functools import partial\n"
        "from ppspeech.cluster import pool, ray_cluster, shards\n"
        "from tests.cluster.parts import Part, square\n"
        "held = ExitStack()\n"
        "with ray_cluster('local', 1) as ray:\n"
        "    group = held.enter_context(shards([partial(Part, 2)], ray='local'))\n"
        "    workers = held.enter_context(pool('local'))\n"
        "    answers = workers.each(square, list(range(40)), 'Squaring')\n"
        "    next(answers)\n"
        "ray.init = lambda *_, **__: print('another')\n"
        "answers.close()\nheld.close()\n"
        "assert not ray.is_initialized()\n"
        "try:\n    ray.put(1)\nexcept ray.exceptions.RayError:\n    print('no other')\n"
    )
    environment = os.environ | {"HOME": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (ran.returncode, ran.stdout.splitlines()) == (0, ["no other"]), ran.stderr
    assert "Logging error" not in ran.stderr
    assert not (tmp_path / ".ray").exists()


COLLECTS = """
import gc, os
from ppspeech.cluster import ray_cluster
from tests.cluster.parts import Part
with ray_cluster("local", 1) as ray:
    kind = ray.remote(num_cpus=0)(Part)
    gc.disable()
    for factor in range(3):
        actor = kind.remote(factor)
        ray.get(actor.process.remote())
        kept = [actor]
        kept.append(kept)  # a cycle: nobody lets go of the actor until it is collected
        del actor, kept
        if (child := os.fork()) == 0:
            gc.collect()
            os._exit(0)
        os.waitpid(child, 0)
    gc.enable()
    print(ray.get(kind.remote(3).process.remote()) > 0, len(ray.nodes()))
"""


def test_children_leave_their_parents_connections_alone() -> None:
    """Servers have a child for each client: what one of them collects must not end its parent's part in a cluster."""
    command = [sys.executable, "-c", COLLECTS]
    asked = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (asked.returncode, asked.stdout) == (0, "True 1\n"), asked.stderr


OPEN = """
import sys
from ppspeech.cluster.connection import _imported, _on_loopback
ray = _imported()
kept = {"object_store_memory": 80 * 2**20, "include_dashboard": False, "log_to_driver": False}
with _on_loopback(RAY_AUTH_MODE="disabled"):
    ray.init("local", num_cpus=1, _node_ip_address="127.0.0.1", logging_level="error", **kept)
    print(ray.get_runtime_context().gcs_address, flush=True)
    sys.stdin.read()
    ray.shutdown()
"""


def test_a_token_of_ours_does_not_hide_that_a_cluster_asks_for_none() -> None:
    """Who starts a head node and forgets to say that it asks is told by everyone who joins it."""
    with subprocess.Popen(
        [sys.executable, "-c", OPEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as opened:
        assert opened.stdin is not None
        assert opened.stdout is not None
        address = opened.stdout.readline().strip()
        tried = _joined(address, {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0" * 64})
        opened.stdin.close()
    assert tried.returncode == 0, tried.stderr
    assert f"OpenClusterWarning: the Ray cluster at {address} asks for no token" in tried.stderr


@pytest.mark.slow  # Ray tries for a while
def test_a_stranger_is_not_taken() -> None:
    outside = dict(os.environ)
    with ray_cluster("local", 1) as ray:
        address, token = ray.get_runtime_context().gcs_address, os.environ["RAY_AUTH_TOKEN"]
        for guess, code in (("0" * 64, 7), (token, 0)):
            tried = _joined(address, {**outside, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": guess})
            assert tried.returncode == code, tried.stderr


def _environment(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/environ").read_bytes().decode().rstrip("\0").split("\0")


def _joined(address: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Exit code 7 where the cluster does not take us, 0 where it does."""
    program = (
        "import sys\nfrom ppspeech.cluster import ray_cluster\nfrom ppspeech.errors import ClusterError\n"
        f"try:\n    with ray_cluster({address!r}): pass\n"
        "except ClusterError as error:\n    sys.stderr.write(str(error))\n    sys.exit(7)\n"
    )
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def _listening(processes: list[int]) -> set[str]:
    """Addresses that these processes, and their children, listen at."""
    inodes = set()
    for pid in [*processes, *(child for each in processes for child in _children(each))]:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            target = str(link.readlink()) if link.is_symlink() else ""
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and rest[5] in inodes:
                found.add(_address(local.partition(":")[0]))
    return found


def _children(pid: int) -> list[int]:
    return [
        int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()
    ]


def _address(digits: str) -> str:
    """The last four bytes: an IPv4 address, as such or mapped into IPv6 (of :: they are 0)."""
    last = bytes.fromhex(digits)[-4:][::-1]
    return ".".join(map(str, last))
