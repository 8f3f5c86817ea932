"""Two parties computing on shares: a channel, which of the two one is, and what was prepared offline."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from ppspeech.arrays import Bits, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.shares.correlations import Correlations, Supply
from ppspeech.crypto.shares.cost import Cost
from ppspeech.crypto.shares.flights import FlightChannel
from ppspeech.crypto.transfer.setup import PairSetup, Side


class ShareEngine:
    """What every operation on shares takes first.

    A shared residue is the sum mod 2^k of the parties' residues (`uint64`), a shared bit the exclusive or of their bits
    (`uint8`, 0 or 1). Both parties call the same operations, in the same order, on arrays of the same shape.

    Args:
        channel: to the other party.
        setup: with a session open on the channel.
        cost: what will be computed, so that the offline phase can prepare it: `record(program)`.

    Attributes:
        channel: to the other party.
        party: which of the two this is.
        correlations: what is left of the offline phase.
    """

    def __init__(self, channel: Channel, setup: PairSetup, cost: Cost) -> None:
        self.channel = channel
        self.party = setup.party
        self.correlations: Supply = Correlations(setup, channel, cost)

    @property
    def is_first(self) -> bool:
        """Whether this is the first party, which offers tables."""
        return self.party is Side.FIRST

    def public(self, residues: Residues) -> Residues:
        """Shares of residues that both parties know."""
        return residues if self.is_first else np.zeros_like(residues)

    def flip(self, bits: Bits) -> Bits:
        """Shares of the opposite bits."""
        return bits ^ np.uint8(1) if self.is_first else bits

    @contextmanager
    def in_flights(self) -> Iterator[None]:
        """Let messages of one direction travel together, where both parties do so in the same part of a program.

        For recursions, whose time is that of their messages. Nothing else may use the channel meanwhile.
        """
        plain, flights = self.channel, FlightChannel(self.channel)
        self.channel = flights
        try:
            yield
            flights.finish()
        finally:
            self.channel = plain

    def __repr__(self) -> str:
        return f"ShareEngine({self.party.name}, {self.correlations!r})"
