"""Encryptions of zero made ahead of time, each handed out once."""

from collections.abc import Callable

from gmpy2 import mpz

from ppspeech.crypto.paillier.cores import map_numbers
from ppspeech.crypto.single_use import SingleUse


class RandomizerPool(SingleUse[mpz]):
    """A store of randomizers: what makes an encryption slow, prepared while nobody waits.

    No randomizer serves twice: two ciphertexts with the same one would reveal the difference of their plaintexts.
    `make_many` gives so many fresh randomizers of up to `size` bytes, in this process or on several cores.
    """

    def __init__(self, make_many: Callable[[int], list[mpz]], size: int) -> None:
        super().__init__(make_many)
        self._size = size

    def __repr__(self) -> str:
        return f"RandomizerPool({len(self)} ready)"

    def _fresh(self, count: int, workers: int) -> list[mpz]:
        return map_numbers(lambda part: self._make(len(part)), range(count), size=self._size, workers=workers)
