"""Two parties who have met: transfers agreed on, and the client's lattice key with the server. Then any number of jobs.

The client is the second party of the share engine and the one with a lattice key; the server holds the weights, sees
ciphertexts only, and has no key in its process.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import (
    CorrelationCut,
    EncodedWeights,
    Evaluator,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    ReplyMask,
    client_correlation_finish,
    client_correlation_query,
    client_finish,
    client_query,
    key_length,
    server_correlation_reply,
    server_reply,
)
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import PpspeechError
from ppspeech.protocols.message_kinds import Kind

WORKERS = 2
"""Threads of a lattice step: the other party waits meanwhile, so its core is free where both share a machine."""


Planned = MatrixPlan | CorrelationCut
"""What an encrypted product, or correlation, is cut into."""


@dataclass(frozen=True)
class Meeting:
    """One party's half of a meeting. `setup`: transfers, of `Side.SECOND` for the client and of `Side.FIRST` for the
    server. `lattice`: the client's key, which encrypts features and opens replies; the server's evaluator under it.
    """

    channel: Channel
    setup: PairSetup
    lattice: KeyHolder | Evaluator

    @property
    def side(self) -> Side:
        """Which half: the client is the second."""
        return self.setup.party

    @contextmanager
    def session(self) -> Iterator[None]:
        """Use the transfers; an error inside leaves them spent."""
        with self.setup.session(self.channel):
            yield

    def prepare(self, plans: Planned | Sequence[Planned], cost: Cost) -> ShareEngine:
        """Offline, as the other party does: transfers for `cost`, and encryptions of zero for a product, or several.

        The encryptions need no peer: they are made while this party waits for the other, half of the time.
        """
        with ThreadPoolExecutor(max_workers=1) as aside:
            every = plans if isinstance(plans, Sequence) else [plans]
            zeros = [aside.submit(self.lattice.prepare, plan.job) for plan in every]
            engine = ShareEngine(self.channel, self.setup, cost)
            for each in zeros:
                each.result()
        return engine

    def multiply(self, plan: MatrixPlan, own: Reals | EncodedWeights, mask: ReplyMask | None = None) -> Residues:
        """Our share of the client's features times the server's weights, `(rows, columns)` mod 2^bits of the result.
        `own`: the client's features `(rows, inner)`, or the server's encoded weights. `mask`: the server's, if its
        share was fixed before (`share_before`). Raises PpspeechError if this party has the other's factor, RangeError
        before anything is sent, for features beyond the public limit.
        """
        if isinstance(self.lattice, KeyHolder) and not isinstance(own, EncodedWeights):
            self.channel.send(Kind.QUERY, client_query(self.lattice, plan, own))
            reply = self.channel.receive(Kind.REPLY, plan.job.reply_bytes)
            return client_finish(self.lattice, plan, reply, WORKERS)
        if isinstance(self.lattice, Evaluator) and isinstance(own, EncodedWeights):
            query = self.channel.receive(Kind.QUERY, plan.job.query_bytes)
            reply, share = server_reply(self.lattice, plan, own, query, WORKERS, mask)
            self.channel.send(Kind.REPLY, reply)
            return share
        raise PpspeechError(
            f"the {self.side.name.lower()} party cannot multiply {type(own).__name__}: that is the other's"
        )

    def correlate(self, plan: CorrelationCut, own: Reals | EncodedWeights) -> Residues:
        """Our share of how well the client's pattern fits the server's signal at every offset, `(offsets,)`. `own`: the
        client's pattern `(channels, times)`, or the server's encoded signal. Raises as `multiply` does.
        """
        if isinstance(self.lattice, KeyHolder) and not isinstance(own, EncodedWeights):
            self.channel.send(Kind.QUERY, client_correlation_query(self.lattice, plan, own))
            reply = self.channel.receive(Kind.REPLY, plan.job.reply_bytes)
            return client_correlation_finish(self.lattice, plan, reply, WORKERS)
        if isinstance(self.lattice, Evaluator) and isinstance(own, EncodedWeights):
            query = self.channel.receive(Kind.QUERY, plan.job.query_bytes)
            reply, share = server_correlation_reply(self.lattice, plan, own, query, WORKERS)
            self.channel.send(Kind.REPLY, reply)
            return share
        raise PpspeechError(
            f"the {self.side.name.lower()} party cannot correlate {type(own).__name__}: that is the other's"
        )


def meet(channel: Channel, side: Side, parameters: LatticeParameters | None = None) -> Meeting:
    """Agree on transfers; then the second party, the client, makes a lattice key and sends its public half. What both
    have said before are the key's coins, so that neither chooses the other half. Raises BadCiphertextError for the
    server, if the client's key is malformed.
    """
    setup, chosen = PairSetup.agree(channel, side), parameters or LatticeParameters()
    if side is Side.SECOND:
        key = KeyHolder(chosen, setup.id)
        channel.send(Kind.LATTICE_KEY, key.public_key)
        return Meeting(channel, setup, key)
    received = channel.receive(Kind.LATTICE_KEY, key_length(chosen))
    return Meeting(channel, setup, Evaluator(received, setup.id, chosen))


def meet_as_client(channel: Channel, parameters: LatticeParameters | None = None) -> Meeting:
    """`meet`, as the second party: the one with a voice and a key."""
    return meet(channel, Side.SECOND, parameters)


def meet_as_server(channel: Channel, parameters: LatticeParameters | None = None) -> Meeting:
    """`meet`, as the first party: the one with the weights."""
    return meet(channel, Side.FIRST, parameters)
