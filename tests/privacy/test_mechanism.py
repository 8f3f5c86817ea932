"""A mechanism is one file: it enters itself, is released, booked, replayed, grouped and audited by name."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

from ppspeech.cli.app import app
from ppspeech.errors import PrivacyError
from ppspeech.privacy import (
    MECHANISMS,
    Accountant,
    ComposedEvent,
    DiscreteLaplace,
    GaussianEvent,
    Guarantee,
    ObjectivePerturbation,
    OutputPerturbation,
    PureEvent,
    PureLike,
    Relation,
    Released,
    event_from_json,
    event_to_json,
    group_privacy,
    mechanism,
    register_event,
    shares_for,
)
from ppspeech.privacy.accounting.events import EVENTS
from ppspeech.privacy.audit import AuditReport, audit_exact, audits_of, exact_report, run_audits, run_once
from ppspeech.privacy.convex import logistic_head
from ppspeech.privacy.samplers import uniform

ONE = Relation("record", "replace")


@pytest.fixture(scope="module")
def coin() -> Iterator[type[Any]]:
    """Randomized response, as somebody would add it: everything it needs stands here."""

    @register_event("toy_coin")
    @dataclass(frozen=True, slots=True)
    class CoinEvent(PureLike):
        lie: float
        relation: Relation

        def pure(self) -> float:
            return float(torch.logit(torch.tensor(1 - self.lie, dtype=torch.float64)))

    @mechanism("toy_coin", CoinEvent)
    @dataclass(frozen=True, slots=True)
    class Coin:
        lie: float
        relation: Relation

        @property
        def event(self) -> CoinEvent:
            return CoinEvent(self.lie, self.relation)

        @property
        def guarantee(self) -> Guarantee:
            return Guarantee(kind="pure", epsilon=self.event.pure(), relation=self.relation, float_safe=True)

        def release(self, value: bool) -> Released[bool]:
            return Released(bool(value) ^ bool(uniform(1)[0] < self.lie), self.event, self.guarantee)

        @classmethod
        def audit(cls, runs: int) -> list[AuditReport]:
            del runs
            one = cls(0.25, ONE)

            def law(said: Tensor, truth: bool) -> Tensor:
                return torch.where(said == truth, 1 - one.lie, one.lie).double().log()

            return [exact_report("toy_coin", audit_exact(law, True, False, torch.tensor([True, False])), one.guarantee)]

    yield Coin
    del MECHANISMS._entries["toy_coin"], EVENTS._entries["toy_coin"]


def test_a_new_mechanism_is_known_everywhere(coin: type[Any]) -> None:
    told = [coin(0.25, ONE).release(True) for _ in range(200)]
    assert 5 < sum(not one.value for one in told) < 100  # false alarm rate below 1e-10
    account = Accountant(ONE)
    account.compose(told[0].event, 3)
    again = Accountant.from_json(json.loads(json.dumps(account.to_json())))
    assert again.events == account.events
    assert again.epsilon(0.0) == pytest.approx(3 * 1.0986123)
    assert group_privacy(told[0].event, 2, "speaker").pure() == pytest.approx(2 * 1.0986123)
    assert audits_of(told[0].event) == ["toy_coin"]
    (report,) = run_audits(["toy_coin"])
    assert report.eps_lower == pytest.approx(report.eps_stated)
    listed = CliRunner().invoke(app, ["audit"])
    assert "toy_coin" in listed.output.split()
    ran = CliRunner().invoke(app, ["audit", "toy_coin", "--json"])
    assert [json.loads(line)["metric"] for line in ran.output.splitlines()] == [
        "audit.toy_coin.eps_stated",
        "audit.toy_coin.eps_lower",
    ]


def test_a_name_is_given_once(coin: type[Any]) -> None:
    with pytest.raises(PrivacyError, match="registered already"):
        mechanism("toy_coin", PureEvent)(coin)
    with pytest.raises(PrivacyError, match="many canaries"):
        run_once("toy_coin")


@pytest.mark.parametrize("name", MECHANISMS.names())
def test_every_mechanism_keeps_the_contract(name: str) -> None:
    kind = MECHANISMS[name].kind
    assert {"relation", "event", "guarantee", "release"} <= set(dir(kind)) | set(kind.__dataclass_fields__)


@pytest.mark.parametrize(
    "budget",
    [
        ObjectivePerturbation(epsilon=1.0, relation=ONE, regularization=10.0),
        OutputPerturbation(epsilon=1.0, delta=1e-5, relation=ONE, regularization=10.0),
    ],
)
def test_convex_mechanisms_state_their_release_as_all_others_do(budget: Any) -> None:
    made = budget.for_head(logistic_head(), 1.0, (1, 2))
    account = Accountant(made.relation)
    account.compose(made.event)
    assert account.epsilon(budget.delta) <= made.guarantee.epsilon * (1 + 1e-6)
    assert made.event.epsilon(budget.delta) == pytest.approx(account.epsilon(budget.delta))


def test_a_composed_event_is_booked_by_its_parts_and_survives_a_file() -> None:
    parts = (GaussianEvent(4.0, ONE), PureEvent(0.1, ONE))
    event = ComposedEvent(parts)
    account = Accountant(ONE)
    account.compose(event, 2)
    assert dict(account.events) == {parts[0]: 2, parts[1]: 2}
    assert event_from_json(json.loads(json.dumps(event_to_json(event)))) == event
    assert event.zcdp() == pytest.approx(1 / 32 + 0.005)
    assert event.pure() is None
    assert event.pld(1e-3).get_epsilon_for_delta(1e-5) == pytest.approx(event.epsilon(1e-5), rel=0.02)
    with pytest.raises(PrivacyError, match="Convert it first"):
        ComposedEvent((parts[0], PureEvent(0.1, Relation("speaker", "replace"))))
    with pytest.raises(PrivacyError, match="has parts"):
        ComposedEvent(())


def test_parties_release_together_what_one_would() -> None:
    shares = shares_for("polya", epsilon=2.0, delta=0.0, parties=3, sensitivity=1.0, dimension=4, relation=ONE)
    released = shares.release([torch.full((4,), 1e6)] * 3)
    assert released.event == shares.event
    assert torch.allclose(released.value, torch.full((4,), 3e6).double(), atol=1e3)
    with pytest.raises(PrivacyError, match="3 parties"):
        shares.release([torch.zeros(4)])


@pytest.mark.parametrize("name", ["laplace", "gaussian", "discrete_laplace", "discrete_gaussian", "gamma_norm"])
def test_one_run_finds_nothing_in_a_sound_mechanism(name: str) -> None:
    report = run_once(name)
    assert (report.method, report.verdict) == ("one_run", "no violation found")
    assert report.power > report.eps_stated


def test_one_run_catches_noise_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiscreteLaplace, "release", lambda self, value: Released(value, self.event, self.guarantee))
    assert run_once("discrete_laplace").verdict == "violated"
