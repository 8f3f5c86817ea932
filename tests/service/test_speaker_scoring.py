"""Ways to compare voices behind a service: mixtures, norms by a cohort, hardened claims, names for the server."""

import json
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from ppspeech.arrays import Reals
from ppspeech.audio import Mfcc, write_audio
from ppspeech.bundle import Bundle, BundleConfig, write_bundle
from ppspeech.crypto.lattice import LatticeParameters
from ppspeech.errors import BundleError, CorpusError, ModelError, PeerGoneError, PpspeechError, RangeError
from ppspeech.models import Impostors, fit_mixture, rare_score
from ppspeech.models.speakers import SpeakerVerifier
from ppspeech.protocols.meeting import meet_as_client
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.speakers import GalleryPlan, Keeper, cosines_of, identify_as_client, voice_codes
from ppspeech.service import Client, SpeakerDeployment, connect_through, plan_speakers
from ppspeech.service.requests import Ask, Request, send_request, send_template
from ppspeech.service.server.cohort import Cohort, Rule, cohort_of
from ppspeech.service.server.linear_scoring import (
    HardenedScoring,
    LinearScoring,
    rule_for_codes,
    rule_for_cosines,
)
from ppspeech.service.server.mixture_scoring import (
    MixtureScoring,
    background_mixture,
    plain_ratios,
    plan_mixtures,
    with_means,
)
from ppspeech.service.server.speakers import ServedSpeakers, SpeakerFiles
from ppspeech.service.server.stores import Enrolled
from ppspeech.service.tasks.speakers import trial_frames
from tests.bundle.conftest import gaussian_account, statement_of
from tests.protocols.speaker_meeting import ask as asked
from tests.protocols.speaker_meeting import unit
from tests.service.conftest import Running
from tests.service.voices import RATE, SPEAKERS, WHOLE, voice

Serve = Callable[..., AbstractContextManager[Running]]

ENROLLED = {"ann": 0, "bob": 1}
TRIALS = (3, 7, 5)
COHORT = ((21, 24), (22, 25), (23, 26), (30,))
"""Seeds of what each member says."""


def said(seed: int) -> Tensor:
    """A sound `(samples,)` of one of three kinds: drifting noise, bursts between tones, or a sweep."""
    noise = voice(seed)
    seconds = torch.arange(len(noise)) / RATE
    if seed % 3 == 0:
        return noise
    if seed % 3 == 1:
        gate = (seconds * 20 % 1 < 0.3).float()
        return noise * (gate + 0.003) + 0.2 * torch.sin(2 * torch.pi * 700 * seconds) * (1 - gate)
    return 0.5 * torch.sin(2 * torch.pi * (200 * seconds + 9000 * seconds**2)) + 0.02 * noise


def made(folder: Path, covariance: Any = "diagonal") -> Bundle:
    """A background model whose speakers are far apart."""
    config = BundleConfig(replace(SPEAKERS, covariance=covariance, relevance=0.5), (), WHOLE)
    torch.manual_seed(0)
    model = config.build()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    account = gaussian_account()
    return write_bundle(folder, model=model, config=config, statement=statement_of(account), account=account)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return made(tmp_path_factory.mktemp("voices") / "voices")


@pytest.fixture(scope="module")
def cohort_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cohort")
    for member, seeds in enumerate(COHORT):
        (folder / f"p{member}").mkdir()
        for seed in seeds:
            write_audio(folder / f"p{member}" / f"{seed}.wav", said(seed), RATE)
    return folder


def frames(bundle: Bundle, seed: int) -> Tensor:
    return Mfcc(bundle.mfcc)(said(seed)).features[0]


def plain_verifier(bundle: Bundle, cohort: bool = False) -> SpeakerVerifier:
    ubm, relevance = bundle.verifier.background.ubm, bundle.verifier.background.relevance

    def models(people: list[tuple[int, ...]]) -> SpeakerVerifier:
        joined = [torch.cat([frames(bundle, seed) for seed in seeds]) for seeds in people]
        lengths = torch.tensor([len(each) for each in joined])
        padded = torch.nn.utils.rnn.pad_sequence(joined, batch_first=True)
        return SpeakerVerifier.enroll(ubm, padded, lengths, relevance=relevance)

    known = models([(seed,) for seed in ENROLLED.values()])
    return SpeakerVerifier(ubm, known.speakers, models(list(COHORT)).speakers) if cohort else known


