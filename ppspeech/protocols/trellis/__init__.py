"""One recursion over a public graph on shares."""

from ppspeech.protocols.trellis.combine import TABLE_STEP
from ppspeech.protocols.trellis.graph import KEEP, Arc, Rule, Set, Start, Trellis
from ppspeech.protocols.trellis.range import most_apart
from ppspeech.protocols.trellis.scan import can_scan
from ppspeech.protocols.trellis.schedule import TrellisPlan, plan_trellis
from ppspeech.protocols.trellis.shares import TrellisRun
from ppspeech.protocols.trellis.twin import Walked, walk

__all__ = [
    "KEEP",
    "TABLE_STEP",
    "Arc",
    "Rule",
    "Set",
    "Start",
    "Trellis",
    "TrellisPlan",
    "TrellisRun",
    "Walked",
    "can_scan",
    "most_apart",
    "plan_trellis",
    "walk",
]
