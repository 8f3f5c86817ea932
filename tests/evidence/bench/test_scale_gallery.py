"""The bench of crowds: answers are checked on the wire, and a loss in names is seen where there is one."""

import numpy as np
import pytest

from ppspeech.evidence.bench.crowd_trials import People, _best, _figures, unit
from ppspeech.evidence.bench.scale_gallery import _figures as figures_of
from ppspeech.evidence.bench.scale_gallery import crowd_job
from ppspeech.evidence.bench.two_parties import measure


def test_a_name_is_timed_and_its_parts_add_up() -> None:
    job, peaks = crowd_job(300)
    found = measure([job], 1)[job.name]
    figures = {each.metric: each.value for each in figures_of(300, found, [peak.value for peak in peaks], "")}
    assert figures["scale.gallery.300.bytes"] + figures["scale.gallery.300.offline_bytes"] == job.bytes
    assert figures["scale.gallery.300.ms"] > 0
    assert figures["scale.gallery.300.client_mb"] > 0
    assert figures["scale.gallery.300.server_mb"] > figures["scale.gallery.300.client_mb"]


def test_names_that_coarse_comparisons_lose_are_counted() -> None:
    targets = np.array([3, 4, 5, 6])
    strangers = np.full(200, -1)
    scores = np.concatenate([np.full(4, 0.9), np.linspace(0.0, 0.5, 200)])
    clear = np.concatenate([targets, strangers]), scores
    coded = np.concatenate([[3, 4, 5, 0], strangers]), scores
    loss, named, in_the_clear = _figures(targets, clear, coded, "")
    assert (loss.value, named.value, in_the_clear.value) == (0.25, 0.75, 1.0)
    assert "1 names lost and 0 won of 4" in loss.note
    same = _figures(targets, clear, clear, "")[0]
    assert same.value == 0
    assert same.high == pytest.approx(1 - 0.025 ** (1 / 4))


def test_people_who_are_drawn_are_found_as_in_the_clear() -> None:
    generator = np.random.default_rng(0)
    model = People.of([generator.normal(1.0, 0.3, size=(4, 1)) + generator.normal(1, 0.1, (4, 32)) for _ in range(12)])
    people = model.draw(generator, 300)
    gallery = model.heard(generator, people, 40)
    assert np.linalg.norm(gallery, axis=1) == pytest.approx(1.0, abs=1e-5)
    apart = unit(generator.standard_normal((300, 32), dtype=np.float32))
    clear, coded = _best(apart, apart[:20], generator)
    assert clear[0].tolist() == coded[0].tolist() == list(range(20))
    assert np.abs(clear[1] - coded[1]).max() < 1e-2
