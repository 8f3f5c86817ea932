"""`ppspeech bench scale-session`, and what `scale-store` calls lost; all of it runs in tests/service/test_fleet.py."""

from collections import Counter

import pytest

from ppspeech.evidence.bench.scale_session import held_open
from ppspeech.evidence.bench.scale_store import Spent


def test_sessions_have_memory_of_their_own() -> None:
    sessions, server = held_open(2)
    assert len(sessions) == 2
    assert all(1e6 < each < server for each in sessions)


@pytest.mark.parametrize(
    ("counted", "outcomes", "lost", "unpaid"),
    [
        (10, {"answered": 10, "refused": 3}, 0, 0),
        (10, {"answered": 8, "interrupted": 2}, 0, 0),
        (10, {"answered": 8, "interrupted": 5}, 0, 0),  # some were interrupted before they were counted
        (10, {"answered": 8, "interrupted": 1}, 1, 0),
        (9, {"answered": 9, "refused": 4}, 1, 0),
        (10, {"answered": 11}, 0, 1),
        (12, {"answered": 12}, 0, 2),
    ],
)
def test_what_is_lost_and_what_is_not_paid(counted: int, outcomes: dict[str, int], lost: int, unpaid: int) -> None:
    spent = Spent(10, counted=counted, outcomes=Counter(outcomes))
    assert (spent.lost, spent.unpaid) == (lost, unpaid)
