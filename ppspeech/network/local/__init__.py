"""All parties on this machine: as threads, as processes, over a slow link."""

from ppspeech.network.local.groups import Outcome, Player, run_group

__all__ = ["Outcome", "Player", "run_group"]
