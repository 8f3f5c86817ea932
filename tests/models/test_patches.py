"""Patches of spectrograms: their fits and maxima as slow loops find them, and words that are told from others."""

import numpy as np
import pytest

from ppspeech.errors import ModelError
from ppspeech.models import PatchDetector, PatchGrid, learn_patches, learn_word, regions, sliding_maxima

GRID = PatchGrid(bands=6, span=3, bins=3, step=2, window=4, per_bin=3)


def windows(count: int, seed: int, word: bool) -> list[np.ndarray]:
    """Noise, with a rising stripe in it where there is the word, up to two frames late."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        each = rng.normal(size=(GRID.frames, GRID.bands))
        if word:
            late = int(rng.integers(0, 3))
            for band in range(GRID.bands):
                each[late + band : late + band + 2, band] += 4.0
        found.append(each)
    return found


@pytest.mark.parametrize("window", [1, 2, 3, 5, 8, 13])
def test_sliding_maxima_are_those_of_the_slow_loop(window: int) -> None:
    values = np.random.default_rng(window).normal(size=(20, 3))
    slow = [values[at : at + window].max(axis=0) for at in range(20 - window + 1)]
    assert (sliding_maxima(values, window) == np.array(slow)).all()


def test_regions_are_centered_and_of_length_one() -> None:
    given = np.random.default_rng(0).normal(size=(9, 4)) + 7
    found = regions(given, 3)
    assert found.shape == (7, 12)
    piece = given[2:5] - given[2:5].mean()
    assert np.allclose(found[2], (piece / np.linalg.norm(piece)).reshape(-1))
    assert not regions(np.ones((5, 4)), 3).any()  # silence fits nothing


def test_scores_are_those_of_the_slow_loop() -> None:
    rng = np.random.default_rng(1)
    patches = rng.normal(size=(GRID.patches, 18))
    own = PatchDetector(GRID, patches / np.linalg.norm(patches, axis=1, keepdims=True),
                        rng.uniform(-0.2, 0.4, GRID.patches), rng.normal(size=GRID.patches), 0.3)  # fmt: skip
    sound = rng.normal(size=(30, 6))
    cut = regions(sound, 3)
    slow = []
    for place in range(GRID.places(30)):
        total = own.bias
        for p in range(GRID.patches):
            begin = place + GRID.step * (p // GRID.per_bin)
            best = max(float(cut[begin + d] @ own.patches[p]) for d in range(GRID.window))
            total += own.gains[p] * (best >= own.thresholds[p])
        slow.append(total)
    assert np.allclose(own.scores(sound), slow)


def test_a_word_is_learned_and_found_where_it_is() -> None:
    own = learn_patches(windows(60, 0, True), windows(300, 1, False), GRID, 30)
    with_word = [own.scores(each)[0] for each in windows(100, 2, True)]
    without = [own.scores(each)[0] for each in windows(100, 3, False)]
    assert np.mean(np.array(with_word)[:, None] > np.array(without)) > 0.97
    recording = np.concatenate([*windows(4, 4, False), *windows(1, 5, True), *windows(4, 6, False)])
    assert abs(int(own.scores(recording).argmax()) - 4 * GRID.frames) <= 3
    again = learn_patches(windows(60, 0, True), windows(300, 1, False), GRID, 30)
    assert (again.patches == own.patches).all()
    assert np.allclose(np.linalg.norm(own.patches, axis=1), 1)


def test_a_machine_on_the_same_patches_weighs_their_fits() -> None:
    """Each place's score is that of the slow sum; hard places of recordings without the word are shown again."""
    background = [np.concatenate(windows(4, seed, False)) for seed in range(8)]
    found = learn_word(windows(30, 0, True), background, GRID, candidates=8, again=1)
    machine, stumps = found["linear"], found["stumps"]
    assert (machine.patches == stumps.patches).all()
    assert (machine.rule, stumps.rule) == ("linear", "stumps")
    sound = windows(1, 9, True)[0]
    slow = machine.bias + sum(
        float(m * gain) for m, gain in zip(machine.features(sound)[0], machine.gains, strict=True)
    )
    assert np.allclose(machine.scores(sound)[0], slow)
    for own in found.values():
        with_word = np.array([own.scores(each)[0] for each in windows(60, 2, True)])
        without = np.array([own.scores(each)[0] for each in windows(60, 3, False)])
        assert np.mean(with_word[:, None] > without) > 0.95
    with pytest.raises(ModelError, match="10 frames or more, and there is none"):
        learn_word(windows(3, 0, True), [np.zeros((9, 6))], GRID)


def test_windows_and_sizes_that_cannot_be_are_refused() -> None:
    with pytest.raises(ModelError, match="with the word and without"):
        learn_patches([], windows(3, 0, False), GRID)
    with pytest.raises(ModelError, match="windows have 10 frames of 6 bands"):
        learn_patches([np.zeros((3, 6))], windows(3, 0, False), GRID)
    with pytest.raises(ModelError, match="at least 1"):
        PatchGrid(bands=0)
    with pytest.raises(ModelError, match="10 frames or more, got 4"):
        GRID.places(4)
    with pytest.raises(ModelError, match="9 patches of 6 bands"):
        PatchDetector(GRID, np.zeros((2, 18)), np.zeros(9), np.zeros(9), 0.0)
    with pytest.raises(ModelError, match="as many thresholds"):
        PatchDetector(GRID, np.zeros((9, 18)), np.zeros(8), np.zeros(9), 0.0)
