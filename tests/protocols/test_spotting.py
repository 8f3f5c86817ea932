"""Keywords in recordings, encrypted: the same segments as in the clear, and nothing else leaves."""

from typing import Any

import numpy as np
import pytest
import torch

from ppspeech.arrays import Reals, Residues
from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, ProtocolError, RangeError
from ppspeech.models.decoding.spotting import best_of_blocks, best_segments, in_blocks
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import Kind, Party
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.scores.monomials import monomials_of
from ppspeech.protocols.search import Found, Keywords, Recordings, SpotShape, answer, ask, encode, spotting_cost
from ppspeech.protocols.search import spotting as programs
from ppspeech.protocols.search.shape import BEYOND
from ppspeech.protocols.search.spotting import best_segments as shared_segments
from ppspeech.protocols.search.spotting import check_found, lanes_of, spotting_plan
from ppspeech.protocols.trellis import walk
from tests.crypto.pairs import together
from tests.protocols.spotting_reference import (
    clear_answers,
    clear_ratios,
    clear_segments,
    made_keywords,
    made_recordings,
    made_shape,
    plain_keywords,
    plain_recordings,
)

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}


def encrypted_answers(keywords: Keywords, recordings: Recordings) -> list[list[Found | None]]:
    shape = keywords.shape
    mine, theirs = (keywords, recordings) if shape.holder == "server" else (recordings, keywords)

    def asking(channel: Channel) -> Any:
        met = meet_as_client(channel)
        with met.session():
            return ask(met, mine)

    def answering(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer(met, theirs, encode(theirs))

    return run_together(asking, answering)[0]


SHAPES: list[dict[str, Any]] = [
    {},
    {"holder": "client"},
    {"recordings": 3, "keywords": 2},
    {"recordings": 2, "keywords": 2, "holder": "client", "terms": "full", "scores": (-600, 10)},
    {"states": (2, 3), "recordings": 2},
    {"states": (2, 1, 2), "holder": "client"},
    {"frames": 20, "block": 30},
    {"passes": 4, "fraction": 8, "recordings": 2, "scores": (-300, 10)},
    {"passes": 3, "fraction": 8, "holder": "client"},
    {"terms": "linear", "dimensions": 6, "scores": (-30, 20), "recordings": 2},
    {"terms": "linear", "dimensions": 6, "scores": (-30, 20), "states": (2, 2), "holder": "client"},
]


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_the_client_learns_where_its_keywords_are(sizes: dict[str, Any]) -> None:
    shape = made_shape(**sizes)
    keywords = made_keywords(shape, seed=3)
    recordings = made_recordings(shape, keywords, seed=4)
    scores = np.sort(clear_segments(keywords, recordings).score.numpy().reshape(-1))
    widest = int(np.diff(scores).argmax()) if scores.size > 1 and np.diff(scores).max() > 1.0 else -1
    middle = scores[0] - 1.0 if widest < 0 else (scores[widest] + scores[widest + 1]) / 2
    decided = Keywords(shape, keywords.weights, keywords.constants, np.full(shape.keywords, middle))
    expected = clear_answers(decided, recordings)
    assert encrypted_answers(decided, recordings) == expected
    assert any(each is not None for row in expected for each in row)


def transcript(keywords: Keywords, recordings: Recordings) -> tuple[Transcript, Any]:
    """The client's, of the registered programs."""
    shape = keywords.shape
    here, there = memory_pair()
    record, params = Transcript(here, keep_payloads=True), shape.to_params()
    own = shape.holder == "client"
    asking, answering = (programs.own_client, programs.own_server) if own else (programs.client, programs.server)
    given: list[Any] = [plain_keywords(keywords), plain_recordings(recordings)]
    mine, theirs = reversed(given) if own else given
    told, _ = run_together(
        lambda _: asking(Party("client", {"server": record}), mine, shape=params),
        lambda c: answering(Party("server", {"client": c}), theirs, shape=params),
        (here, there),
    )
    return record, told


@pytest.mark.parametrize("sizes", [{"recordings": 2}, {"holder": "client"}, {"passes": 2, "fraction": 6}], ids=str)
def test_lengths_depend_on_public_sizes_alone_and_are_those_of_the_record(sizes: dict[str, Any]) -> None:
    """Another voice, another keyword, said or not, found or not: the same messages."""
    shape, shapes, answers = made_shape(**sizes), [], []
    for seed, threshold in ((0, -90.0), (1, 95.0)):
        keywords = made_keywords(shape, seed, threshold)
        record, told = transcript(keywords, made_recordings(shape, keywords, seed, said=seed == 0))
        shapes.append(record.shape())
        answers.append(told)
    assert shapes[0] == shapes[1]
    assert [[each is not None for each in row] for row in answers[0]] == [[True] * shape.recordings]
    assert answers[1] == [[None] * shape.recordings]
    total = sum(size for _, kind, size in shapes[0] if kind not in MEETING)
    assert total == shape.product.total_bytes + spotting_cost(shape).total_bytes


def test_where_a_keyword_would_have_been_is_not_told_if_it_is_not_said() -> None:
    """What both shares of the opened bits add up to is all zero, whatever the best segment was."""
    shape = made_shape()
    for seed in range(3):
        keywords = made_keywords(shape, seed, threshold=95.0)
        _, told = transcript(keywords, made_recordings(shape, keywords, seed))
        assert told == [[None]]
        residues = shared_answer(shape, keywords, made_recordings(shape, keywords, seed))
        assert residues.tolist() == [0]


def shared_answer(shape: SpotShape, keywords: Keywords, recordings: Recordings) -> Residues:
    """Everything that is opened to the client, from ratios in the clear."""
    first, second = split(shape, clear_ratios(keywords, recordings))

    def program(engine: ShareEngine, side: Side) -> Residues | None:
        mine = first if side is Side.FIRST else second
        return programs.find(engine, shape, mine, keywords if side is shape.owner else None)

    told = together(program)[1]
    assert told is not None
    return told


def split(shape: SpotShape, ratios: Reals) -> tuple[Residues, Residues]:
    """Shares of ratios `(keywords, recordings, frames, states)`, as the product leaves them."""
    ring = shape.scale.ring
    whole = np.ascontiguousarray(np.rint(ratios * 2**shape.fraction).astype(np.int64).transpose(0, 3, 1, 2))
    return ring.share(ring.from_signed(whole))


TWINS: list[dict[str, Any]] = [{}, {"states": (2, 2), "recordings": 2}, {"keywords": 2, "states": (1,)}]


@pytest.mark.parametrize("sizes", TWINS, ids=str)
@pytest.mark.parametrize("extreme", [False, True])
def test_shares_are_the_whole_numbers_of_the_twin_to_the_ends_of_the_range(
    sizes: dict[str, Any], extreme: bool
) -> None:
    """Ratios at both ends of what the shape allows pull scores as far apart as they go: still every bit is right."""
    shape = made_shape(frames=40, **sizes)
    rng = np.random.default_rng(len(str(sizes)))
    size = (shape.keywords, shape.recordings, shape.frames, shape.columns)
    low, high = shape.ratios
    ratios = rng.uniform(-20, 10, size=size)
    if extreme:
        ratios = np.where(rng.random(size) < 0.5, low, high)
        ratios[..., shape.frames // 2 :, :] = low
        ratios[..., : shape.frames // 4, :] = high
    first, second = split(shape, ratios)

    def program(engine: ShareEngine, side: Side) -> tuple[Residues, Residues]:
        emissions = lanes_of(engine, shape, first if side is Side.FIRST else second)
        score, load = shared_segments(engine, shape, emissions)
        return score.residues, load

    (one, load), (other, rest), _, _ = together(program)
    whole = np.rint(ratios * 2**shape.fraction).astype(np.int64)
    found = best_of_blocks(
        best_segments(
            in_blocks(torch.tensor(whole), shape.block, shape.longest, BEYOND << shape.fraction), shape.states
        ),
        shape.block,
    )
    ring = shape.scale.ring
    assert ring.to_signed(ring.join(one, other)).tolist() == found.score.reshape(-1).tolist()
    emissions = in_blocks(torch.tensor(whole), shape.block, shape.longest, BEYOND << shape.fraction)
    lanes = emissions.reshape(-1, shape.window, shape.columns).permute(1, 2, 0).numpy()
    walked = walk(spotting_plan(shape), np.zeros(0, np.int64), lanes)
    assert walked.apart < 2 ** (shape.bits - 1)
    if extreme:
        assert walked.apart > 0.15 * 2 ** (shape.bits - 1)  # the range is used
    else:
        starts = ((load ^ rest) & np.uint64((1 << shape.times) - 1)).astype(np.int64)
        blocks = ((load ^ rest) >> np.uint64(shape.load - shape.block_bits)).astype(np.int64)
        assert (starts + shape.block * blocks).tolist() == found.start.reshape(-1).tolist()


def test_no_ratio_is_beyond_what_the_shape_says() -> None:
    """Bounds of frames within limit and radius, against very many frames; the ones that reach furthest among them."""
    shape = made_shape()
    keywords = made_keywords(shape, seed=7)
    low, high = keywords.bounds
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(20_000, shape.dimensions)) * rng.choice([0.1, 1.0, 100.0], size=(20_000, 1))
    scores = monomials_of(shape.clipped(frames), shape.terms) @ keywords.rows.T
    assert low <= scores.min()
    assert scores.max() <= high
    assert low > 1.3 * scores.min()  # and not far beyond
    assert np.linalg.norm(shape.clipped(frames), axis=1).max() <= shape.radius * (1 + 1e-12)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"frames": 0}, "frames must lie in"),
    ({"frames": 10**9}, "frames must lie in"),
    ({"recordings": True}, "recordings must lie in"),
    ({"recordings": 10_000, "frames": 10_000}, "search fewer at a time"),
    ({"terms": "tied"}, "not known"),
    ({"holder": "nobody"}, "not known"),
    ({"states": ()}, "1 to 16 words"),
    ({"states": (40,)}, "does not fit a block"),
    ({"states": (1, 1, 1, 1, 1, 1, 1, 1)}, "for what is told"),
    ({"scores": (10, -300)}, "least and the most"),
    ({"scores": (-300.5, 10)}, "scores must lie in"),
    ({"scores": (-5, 10), "garbage": (-60, 0)}, "must reach -20"),
    ({"garbage": (0,)}, "least and the most"),
    ({"radius": 0.0}, "radius must lie in"),
    ({"limit": True}, "limit must lie in"),
    ({"passes": 2, "states": (2, 2)}, "averages are of one word"),
    ({"passes": 2, "block": 300}, "at most 255 frames"),
    ({"scores": (-1_000_000, 1_000_000), "fraction": 10}, "shorten blocks"),
    ({"constant": -1}, "constant must lie in"),
]