def normed_scores(bundle: Bundle, norm: str) -> torch.Tensor:
    """Slowly, `(trials, enrolled)`: Z-norm by the cohort's clips, a member's own left out; then T-norm."""
    verifier = plain_verifier(bundle, cohort=True)
    with torch.no_grad():
        scores = torch.stack([verifier.log_likelihood_ratios(frames(bundle, s)[None])[0] for s in TRIALS])
        if "z" in norm:
            clips = [(owner, seed) for owner, seeds in enumerate(COHORT) for seed in seeds]
            heard = torch.stack([verifier.log_likelihood_ratios(frames(bundle, s)[None])[0] for _, s in clips])
            for column in range(scores.shape[1]):
                own = column - len(ENROLLED)
                std, mean = torch.std_mean(
                    torch.stack([score[column] for (owner, _), score in zip(clips, heard, strict=True) if owner != own])
                )
                scores[:, column] = (scores[:, column] - mean) / std.clamp(1 / 16, 4)
        known = scores[:, : len(ENROLLED)]
        if "t" in norm:
            std, mean = torch.std_mean(scores[:, len(ENROLLED) :], dim=-1)
            known = (known - mean[:, None]) / std[:, None]
    return known


def ask(running: Running, bundle: Bundle) -> Client:
    return connect_through(running.door(), bundle=bundle)


def enroll_all(client: Client) -> list[int]:
    """The places of those who are enrolled, then the empty ones."""
    taken = [client.enroll(name, [said(seed)], RATE) for name, seed in ENROLLED.items()]
    return taken + sorted(set(range(client.offer.terms.places)) - set(taken))


def between(scores: np.ndarray, close: float) -> float:
    """A threshold with scores on both sides, as far from all as can be, and farther than `close`."""
    ordered = np.sort(scores.reshape(-1))
    gap = int(np.diff(ordered).argmax())
    assert ordered[gap + 1] - ordered[gap] > 2 * close
    return float(ordered[gap : gap + 2].mean())


def test_mixtures_decide_and_name_as_in_the_clear(serve: Serve, bundle: Bundle) -> None:
    verifier = plain_verifier(bundle)
    with torch.no_grad():
        scores = torch.stack([verifier(frames(bundle, trial)[None])[0] for trial in TRIALS]).numpy()
    threshold = between(scores, 0.03)
    deployment = SpeakerDeployment(places=3, scoring="gmm", threshold=threshold, frames=40, enrolls=True)
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        assert client.identify([said(0)], RATE).value is None  # nobody is enrolled yet
        places = enroll_all(client)
        decided = set()
        for trial, row in zip(TRIALS, scores, strict=True):
            for place, score in zip(places, row, strict=False):
                answer = client.verify(place, [said(trial)], RATE)
                assert answer.value == (score >= threshold)
                decided.add(answer.value)
            best = int(row.argmax())
            wanted = list(ENROLLED)[best] if row[best] >= threshold else None
            assert client.identify([said(trial)], RATE).value == wanted
        assert decided == {True, False}
        assert client.verify(places[2], [said(0)], RATE).value is False  # an empty place
        liar = running.door().open(client.offer.name, client.offer.agreement)
        meet_as_client(liar)
        send_request(liar, Request(Ask.ENROLL))
        send_template(liar, "liar", np.full(client.offer.terms.features, 900.0))  # densities would leave the range
        with pytest.raises(PeerGoneError):
            liar.receive(Kind.READY, at_most=10)
        assert client.verify(places[0], [said(0)], RATE).value is not None


@pytest.mark.parametrize("norm", ["z", "zt"])
def test_mixtures_normed_by_a_cohort(
    norm: Literal["z", "zt"], serve: Serve, bundle: Bundle, cohort_folder: Path
) -> None:
    scores = normed_scores(bundle, norm).numpy()
    threshold = between(scores, 0.2)
    deployment = SpeakerDeployment(
        places=2, scoring="gmm", threshold=threshold, cohort=str(cohort_folder), norm=norm, frames=40, enrolls=True
    )
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        places = enroll_all(client)
        assert client.offer.terms.cohort == (4 if norm == "zt" else 0)
        for trial, row in zip(TRIALS, scores, strict=True):
            accepted = [client.verify(place, [said(trial)], RATE).value for place in places]
            assert accepted == [bool(score >= threshold) for score in row]
        with pytest.raises(ModelError, match="verifies claims only"):
            client.identify([said(0)], RATE)


