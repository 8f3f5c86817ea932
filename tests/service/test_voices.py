"""Voices of a public network, served: answers are those of plain cosines, thresholds those of the cohort."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.bundle import Bundle
from ppspeech.errors import ModelError
from ppspeech.models import Impostors
from ppspeech.protocols.speakers import cosines_of, voice_codes
from ppspeech.service import SpeakerDeployment, connect_through
from ppspeech.service.plan import plan_speakers
from ppspeech.service.server.cohort import cohort_of
from ppspeech.service.server.linear_scoring import rule_for_codes, rule_for_cosines
from ppspeech.service.server.speakers import ServedSpeakers, SpeakerFiles
from ppspeech.service.server.stores import Gallery
from tests.bundle.test_voices import bundle, others
from tests.service.conftest import Running
from tests.service.voices import RATE, voice

Serve = Callable[..., AbstractContextManager[Running]]

ENROLLED = {"ann": 0, "bob": 1}

__all__ = ["bundle", "others"]


def said(seed: int) -> torch.Tensor:
    return voice(seed, 0.6)


def directions(bundle: Bundle, *seeds: int) -> np.ndarray:
    verifier = bundle.verifier
    return np.stack([verifier.direction(verifier.features([said(seed)], RATE)) for seed in seeds])


def test_decisions_and_names_are_those_of_plain_cosines(serve: Serve, bundle: Bundle) -> None:
    known, tried = directions(bundle, *ENROLLED.values()), directions(bundle, 1, 4)
    cosines = tried @ known.T
    threshold = float((cosines.max() + cosines.min()) / 2)
    deployment = SpeakerDeployment(places=3, threshold=threshold, enrolls=True)
    answers = []
    with (
        serve({"voices": bundle}, speakers=deployment, limit=50) as running,
        connect_through(running.door(), bundle=bundle) as client,
    ):
        assert client.offer.terms.features == 256
        places = [client.enroll(name, [said(seed)], RATE) for name, seed in ENROLLED.items()]
        for row, seed in zip(cosines, (1, 4), strict=True):
            for cosine, place in zip(row, places, strict=True):
                answer = client.verify(place, [said(seed)], RATE).value
                assert answer == (cosine >= threshold) or abs(cosine - threshold) < 1e-3
                answers.append(answer)
            best = int(row.argmax())
            name = client.identify([said(seed)], RATE).value
            assert name == (list(ENROLLED)[best] if row[best] >= threshold else None)
    assert set(answers) == {True, False}


def test_a_server_decides_by_the_bundles_cohort(bundle: Bundle, tmp_path: Path) -> None:
    """Everyone's own threshold, for so much speech, is taken off the scores: linear and hardened alike."""
    impostors = bundle.verifier.impostors
    assert impostors is not None
    known = directions(bundle, 0, 1, 2)
    own = rule_for_cosines(None, 0.1, 300, impostors).own(known)
    assert own == pytest.approx([impostors.threshold(torch.from_numpy(each), 300, 0.1) for each in known])
    names = rule_for_cosines(None, 0.1, 300, impostors).own(known, names=10)
    assert (names > own).all()
    bits = 1024
    coded = rule_for_codes(None, 0.1, impostors, bits).own(known)
    tried = impostors.directions[-1].double().numpy()
    common = tried.mean(axis=0, keepdims=True)
    for least, each in zip(coded, known, strict=True):  # more than what needs no voice, and than nine of ten strangers
        code = voice_codes(each[None], bits)[0]
        agree = [cosines_of((voice_codes(some, bits) == code).sum(axis=1), bits) for some in (tried, common)]
        assert least > agree[1][0]
        assert (agree[0] >= least).mean() <= 0.1
    served = ServedSpeakers.of("voices", bundle, SpeakerDeployment(places=4, enrolls=True), SpeakerFiles.at(tmp_path))
    most = impostors.frames[-1]  # of as much as everybody of the cohort has said, and of no more
    assert served.offer.terms.frames == most < 300
    assert f"trials of up to {most} frames" in served.offer.task
    fewer = SpeakerDeployment(places=4, enrolls=True, frames=40)
    assert ServedSpeakers.of("voices", bundle, fewer, SpeakerFiles.at(tmp_path)).offer.terms.frames == 40


def test_a_gallery_is_encoded_before_the_first_session(bundle: Bundle, tmp_path: Path) -> None:
    """Or else every session's process does it anew; who is enrolled later is there too."""
    files = SpeakerFiles.at(tmp_path)
    Gallery(files.gallery, bundle.fingerprint, 4, 256).enroll("ann", directions(bundle, 0)[0])
    for scoring, decision in (("linear", "client"), ("hardened", "server")):
        deployment = SpeakerDeployment(places=4, enrolls=True, scoring=scoring, decision=decision)  # type: ignore[arg-type]
        served = ServedSpeakers.of("voices", bundle, deployment, files)
        assert served.scoring._made[0] == len(served.gallery.load())  # type: ignore[attr-defined]
        before = served.gallery.load()
        assert served.gallery.load() is before
        Gallery(files.gallery, bundle.fingerprint, 4, 256).enroll(scoring, directions(bundle, 1)[0])
        assert len(served.gallery.load()) == len(before) + 1


def test_what_hears_no_frames_has_no_mixtures(bundle: Bundle, others: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="scoring=linear or hardened"):
        ServedSpeakers.of("v", bundle, SpeakerDeployment(scoring="gmm", threshold=0.1), SpeakerFiles.at(tmp_path))
    plan = plan_speakers(bundle)
    assert {mode.mode for mode in plan.modes} == {
        "linear verify", "linear identify", "hardened verify", "private verify",
    }  # fmt: skip
    assert any("gmm: likelihood ratios need a background model" in warning for warning in plan.warnings)
    cohort = cohort_of(bundle, str(others))
    assert cohort.by_amount is not None
    assert (cohort.members, cohort.means.shape[1], cohort.trials) == (6, 0, ())
    assert np.linalg.norm(cohort.directions, axis=1) == pytest.approx(np.ones(6))


def test_many_thresholds_at_once_are_those_one_by_one(bundle: Bundle) -> None:
    impostors = bundle.verifier.impostors
    assert impostors is not None
    generator = np.random.default_rng(0)
    drawn = np.abs(generator.normal(size=(40, 256)))
    templates = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    longer = replace(impostors, frames=(30, 90, 300)[: len(impostors.frames)])
    assert longer.stretched
    assert isinstance(longer, Impostors)
    for frames in (10, 30, 50, 90, 2000):
        for rate in (0.3, 0.01):
            found = longer.thresholds(templates, frames, rate)
            for template, least in zip(templates, found, strict=True):
                scores = longer.scores(torch.from_numpy(template))
                each = [np.tanh(slow_rare(np.arctanh(some), longer.owners, rate)) for some in scores]
                wanted = np.interp(np.log(frames), np.log(longer.frames), each)
                assert least == pytest.approx(wanted, abs=1e-9)


def slow_rare(scores: np.ndarray, owners: tuple[int, ...], rate: float) -> float:
    """As `rare_score` is defined, one claim at a time."""
    start = float(np.quantile(scores, 1 - max(rate, 0.1)))
    over = [(score - start, who) for score, who in zip(scores, owners, strict=True) if score > start]
    if rate >= 0.1 or not over:
        return start
    people, count = len({who for _, who in over}), len(set(owners))
    aimed = rate * count / (count + 8)
    return start + float(np.mean([each for each, _ in over])) * people * ((0.1 / aimed) ** (1 / people) - 1)
