"""What the plan says before is what happens after."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppspeech.bundle import Bundle
from ppspeech.crypto.transfer import GREETING_BYTES
from ppspeech.errors import RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.scores.states import WordShape
from ppspeech.protocols.words.keyword import KeywordJob
from ppspeech.service.client.session import Answer
from ppspeech.service.estimate import choose_order, estimate, planned_job
from ppspeech.service.exactness import error_budget
from ppspeech.service.export import Deployment, export_words
from ppspeech.service.offer import MOST_BYTES
from ppspeech.service.plan import MEETING_BYTES, ServicePlan, plan_words
from ppspeech.service.server.words import ServedWords
from tests.protocols.test_keyword import encrypted_scores
from tests.protocols.word_reference import made_models, made_utterance, plain_scores
from tests.service.conftest import Running
from tests.service.voices import CLASSES, MARGIN, MIXTURES, RATE, released, voice


def test_bytes_and_rounds_are_exact(running: Running) -> None:
    plan = plan_words(running.bundles["whole"], Deployment(frames=40))
    with running.connect() as client:
        _assert_exact(plan, client.recognize_all([voice(0)], RATE, order="frames")[0], "frames")
    live = plan_words(running.bundles["live"], Deployment(frames=40))
    cost = {each.mode: each.cost for each in live.modes}["stream"]
    with running.connect("live") as client, client.stream() as listening:
        listening.feed(voice(0, 0.4225))  # 40 frames: the longest
        streamed = listening.finish()
    assert streamed.bytes_up == cost.bytes_up + GREETING_BYTES
    assert streamed.bytes_down == cost.bytes_down + GREETING_BYTES + live.details["model_bytes"]


def _assert_exact(plan: ServicePlan, answer: Answer[str | None], order: str) -> None:
    cost = {each.mode: each.cost for each in plan.modes}[order]
    assert answer.bytes_up == cost.bytes_up + GREETING_BYTES
    assert answer.bytes_down == cost.bytes_down + GREETING_BYTES
    assert answer.transcript is not None
    online = [entry for entry in answer.transcript.entries if entry.kind in {2, 3, 215, 218, 219, 221}]
    assert sum(entry.size for entry in online) == cost.online_bytes


def test_bytes_of_a_circuit_are_exact(serve: Callable[..., Any], bundles: dict[str, Bundle]) -> None:
    plan = plan_words(bundles["whole"], Deployment(frames=40, operation="viterbi"))
    with serve({"whole": bundles["whole"]}, operation="viterbi") as running, running.connect() as client:
        for order in ("frames", "ahead", "garbled"):
            _assert_exact(plan, client.recognize_all([voice(0)], RATE, order=order)[0], order)


def test_the_bytes_of_a_meeting() -> None:
    here, there = memory_pair()
    record = Transcript(here)
    run_together(lambda c: meet_as_client(record), lambda c: meet_as_server(c), (here, there))
    assert record.bytes_up + record.bytes_down == MEETING_BYTES


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"operation": "viterbi"},
        {"components": 3, "terms": "diagonal"},
        {"terms": "linear", "states": 1, "moves": (0,)},
    ],
    ids=str,
)
def test_errors_stay_within_the_budget(sizes: dict[str, Any]) -> None:
    models = made_models(seed=4, **sizes)
    utterances = [made_utterance(models, 12, seed) for seed in range(6)]
    scores = encrypted_scores(models, KeywordJob(models.shape, 6), utterances)
    errors = np.abs(scores - np.stack([plain_scores(models, each) for each in utterances]))
    budget = error_budget(models)
    assert errors.max() <= budget.score.certain
    assert np.sqrt(np.mean(errors**2)) <= 3 * budget.score.typical  # an estimate, within its order
    assert budget.score.typical <= budget.score.certain
    assert budget.range_nats.typical <= budget.range_nats.certain
    spread = max(float(np.ptp(plain_scores(models, each))) for each in utterances)
    assert spread <= budget.range_nats.typical
    assert budget.range_bits.certain >= budget.range_bits.typical


def test_shares_that_scores_could_leave_are_refused(bundles: dict[str, Bundle]) -> None:
    usual = plan_words(bundles["whole"]).details
    bits, errors = usual["shape"]["bits"], usual["errors"]
    assert errors["range_bits"]["certain"] == bits == errors["bits"]
    for choice in (plan_words, lambda bundle, chosen: ServedWords.of("whole", bundle, chosen)):
        with pytest.raises(RangeError, match="raise bits"):
            choice(bundles["whole"], Deployment(bits=bits - 1))
    wide = plan_words(bundles["whole"], Deployment(bits=bits + 3))
    assert wide.details["shape"]["bits"] == bits + 3


def test_a_client_checks_the_floor_that_it_is_told(tmp_path: Path) -> None:
    shape = plan_words(released(tmp_path / "margin", MARGIN)).details["shape"]
    with pytest.raises(RangeError, match=rf"need {shape['bits']} bits, got {shape['bits'] - 1}: raise bits"):
        WordShape.from_params(shape | {"bits": shape["bits"] - 1})


def test_plans_of_other_models(tmp_path: Path) -> None:
    plan = plan_words(released(tmp_path / "classes", CLASSES))
    assert [each.mode for each in plan.modes] == ["frames", "garbled"]
    assert plan.details["model_bytes"] == 0
    mixtures = plan_words(released(tmp_path / "mixtures", MIXTURES), Deployment(reject=True)).to_json()
    assert mixtures["shape"]["reject"] is True
    assert set(mixtures["modes"]) == {"frames", "ahead", "stream"}
    assert "serve words with operation=viterbi" in mixtures["warnings"][0]
    best = plan_words(released(tmp_path / "best", MIXTURES), Deployment(operation="viterbi")).to_json()
    assert set(best["modes"]) == {"frames", "ahead", "garbled", "stream"}
    assert best["warnings"] == []
    assert "128 bits" in mixtures["modes"]["frames"]["assumes"]
    assert "how many there are" in mixtures["modes"]["stream"]["leaks"]


def test_the_order_follows_the_round_trip(bundles: dict[str, Bundle]) -> None:
    shape = WordShape(98, 39, "full", 10, 5, (4,), operation="viterbi")
    job, many, both = planned_job(shape), planned_job(shape, 16), ("frames", "garbled")
    assert choose_order(job, both, 0.0001, MOST_BYTES) == "frames"
    assert choose_order(job, both, 0.040, MOST_BYTES) == "garbled"
    assert choose_order(job, ("frames",), 0.040, MOST_BYTES) == "frames"
    assert choose_order(job, ("frames", "ahead"), 0.040, MOST_BYTES) == "ahead"
    assert choose_order(job, ("frames", "ahead"), 0.0001, MOST_BYTES) == "frames"
    assert estimate(job, "ahead").rounds < 0.7 * estimate(job).rounds < 0.5 * estimate(KeywordJob(shape)).rounds
    assert choose_order(job, both, 0.040, most_bytes=10_000_000) == "frames"  # what it is not ready to take
    assert choose_order(many, both, 0.040, MOST_BYTES) == "frames"  # which share their round trips
    assert estimate(job).online_over(0.04) > estimate(job, "garbled").online_over(0.04)
    models = export_words("keyword_hmm", bundles["whole"].model, bundles["whole"].labels, Deployment(frames=1_000))
    assert estimate(planned_job(models.shape)).rounds > 1_000


def test_a_slow_link_costs_its_round_trips(bundles: dict[str, Bundle]) -> None:
    plan = plan_words(bundles["whole"]).to_json()
    assert plan["round_trips"] == [0.0, 0.01, 0.04, 0.1]
    for mode in plan["modes"].values():
        here, near, _, far = mode["seconds"]
        assert far - near == pytest.approx(0.09 * mode["rounds"])
        assert near - here == pytest.approx(0.01 * mode["rounds"] + mode["online_bytes"] / 12.5e6)
