"""What is too large for one process, or one machine: parts that are each built where they stay, and asked together.

    factories = [partial(Part, place) for place in range(4)]      # picklable: functions and small values
    with shards(factories, ray="local") as group:
        group.tell("put", array)                                  # Part.put(array) of every part, and of those to come
        results = group.ask("score", array)                       # Part.score(array) of every part, in order

Arguments and results are arrays and bytes that we made: nothing of a client's is ever unpickled. Neither may be changed
in place: on a cluster they are shared. Servers answer each client in a process of its own, which has no part in the
cluster: such a child asks its parent, by a socket that both hold, in the same words.
"""

import io
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ppspeech.cluster.connection import check_reachable, ray_cluster
from ppspeech.errors import ClusterError

Factory = Callable[[], Any]
Value = NDArray[Any] | bytes

TRIES = 4
"""How often one question is put to a shard that dies of it, or beside it, before it is given up."""

PATIENCE_SECONDS = 5.0  # without an answer until the cluster is asked whether it is still there

LONGEST_SECONDS = 300.0  # after which a part that says nothing counts as dead: nobody may have noticed that its node is


class Shards(Protocol):
    """Parts that are asked together."""

    def __len__(self) -> int: ...

    def ask(self, method: str, *values: Value) -> list[Any]:
        """What this method of every part says to these values, in the order of the parts.

        May be called by several threads and by forked children. An error that a part raises is raised here. Raises
        ClusterError for values that are no arrays or bytes, and for a part that died each time it was rebuilt.
        """

    def tell(self, method: str, *values: Value) -> None:
        """Ask for something that leaves a trace: a part that is built again is told so again, in the same order. It
        must be as good twice as once. What a part refuses is not told again, and raised here.
        """


@contextmanager
def shards(factories: Sequence[Factory], ray: str | None = None) -> Iterator[Shards]:
    """Build a part by each factory, for as long as the block lasts: here, or by actors of a Ray cluster.

    `ray` is None for this process, `local` for processes of this machine, or HOST:PORT of a cluster, over whose nodes
    the parts are spread. A part whose process or node dies is built again by its factory, told what it was told, and
    asked again: a factory must give the same part every time, and a question must leave no trace in it. Raises
    ClusterError without factories.
    """
    if not factories:
        raise ClusterError("there is nothing to hold: give one factory for each shard")
    if ray is None:
        with ThreadPoolExecutor(min(len(factories), os.cpu_count() or 1)) as threads:
            yield _Here([factory() for factory in factories], threads)
        return
    with ray_cluster(ray) as connected:
        group = _Actors(connected, factories)
        try:
            yield group
        finally:
            group.close()


class _Here:
    """Parts in this process, asked by threads; a forked child, which has no threads, asks one after another."""

    def __init__(self, parts: list[Any], threads: ThreadPoolExecutor) -> None:
        self._parts, self._threads, self._process = parts, threads, os.getpid()

    def __len__(self) -> int:
        return len(self._parts)

    def ask(self, method: str, *values: Value) -> list[Any]:
        _check(values)
        if os.getpid() != self._process:
            return [getattr(part, method)(*values) for part in self._parts]
        return list(self._threads.map(lambda part: getattr(part, method)(*values), self._parts))

    def tell(self, method: str, *values: Value) -> None:
        self.ask(method, *values)


class _Part:
    """An actor: one part, built where it stays."""

    def __init__(self, factory: Factory) -> None:
        self.part = factory()

    def ask(self, method: str, *values: Value) -> Any:
        return getattr(self.part, method)(*values)


