"""What the plan of a speaker service says before is what happens after."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

import pytest

from ppspeech.bundle import Bundle
from ppspeech.crypto.transfer import GREETING_BYTES
from ppspeech.errors import ModelError
from ppspeech.service import SpeakerDeployment, connect_through
from ppspeech.service.plan import plan_speakers
from tests.service.conftest import Running
from tests.service.test_keeper import keeping
from tests.service.voices import RATE, SPEAKERS, released, voice

Serve = Callable[..., AbstractContextManager[Running]]

"""Either way, as a meeting's transfers are taken up again."""


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return released(tmp_path_factory.mktemp("voices") / "voices", SPEAKERS)


@pytest.mark.parametrize("scoring", ["linear", "gmm", "hardened", "crowd"])
def test_bytes_and_rounds_are_exact(
    scoring: Literal["linear", "gmm", "hardened", "crowd"], serve: Serve, bundle: Bundle, tmp_path: Path
) -> None:
    sizes: dict[str, Any] = {"places": 3, "frames": 40}
    side: Literal["client", "server"] = "server" if scoring == "hardened" else "client"
    plan = plan_speakers(bundle, SpeakerDeployment(**sizes, decision=side, scoring=scoring))
    costs = {each.mode: each.cost for each in plan.modes}
    resumed = GREETING_BYTES
    deployment = SpeakerDeployment(
        **sizes, scoring=scoring, threshold=0.2, decision=side, enrolls=True, stores=scoring == "linear"
    )
    with (
        serve({"voices": bundle}, speakers=deployment) as running,
        connect_through(running.door(), bundle=bundle) as client,
    ):
        client.enroll("ann", [voice(0)], RATE)
        asked = {"verify": client.verify(0, [voice(0)], RATE)}
        if scoring != "hardened":
            asked["identify"] = client.identify([voice(0)], RATE)
        if scoring == "linear":
            with keeping(running, bundle, tmp_path / "keeper") as door, client.probing(door) as prober:
                answer, cost = prober.verify(0, [voice(0)], RATE), costs["private verify"]
                assert answer.bytes_up == cost.bytes_up + resumed
                assert answer.bytes_down == cost.bytes_down + resumed
                assert len(client.fetch("family").templates) == plan.details["gallery_bytes"]
    for what, answer in asked.items():
        cost = costs[f"{scoring} {what}"]
        assert (answer.bytes_up, answer.bytes_down) == (cost.bytes_up + resumed, cost.bytes_down + resumed)
        assert cost.rounds <= answer.rounds  # the transcript counts offline round trips too


def test_what_cannot_be_had_is_said(bundle: Bundle, bundles: dict[str, Bundle]) -> None:
    plan = plan_speakers(bundle, SpeakerDeployment(places=5000, frames=10), members=4)
    modes = {each.mode for each in plan.modes}
    assert modes == {"linear verify", "linear identify", "gmm verify", "hardened verify"}
    assert [warning.split()[0] for warning in plan.warnings] == ["mixtures", "private"]
    assert plan.to_json()["gallery_bytes"] == 0
    few = plan_speakers(bundle, SpeakerDeployment(places=2, frames=10))
    assert {each.mode for each in few.modes} == modes | {"gmm identify", "private verify"}
    assert ["no cohort" in warning for warning in few.warnings] == [True]
    assert not plan_speakers(bundle, SpeakerDeployment(places=2, frames=10, threshold=0.5)).warnings
    leaks = {each.mode: each.statement.leakage for each in few.modes}
    assert len(set(leaks.values())) == len(leaks)
    with pytest.raises(ModelError, match="speaker_ubm is needed"):
        plan_speakers(bundles["whole"])