def test_cosines_normed_by_a_cohort(serve: Serve, bundle: Bundle, cohort_folder: Path) -> None:
    known = np.stack([bundle.verifier.direction([frames(bundle, seed)]) for seed in ENROLLED.values()])
    others = np.stack([bundle.verifier.direction([frames(bundle, seed) for seed in seeds]) for seeds in COHORT])
    clips = [
        (owner, bundle.verifier.direction([frames(bundle, s)])) for owner, seeds in enumerate(COHORT) for s in seeds
    ]
    rows = []
    for trial in TRIALS:
        probe = bundle.verifier.direction([frames(bundle, trial)])
        normed = []
        for at, template in enumerate([*known, *others]):
            impostors = [clip @ template for owner, clip in clips if owner != at - len(known)]
            normed.append((probe @ template - np.mean(impostors)) / max(np.std(impostors, ddof=1), 1 / 8))
        cohort = np.array(normed[len(known) :])
        rows.append((np.array(normed[: len(known)]) - cohort.mean()) / cohort.std(ddof=1))
    scores = np.stack(rows)
    threshold = between(scores, 0.05)
    deployment = SpeakerDeployment(places=3, threshold=threshold, cohort=str(cohort_folder), enrolls=True)
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        assert client.identify([said(0)], RATE).value is None
        places = enroll_all(client)
        for trial, row in zip(TRIALS, scores, strict=True):
            accepted = [client.verify(place, [said(trial)], RATE).value for place in places[:2]]
            assert accepted == [bool(score >= threshold) for score in row]
            wanted = list(ENROLLED)[int(row.argmax())] if row.max() >= threshold else None
            assert client.identify([said(trial)], RATE).value == wanted
        assert client.verify(places[2], [said(0)], RATE).value is False


def test_hardened_claims_are_the_servers_to_decide(serve: Serve, bundle: Bundle) -> None:
    vectors = {seed: bundle.verifier.direction([frames(bundle, seed)]) for seed in (*ENROLLED.values(), *TRIALS)}
    cosines = np.array([[vectors[trial] @ vectors[seed] for seed in ENROLLED.values()] for trial in TRIALS])
    threshold = between(cosines, 0.1)
    deployment = SpeakerDeployment(places=3, threshold=threshold, decision="server", enrolls=True)
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        assert client.offer.terms.scoring == "hardened"  # where the decision is the server's
        places = enroll_all(client)
        for trial in TRIALS:
            for place in places:
                assert client.verify(place, [said(trial)], RATE).value is None
        with pytest.raises(ModelError, match="verifies claims only"):
            client.identify([said(0)], RATE)
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    decided = [line["accepted"] for line in lines if line["event"] == "claim decided"]
    empty = np.zeros((len(TRIALS), 1), bool)
    assert decided == np.concatenate([cosines >= threshold, empty], axis=1).reshape(-1).tolist()


