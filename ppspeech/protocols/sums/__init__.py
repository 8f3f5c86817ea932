"""Sums of many parties' vectors."""

from ppspeech.arrays import Whole
from ppspeech.protocols.sums.aggregation import CuratorSession, PartySession, SumTerms, contribute, curate
from ppspeech.protocols.sums.joint import JointSum, PlainSum, Shares, WholeSum
from ppspeech.protocols.sums.masks import Signatures

__all__ = [
    "CuratorSession",
    "JointSum",
    "PartySession",
    "PlainSum",
    "Shares",
    "Signatures",
    "SumTerms",
    "Whole",
    "WholeSum",
    "contribute",
    "curate",
]
