"""Templates under an enrollment key: the plain decision, a store that sees ciphertexts, scores that nobody sees."""

from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats

from ppspeech.crypto.lattice import KeyHolder, receive_scores
from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import BadCiphertextError, ModelError, RangeError, WrongKeyError, WrongSessionError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import PROTOCOLS, Party, run_in_memory
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers.gallery import EncryptedGallery, GalleryPlan, Keeper, Prober, keeper, prober, store
from tests.crypto.pairs import lasting_setup
from tests.protocols.speaker_meeting import histogram, unit

generator = np.random.default_rng(4)
TEMPLATES = unit(generator.normal(size=(6, 24)), axis=1)


def match(
    own: Keeper, asker: Prober, probe: np.ndarray, claimed: int
) -> tuple[bool | None, bool | None, Transcript, Transcript]:
    setups = lasting_setup()
    here, there = memory_pair()
    ours, theirs = Transcript(here, keep_payloads=True), Transcript(there, keep_payloads=True)
    one, other = run_together(
        lambda _: own.answer(ours, setups[Side.FIRST]),
        lambda _: asker.ask(theirs, setups[Side.SECOND], probe, claimed),
        (here, there),
    )
    return one, other, ours, theirs


@pytest.mark.parametrize("recipient", ["keeper", "prober"])
def test_decisions_are_those_of_cosines(recipient: Literal["keeper", "prober"]) -> None:
    plan = GalleryPlan(24, 9, recipient)
    own = Keeper(plan, TEMPLATES, 0.6)
    asker = Prober(own.publish())
    for trial in range(9):
        probe = unit(generator.uniform(0, 1) * TEMPLATES[trial % 6] + 0.12 * generator.normal(size=24))
        wanted = trial < 6 and bool(probe @ TEMPLATES[trial] >= 0.6)  # the places from 6 on are empty
        kept, asked, *_ = match(own, asker, probe, trial)
        assert (kept, asked) == ((wanted, None) if recipient == "keeper" else (None, wanted))


def test_scores_are_close_to_cosines() -> None:
    """The shares of one probe, joined here as nobody can: within 2^-7 of the cosines, as the specification asks."""
    plan = GalleryPlan(24, 6)
    own = Keeper(plan, TEMPLATES, 0.5)
    asker = Prober(own.publish())
    probe = unit(generator.normal(size=24))
    reply, share = asker._sender.send(probe[None])
    other = receive_scores(own._key, plan.product, reply)
    ours = plan.verification.plan
    scores = ours.scale.decode(ours.ring.to_signed(ours.ring.join(share[0], other[0])))
    assert np.abs(scores - TEMPLATES @ probe).max() < 2**-12


def test_scores_and_templates_never_appear_on_the_wire() -> None:
    """Chi-square at 1e-4: for one probe again and again, all the keeper opens and all that both receive is uniform."""
    plan = GalleryPlan(24, 6)
    own = Keeper(plan, TEMPLATES, 0.5)
    asker = Prober(own.publish())
    probe, opened = TEMPLATES[2], []
    for _ in range(300):
        reply, _ = asker._sender.send(probe[None])
        opened.append(receive_scores(own._key, plan.product, reply)[0])
    residues = np.concatenate(opened)
    assert stats.chisquare(histogram((residues & np.uint64(255)).astype(np.uint8))).pvalue > 1e-4
    assert stats.chisquare(histogram((residues >> np.uint64(13)).astype(np.uint8))).pvalue > 1e-4


def test_the_store_sees_ciphertexts_that_do_not_depend_on_the_voices() -> None:
    """Two-sample chi-square at 1e-4 on galleries of different voices, of one size."""
    plan = GalleryPlan(24, 50)
    key = KeyHolder()
    full, sparse = (Keeper(plan, voices, 0.5, key).publish() for voices in (np.repeat(TEMPLATES, 8, 0), TEMPLATES[:1]))
    assert len(full.templates) == len(sparse.templates) == plan.product.job.query_bytes
    counts = [histogram(np.frombuffer(each.templates[20:], np.uint8)) for each in (full, sparse)]
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-4
    assert not {name for name in vars(full) if "key" in name} - {"public_key"}


