"""A server that is watched: a port with sums, health and readiness, and nothing about anybody."""

from ppspeech.service.metrics.exposition import BUDGETS, COUNTED, LIVE, START, Exposition
from ppspeech.service.metrics.listen import watched

__all__ = ["BUDGETS", "COUNTED", "LIVE", "START", "Exposition", "watched"]
