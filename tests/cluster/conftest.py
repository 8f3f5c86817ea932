"""A cluster of two nodes on this machine, for all tests of a file: those of another may need that there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NOTICED = {"health_check_initial_delay_ms": 500, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
"""When a node that is gone is missed: one that only is slow has ten seconds a check."""


class Nodes:
    """A cluster whose second node can be killed and is then replaced."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.address: str = cluster.address
        self._second = self._add()

    def _add(self) -> Any:
        return self._cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20, node_ip_address="127.0.0.1")

    @property
    def second(self) -> str:
        return str(self._second.node_id)

    def kill_second(self) -> None:
        self._cluster.remove_node(self._second, allow_graceful=False)

    def replace_second(self) -> None:
        self._second = self._add()
        self._cluster.wait_for_nodes()

    @contextmanager
    def second_replaced(self) -> Iterator[None]:
        """When the block ends, by whatever, there is a second node again."""
        before = self._second
        try:
            yield
        finally:
            if self._second is before:
                self.replace_second()


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="the extra `scale` is not installed")
    from ppspeech.cluster.connection import _guarded, _imported

    ray = _imported()
    with _guarded():
        from ray.cluster_utils import Cluster

        cluster = Cluster(
            initialize_head=True,
            shutdown_at_exit=False,
            head_node_args={
                "num_cpus": 1,
                "object_store_memory": 80 * 2**20,
                "include_dashboard": False,
                "node_ip_address": "127.0.0.1",
                "_system_config": NOTICED,
            },
        )
        try:
            yield Nodes(cluster)
        finally:
            ray.shutdown()
            cluster.shutdown()