def test_mixtures_of_features_that_are_not_normalized(serve: Serve, tmp_path: Path) -> None:
    """As the shipped recipe's: cepstra reach 70; about where they usually lie they decide as in the clear."""
    mfcc = replace(WHOLE, cmvn="none")
    heard = torch.cat([Mfcc(mfcc)(said(seed)).features[0] for seed in range(40, 52)])
    ubm = fit_mixture(heard, SPEAKERS.components, floor=SPEAKERS.floor, iterations=5)
    config, account = BundleConfig(SPEAKERS, (), mfcc), gaussian_account()
    parts = {"model": ubm, "config": config, "statement": statement_of(account), "account": account}
    bundle = write_bundle(tmp_path / "voices", **parts)  # type: ignore[arg-type]
    known = [bundle.verifier.features([said(seed)], RATE)[0] for seed in ENROLLED.values()]
    plain = SpeakerVerifier.enroll(ubm, torch.stack(known), relevance=SPEAKERS.relevance)
    with torch.no_grad():
        scores = torch.cat([plain(bundle.verifier.features([said(trial)], RATE)[0][None]) for trial in TRIALS]).numpy()
    threshold = between(scores, 0.05)
    deployment = SpeakerDeployment(places=3, scoring="gmm", threshold=threshold, frames=40, enrolls=True)
    assert "gmm verify" in {mode.mode for mode in plan_speakers(bundle, deployment).modes}
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        places = enroll_all(client)
        for trial, row in zip(TRIALS, scores, strict=True):
            accepted = [client.verify(place, [said(trial)], RATE).value for place in places[:2]]
            assert accepted == [bool(score >= threshold) for score in row]


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_mixtures_of_few_voices_are_served_however_narrow(covariance: Any, tmp_path: Path) -> None:
    """As of the shipped recipe on a small folder: a frame far from a narrow Gaussian would leave the range."""
    mfcc = replace(WHOLE, cmvn="none")
    heard = Mfcc(mfcc)(said(40)).features[0]
    settings = replace(SPEAKERS, covariance=covariance, floor=1e-4)
    ubm = fit_mixture(heard, settings.components, covariance=covariance, floor=settings.floor, iterations=5)
    config, account = BundleConfig(settings, (), mfcc), gaussian_account()
    parts = {"model": ubm, "config": config, "statement": statement_of(account), "account": account}
    bundle = write_bundle(tmp_path / "voices", **parts)  # type: ignore[arg-type]
    terms = SpeakerDeployment(places=2, scoring="gmm", threshold=0.0, frames=40).terms(bundle, 0)
    scoring = MixtureScoring(terms, background_mixture(bundle), Rule(0.0), None, z_normed=False)
    for seed in (*ENROLLED.values(), *TRIALS):
        scoring.check(bundle.verifier.means([frames(bundle, seed)]))


