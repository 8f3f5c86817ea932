"""A Ray cluster to work on: one of our own on this machine, or one that is there.

Whoever reaches the ports of a Ray cluster, and is not asked for a token, runs any code as its owner. A cluster of our
own therefore listens on loopback alone, asks for a token that is drawn when it starts, keeps its files in a folder
that only its owner opens, and takes all of that away when it ends. Of one that is there, what it lacks is said.
"""

import gc
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from ppspeech.errors import ClusterError, MissingPackageError, OpenClusterWarning

LOCAL = "local"
"""In place of an address: a cluster on this machine, which starts and ends with the command."""

STORE_BYTES = 100 * 2**20  # what a cluster of our own shares between its processes: weights and a few results

REACH_SECONDS = 10.0  # for a head node to take a connection

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is told to Ray's makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_TQDM": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # whoever asks for what a cluster held when it has ended is given no new one
}

LETS_IN = (
    "the Ray cluster at {} asks for no token: whoever reaches it can run code there as you and read the recordings it "
    "works on. Start it, and this command, with RAY_AUTH_MODE=token and a token"
)
STRANGER_SECONDS = 60.0  # for a process without our token to start, and to be refused
STRANGER = (
    "import sys\nimport ray\nfrom ray._raylet import GcsClient\n"
    f"GcsClient(address=sys.argv[1]).internal_kv_keys(b'', b'', timeout={REACH_SECONDS})\n"
)

ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:]+\]):(?P<port>[0-9]{1,5})")


def is_address(text: str) -> bool:
    """Whether this can be where a cluster is: `local`, or HOST:PORT."""
    found = ADDRESS.fullmatch(text)
    return text == LOCAL or (found is not None and 0 < int(found["port"]) < 2**16)


@contextmanager
def ray_cluster(address: str = LOCAL, workers: int | None = None) -> Iterator[Any]:
    """Ray, connected: to a cluster of our own that ends with the block, else to the one at HOST:PORT.

    `workers` is how many tasks one of our own does at a time; one a core by default. Inside of another such block, the
    cluster of that one. Raises ClusterError for an address that is none or where no cluster answers, or that does not
    take our token; MissingPackageError without Ray. Warns of a cluster that asks nobody who they are, or that tells
    everybody on the way what is said.
    """
    if not is_address(address):
        raise ClusterError(f"a Ray cluster is {LOCAL} or at HOST:PORT, got {address!r:.80}")
    ray = _imported()
    if ray.is_initialized():
        yield ray
    elif address == LOCAL:
        with _own(ray, workers):
            yield ray
    else:
        if (lacking := exposure(address, os.environ)) is not None:
            warnings.warn(lacking, OpenClusterWarning, stacklevel=3)
        _join(ray, address)
        try:
            if _has_token(os.environ) and takes_anybody(address):
                warnings.warn(LETS_IN.format(address), OpenClusterWarning, stacklevel=3)
            yield ray
        finally:
            ray.shutdown()


def check_reachable(ray: Any) -> None:
    """Raises ClusterError where the cluster that we are in has gone: Ray itself waits, and then ends our process."""
    address = str(ray.get_runtime_context().gcs_address)
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except OSError as error:
        raise ClusterError(
            f"the Ray cluster at {address} is gone ({error}): start it, then the same command, which goes on from what "
            "was finished"
        ) from None


def exposure(address: str, environment: Mapping[str, str]) -> str | None:
    """What others may do to a cluster that is there, and how that is prevented; None if it asks, and nobody listens."""
    if not _has_token(environment):
        return LETS_IN.format(address)
    host = address.rpartition(":")[0].strip("[]")
    if environment.get("RAY_USE_TLS", "0") in {"", "0"} and not _is_loopback(host):
        return (
            f"what is said to the Ray cluster at {address}, the token too, can be read on the way: use RAY_USE_TLS=1 "
            "with certificates, or a network that is yours alone"
        )
    return None


