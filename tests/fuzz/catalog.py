"""All doors."""

from tests.fuzz import doors_files, doors_network, doors_protocols, doors_store
from tests.fuzz.door import COSTS, DOORS

__all__ = ["COSTS", "DOORS", "doors_files", "doors_network", "doors_protocols", "doors_store"]
