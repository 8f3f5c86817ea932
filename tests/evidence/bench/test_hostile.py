"""`ppspeech bench hostile`: honest sessions finish, and hostile ones are there meanwhile."""

from ppspeech.evidence.bench.hostile import _serve


def test_honest_sessions_finish_beside_hostile_ones() -> None:
    seconds, failed, _ = _serve(2, 14)
    assert (len(seconds), failed) == (2, {})
