"""Shards: asked together, in order; a part that dies is built again and the answer is the same."""

import os
import signal
from functools import partial

import numpy as np
import pytest

from ppspeech.cluster import shards
from ppspeech.errors import AudioError, ClusterError
from tests.cluster.conftest import Nodes
from tests.cluster.parts import Part

FACTORIES = [partial(Part, factor) for factor in (2, 3, 5)]
VALUES = np.arange(4)
EXPECTED = [(VALUES * factor).tolist() for factor in (2, 3, 5)]


def test_in_this_process() -> None:
    with shards(FACTORIES) as group:
        assert len(group) == 3
        assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED
        group.tell("put", VALUES)
        assert [each.tolist() for each in group.ask("kept_times")] == EXPECTED
        with pytest.raises(AudioError, match="too quiet"):
            group.ask("refuse", VALUES)
        with pytest.raises(ClusterError, match="arrays and bytes, got dict"):
            group.ask("times", {})  # type: ignore[arg-type]
        with pytest.raises(ClusterError, match="arrays and bytes"):
            group.ask("times", np.array([object()]))


def test_nothing_to_hold() -> None:
    with pytest.raises(ClusterError, match="one factory for each shard"), shards([]):
        pass


def test_a_shard_that_dies_changes_nothing(nodes: Nodes) -> None:
    """A process is killed, then a node with all that is on it; forked children ask as their parent does."""
    with shards(FACTORIES, ray=nodes.address) as group:
        assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED
        with pytest.raises(AudioError, match="too quiet"):
            group.ask("refuse", VALUES)
        group.tell("put", VALUES)
        with pytest.raises(AudioError, match="less than nothing"):
            group.tell("put", -VALUES)
        os.kill(int(group.ask("process")[0]), signal.SIGKILL)  # the others are on both nodes
        assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED
        assert [each.tolist() for each in group.ask("kept_times")] == EXPECTED  # as the one that died was told
        assert _asked_by_a_child(group) == EXPECTED
        assert nodes.second.encode() in group.ask("node")
        nodes.kill_second()
        try:
            assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED
            assert nodes.second.encode() not in group.ask("node")
            assert [each.tolist() for each in group.ask("kept_times")] == EXPECTED
        finally:
            nodes.replace_second()
        with pytest.raises(ClusterError, match="shard 0 died 4 times when asked for die"):
            group.ask("die")
        assert [each.tolist() for each in group.ask("times", VALUES)] == EXPECTED


def _asked_by_a_child(group: object) -> list[list[int]]:
    """What a forked child, as servers have one for each client, is told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        told = b"nothing"
        try:
            group.tell("put", VALUES)  # type: ignore[attr-defined]
            told = np.stack(group.ask("kept_times")).astype(np.int64).tobytes()  # type: ignore[attr-defined]
        finally:
            os.write(writing, told)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return np.frombuffer(told, np.int64).reshape(3, 4).tolist()
