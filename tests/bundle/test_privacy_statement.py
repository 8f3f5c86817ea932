"""The statement and its JSON Schema say the same, and the words and the registry's record follow from it."""

import copy
import datetime
import hashlib
import math
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from ppspeech.bundle import DataTouch, PrivacyStatement, deployment_yaml, in_words, load_bundle, privacy_schema
from ppspeech.bundle.card import model_card
from ppspeech.bundle.statement import FORMAT
from ppspeech.errors import BundleError
from ppspeech.figures import Figure
from ppspeech.privacy import Accountant, GaussianEvent, Guarantee, LaplaceEvent, Relation, gaussian_sigma
from tests.bundle.conftest import gaussian_account, plain_account, small_config, statement_of, touches


def pure_account() -> Accountant:
    account = Accountant(Relation("utterance", "replace"))
    account.compose(LaplaceEvent(2.0, Relation("utterance", "replace")))
    return account


@cache
def valid() -> list[dict[str, Any]]:
    """Made once; who changes one copies it."""
    return [
        statement_of(gaussian_account()).to_json(),
        statement_of(plain_account()).to_json(),
        statement_of(pure_account(), delta=0.0).to_json(),
    ]


def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(privacy_schema())
    return jsonschema.Draft202012Validator(privacy_schema())


@pytest.mark.parametrize("plain", valid(), ids=["approximate", "none", "pure"])
def test_statements_fit_the_schema_and_come_back(plain: dict[str, Any]) -> None:
    validator().validate(plain)
    assert PrivacyStatement.from_json(plain).to_json() == plain


def broken() -> list[tuple[str, dict[str, Any]]]:
    found: list[tuple[str, dict[str, Any]]] = []

    def add(name: str, base: int, *path: str | int, value: Any = ..., remove: bool = False) -> None:
        plain = copy.deepcopy(valid()[base])
        place: Any = plain
        for step in path[:-1]:
            place = place[step]
        if remove:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        found.append((name, plain))

    for field in valid()[0]:
        add(f"without {field}", 0, field, remove=True)
    for field in valid()[0]["guarantee"]:
        add(f"guarantee without {field}", 0, "guarantee", field, remove=True)
    for field in ("topic", "status", "note", "charge"):
        add(f"touch without {field}", 0, "touches", 0, field, remove=True)
    add("extra field", 0, "seed", value=17)
    add("extra field in guarantee", 0, "guarantee", "seed", value=17)
    add("extra field in touch", 0, "touches", 0, "seed", value=17)
    add("earlier format", 0, "format", value=1)
    add("other format", 0, "format", value=4)
    add("zcdp", 0, "guarantee", "kind", value="zcdp")
    add("broken", 1, "guarantee", "kind", value="broken")
    add("unknown unit", 0, "guarantee", "unit", value="person")
    add("no unit", 0, "guarantee", "unit", value=None)
    add("unknown adjacency", 0, "guarantee", "adjacency", value="near")
    add("negative epsilon", 0, "guarantee", "epsilon", value=-1.0)
    add("text epsilon", 0, "guarantee", "epsilon", value="1")
    add("proof without epsilon", 0, "guarantee", "epsilon", value=None)
    add("none with epsilon", 1, "guarantee", "epsilon", value=1.0)
    add("none without caveat", 1, "guarantee", "caveat", value="")
    add("claimed", 1, "guarantee", "claimed_epsilon", value=1.0)
    add("rho", 0, "guarantee", "rho", value=1.0)
    add("pure with delta", 2, "guarantee", "delta", value=0.1)
    add("delta 1", 0, "guarantee", "delta", value=1)
    add("a delta of one half", 0, "guarantee", "delta", value=0.5)
    add("float_safe", 0, "guarantee", "float_safe", value="yes")
    add("assumptions", 0, "guarantee", "assumptions", value="none")
    add("covers nothing", 0, "covers", value=[])
    add("covers more", 0, "covers", value=["everything"])
    add("covers both", 0, "covers", value=[*valid()[0]["covers"], "the metrics"])
    add("charged to nothing", 0, "touches", 3, "charge", value=None)
    add("charged to a name", 0, "touches", 3, "charge", value="gaussian")
    add("a charge that is none", 0, "touches", 0, "charge", value=0)
    add("groups no list", 2, "groups", value={})
    add("a group without epsilon", 2, "groups", 0, "epsilon", remove=True)
    add("a group of half a person", 2, "groups", 0, "size", value=0.5)
    add("none covers", 1, "covers", value=["all"])
    add("covers a number", 0, "covers", value=[1])
    add("empty caveat", 0, "caveats", value=[""])
    add("long caveat", 0, "caveats", value=["word " * 401])
    add("too many caveats", 0, "caveats", value=["x"] * 101)
    add("unknown topic", 0, "touches", 0, "topic", value="weather")
    add("unknown status", 0, "touches", 0, "status", value="fine")
    add("topic missing", 0, "touches", value=valid()[0]["touches"][1:])
    add("topic twice", 0, "touches", value=valid()[0]["touches"] + valid()[0]["touches"][:1])
    add("optional topic twice", 0, "touches", value=valid()[0]["touches"] + 2 * [
        {"topic": "metrics", "status": "untouched", "note": "public", "charge": None}])  # fmt: skip
    add("touches no list", 0, "touches", value={})
    add("no method", 0, "method", value="")
    return found


