"""Work that is spread: over this process, over the cores of this machine, or over the machines of a Ray cluster.

Nothing here needs Ray unless it is asked for (`pip install 'ppspeech[scale]'`).
"""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.cluster.connection import LOCAL, is_address, ray_cluster
    from ppspeech.cluster.parts import Shards, shards
    from ppspeech.cluster.sweeps import spread_over, sweep
    from ppspeech.cluster.workers import HERE, Pool, Slices, in_order, pool

__all__ = [
    "HERE",
    "LOCAL",
    "Pool",
    "Shards",
    "Slices",
    "in_order",
    "is_address",
    "pool",
    "ray_cluster",
    "shards",
    "spread_over",
    "sweep",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
