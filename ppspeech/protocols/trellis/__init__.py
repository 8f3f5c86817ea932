"""One recursion over a public graph on shares."""

from ppspeech.protocols.trellis.circuit import TrellisCircuit, plan_circuit
from ppspeech.protocols.trellis.combine import TABLE_STEP
from ppspeech.protocols.trellis.garbled import (
    GarbledCost,
    PathRead,
    StreamEvaluation,
    StreamGarbling,
    WholeEvaluation,
    WholeGarbling,
    stream_cost,
    whole_cost,
)
from ppspeech.protocols.trellis.graph import KEEP, Arc, Rule, Set, Start, Trellis
from ppspeech.protocols.trellis.range import most_apart
from ppspeech.protocols.trellis.schedule import Schedule, plan_trellis
from ppspeech.protocols.trellis.shares import TrellisRun
from ppspeech.protocols.trellis.twin import Walked, walk

__all__ = [
    "KEEP",
    "TABLE_STEP",
    "Arc",
    "GarbledCost",
    "PathRead",
    "Rule",
    "Schedule",
    "Set",
    "Start",
    "StreamEvaluation",
    "StreamGarbling",
    "Trellis",
    "TrellisCircuit",
    "TrellisRun",
    "Walked",
    "WholeEvaluation",
    "WholeGarbling",
    "most_apart",
    "plan_circuit",
    "plan_trellis",
    "stream_cost",
    "walk",
    "whole_cost",
]
