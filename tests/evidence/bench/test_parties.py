"""The benchmark at small size: it checks its own sums and names its figures as promised."""

import pytest

from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import parties
from ppspeech.network.local.groups import Outcome


def test_small_runs_agree_with_sums_in_the_clear() -> None:
    outcomes = parties._sound(3, 7)
    assert len(outcomes) == 4
    assert outcomes["party0"].result == outcomes["party2"].result


def test_figures_are_named_and_a_failure_is_not_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {"curator": Outcome(seconds=0.5), "party0": Outcome(seconds=0.4, bytes_sent=10, bytes_received=20)}
    monkeypatch.setattr(parties, "_sound", lambda *_: made)
    monkeypatch.setattr(parties, "_published", lambda *_: {"charlie": Outcome(seconds=20.0)})
    figures = {figure.metric: figure.value for figure in parties.run(quick=False)}
    assert figures == {
        "parties.k20.total_s": 0.5,
        "parties.k20.bytes_per_party": 30,
        "parties.published.total_s": 20.0,
        "parties.k20.speedup_vs_published": 40.0,
    }
    assert "parties.k20.speedup_vs_published" not in {figure.metric for figure in parties.run(quick=True)}
    with pytest.raises(PpspeechError, match="party1 failed: Killed"):
        parties._check({"party1": Outcome(error="Killed")})
