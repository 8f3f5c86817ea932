"""Masks and keys: uniform, never repeated, never from a seed.

Every statistical test here is a chi-square or a count at a false-alarm rate of 1e-6.
"""

import ast
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from gmpy2 import gcd, mpz
from scipy import stats

import ppspeech.crypto
from ppspeech.crypto.randomness import uniform_below, uniform_bytes, uniform_residues, uniform_unit
from ppspeech.errors import RangeError

FALSE_ALARM = 1e-6


def looks_uniform(values: np.ndarray, cells: int) -> bool:
    counts = np.bincount(values.astype(np.int64), minlength=cells)
    return bool(stats.chisquare(counts).pvalue > FALSE_ALARM)


@pytest.mark.parametrize("bits", [1, 8, 21, 40, 63, 64])
def test_words_are_uniform_at_both_ends(bits: int) -> None:
    words = uniform_residues(1 << 16, bits)
    width = min(bits, 8)
    assert int(words.max()) < 1 << bits
    assert looks_uniform(words & np.uint64((1 << width) - 1), 1 << width)
    assert looks_uniform(words >> np.uint64(bits - width), 1 << width)


def test_the_test_has_power() -> None:
    """A mask that misses one cell in 256, or is one part in eight narrower, is caught."""
    words = uniform_residues(1 << 16, 8)
    assert not looks_uniform(np.where(words == 0, 1, words), 256)
    assert not looks_uniform(words * np.uint64(224) // np.uint64(256), 256)


def test_neighboring_words_are_independent() -> None:
    words = uniform_residues(1 << 16, 4)
    assert looks_uniform(words[:-1:2] * np.uint64(16) + words[1::2], 256)


def test_no_two_calls_give_the_same_bytes() -> None:
    assert len({uniform_bytes(16) for _ in range(1000)}) == 1000


def draw(queue: "multiprocessing.Queue[bytes]") -> None:
    queue.put(uniform_bytes(32))


def test_forked_processes_draw_different_words() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=draw, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    drawn = {queue.get(timeout=60) for _ in children} | {uniform_bytes(32)}
    for child in children:
        child.join()
    assert len(drawn) == 4


def test_numbers_below_a_bound() -> None:
    drawn = np.array([int(uniform_below(mpz(10))) for _ in range(5000)])
    assert looks_uniform(drawn, 10)
    assert all(gcd(uniform_unit(mpz(30)), 30) == 1 for _ in range(50))


@pytest.mark.parametrize("bits", [0, 65, -1])
def test_impossible_widths_are_refused(bits: int) -> None:
    with pytest.raises(RangeError, match="1 to 64 bits"):
        uniform_residues(3, bits)


def test_empty_and_negative_counts() -> None:
    assert uniform_residues((0, 5)).shape == (0, 5)
    with pytest.raises(RangeError):
        uniform_bytes(-1)


def test_no_seeded_generator_in_the_room() -> None:
    for path in Path(ppspeech.crypto.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert "random" not in (*names, module.split(".")[0]), path.name
            assert "numpy.random" not in (*names, module), path.name
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                assert (node.value.id, node.attr) not in {("np", "random"), ("gmpy2", "random_state")}, path.name
