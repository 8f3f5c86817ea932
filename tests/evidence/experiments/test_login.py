"""Who tries to log in, and with what: the attempts of `ppspeech reproduce login`."""

from pathlib import Path

import numpy as np

from ppspeech.data import Utterance
from ppspeech.evidence.experiments.login import KINDS, attempts, by_digit


def test_attempts_are_of_the_right_people_with_the_right_digits() -> None:
    found = attempts(["ann", "ben", "cem"], 5, np.random.default_rng(0))
    assert {kind: len(tries) for kind, tries in found.items()} == dict.fromkeys(KINDS, 15)
    assert all(a.speaker == a.claimed and a.said == a.asked for a in found["miss_rate"])
    assert all(a.speaker != a.claimed and a.said == a.asked for a in found["impostor_rate"])
    assert all(a.speaker == a.claimed and a.said != a.asked for a in found["replay_rate"])
    assert len({a.asked for a in found["miss_rate"]}) > 10


def test_clips_are_by_person_and_digit_in_the_order_of_takes() -> None:
    words = ("zero", "one")
    spoken = [Utterance(Path(f"{w}{t}"), who, word=w, text=w, take=t) for who in "ab" for w in words for t in range(2)]
    assert by_digit(spoken)["b"] == {0: [Path("zero0"), Path("zero1")], 1: [Path("one0"), Path("one1")]}