def test_every_claim_has_the_transcript_of_the_formula() -> None:
    plan = GalleryPlan(24, 6)
    own = Keeper(plan, TEMPLATES, 0.5)
    asker = Prober(own.publish())
    shapes = [match(own, asker, TEMPLATES[0], claimed)[3].shape() for claimed in (0, 3, 5)]
    assert shapes[0] == shapes[1] == shapes[2]
    after = [(way, size) for way, kind, size in shapes[0] if kind != CryptoKind.RESUME]
    up, down = (sum(size for way, size in after if way == which) for which in ("sent", "received"))
    cost = plan.cost
    assert up == cost.bytes_second + cost.offline_bytes_second + plan.product.job.reply_bytes
    assert down == cost.bytes_first + cost.offline_bytes_first


def test_three_parties_by_name() -> None:
    public = {"features": 3, "places": 4, "recipient": "keeper"}
    said = run_in_memory(
        [
            ("keeper", lambda party: keeper(party, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 0.7, **public)),
            ("store", lambda party: store(party, **public)),
            ("prober", lambda party: prober(party, [0.0, 0.9, 0.1], 1, **public)),
        ]
    )
    assert said[0] == "match"
    assert "encrypted templates" in said[1]
    assert said[2] == "the other party knows"
    assert list(PROTOCOLS["template_matching"].parties) == ["keeper", "store", "prober"]


def test_a_store_that_moves_templates_is_found_out() -> None:
    """Well-formed ciphertexts under the keeper's key, of another voice: only the keeper's digest tells."""
    public: dict[str, Any] = {"features": 3, "places": 4}
    own = Keeper(GalleryPlan(**public), np.eye(3)[:2], 0.7)
    others = Keeper(GalleryPlan(**public), np.eye(3)[1:], 0.7, own._key)

    def publish(party: Party) -> None:
        own.publish().send(party.channels["store"])
        party.channels["prober"].send(Kind.GALLERY_DIGEST, own.publish().digest)

    def swap(party: Party) -> None:
        EncryptedGallery.receive(party.channels["keeper"], own.plan)
        Prober(others.publish())  # nothing is wrong with it
        others.publish().send(party.channels["prober"])

    with pytest.raises(WrongSessionError, match="not the one that the keeper has published"):
        run_in_memory(
            [
                ("keeper", publish),
                ("store", swap),
                ("prober", lambda party: prober(party, [0.0, 0.9, 0.1], 1, **public)),
            ]
        )


@pytest.mark.parametrize(
    "wrong",
    [{"features": 0}, {"places": 0}, {"places": 2049}, {"recipient": "store"}, {"norm": 0.0}, {"norm": float("nan")}],
)
def test_plans_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((ModelError, RangeError)):
        GalleryPlan(**{"features": 4, "places": 2, **wrong})  # type: ignore[arg-type]


def test_bad_templates_probes_and_places_are_refused() -> None:
    plan = GalleryPlan(24, 6)
    for templates, threshold in ((np.zeros((7, 24)), 0.5), (np.zeros((0, 24)), 0.5), (2 * TEMPLATES, 0.5)):
        with pytest.raises((ModelError, RangeError)):
            Keeper(plan, templates, threshold)
    with pytest.raises(RangeError, match="threshold"):
        Keeper(plan, TEMPLATES, 1.5)
    asker = Prober(Keeper(plan, TEMPLATES, 0.5).publish())
    for probe, claimed in ((np.zeros(23), 0), (np.ones(24), 0), (np.full(24, np.nan), 0), (np.zeros(24), 6)):
        with pytest.raises(RangeError):
            asker.ask(memory_pair()[0], lasting_setup()[1], probe, claimed)


def test_damaged_and_foreign_galleries_are_refused() -> None:
    plan = GalleryPlan(24, 6)
    gallery, other = (Keeper(plan, TEMPLATES, 0.5).publish() for _ in range(2))
    with pytest.raises(WrongKeyError):
        Prober(EncryptedGallery(plan, other.public_key, gallery.templates))
    with pytest.raises(BadCiphertextError):
        Prober(EncryptedGallery(plan, gallery.public_key, gallery.templates[:-1]))
    with pytest.raises(BadCiphertextError):
        Prober(EncryptedGallery(GalleryPlan(24, 5), gallery.public_key, gallery.templates))


def test_an_answer_under_another_key_is_refused_by_the_keeper() -> None:
    plan = GalleryPlan(24, 6)
    own, other = Keeper(plan, TEMPLATES, 0.5), Keeper(plan, TEMPLATES, 0.5)
    with pytest.raises(WrongKeyError):
        match(own, Prober(other.publish()), TEMPLATES[0], 0)
