"""Beliefs on graphs with secret priors: as in the clear, and nobody sees another's. Chi-square tests at 1e-6."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.paillier import PaillierPublicKey, generate_paillier
from ppspeech.crypto.transfer import GREETING_BYTES, PairSetup, Side
from ppspeech.errors import PrivacyError, ProtocolError, RangeError, WrongKeyError
from ppspeech.evidence.experiments.beliefs import believed, exact_error, grid, loopy_error
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party, run_in_memory
from ppspeech.protocols.beliefs import BeliefShape, beliefs_in_clear, believe, costs
from ppspeech.protocols.beliefs import peers as among_peers
from ppspeech.protocols.beliefs import rounds as room
from ppspeech.protocols.beliefs import servers as by_servers
from tests.crypto.pairs import lasting_setup

ALARM = 1e-6
DEMO = {"key_bits": 512, "insecure_demo": True}
CHAIN = BeliefShape(3, ((0, 1), (2, 1)), (0.5, -0.7), rounds=3)


def by_two_servers(shape: BeliefShape, priors: Any, holds: list[list[int]], watch: Any = None) -> np.ndarray:
    """What all persons are told, in the order of nodes; `watch` wraps a party."""
    terms = {"graph": shape.to_params(), "holds": holds}
    wrap = watch or (lambda party: party)
    members = [("server", lambda party: by_servers.serve(wrap(party), **terms))] * 2
    members += [
        ("person", lambda party, own=own: by_servers.take_part(wrap(party), [priors[n] for n in own], **terms))
        for own in holds
    ]
    told = run_in_memory(members)[2:]
    found = np.zeros(shape.nodes)
    for own, said in zip(holds, told, strict=True):
        found[own] = said
    return found


def test_trees_have_the_log_odds_of_all_states_together() -> None:
    assert max(exact_error(seed) for seed in range(2)) < 2.0**-8


@pytest.mark.parametrize(("operation", "damping"), [("sum", 0), ("sum", 4), ("min", 0), ("min", 3)])
def test_grids_are_as_the_same_rounds_in_the_clear(operation: str, damping: int) -> None:
    error = loopy_error(grid(3, operation, damping, 1), 1)
    assert error < 2.0**-8
    assert damping or operation == "sum" or error == 0  # minima of whole numbers are exact


@pytest.mark.slow
def test_many_grids_are_as_the_same_rounds_in_the_clear() -> None:
    for operation, damping, most in (("sum", 0, 2.0**-8), ("sum", 4, 2.0**-8), ("min", 0, 0.0)):
        assert max(loopy_error(grid(3, operation, damping, seed), seed) for seed in range(20)) <= most


def test_everyone_is_told_its_own() -> None:
    priors = [1.0, -2.5, 0.25]
    for holds in ([[0], [1], [2]], [[2, 0], [1]]):
        found = by_two_servers(CHAIN, priors, holds)
        assert np.abs(found - beliefs_in_clear(CHAIN, np.array(priors))).max() < 2.0**-8


def test_nodes_without_neighbors_believe_what_they_knew() -> None:
    lonely = BeliefShape(2, (), (), rounds=2)
    assert by_two_servers(lonely, [1.5, -9.0], [[0], [1]]).tolist() == [1.5, -4 + 2.0**-11]  # cut to the largest prior
    graph = lonely.to_params()
    alone = "peer", lambda party: among_peers.take_part(party, 0.5, graph=graph, **DEMO)
    assert run_in_memory([alone, alone]) == [0.5, 0.5]


def test_strong_couplings_and_the_largest_priors_stay_in_their_ring() -> None:
    """A star, whose middle takes in all that there can be; by sums and minima, and every sign."""
    for sign in (1.0, -1.0):
        for operation in ("sum", "min"):
            star = BeliefShape(
                6,
                tuple((0, leaf) for leaf in range(1, 6)),
                (3.9,) * 5,
                3,
                operation,
                prior=16,
                fraction=8,  # type: ignore[arg-type]
            )
            found = believed(star, np.full(6, sign * 99.0))
            wanted = beliefs_in_clear(star, np.full(6, sign * 99.0))
            assert np.abs(wanted).max() > 50
            assert np.abs(found - wanted).max() < 0.5
            assert star.reach < 2.0 ** (star.ring.bits - 1 - star.fraction)


def test_whatever_a_person_sends_is_some_prior() -> None:
    """Every residue of the ring of priors: none is beyond the bound, so that nothing wraps around for others."""
    shape = BeliefShape(2, ((0, 1),), (0.5,), rounds=1, prior=1, fraction=6)
    halves, every = lasting_setup(), np.arange(1 << shape.narrow.bits, dtype=np.uint64)
    for residue in [*every[:: len(every) // 8].tolist(), int(every[-1])]:
        wanted = float(shape.narrow.to_signed(np.array([residue], np.uint64))[0]) * 2.0**-6
        assert abs(wanted) <= 1.0
        shares = shape.narrow.share(np.array([residue, 0], np.uint64))

        def server(channel: Channel, half: PairSetup, own: np.ndarray) -> np.ndarray:
            with half.session(channel):
                return believe(channel, half, shape, own)

        parts = run_together(
            lambda c: server(c, halves[0], shares[0]),  # noqa: B023
            lambda c: server(c, halves[1], shares[1]),  # noqa: B023
        )
        found = shape.ring.to_signed(shape.ring.join(*parts)) * 2.0**-6
        assert found[0] == pytest.approx(wanted, abs=0.05)


def run_servers(shape: BeliefShape, priors: np.ndarray) -> Transcript:
    """The second server's transcript."""
    halves, ends = lasting_setup(), memory_pair()
    record = Transcript(ends[1], keep_payloads=True)
    shares = shape.narrow.share(shape.narrow.from_signed(shape.encoded(priors)))

    def server(channel: Channel, half: PairSetup, own: np.ndarray) -> np.ndarray:
        with half.session(channel):
            return believe(channel, half, shape, own)

    run_together(
        lambda c: server(c, halves[Side.FIRST], shares[0]),
        lambda _: server(record, halves[Side.SECOND], shares[1]),
        ends,
    )
    return record