class _Actors:
    """Parts held by actors of a cluster, spread over its nodes."""

    def __init__(self, ray: Any, factories: Sequence[Factory]) -> None:
        self._ray, self._factories = ray, list(factories)
        self._kind = ray.remote(_Part)
        self._lock = threading.Lock()
        self._told: list[tuple[str, tuple[Value, ...]]] = []
        self._actors = [self._placed(place, factory) for place, factory in enumerate(self._factories)]
        self._door = _Door(self)

    def _placed(self, place: int, factory: Factory) -> Any:
        """An actor on one node after the other, while they live; what is rebuilt goes where there is room."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = [node["NodeID"] for node in self._ray.nodes() if node["Alive"]]
        there = NodeAffinitySchedulingStrategy(nodes[place % len(nodes)], soft=True)
        return self._built(factory, there)

    def _built(self, factory: Factory, where: Any = "SPREAD") -> Any:
        return self._kind.options(scheduling_strategy=where, max_restarts=0, max_task_retries=0).remote(factory)

    def __len__(self) -> int:
        return len(self._factories)

    def ask(self, method: str, *values: Value) -> list[Any]:
        _check(values)
        if not self._door.is_mine:
            return self._door.ask("ask", method, *values)
        shared = [self._ray.put(value) for value in values]
        asked = [(actor, actor.ask.remote(method, *shared)) for actor in list(self._actors)]
        return [self._answer(place, *each, method, shared) for place, each in enumerate(asked)]

    def tell(self, method: str, *values: Value) -> None:
        _check(values)
        if not self._door.is_mine:
            self._door.ask("tell", method, *values)
            return
        kept = method, tuple(value if isinstance(value, bytes) else value.copy() for value in values)
        with self._lock:
            self._told.append(kept)  # before it is asked: whoever is built again meanwhile is told, twice at the most
        try:
            self.ask(method, *values)
        except BaseException:
            with self._lock:
                self._told = [each for each in self._told if each is not kept]
            raise

    def _answer(self, place: int, actor: Any, promised: Any, method: str, shared: list[Any]) -> Any:
        errors = self._ray.exceptions
        gone = (
            errors.ActorDiedError,
            errors.ActorUnavailableError,
            errors.GetTimeoutError,
            errors.NodeDiedError,
            errors.ObjectLostError,
        )
        for tries in range(TRIES):
            try:
                return self._got(promised)
            except errors.RayTaskError as failed:
                raise failed.cause from None
            except gone as death:
                if tries == TRIES - 1:
                    why = str(death).partition("\n")[0][:300]
                    raise ClusterError(f"shard {place} died {TRIES} times when asked for {method}: {why}") from None
            actor = self._rebuilt(place, actor)
            promised = actor.ask.remote(method, *shared)
        raise AssertionError("unreachable")

    def _got(self, promised: Any) -> Any:
        """Raises GetTimeoutError where a part says nothing at all."""
        until = time.monotonic() + LONGEST_SECONDS
        while time.monotonic() < until and not self._ray.wait([promised], timeout=PATIENCE_SECONDS)[0]:
            check_reachable(self._ray)
        return self._ray.get(promised, timeout=PATIENCE_SECONDS)

    def _rebuilt(self, place: int, dead: Any) -> Any:
        """The actor in place of a dead one, which another thread may have built already, told what that was told."""
        with self._lock:
            if self._actors[place] is dead:
                self._ray.kill(dead)  # one that only could not be reached must not live on beside the other
                self._actors[place] = self._built(self._factories[place])
                for method, values in self._told:  # one at a time: all of them may be more than a cluster's store holds
                    with suppress(self._ray.exceptions.RayError):  # whoever dies of it, dies of the question too
                        self._got(self._actors[place].ask.remote(method, *values))
            return self._actors[place]

    def close(self) -> None:
        self._door.close()
        if not self._ray.is_initialized():
            return  # the cluster has ended before us: Ray would start another, with a token in the home of its owner
        for actor in self._actors:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)


class _Door:
    """How forked children of the process that holds a group ask it: a socket in a folder of its owner alone."""

    def __init__(self, group: Shards) -> None:
        self._group, self._process = group, os.getpid()
        self._folder = TemporaryDirectory(prefix="ppspeech-")
        self._key = os.urandom(32)
        path = str(Path(self._folder.name) / "shards")
        self._listener = Listener(path, "AF_UNIX", backlog=128, authkey=self._key)
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def is_mine(self) -> bool:
        return os.getpid() == self._process

    def ask(self, verb: str, method: str, *values: Value) -> list[Any]:
        with Client(str(self._listener.address), "AF_UNIX", authkey=self._key) as line:
            line.send_bytes(packed([verb.encode(), method.encode(), *values]))
            status, *results = unpacked(line.recv_bytes())
        if status != b"done":
            raise ClusterError(f"the shards could not answer: {bytes(status).decode(errors='replace')}")
        return results

    def close(self) -> None:
        self._listener.close()
        self._folder.cleanup()

    def _listen(self) -> None:
        while True:
            try:
                line = self._listener.accept()
            except OSError:
                return  # closed
            except Exception:  # noqa: S112 - one that does not know the key, or went away: the next may do better
                continue
            threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def _answer(self, line: Connection) -> None:
        with line:
            try:
                verb, method, *values = unpacked(line.recv_bytes())
                said = (self._group.tell if verb == b"tell" else self._group.ask)(bytes(method).decode(), *values)
                answer = packed([b"done", *(said or ())])
            except (EOFError, OSError):
                return  # the child went away
            except Exception as error:
                answer = packed([f"{type(error).__name__}: {error!s:.300}".encode()])
            try:
                line.send_bytes(answer)
            except OSError:
                return


def packed(values: Sequence[Value]) -> bytes:
    """Arrays and bytes as one, without pickle."""
    file = io.BytesIO()
    named = {
        f"{'b' if isinstance(value, bytes) else 'a'}{place}": (
            np.frombuffer(value, np.uint8) if isinstance(value, bytes) else value
        )
        for place, value in enumerate(values)
    }
    np.savez(file, allow_pickle=False, **named)
    return file.getvalue()


def unpacked(data: bytes) -> list[Value]:
    """What `packed` was given."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        return [held[name].tobytes() if name[0] == "b" else held[name] for name in held.files]


def _check(values: Sequence[Value]) -> None:
    for value in values:
        if not isinstance(value, bytes) and (not isinstance(value, np.ndarray) or value.dtype.hasobject):
            raise ClusterError(f"shards are asked with arrays and bytes, got {type(value).__name__}")
