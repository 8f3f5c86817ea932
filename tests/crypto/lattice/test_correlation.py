"""Encrypted correlation against numpy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.crypto.lattice import (
    CorrelationCut,
    Evaluator,
    KeyHolder,
    Precision,
    client_correlation_finish,
    client_correlation_query,
    encode_signal,
    error_bound,
    plan_correlation,
    server_correlation_reply,
)
from ppspeech.errors import BadCiphertextError, PpspeechError, RangeError

KEY = KeyHolder()
EVALUATOR = Evaluator(KEY.public_key, KEY.coins)


def correlation(chosen: CorrelationCut, pattern: np.ndarray, signal: np.ndarray) -> np.ndarray:
    query = client_correlation_query(KEY, chosen, pattern)
    reply, server = server_correlation_reply(EVALUATOR, chosen, encode_signal(chosen, signal), query)
    client = client_correlation_finish(KEY, chosen, reply)
    assert (len(query), len(reply)) == (chosen.job.query_bytes, chosen.job.reply_bytes)
    scale = chosen.precision.result
    return scale.decode(scale.ring.to_signed(scale.ring.join(client, server)))


def check(chosen: CorrelationCut, seed: int = 0) -> None:
    generator = np.random.default_rng(seed)
    pattern = generator.normal(size=(chosen.channels, chosen.pattern))
    signal = generator.normal(size=(chosen.channels, chosen.signal))
    expected = sum(np.correlate(y, s, "valid") for s, y in zip(pattern, signal, strict=True))
    windows = np.lib.stride_tricks.sliding_window_view(np.abs(signal).sum(0), chosen.pattern).sum(1).max()
    terms = chosen.channels * chosen.pattern
    found = correlation(chosen, pattern, signal)
    assert found.shape == (chosen.offsets,)
    assert (
        np.abs(found - expected).max()
        <= error_bound(chosen.precision, np.abs(pattern).sum(), windows, terms, packed=1).total
    )


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 6), st.integers(1, 60), st.integers(0, 300), st.integers(0, 99))
def test_offsets_of_any_size(channels: int, pattern: int, more: int, seed: int) -> None:
    check(plan_correlation(channels, pattern, pattern + more), seed)


@pytest.mark.parametrize(("pattern", "signal"), [(1, 1), (1, 2049), (2048, 2050), (100, 5000), (7, 4096)])
def test_edges_of_the_stretches(pattern: int, signal: int) -> None:
    check(plan_correlation(1, pattern, signal))


@pytest.mark.parametrize("interleaved", [1, 2, 3, 5])
def test_every_interleaving_gives_the_same(interleaved: int) -> None:
    check(CorrelationCut(5, 90, 700, Precision(), interleaved))


def test_bad_sizes_and_values_are_refused() -> None:
    for sizes in ((0, 5, 9), (1, 0, 9), (1, 10, 9), (1, 2049, 5000)):
        with pytest.raises(PpspeechError, match="a pattern of 1 to 2048"):
            plan_correlation(*sizes)
    chosen = plan_correlation(2, 5, 20)
    with pytest.raises(PpspeechError, match="pattern must have shape"):
        client_correlation_query(KEY, chosen, np.zeros((5, 2)))
    with pytest.raises(PpspeechError, match="signal must have shape"):
        encode_signal(chosen, np.zeros((20, 2)))
    with pytest.raises(RangeError):
        client_correlation_query(KEY, chosen, np.full((2, 5), 65.0))
    query = client_correlation_query(KEY, chosen, np.zeros((2, 5)))
    other = plan_correlation(2, 5, 21)
    with pytest.raises(BadCiphertextError, match="other sizes"):
        server_correlation_reply(EVALUATOR, other, encode_signal(other, np.zeros((2, 21))), query)
