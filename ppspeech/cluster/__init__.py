"""Work that is spread: over this process, over the cores of this machine, or over the machines of a Ray cluster.

Nothing here needs Ray unless it is asked for (`pip install 'ppspeech[scale]'`).
"""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.cluster.pool import HERE, Pool, in_order, pool
    from ppspeech.cluster.ray_cluster import LOCAL, is_address, ray_cluster
    from ppspeech.cluster.shards import Shards, shards
    from ppspeech.cluster.sweep import spread_over, sweep

__all__ = [
    "HERE",
    "LOCAL",
    "Pool",
    "Shards",
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