@pytest.mark.parametrize(("name", "plain"), broken(), ids=[name for name, _ in broken()])
def test_schema_and_reader_refuse_the_same(name: str, plain: dict[str, Any]) -> None:
    assert not validator().is_valid(plain)
    with pytest.raises(BundleError):
        PrivacyStatement.from_json(plain)


def test_touches_are_checked_where_they_are_made() -> None:
    with pytest.raises(BundleError, match="topic must be one of"):
        DataTouch("weather", "charged", "x")  # type: ignore[arg-type]
    with pytest.raises(BundleError, match="printable text"):
        DataTouch("tuning", "charged", "")
    for charge, status in ((0, "untouched"), (None, "charged")):
        with pytest.raises(BundleError, match="names the event that pays for it"):
            DataTouch("tuning", status, "x", charge)  # type: ignore[arg-type]
    many = [f"caveat {number}" for number in range(101)]
    with pytest.raises(BundleError, match="caveats has 103 lines"):
        PrivacyStatement.of(gaussian_account(), small_config(), touches(), delta=1e-5, caveats=many)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 1e-5), (3.0, 0.01)])
def test_the_words_are_the_best_attack_of_the_worst_mechanism(epsilon: float, delta: float) -> None:
    # The mechanism that (epsilon, delta) allows to be worst tells all with probability delta, and else answers by
    # randomized response (Kairouz et al. 2015): its best attack is right exactly as often as the words say.
    heads = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    kind = "approximate" if delta else "pure"
    said = in_words(Guarantee(kind=kind, epsilon=epsilon, delta=delta, relation=Relation("speaker", "add_remove")))
    assert f"{100 * (delta + heads):.1f} %" in said
    assert "NO differential privacy" in in_words(plain_account().guarantee(0.0))


