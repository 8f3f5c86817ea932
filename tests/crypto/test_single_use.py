"""Things that may be used once are used once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from ppspeech.crypto.single_use import SingleUse
from ppspeech.errors import PpspeechError


def test_threads_never_share_an_item() -> None:
    numbers = count()
    store = SingleUse(lambda many: [next(numbers) for _ in range(many)])
    store.prepare(2000)
    with ThreadPoolExecutor(4) as pool:
        taken = [item for part in pool.map(lambda _: store.take(50), range(50)) for item in part]
    assert sorted(taken) == list(range(2500))
    assert len(store) == 0


def test_another_process_starts_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = count()
    store = SingleUse(lambda many: [next(numbers) for _ in range(many)])
    store.prepare(3)
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert len(store) == 0
    assert store.take(2) == [3, 4]


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(PpspeechError, match="-1"):
        SingleUse(lambda _: []).prepare(-1)