def takes_anybody(address: str) -> bool:
    """Whether a cluster that is there lets in who has no token, whatever we have."""
    command = [sys.executable, "-c", STRANGER, address]
    environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
    try:
        asked = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=STRANGER_SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired:
        return False  # it was not let in
    return asked.returncode == 0


def _has_token(environment: Mapping[str, str]) -> bool:
    return environment.get("RAY_AUTH_MODE", "").lower() == "token"


def _imported() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import ray
            from ray._private import worker
    except ModuleNotFoundError as missing:
        raise MissingPackageError("--ray", missing.name, "pip install 'ppspeech[scale]'") from None
    worker.print_to_stdstream = _unsaid  # standard output is for answers; what died is done again, or raised
    _keep_inherited()
    return ray


@cache
def _keep_inherited() -> None:
    """Let forked children collect nothing of what they inherit: one that lets go of an actor says so on a connection of
    its parent's, which hears no answer on it from then on.
    """
    os.register_at_fork(before=gc.freeze, after_in_parent=gc.unfreeze)


def _unsaid(*_: object, **__: object) -> None:
    """What Ray would print of workers that died."""


@contextmanager
def _own(ray: Any, workers: int | None) -> Iterator[None]:
    """A cluster on loopback, behind a token, in a closed folder; none of it outlives the block."""
    folder = Path(tempfile.mkdtemp(prefix="ppspeech-"))  # closed to others; Ray opens its own, inside, to everybody
    try:
        with _guarded():
            try:
                ray.init(
                    LOCAL,
                    num_cpus=workers or os.cpu_count(),
                    include_dashboard=False,
                    object_store_memory=STORE_BYTES,
                    log_to_driver=False,
                    logging_level="error",
                    _node_ip_address="127.0.0.1",
                    _temp_dir=str(folder / "r"),  # sockets need a short path
                )
                yield
            finally:
                ray.shutdown()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _guarded() -> Iterator[None]:
    """What a cluster that is started inside is told: to ask for a token of its own, and to listen on loopback."""
    try:
        with _on_loopback(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32)):
            _read_token_again()
            yield
    finally:
        _read_token_again()


@contextmanager
def _on_loopback(**told: str) -> Iterator[None]:
    """Inside, 127.0.0.1 is 127.0.0.1.

    Ray takes it for the machine's address on the network, and listens there, but on systems where it knows no clusters:
    it is told that this is one, in the environment of what it starts, and in what it read when it was imported.
    """
    from ray._private import ray_constants

    told = {**told, ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR: "0"}
    before = {name: os.environ.get(name) for name in told}
    everywhere = ray_constants.ENABLE_RAY_CLUSTER
    os.environ.update(told)
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = everywhere
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _read_token_again() -> None:
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""What a connection to a head node begins with: HTTP/2's preface, and settings, which it answers with its own."""


def _join(ray: Any, address: str) -> None:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    try:
        with socket.create_connection((host, int(port)), timeout=REACH_SECONDS) as line:
            if os.environ.get("RAY_USE_TLS", "0") in {"", "0"}:
                line.sendall(PREFACE)
                if line.recv(9, socket.MSG_WAITALL)[3:4] != b"\x04":
                    raise OSError("something else answers there")  # Ray would try for minutes
    except OSError as error:
        raise ClusterError(f"no Ray cluster answers at {address}: {error}") from None
    try:
        with _on_loopback() if _is_loopback(host) else nullcontext():
            ray.init(address, log_to_driver=False, logging_level="error")
    except (ray.exceptions.RayError, RuntimeError, ConnectionError, ValueError) as error:
        ray.shutdown()
        raise ClusterError(
            f"no Ray cluster takes us at {address}: {error!s:.300}; it may ask for another token than ours "
            "(RAY_AUTH_MODE, RAY_AUTH_TOKEN, ~/.ray/auth_token), or be of another version"
        ) from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
