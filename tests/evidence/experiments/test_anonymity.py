"""The experiments on tables without a guarantee, at small size."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from ppspeech.data.tables import AdultRecords
from ppspeech.evidence.experiments import anonymity, deanonymize, projection
from ppspeech.evidence.experiments.anonymity import PLACES, SCHOOL, WORK
from ppspeech.evidence.experiments.deanonymize import Speech
from ppspeech.evidence.experiments.projection import Sources
from ppspeech.privacy.anonymity import Records

PNG = b"\x89PNG"


def census(rows: int) -> AdultRecords:
    """Made up: degrees earn, and one row has no country."""
    chance = np.random.default_rng(0)
    school = chance.choice(" ".join(SCHOOL.values()).split(), rows)
    country = [None, *chance.choice(" ".join(PLACES.values()).split(), rows - 1).tolist()]
    rich = np.isin(school, SCHOOL["degree"].split()) & (chance.random(rows) < 0.9)
    categories = {
        "workclass": chance.choice(" ".join(WORK.values()).split(), rows).tolist(),
        "education": school.tolist(),
        "marital_status": chance.choice(["Married-civ-spouse", "Never-married"], rows).tolist(),
        "occupation": chance.choice(["Sales", "Tech-support", "Armed-Forces"], rows).tolist(),
        "race": chance.choice(["White", "Black"], rows).tolist(),
        "sex": chance.choice(["Male", "Female"], rows).tolist(),
        "native_country": country,
    }
    return AdultRecords(
        numbers={"age": torch.from_numpy(chance.integers(17, 90, rows))},
        categories={name: tuple(values) for name, values in categories.items()},
        labels=torch.from_numpy(rich.astype(np.int64)),
        is_test=torch.zeros(rows, dtype=torch.bool),
    )


def test_a_census_is_made_anonymous_swapped_and_rid_of_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anonymity, "load_adult_raw", lambda: census(801))
    figures = {figure.metric: figure for figure in anonymity.run(quick=True, folder=tmp_path)}
    assert 0 < figures["anonymity.adult.k10.mondrian.loss"].value < figures["anonymity.adult.k10.loss"].value < 1
    assert "800 rows" in str(figures["anonymity.adult.unique"].note)
    assert figures["anonymity.swap.kept.moved"].value == 0 < figures["anonymity.swap.worst_pair.moved"].value
    assert {f"anonymity.rules.{way}.lost" for way in ("consequent", "antecedent", "support")} <= set(figures)
    assert (tmp_path / "anonymity.png").read_bytes().startswith(PNG)


def test_counts_that_move_are_counted() -> None:
    before = Records({"a": ("x", "x", "y"), "b": ("1", "1", "1")})
    after = Records({"a": ("x", "y", "y"), "b": ("1", "1", "1")})
    assert anonymity.moved(before, after, "a", "b") == pytest.approx(1 / 3)
    assert anonymity.moved(before, after, "b") == 0


def speech(people: int) -> Speech:
    """Clips near their speaker, 8 takes of 5 words."""
    chance = np.random.default_rng(1)
    whose = np.repeat(np.arange(people), 80)
    voices = chance.normal(size=(people, 12))
    values = voices[whose] + 1.5 * chance.normal(size=(len(whose), 12))
    return Speech(values, whose, np.tile(np.repeat(np.arange(8), 10), people), np.zeros(12), np.ones(12))


def test_clips_name_people_until_something_protects_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deanonymize, "load_speech", lambda: speech(30))
    monkeypatch.setattr(deanonymize, "SUBSCRIBERS", 300)
    figures = {figure.metric: figure for figure in deanonymize.run(quick=True, folder=tmp_path)}
    assert 1 <= figures["deanonymize.clips_for_half"].value <= figures["deanonymize.clips_for_nine_tenths"].value <= 20
    assert figures["deanonymize.after_k5.accuracy"].value <= 1 / 5 + 5 * math.sqrt(0.2 * 0.8 / 60)  # equals are drawn
    assert figures["deanonymize.after_swap0.3.accuracy"].value > 0.7
    assert figures["deanonymize.ratings8.accuracy"].value > 0.9
    most = math.e**2 / (math.e**2 + 29)  # what nobody can exceed, of 60 trials, and five deviations
    assert figures["deanonymize.after_dp.accuracy"].value < most + 5 * math.sqrt(most * (1 - most) / 60)
    assert (tmp_path / "deanonymize.png").read_bytes().startswith(PNG)


def test_the_fewest_clips_are_found() -> None:
    assert deanonymize.clips_for({1: 0.3, 2: 0.5, 5: 0.8}, 0.5) == 2
    assert deanonymize.clips_for({1: 0.3, 2: 0.5, 5: 0.8}, 0.9) is None


def test_rows_are_clipped_to_what_the_noise_is_for() -> None:
    made = speech(30)
    clipped = deanonymize.clipped(100 * made.table, made)
    assert np.linalg.norm(clipped, axis=1).max() <= math.sqrt(12) * (1 + 1e-12)
    assert deanonymize.mechanism(12, 1.0).sensitivity == pytest.approx(2 * math.sqrt(12))


def test_projections_are_unmixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(2)
    people, census = chance.laplace(size=(2500, 8)) ** 3, chance.laplace(size=(1500, 4)) ** 3
    gaussian, other = (chance.normal(size=(600, 6)) @ np.diag(np.arange(1.0, 7)) for _ in range(2))
    monkeypatch.setattr(projection, "people", lambda: Sources("recordings", people, "rows"))
    monkeypatch.setattr(projection, "frames", lambda: Sources("cepstra", gaussian, "columns", other))
    monkeypatch.setattr(projection, "numbers", lambda: Sources("census", census, "columns"))
    figures = {figure.metric: figure.value for figure in projection.run(quick=True, folder=tmp_path)}
    assert figures["ica.rotation.recovered"] >= 0.75
    assert figures["ica.projection.recovered"] <= 0.375  # of 100 draws none had more than 0.25
    assert figures["known.rotation.recovered"] == figures["known.cepstra.rotation.recovered"] == 1
    assert (tmp_path / "projection.png").read_bytes().startswith(PNG)


@pytest.mark.slow
def test_the_targets_are_reached(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PPSPEECH_DATA", str(data))
    mixed = {figure.metric: figure.value for figure in projection.run(quick=False, folder=tmp_path)}
    assert mixed["ica.rotation.recovered"] >= 0.9
    assert mixed["ica.projection.recovered"] <= 0.1
    named = {figure.metric: figure.value for figure in deanonymize.run(quick=False, folder=tmp_path)}
    assert named["deanonymize.clips_for_half"] <= 3
    assert named["deanonymize.after_dp.accuracy"] < 0.11
    told = {figure.metric: figure.value for figure in anonymity.run(quick=True, folder=tmp_path)}
    assert told["anonymity.adult.k10.loss"] == pytest.approx(0.3532, abs=1e-3)