@pytest.mark.parametrize("scoring", ["linear", "gmm"])
def test_names_may_be_the_servers(scoring: Any, serve: Serve, bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    """And then the client's key is used for no more questions than it can lose bits."""
    threshold = 0.9 if scoring == "linear" else 0.0
    deployment = SpeakerDeployment(
        places=2, scoring=scoring, threshold=threshold, frames=40, names="server", enrolls=True
    )
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        enroll_all(client)
        monkeypatch.setattr(LatticeParameters, "leakable_bits", 2 * 2)  # nobody, or one of two: 2 bits
        keys = []
        for _ in range(3):
            assert client.identify([said(1)], RATE).value is None
            assert client._session is not None
            keys.append(client._session.met.lattice.public_key)
        assert keys[0] == keys[1] != keys[2]
    file = running.log.parent / "identified.jsonl"
    assert [json.loads(line)["speaker"] for line in file.read_text().splitlines()] == ["bob"] * 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "bob" not in running.log.read_text()


def test_plain_ratios_are_those_of_the_verifier(bundle: Bundle) -> None:
    plan = plan_mixtures(bundle, 40, places=2, cohort=0)
    means = np.stack([bundle.verifier.means([frames(bundle, seed)]) for seed in ENROLLED.values()])
    background = background_mixture(bundle)
    for trial in TRIALS:
        x = frames(bundle, trial)
        found = plain_ratios(plan, background, with_means(background, means), x.double().numpy())
        with torch.no_grad():
            wanted = plain_verifier(bundle)(torch.tensor(trial_frames(plan, x.double().numpy()))[None].float())[0]
        np.testing.assert_allclose(found, wanted.numpy(), atol=1e-4)


@pytest.mark.parametrize("covariance", ["full", "tied", "spherical"])
def test_other_covariances(covariance: Any, tmp_path: Path) -> None:
    bundle = made(tmp_path / "voices", covariance)
    model, relevance = bundle.verifier.background.ubm, bundle.verifier.background.relevance
    plan = plan_mixtures(bundle, 40, places=2, cohort=0)
    means = bundle.verifier.means([frames(bundle, 0)])[None]
    background, x = background_mixture(bundle), trial_frames(plan, frames(bundle, 1).double().numpy())
    verifier = SpeakerVerifier.enroll(model, frames(bundle, 0)[None], relevance=relevance)
    with torch.no_grad():
        wanted = verifier(torch.tensor(x)[None].float())[0].numpy()
    np.testing.assert_allclose(plain_ratios(plan, background, with_means(background, means), x), wanted, atol=1e-3)


def test_trials_are_thinned_and_bounded(bundle: Bundle) -> None:
    plan = plan_mixtures(bundle, 5, places=1, cohort=0)
    long = np.arange(44.0).reshape(11, 4)
    held = trial_frames(plan, long)
    assert held.shape == (5, 4)
    assert np.linalg.norm(held, axis=1).max() <= plan.norm
    np.testing.assert_allclose(held[1] / np.linalg.norm(held[1]), long[2] / np.linalg.norm(long[2]), rtol=1e-12)
    few = np.full((2, 4), 0.25)
    np.testing.assert_array_equal(trial_frames(plan, few), few)


def test_thresholds(bundle: Bundle, tmp_path: Path) -> None:
    files = SpeakerFiles(tmp_path / "g", tmp_path / "s", tmp_path / "i")
    for scoring in ("linear", "gmm"):
        blind = SpeakerDeployment(places=2, scoring=scoring, enrolls=True)  # type: ignore[arg-type]
        with pytest.raises(PpspeechError, match=r"rare among strangers.*cohort=FOLDER.*threshold="):
            ServedSpeakers.of("v", bundle, blind, files)
        ServedSpeakers.of("v", bundle, replace(blind, enrolls=False), files)  # decides nothing: nobody is enrolled
    with pytest.raises(BundleError, match="within 0 and 1"):
        ServedSpeakers.of("v", bundle, SpeakerDeployment(false_accept=0.0), files)
    terms, gmm = (SpeakerDeployment(places=2, scoring=each).terms(bundle, 0) for each in ("linear", "gmm"))  # type: ignore[arg-type]
    for wrong in (Rule(-1.7), Rule(2.0)):
        with pytest.raises(PpspeechError, match="cosine"):
            LinearScoring(terms, wrong, None, z_normed=False)
        with pytest.raises(PpspeechError, match="cosine"):
            HardenedScoring(terms, wrong)
        with pytest.raises(PpspeechError, match="nats a frame"):
            MixtureScoring(gmm, background_mixture(bundle), Rule(20 * wrong.threshold), None, z_normed=False)
    assert SpeakerDeployment(places=10_000, decision="server").terms(bundle, 0).scoring == "hardened"
    assert SpeakerDeployment(decision="server", scoring="linear").terms(bundle, 4).scoring == "linear"
    with pytest.raises(BundleError, match=r"no norm.*scoring=linear if clients follow"):
        SpeakerDeployment(decision="server").terms(bundle, 4)
    with pytest.raises(RangeError):
        LinearScoring(terms, Rule(0.5), None, z_normed=False).check(np.full(terms.features, 10.0))


def five_people(size: int, stretched: bool = False) -> tuple[Reals, Reals, Impostors]:
    """The directions of a cohort's people, of strangers, and what they say."""
    drawn = np.random.default_rng(0)
    people, others = (unit(drawn.normal(size=(count, size)), axis=1) for count in (5, 400))
    tried = unit(np.repeat(people, 6, axis=0) + 0.1 * drawn.normal(size=(30, size)), axis=1)
    owners = tuple(np.repeat(np.arange(5), 6).tolist())
    return people, others, Impostors((25,), owners, torch.from_numpy(tried)[None], torch.zeros(1, 30), stretched)


@pytest.mark.parametrize("stretched", [False, True])
@pytest.mark.parametrize("rate", [0.01, 1e-9])
def test_a_threshold_is_a_cosine_however_few_are_alike(rate: float, stretched: bool) -> None:
    """Or else a keeper with a template that is like one person's could not publish its gallery at all."""
    people, _, impostors = five_people(24, stretched)
    least = rule_for_cosines(None, rate, 25, impostors).own(people)
    assert (np.abs(least) < 1).all()
    keeper = Keeper(GalleryPlan(24, 9), people, least)
    assert keeper.plan.places == 9


@pytest.mark.parametrize("scoring", ["linear", "gmm"])
def test_whoever_is_like_one_of_the_cohort_keeps_nobody_else_from_a_name(scoring: Any, bundle: Bundle) -> None:
    """Its own threshold is extrapolated from one person's scores, and farther the more are enrolled: beyond all scores,
    not out of their range, in which nobody would get an answer any more.
    """
    places = 40
    people, others, impostors = five_people(bundle.verifier.size)
    terms = SpeakerDeployment(places=places, scoring=scoring, frames=25).terms(bundle, 0, impostors)
    made: LinearScoring | MixtureScoring
    if scoring == "linear":
        made = LinearScoring(terms, rule_for_cosines(None, 0.001, 25, impostors), None, z_normed=False)
        unlike = others[impostors.thresholds(others, 25, 0.001 / places) < 0.95]
        templates = np.concatenate([people[:1], unlike[:1], others[: places - 2]])
        voice = templates[1]
    else:
        own = bundle.verifier.means([frames(bundle, 0)])
        templates = np.repeat(own[None], places, axis=0)
        made = MixtureScoring(
            terms,
            background_mixture(bundle),
            Rule(0.0, 0.001, lambda those, rate: np.where(np.arange(len(those)) == 0, 0.1 / rate, -20.0)),
            None,
            z_normed=False,
        )
        assert terms.mixture is not None
        voice = trial_frames(terms.mixture, frames(bundle, 0).double().numpy())
    for template in templates[:2]:
        made.check(template)
    enrolled = Enrolled([f"p{each}" for each in range(places)], templates, np.arange(places))
    found, *_ = asked(
        lambda met: identify_as_client(met, terms.identification, voice), lambda met: made.identify(met, enrolled)
    )
    assert found is not None
    assert found.name not in (None, "p0")


def rated(bundle: Bundle, cohort: Cohort, scoring: str, rate: float) -> tuple[Reals, Reals]:
    """Scores `(trials, enrolled)` and thresholds of those enrolled, in the clear, for trials of up to 25 frames."""
    if scoring == "gmm":
        plan, background = plan_mixtures(bundle, 25, 3, 0), background_mixture(bundle)
        known = with_means(
            background, np.stack([bundle.verifier.means([frames(bundle, s)]) for s in ENROLLED.values()])
        )
        tried = [plain_ratios(plan, background, known, frames(bundle, trial).double().numpy()) for trial in TRIALS]
        strangers = np.stack([plain_ratios(plan, background, known, trial) for trial in cohort.trials])
        return np.stack(tried), np.array([rare_score(each, cohort.owners.tolist(), rate) for each in strangers.T])
    known = np.stack([bundle.verifier.direction([frames(bundle, seed)]) for seed in ENROLLED.values()])
    tried = [known @ bundle.verifier.direction([frames(bundle, trial)[:25]]) for trial in TRIALS]
    assert cohort.by_amount is not None
    if scoring == "hardened":  # what each would score as codes of 8192 bits
        others = cohort.by_amount.directions[-1].double().numpy()
        heard = np.stack([bundle.verifier.direction([frames(bundle, trial)]) for trial in TRIALS])
        own, asked = voice_codes(known, 8192), voice_codes(heard, 8192)
        reached = cosines_of((own[:, None] == voice_codes(others, 8192)).sum(axis=-1), 8192)
        rare = [rare_score(each, cohort.by_amount.owners, rate) for each in reached]
        guessed = (own == voice_codes(others.mean(axis=0, keepdims=True), 8192)).sum(axis=1)
        beyond = guessed + 3 * np.sqrt(guessed * (1 - guessed / 8192))
        least = np.maximum(rare, cosines_of(np.minimum(beyond, 8192), 8192))
        return cosines_of((asked[:, None] == own).sum(axis=-1), 8192), least
    return np.stack(tried), np.array([cohort.by_amount.threshold(torch.from_numpy(t), 25, rate) for t in known])


@pytest.mark.parametrize("scoring", ["linear", "gmm", "hardened"])
def test_claims_are_decided_at_a_rate_as_in_the_clear(
    serve: Serve, bundle: Bundle, tmp_path: Path, scoring: Literal["linear", "gmm", "hardened"]
) -> None:
    others = tmp_path / "others"
    for seed in range(21, 39):
        (others / f"p{seed % 6}").mkdir(parents=True, exist_ok=True)
        write_audio(others / f"p{seed % 6}" / f"{seed}.wav", said(seed), RATE)
    cohort = cohort_of(bundle, str(others))
    rate, (scores, least) = 0.5, rated(bundle, cohort, scoring, 0.5)
    far = np.abs(scores - least) > (0 if scoring == "hardened" else 0.03)
    assert far.sum() >= 4
    side: Literal["server", "client"] = "server" if scoring == "hardened" else "client"
    chosen = {"scoring": scoring, "cohort": str(others), "false_accept": rate, "decision": side}
    deployment = SpeakerDeployment(places=3, frames=25, enrolls=True, **chosen)  # type: ignore[arg-type]
    with serve({"voices": bundle}, speakers=deployment) as running, ask(running, bundle) as client:
        assert client.offer.terms.frames == (0 if scoring == "hardened" else 25)
        places = enroll_all(client)
        found = [[client.verify(place, [said(trial)], RATE).value for place in places] for trial in TRIALS]
        if scoring != "hardened":
            shared = rated(bundle, cohort, scoring, rate / 2)[1]  # a name is given at half the rate each
            for trial, row in zip(TRIALS, scores - shared, strict=True):
                if np.abs(row).min() > 0.03:
                    wanted = list(ENROLLED)[int(row.argmax())] if row.max() >= 0 else None
                    assert client.identify([said(trial)], RATE).value == wanted
    if scoring == "hardened":
        lines = [json.loads(line) for line in running.log.read_text().splitlines()]
        decided = [line["accepted"] for line in lines if line["event"] == "claim decided"]
        found = [decided[at : at + 3] for at in range(0, len(decided), 3)]
    assert [row[2] for row in found] == [False] * len(TRIALS)
    np.testing.assert_array_equal(np.array(found)[:, :2][far], (scores >= least)[far])


def test_what_all_people_have_in_common_is_hardly_anybodys_voice() -> None:
    """A client that may send anything sends the mean of public voices: more like everybody than strangers' trials,
    which are noisy. By the rate alone most people's claims hold for it, by the rule for codes one in twenty at most.
    """
    generator = np.random.default_rng(5)
    common = generator.normal(size=200)

    def people(count: int, noise: float) -> Reals:
        drawn = common + generator.normal(size=(count, 1, 200)) + noise * generator.normal(size=(count, 3, 200))
        return drawn / np.linalg.norm(drawn, axis=2, keepdims=True)

    tried = torch.from_numpy(people(16, 1.5).reshape(1, 48, 200))
    cohort = Impostors((810,), tuple(np.repeat(range(16), 3).tolist()), tried, torch.zeros(1, 48))
    templates, genuine, _ = people(20, 0.3).swapaxes(0, 1)
    guessed = people(64, 1.0).reshape(-1, 200).mean(axis=0)
    by_rate = rule_for_cosines(None, 0.01, 810, cohort).own(templates)
    assert (templates @ guessed / np.linalg.norm(guessed) >= by_rate).mean() > 0.8
    agreeing = (voice_codes(templates, 1024) == voice_codes(guessed[None], 1024)).sum(axis=1)
    least = rule_for_codes(None, 0.01, cohort, 1024).own(templates)
    assert (cosines_of(agreeing, 1024) >= least).mean() <= 0.05
    own = (voice_codes(templates, 1024) == voice_codes(genuine, 1024)).sum(axis=1)
    assert (cosines_of(own, 1024) >= least).all()


def test_cohorts(bundle: Bundle, cohort_folder: Path, tmp_path: Path) -> None:
    cohort = cohort_of(bundle, str(cohort_folder))
    assert (cohort.members, len(cohort.trials), cohort.owners.tolist()) == (4, 7, [0, 0, 1, 1, 2, 2, 3])
    scores = np.random.default_rng(0).normal(size=(7, 6))
    mean, std = cohort.impostors(scores)
    np.testing.assert_allclose(mean[:2], scores[:, :2].mean(axis=0))
    np.testing.assert_allclose(mean[3], scores[[0, 1, 4, 5, 6], 3].mean())
    np.testing.assert_allclose(std[3], scores[[0, 1, 4, 5, 6], 3].std(ddof=1))
    with pytest.raises(CorpusError, match="no folder"):
        cohort_of(bundle, str(tmp_path / "absent"))
    (tmp_path / "people" / "empty").mkdir(parents=True)
    with pytest.raises(CorpusError, match="at least one sound file"):
        cohort_of(bundle, str(tmp_path / "people"))
    with pytest.raises(ModelError, match="3 to 64 members"):
        Cohort.of(bundle, [[frames(bundle, 0)], [frames(bundle, 1)]])