def test_the_registry_record_is_yaml_with_the_same_numbers(folder: Path) -> None:
    bundle = load_bundle(folder)
    record = yaml.safe_load(deployment_yaml(bundle, "Three Words", datetime.date(2026, 5, 4)))
    assert set(record) == {"url_slug", "status", "tier", "deployment"}
    assert record["url_slug"] == "three-words"
    deployment = record["deployment"]
    assert list(deployment) == [
        "basic", "dp_variant", "privacy_loss", "deployment_model", "accounting", "implementation", "administrative",
    ]  # fmt: skip
    assert deployment["basic"]["publication_date"] == "2026-05-04"
    assert deployment["basic"]["data_curators"] == [{"data_curator_name": "FILL IN", "data_curator_type": "FILL IN"}]
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert "tuning: NOT covered" in deployment["dp_variant"]["unprotected_quantities"]
    assert "normalization" not in deployment["dp_variant"]["unprotected_quantities"]
    loss = deployment["privacy_loss"]
    assert loss["privacy_unit"] == "speaker-level"
    assert loss["privacy_parameters"] == {"epsilon": bundle.statement.guarantee.epsilon, "delta": 1e-5}
    assert bundle.fingerprint in deployment["administrative"]["notes"]


def test_no_record_without_a_guarantee(folder: Path) -> None:
    from dataclasses import replace

    plain = replace(load_bundle(folder), statement=statement_of(plain_account()))
    with pytest.raises(BundleError, match="gives no guarantee"):
        deployment_yaml(plain, "x", datetime.date(2026, 5, 4))


def test_the_card_says_what_is_and_what_is_not_covered() -> None:
    account = gaussian_account()
    statement = statement_of(account)
    card = model_card(small_config(), statement, account, ())
    assert yaml.safe_load(card.split("---")[1]) == {
        "library_name": "ppspeech", "tags": ["speech", "differential-privacy"]
    }  # fmt: skip
    assert f"({statement.guarantee.epsilon:.4g}, 1e-05)-DP for one speaker" in card
    assert in_words(statement.guarantee) in card
    assert "| tuning | NOT covered | states chosen on the training speakers |" in card
    assert "| threshold | charged to epsilon |" in card
    assert "10 x gaussian" in card
    assert "Not measured" in card


def test_topics_that_nobody_speaks_about_are_not_covered() -> None:
    said = PrivacyStatement.of(gaussian_account(), small_config(), touches()[:2], delta=1e-5)
    assert [touch.status for touch in said.touches] == ["untouched"] * 2 + ["not_covered"] * 5


@pytest.mark.parametrize(("epsilon", "group"), [(1.0, 320), (4.0, 3052)])
def test_the_card_says_what_is_left_for_a_person_of_eighty_utterances(epsilon: float, group: int) -> None:
    """At the same delta: not eighty times epsilon, by far."""
    one = Relation("utterance", "add_remove")
    account = Accountant(one)
    account.compose(GaussianEvent(gaussian_sigma(epsilon, 1e-5), one))
    assert account.group_epsilon(80, 1e-5) == pytest.approx(group, rel=2e-3)
    statement = PrivacyStatement.of(account, small_config(), (), delta=1e-5)
    assert [each.size for each in statement.groups] == [10, 100]
    card = model_card(small_config(), statement, account, ())
    for each in statement.groups:
        assert each.epsilon is not None
        assert each.epsilon > each.size * epsilon
        assert f"- with {each.size} utterances in the data, epsilon is {each.epsilon:.4g} at the same delta" in card
    assert "One utterance is protected, not a person" in card


def test_a_person_is_one_unit_where_the_unit_is_a_speaker() -> None:
    assert statement_of(gaussian_account()).groups == ()


CARDS = "504c3cc5323d5561524ae59fa6143f2649fa7629f264be7ff18bf8772ea959a6"


def test_the_wording_of_the_card_is_part_of_the_format() -> None:
    """Loading compares it byte by byte. Whoever changes it raises FORMAT, says what renews older bundles, and then
    changes the digest here.
    """
    accounts = gaussian_account(), plain_account(), pure_account()
    cards = [
        model_card(small_config(), statement_of(account, delta), account, metrics)
        for account, delta in zip(accounts, (1e-5, 0.0, 0.0), strict=True)
        for metrics in ((), [Figure("test.accuracy", 0.91, note="12 unseen | speakers")])
    ]
    assert (FORMAT, hashlib.sha256("".join(cards).encode()).hexdigest()) == (3, CARDS)