@pytest.mark.parametrize(("changed", "said"), REFUSED, ids=[str(changed) for changed, _ in REFUSED])
def test_shapes_that_hold_no_proof_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(RangeError, match=said):
        made_shape(**changed)


def test_what_is_not_of_the_shape_is_refused_before_anything_is_sent() -> None:
    shape, nobody = made_shape(), memory_pair()[0]
    keywords = made_keywords(shape)
    params, asking = shape.to_params(), Party("client", {"server": nobody})
    assert SpotShape.from_params(params) == shape
    plain = plain_keywords(keywords)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"weights": plain["weights"][0]}, "of shape"),
        ({"weights": [["a"]]}, "numbers each"),
        ({"constants": [float("nan")]}, "finite"),
        ({"thresholds": [1_000.0]}, "within 100 nats"),
        ({"weights": (100 * keywords.weights).tolist()}, "room for"),
    ]
    for changed, said in cases:
        with pytest.raises(PpspeechError, match=said):
            programs.client(asking, plain | changed, shape=params)
    with pytest.raises(RangeError, match="not the shape"):
        programs.client(asking, plain, shape=params | {"more": 1})
    with pytest.raises(RangeError, match="the server has the recordings"):
        programs.client(asking, plain, shape=params | {"holder": "client"})
    with pytest.raises(PpspeechError, match="numbers each"):
        programs.server(Party("server", {"client": nobody}), {"frames": [[1.0]]}, shape=params)
    frames, scored = np.zeros((5, 4)), np.zeros(5)
    for given, garbage, said in (
        ([], [], "1 recordings"),
        ([np.zeros((99, 4))], [np.zeros(99)], "1 to 70 frames"),
        ([frames], [np.zeros(4)], "as many garbage scores"),
        ([frames], [np.full(5, np.inf)], "not finite"),
    ):
        with pytest.raises(RangeError, match=said):
            Recordings(shape, given, garbage)
    with pytest.raises(RangeError, match="frames must be"):
        _ = Recordings(shape, [np.zeros((5, 3))], [scored]).rows
    own = Recordings(shape, [frames], [scored])
    with pytest.raises(PpspeechError, match="the other the keywords"):
        ask(None, own)  # type: ignore[arg-type]
    with pytest.raises(PpspeechError, match="the other the keywords"):
        answer(None, keywords, None)  # type: ignore[arg-type]


