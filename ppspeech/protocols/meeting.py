"""Two parties who have met: transfers agreed on, and the client's lattice key with the server. Then any number of jobs.

The client is the second party of the share engine and the one with a lattice key; the server holds the weights, sees
ciphertexts only, and has no key in its process.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto.lattice import (
    EncodedWeights,
    Evaluator,
    KeyHolder,
    LatticeParameters,
    MatrixPlan,
    ciphertext_length,
    client_finish,
    client_query,
    server_reply,
)
from ppspeech.crypto.shares import Cost, ShareEngine
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.protocols.message_kinds import Kind

WORKERS = 2
"""Threads of a lattice step: the other party waits meanwhile, so its core is free where both share a machine."""


@dataclass(frozen=True)
class MetClient:
    """The client's half of a meeting.

    Attributes:
        channel: to the server.
        setup: transfers, of `Side.SECOND`.
        key: encrypts features and opens replies.
    """

    channel: Channel
    setup: PairSetup
    key: KeyHolder

    @contextmanager
    def session(self) -> Iterator[None]:
        """Use the transfers; an error inside leaves them spent."""
        with self.setup.session(self.channel):
            yield

    def prepare(self, plan: MatrixPlan, cost: Cost) -> ShareEngine:
        """Offline, as the server does: transfers for `cost`, and encryptions of zero for one product."""
        return _prepare(self.channel, self.setup, cost, lambda: self.key.prepare(plan.job))

    def multiply(self, plan: MatrixPlan, features: Reals) -> Residues:
        """Our share of features times weights, `(rows, columns)` mod 2^bits of the plan's result."""
        self.channel.send(Kind.QUERY, client_query(self.key, plan, features))
        return client_finish(self.key, plan, self.channel.receive(Kind.REPLY, plan.job.reply_bytes), WORKERS)


@dataclass(frozen=True)
class MetServer:
    """The server's half of a meeting.

    Attributes:
        channel: to the client.
        setup: transfers, of `Side.FIRST`.
        evaluator: multiplies under the client's key.
    """

    channel: Channel
    setup: PairSetup
    evaluator: Evaluator

    @contextmanager
    def session(self) -> Iterator[None]:
        """Use the transfers; an error inside leaves them spent."""
        with self.setup.session(self.channel):
            yield

    def prepare(self, plan: MatrixPlan, cost: Cost) -> ShareEngine:
        """Offline, as the client does: transfers for `cost`, and encryptions of zero for one product."""
        return _prepare(self.channel, self.setup, cost, lambda: self.evaluator.prepare(plan.job))

    def multiply(self, plan: MatrixPlan, weights: EncodedWeights) -> Residues:
        """Our share of the client's features times weights, `(rows, columns)`."""
        query = self.channel.receive(Kind.QUERY, plan.job.query_bytes)
        reply, share = server_reply(self.evaluator, plan, weights, query, WORKERS)
        self.channel.send(Kind.REPLY, reply)
        return share


def meet_as_client(channel: Channel, parameters: LatticeParameters | None = None) -> MetClient:
    """Make a lattice key, send its public half, and agree on transfers."""
    key = KeyHolder(parameters)
    channel.send(Kind.LATTICE_KEY, key.public_key)
    return MetClient(channel, PairSetup.agree(channel, Side.SECOND), key)


def meet_as_server(channel: Channel, parameters: LatticeParameters | None = None) -> MetServer:
    """Take the client's public key and agree on transfers.

    Raises:
        BadCiphertextError: if the key is malformed.
    """
    chosen = parameters or LatticeParameters()
    evaluator = Evaluator(channel.receive(Kind.LATTICE_KEY, ciphertext_length(chosen)), chosen)
    return MetServer(channel, PairSetup.agree(channel, Side.FIRST), evaluator)


def _prepare(channel: Channel, setup: PairSetup, cost: Cost, encrypt_zeros: Callable[[], None]) -> ShareEngine:
    """Transfers, and at the same time what needs no peer: each party waits for the other half of the time."""
    with ThreadPoolExecutor(max_workers=1) as aside:
        zeros = aside.submit(encrypt_zeros)
        engine = ShareEngine(channel, setup, cost)
        zeros.result()
    return engine
