"""Numbers read behind a reply whose encryption of zero hides nothing.

The second part of a reply is Σ w_j X^j a_t + a u + e, rounded to 32 bits. Its receiver knows every a_t, having sent the
seeds. Where a u is small, the w_j are the short solution of a lattice (Kannan 1987), found by lattice reduction. The
attacker here is given all numbers of a polynomial but a few, which it has to find: whoever could find all of them from
nothing could do that too, and it takes a tenth of a second.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sympy import ZZ
from sympy.polys.matrices import DomainMatrix

from ppspeech.arrays import Residues
from ppspeech.crypto.lattice import KEPT_BITS, LatticeParameters, expand_seeds

UNKNOWN = 4
"""Numbers to be found of each polynomial."""
EQUATIONS = 12  # coefficients that are looked at: 32 bits each, for 4 x 28 unknown
ROUNDED = 1 << 17  # what rounding takes away, and a small a u with it


def unknown_places(polynomials: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Up to `UNKNOWN` places (term, index) of numbers that are not zero, of `(terms, degree)`."""
    return [(int(term), int(index)) for term, index in np.argwhere(polynomials)[:UNKNOWN]]


def find_numbers(
    ring: LatticeParameters,
    seeds: Sequence[bytes],
    second: Residues,
    known: NDArray[np.int64],
    places: Sequence[tuple[int, int]],
) -> list[int]:
    """What the attacker takes the numbers at `places` for. `seeds`: one a term. `second`: the reply's second part,
    `(degree,)`, 32 bits each. `known`: all numbers, `(terms, degree)`; those at `places` are not looked at.
    """
    prime, rows = ring.prime, range(ring.degree - EQUATIONS, ring.degree)
    factors = expand_seeds(list(seeds), ring).astype(object)
    others = known.copy()
    for place in places:
        others[place] = 0
    given = [(int(term), int(index), int(others[term, index])) for term, index in np.argwhere(others)]

    def turned(term: int, index: int, row: int) -> int:
        """Coefficient `row` of X^index a_term; indices are below the degree, so X^degree = -1 never comes twice."""
        return int(factors[term][row - index]) if row >= index else -int(factors[term][row - index + ring.degree])

    values = [
        round(int(second[row]) * prime / 2**KEPT_BITS)
        - sum(number * turned(term, index, row) for term, index, number in given)
        for row in rows
    ]
    size = EQUATIONS + len(places) + 1
    basis = [[0] * size for _ in range(size)]
    for at in range(EQUATIONS):
        basis[at][at] = prime
    for at, (term, index) in enumerate(places):
        basis[EQUATIONS + at][:EQUATIONS] = [turned(term, index, row) % prime for row in rows]
        basis[EQUATIONS + at][EQUATIONS + at] = 1
    basis[-1][:EQUATIONS], basis[-1][-1] = [value % prime for value in values], ROUNDED
    reduced = [[int(value) for value in row] for row in DomainMatrix(basis, (size, size), ZZ).lll().to_list()]
    ends = [row for row in reduced if abs(row[-1]) == ROUNDED]
    if not ends:
        return [0] * len(places)
    best = min(ends, key=lambda row: sum(value * value for value in row))
    return [-value if best[-1] > 0 else value for value in best[EQUATIONS:-1]]