@pytest.mark.parametrize("changed", [{}, {"damping": 3}, {"operation": "min"}], ids=str)
def test_messages_of_servers_are_those_of_the_record_and_say_nothing(
    changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = replace(CHAIN, **changed)
    one, other = (run_servers(shape, np.array(priors)) for priors in ([4.0, 4.0, 4.0], [-4.0, 0.0, 1.0]))
    assert one.shape() == other.shape()
    total = sum(size for _, _, size in one.shape())
    assert total == sum(cost.total_bytes for cost in costs(shape)) + 2 * GREETING_BYTES
    monkeypatch.setattr(room, "MOST_PREPARED", 1)  # a portion a round
    assert len(room.portions(shape)) == shape.rounds
    cut = run_servers(shape, np.array([1.0, 2.0, 3.0]))
    assert (
        sum(size for _, _, size in cut.shape()) == sum(cost.total_bytes for cost in costs(shape)) + 2 * GREETING_BYTES
    )


def test_servers_receive_uniform_shares_of_priors() -> None:
    """The largest prior, many times: what each server gets of it is spread over all residues."""
    shape = BeliefShape(512, (), (), rounds=1)
    shares: list[bytes] = []

    def watched(party: Party) -> Party:
        records = {seat: Transcript(channel, keep_payloads=True) for seat, channel in party.channels.items()}
        kept.append((party.role, records))
        return replace(party, channels=records)

    kept: list[Any] = []
    by_two_servers(shape, np.full(512, 4.0), [list(range(512))], watched)
    for role, records in kept:
        for record in records.values():
            seen = (e.payload or b"" for e in record.entries if e.kind == CryptoKind.SHARES)
            shares += seen if role == "server" else ()
    assert len(shares) == 2
    for share in shares:
        counted = np.bincount(np.frombuffer(share, np.uint8) & 15, minlength=16)
        assert stats.chisquare(counted).pvalue > ALARM


# Among peers.


def among(shape: BeliefShape, priors: list[float], watch: Any = None) -> list[float]:
    wrap = watch or (lambda party: party)
    return run_in_memory(
        [
            ("peer", lambda party, own=own: among_peers.take_part(wrap(party), own, graph=shape.to_params(), **DEMO))
            for own in priors
        ]
    )


@pytest.mark.parametrize(
    ("edges", "changed"),
    [
        (((0, 1), (2, 1)), {}),
        (((0, 1), (1, 2), (2, 0), (3, 0)), {"damping": 4}),
        (((0, 1), (1, 2), (0, 2)), {"operation": "min"}),
    ],
    ids=str,
)
def test_peers_believe_what_servers_would_tell_them(edges: Any, changed: dict[str, Any]) -> None:
    nodes = 1 + max(max(edge) for edge in edges)
    shape = BeliefShape(nodes, edges, (0.6, -0.4, 0.5, 0.3)[: len(edges)], rounds=3, **changed)
    priors = [1.2, -0.7, 0.4, 2.0][:nodes]
    found = among(shape, priors)
    assert np.abs(np.array(found) - beliefs_in_clear(shape, np.array(priors))).max() < 2.0**-8


def test_what_a_peer_opens_is_masked_and_its_messages_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ρ and a sum of shares, ρ is all that can be seen; and messages have the same kinds and sizes for any prior."""
    opened: list[int] = []
    plain = among_peers._Peer._open

    def watched(self: Any, node: int) -> int:
        opened.append(plain(self, node))
        return opened[-1]

    monkeypatch.setattr(among_peers._Peer, "_open", watched)
    shapes = []
    for priors in ([4.0, 4.0, 4.0], [-4.0, 0.5, 0.0]):
        records: list[Any] = []

        def watch(party: Party, records: list[Any] = records) -> Party:
            kept = {seat: Transcript(channel) for seat, channel in party.channels.items()}
            records.append((party.place, kept))
            return replace(party, channels=kept)

        among(CHAIN, priors, watch)
        shapes.append({(place, seat): record.shape() for place, kept in records for seat, record in kept.items()})
    assert shapes[0] == shapes[1]
    assert len(opened) == 2 * (3 * 4 + 3)
    assert min(each.bit_length() for each in opened) > 100  # of 128, but once in 2^20 times
    low = [each & 1 for each in opened]
    assert 0 < sum(low) < len(low)


def test_a_ciphertext_under_another_key_ends_it() -> None:
    """As if a peer had kept to itself which key it should encrypt under."""
    stranger = generate_paillier(512, insecure_demo=True).public

    def send(self: Any, node: int, opener: int, values: list[int]) -> None:
        self._channels[node].send(Kind.PEER_SHARES, stranger.dump(stranger.encrypt_many(values)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(among_peers._Peer, "_send", send)
        with pytest.raises((WrongKeyError, ProtocolError)):
            among(CHAIN, [0.0, 1.0, 2.0])


def test_a_key_that_protects_nothing_is_refused() -> None:
    with pytest.raises(PrivacyError):
        run_in_memory(
            [("peer", lambda party: among_peers.take_part(party, 0.5, graph=CHAIN.to_params(), key_bits=512))] * 3
        )
    with pytest.raises(PrivacyError):
        PaillierPublicKey.from_bytes(generate_paillier(512, insecure_demo=True).public.to_bytes())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nodes": 0}, "nodes must lie in"),
        ({"nodes": True}, "nodes must lie in"),
        ({"rounds": 0}, "rounds must lie in"),
        ({"damping": 8}, "damping must lie in"),
        ({"operation": "max"}, "by sum or min"),
        ({"prior": 3}, "priors are up to"),
        ({"fraction": 20}, "fraction must lie in"),
        ({"edges": [[0, 3], [1, 2]]}, "two different nodes"),
        ({"edges": [[1, 1], [1, 2]]}, "two different nodes"),
        ({"edges": [[0, 1], [1, 0]]}, "one edge at the most"),
        ({"edges": [[0, 1, 2], [1, 2, 0]]}, "a pair of nodes"),
        ({"edges": [["a", "b"], [1, 2]]}, "a pair of nodes"),
        ({"couplings": [0.5]}, "a coupling each"),
        ({"couplings": [0.5, 0.0]}, "a coupling is not 0"),
        ({"couplings": [0.5, 99.0]}, "a coupling is not 0"),
        ({"couplings": [0.5, float("nan")]}, "a coupling is not 0"),
        ({"more": 1}, "not the shape"),
    ],
    ids=str,
)
def test_graphs_that_cannot_be_are_refused(changed: dict[str, Any], said: str) -> None:
    given = {"nodes": 3, "edges": [[0, 1], [1, 2]], "couplings": [0.5, 0.5]}
    assert BeliefShape.from_params(BeliefShape.from_params(given).to_params()) == BeliefShape.from_params(given)
    with pytest.raises(RangeError, match=said):
        BeliefShape.from_params(given | changed)


def test_graphs_that_no_ring_holds_are_refused() -> None:
    star = [[0, leaf] for leaf in range(1, 2_000)]
    with pytest.raises(RangeError, match="use weaker couplings"):
        BeliefShape.from_params({"nodes": 2_000, "edges": star, "couplings": [4.0] * len(star), "fraction": 12})


def test_what_does_not_fit_is_refused_before_anything_is_sent() -> None:
    nobody = {seat: memory_pair()[0] for seat in ("server 0", "server 1", "person 1")}
    names = {seat: seat for seat in ("server 0", "server 1", "person 0", "person 1")}
    person = Party("person", nobody, "person 0", names)
    graph = CHAIN.to_params()
    with pytest.raises(RangeError, match="is held by one person"):
        by_servers.take_part(person, [1.0], graph=graph, holds=[[0], [1]])
    with pytest.raises(RangeError, match="two servers and 3 persons"):
        by_servers.take_part(person, [1.0], graph=graph, holds=[[0], [1], [2]])
    with pytest.raises(RangeError, match="brings a prior for each"):
        by_servers.take_part(person, [1.0], graph=graph, holds=[[0, 1], [2]])
    with pytest.raises(RangeError, match="a prior is a number"):
        by_servers.take_part(person, [float("nan"), 1.0], graph=graph, holds=[[0, 1], [2]])
    peer = Party("peer", {"peer 1": memory_pair()[0]}, "peer 0", {"peer 0": "a", "peer 1": "b"})
    with pytest.raises(RangeError, match="3 peers were agreed on"):
        among_peers.take_part(peer, 0.0, graph=graph, **DEMO)
