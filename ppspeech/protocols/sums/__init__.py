"""Sums of many parties' vectors."""

from ppspeech.arrays import Whole
from ppspeech.protocols.sums.aggregation import (
    CURATOR,
    PARTY,
    CuratorSession,
    PartySession,
    RoundEndedError,
    SumTerms,
    contribute,
    curate,
)
from ppspeech.protocols.sums.joint import JointSum, PlainSum, Shares, WholeSum
from ppspeech.protocols.sums.masks import Signatures

__all__ = [
    "CURATOR",
    "PARTY",
    "CuratorSession",
    "JointSum",
    "PartySession",
    "PlainSum",
    "RoundEndedError",
    "Shares",
    "Signatures",
    "SumTerms",
    "Whole",
    "WholeSum",
    "contribute",
    "curate",
]