def test_segments_that_cannot_be_are_not_believed() -> None:
    shape = made_shape()
    check_found(shape, [[None, Found((4,), 9)]])
    for impossible in (Found((4,), 6), Found((9,), 4), Found((0,), 60)):
        with pytest.raises(ProtocolError, match="no segment"):
            check_found(shape, [[impossible]])


def test_the_end_of_a_recording_is_hidden_and_holds_nothing() -> None:
    """Beyond it frames score -20 whoever holds it, and rows of zeros are sent, of the public number."""
    shape = made_shape(recordings=2)
    recordings = made_recordings(shape, made_keywords(shape))
    short = len(recordings.frames[1])
    assert short < shape.frames
    rows = recordings.rows.reshape(2, shape.frames, -1)
    assert not rows[1, short:].any()
    beyond = shape.scale.decode(shape.scale.ring.to_signed(recordings.taken_off[1, short:]))
    assert set(beyond.tolist()) == {20.0}


def test_garbage_scores_are_brought_into_their_range() -> None:
    shape = made_shape()
    taken = Recordings(shape, [np.zeros((3, 4))], [np.array([-1e6, 1e6, 1.0])]).taken_off[0, :3]
    assert shape.scale.decode(shape.scale.ring.to_signed(taken)).tolist() == [-60.0, 10.0, 1.0]
