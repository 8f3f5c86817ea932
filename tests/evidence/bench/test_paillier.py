"""The Paillier benchmark: its figures exist, and its job is checked against exact integers."""

import numpy as np
import pytest

from ppspeech.crypto.numbers import exact_product
from ppspeech.crypto.paillier import RecodedWeights, generate_paillier
from ppspeech.errors import PpspeechError
from ppspeech.evidence.bench import paillier as bench


@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, np.ndarray]:
    features = bench._uniform(bench.FEATURE_SCALE, (14, 5))
    return features, bench._uniform(bench.WEIGHT_SCALE, (3, 5))


def test_the_job_gives_shares_of_the_exact_scores(problem: tuple[np.ndarray, np.ndarray]) -> None:
    features, weights = problem
    key = generate_paillier(512, insecure_demo=True)
    job = bench.keyword_job(key, features, RecodedWeights.of(weights), exact_product(features, weights.T), workers=2)
    assert (job.bytes_up, job.bytes_down) == (16 + 2 * 5 * 128, 16 + 2 * 3 * 128)


def test_the_job_notices_wrong_scores(problem: tuple[np.ndarray, np.ndarray]) -> None:
    features, weights = problem
    key = generate_paillier(512, insecure_demo=True)
    wrong = exact_product(features, weights.T)
    wrong[3, 1] += 2
    with pytest.raises(PpspeechError, match="do not add up"):
        bench.keyword_job(key, features, RecodedWeights.of(weights), wrong, workers=1)


def test_one_key_size_gives_its_figures() -> None:
    figures = {figure.metric: figure for figure in bench._key_size(256, cores=1, repeats=1)}
    assert set(figures) == {
        f"paillier.256.{name}" for name in ("keygen_s", "encryptions_per_s", "decrypt_ms", "add_us", "scale_us")
    }
    assert all(figure.value > 0 and figure.peer_value and figure.ratio for figure in figures.values())
    assert "table 4.2: 828/s" in (figures["paillier.256.encryptions_per_s"].note or "")


def test_secure_sizes_give_the_speedups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "STATES", 2)
    names = {figure.metric for figure in bench._key_size(2048, cores=2, repeats=1)}
    assert {f"paillier.2048.{name}.speedup_vs_phe" for name in ("encrypt", "decrypt", "scalar")} <= names
    assert "paillier.2048.encrypt.in_powmods" in names


def test_the_worst_case_fits_a_slot() -> None:
    assert bench.SCORE_SCALE.bits == 40
    assert bench.MONOMIALS * (2**14 - 1) * (2**15 - 1) < 2**39
