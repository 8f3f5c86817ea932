"""A network of one hidden layer trained by two parties: one has the features, the other the labels.

Everything in between is shared: weights, activations, errors, gradients. From a public start, for a public number of
steps of gradient descent on all rows (x, y the label as a unit vector, both layers with a constant input of 1):

    z = x W,   a = max(z, 0),   s = a V                      forward
    e = clip(s - y, ±1)                                      the gradient of Huber's loss
    g = (e V') [z > 0]                                       backward
    V ← clip(V - rate/rows Σ a' e, ±cap),   W ← clip(W - rate/rows Σ x' g, ±cap)

Products of shares are sums of what each party multiplies by itself and of cross terms by tables; products are brought
back to their scale by dropping bits of shares, and to their ring by `widen`. Clipping keeps every value in a range that
the ring holds: the proof is in `TrainingTerms.bits`. After the last step the weights are opened, to both, and nothing
was before. The result is that of plain descent but for rounding (`descend`). Limit 3.9 in docs/theory/together.md.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    LARGEST_RING,
    Cost,
    Shared,
    SharedBits,
    ShareEngine,
    blank,
    concatenate,
    cross_products,
    record,
    round_local,
    share_input,
    widen,
)
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import RangeError
from ppspeech.protocols.networks.lines import Polyline
from ppspeech.protocols.party import Party, register_protocol

FEATURE_BITS, VALUE_BITS, WEIGHT_BITS = 8, 12, 14
"""After the point of features, of activations and errors, and of weights."""
RATE_BITS = 16
"""After the point of the rate of a row."""
MOST = {"rows": 4_096, "features": 512, "hidden": 256, "classes": 64, "steps": 10_000}
MOST_PRODUCTS = 1 << 21
CLIP = Polyline((-1.0, 1.0), (1, -1), 0, 0.0)
"""clip(u, ±1) + 1."""


@dataclass(frozen=True)
class TrainingTerms:
    """What both agree on.

    Attributes:
        rows: of the table, in the same order at both.
        features: numbers of a row.
        classes: labels are 0 to classes - 1.
        hidden: units of the hidden layer.
        steps: of gradient descent.
        rate: of learning.
        radius: rows are shortened to it.
        cap: what weights are clipped to.
        seed: of the public start.

    Raises RangeError for sizes that this party does not agree to.
    """

    rows: int
    features: int
    classes: int
    hidden: int = 4
    steps: int = 20
    rate: float = 1.0
    radius: float = 4.0
    cap: float = 4.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            given = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or not 1 + (name == "classes") <= given <= most:
                raise RangeError(f"{name} must lie in 1..{most}, and there are two classes or more, got {given!r}")
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**31:
            raise RangeError(f"a seed is a whole number below 2^31, got {self.seed!r}")
        for name, least, below in (("rate", 0.0, 64.0), ("radius", 0.0, 64.0), ("cap", 1.0, 64.0)):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, int | float) or not least < given <= below:
                raise RangeError(f"the {name} must lie in ({least:g}, {below:g}], got {given!r}")
        if self.step_size < 1:
            raise RangeError(f"a rate of {self.rate:g} for {self.rows} rows is below 2^-{RATE_BITS}: raise it")
        products = self.rows * self.hidden * max(self.features + 1, self.classes)
        if products > MOST_PRODUCTS:
            raise RangeError(f"a step has {products:,} products a layer, of at most {MOST_PRODUCTS:,}: use fewer rows")
        if self.bits > LARGEST_RING:
            raise RangeError(f"values of such networks need {self.bits} bits, of at most {LARGEST_RING}: lower the cap")

    @property
    def step_size(self) -> int:
        """rate / rows, in units of 2^-RATE_BITS."""
        return round(float(self.rate) / self.rows * 2.0**RATE_BITS)

    @property
    def bits(self) -> int:
        """Of the ring: the largest product before it is brought back to scale, and two bits.

        |z| <= (radius + 1) cap √(features + 1), as a column has a length of at most cap √(features + 1);
        |s| <= (hidden |z| + 1) cap; |e| <= 1; |g| <= classes cap; then gradients times the step.
        """
        z = (self.radius + 1) * self.cap * math.sqrt(self.features + 1) + 1
        s = (self.hidden * z + 1) * self.cap + 1
        g = self.classes * self.cap + 1
        scaled = self.step_size
        largest = max(
            z * 2 ** (FEATURE_BITS + WEIGHT_BITS),
            s * 2 ** (VALUE_BITS + WEIGHT_BITS),
            g * 2 ** (VALUE_BITS + WEIGHT_BITS),
            self.rows * z * scaled * 2 ** (2 * VALUE_BITS),
            self.rows * (self.radius + 1) * g * scaled * 2 ** (FEATURE_BITS + VALUE_BITS),
        )
        return math.ceil(math.log2(float(largest))) + 3

    @property
    def ring(self) -> Ring:
        """Of all shares."""
        return Ring(self.bits)

    @property
    def feature_width(self) -> int:
        """Bits of a feature, sign included."""
        return math.ceil(math.log2(max(self.radius, 1.0))) + FEATURE_BITS + 2

    def start(self) -> tuple[Reals, Reals]:
        """The public weights that training starts from, `(features + 1, hidden)` and `(hidden + 1, classes)`."""
        rng = np.random.default_rng(self.seed)
        first = rng.normal(size=(self.features + 1, self.hidden)) / math.sqrt(self.features + 1)
        second = rng.normal(size=(self.hidden + 1, self.classes)) / math.sqrt(self.hidden + 1)
        return _rounded(first), _rounded(second)

    def clipped(self, table: Any) -> Reals:
        """Rows `(rows, features)` within the radius. Raises RangeError for others, or not finite."""
        given = np.asarray(table, np.float64)
        if given.shape != (self.rows, self.features) or not np.isfinite(given).all():
            raise RangeError(f"the terms say ({self.rows}, {self.features}) finite numbers, got {given.shape}")
        norm = np.linalg.norm(given, axis=1, keepdims=True)
        return np.asarray(given * (self.radius / np.maximum(norm, self.radius)))

    def checked(self, labels: Any) -> NDArray[np.int64]:
        """Labels `(rows,)`. Raises RangeError for others."""
        given = np.asarray(labels)
        if given.shape != (self.rows,) or given.dtype.kind not in "iu" or not (0 <= given.min() <= given.max()):
            raise RangeError(f"the terms say {self.rows} labels, whole numbers from 0, got {given.dtype} {given.shape}")
        if given.max() >= self.classes:
            raise RangeError(f"labels lie in 0..{self.classes - 1}, got {given.max()}")
        return given.astype(np.int64)


network_training = register_protocol(
    "network_training",
    functionality="a network of one hidden layer, after a public number of steps of gradient descent on one party's "
    "features and the other's labels, to both",
    leakage="sizes alone: rows, features, classes, units; what the trained network tells of both parties' data is not "
    "bounded, as nothing is added to it",
    assumptions="both follow the protocol: one that does not may shift what is trained; checked transfers, "
    "Diffie-Hellman on ed25519, AES a random permutation, SHA-256 an oracle",
    terms=TrainingTerms,
)

Trained = dict[str, list[list[float]]]


@network_training.party("labels")
def teach(party: Party, labels: list[int], /, **terms: Any) -> Trained:
    """The program of who has the labels, `(rows,)` numbers from 0."""
    agreed = TrainingTerms(**terms)
    given = agreed.checked(labels)
    hot = np.zeros((agreed.rows, agreed.classes), np.uint64)
    hot[np.arange(agreed.rows), given] = 1 << VALUE_BITS
    return _train(party, Side.FIRST, agreed, hot)


@network_training.party("features")
def bring(party: Party, table: list[list[float]], /, **terms: Any) -> Trained:
    """The program of who has the features, `(rows, features)`."""
    agreed = TrainingTerms(**terms)
    rows = np.rint(agreed.clipped(table) * 2**FEATURE_BITS).astype(np.int64)
    constant = np.full((agreed.rows, 1), 1 << FEATURE_BITS, np.int64)
    return _train(party, Side.SECOND, agreed, np.concatenate((rows, constant), axis=1).view(np.uint64))


def _train(party: Party, side: Side, terms: TrainingTerms, own: Residues) -> Trained:
    setup = PairSetup.agree(party.channel, side)
    with setup.session(party.channel):
        steps = (np.rint(each * 2**WEIGHT_BITS).astype(np.int64).view(np.uint64) for each in terms.start())
        shares = [each if side is Side.FIRST else np.zeros_like(each) for each in steps]
        for _ in range(terms.steps):
            engine = ShareEngine(party.channel, setup, step_cost(terms))
            with engine.in_flights():
                first, second = (Shared(engine, each, terms.ring) for each in shares)
                shares = [each.own for each in take_step(terms, own, first, second)]
        engine = ShareEngine(party.channel, setup, Cost())
        opened = []
        for share in shares:
            weights = Shared(engine, share, terms.ring)
            to_each = [weights.open_to(receiver) for receiver in (Side.FIRST, Side.SECOND)]
            (found,) = (each for each in to_each if each is not None)
            opened.append(np.ldexp(terms.ring.to_signed(found).astype(np.float64), -WEIGHT_BITS).tolist())
    return {"hidden": opened[0], "outputs": opened[1]}


@lru_cache(maxsize=16)
def step_cost(terms: TrainingTerms) -> Cost:
    """Of one step."""

    def program(engine: ShareEngine) -> None:
        first = Shared(engine, blank(terms.features + 1, terms.hidden), terms.ring)
        second = Shared(engine, blank(terms.hidden + 1, terms.classes), terms.ring)
        with engine.in_flights():
            take_step(terms, blank(terms.rows, terms.features + 1), first, second)

    return record(program)


def take_step(terms: TrainingTerms, own: Residues, first: Shared, second: Shared) -> tuple[Shared, Shared]:
    """Forward, backward and the update, on shares. `own`: features with a constant, `(rows, features + 1)`, of the
    second party; labels as unit vectors, `(rows, classes)`, of the first. Returns both layers' weights.
    """
    engine, ring = first.engine, terms.ring
    table = own if not engine.is_first else None
    hot = share_input(engine, Side.FIRST, own if engine.is_first else None, (terms.rows, terms.classes), ring)
    z = _scaled(_by_features(terms, table, first, transposed=False), FEATURE_BITS + WEIGHT_BITS - VALUE_BITS)
    above = ~z.is_negative()
    ones = engine.public(np.full((terms.rows, 1), 1 << VALUE_BITS, np.uint64))
    a = concatenate([above * z, Shared(engine, ones, ring)], axis=1)
    s = _scaled(_matrix_product(a, second), WEIGHT_BITS)
    one = Shared(engine, engine.public(np.full(s.shape, 1 << VALUE_BITS, np.uint64)), ring)
    e = CLIP.of_shares(s - hot, ring, VALUE_BITS) - one
    back = _matrix_product(e, Shared(engine, second.own[:-1].T.copy(), ring))
    g = SharedBits(engine, above.own) * _scaled(back, WEIGHT_BITS)
    steps = (
        (first, _by_features(terms, table, g, transposed=True), FEATURE_BITS),
        (second, _matrix_product(Shared(engine, a.own.T.copy(), ring), e), VALUE_BITS),
    )
    new = []
    for weights, gradient, bits in steps:
        moved = _scaled(terms.step_size * gradient, RATE_BITS + bits + VALUE_BITS - WEIGHT_BITS)
        new.append(_capped(weights - moved, terms.cap))
    return new[0], new[1]


def _rounded(weights: Reals) -> Reals:
    return np.asarray(np.rint(weights.clip(-1, 1) * 2**WEIGHT_BITS) / 2**WEIGHT_BITS)


def _by_features(terms: TrainingTerms, table: Residues | None, other: Shared, *, transposed: bool) -> Shared:
    """The second party's features, or their transpose, times shares: what each has is multiplied by itself, but for the
    features times the first party's share. `table`: None for the first party.
    """
    engine, ring, size = other.engine, other.ring, (terms.rows, terms.features + 1)
    rows, inner = size[::-1] if transposed else size
    columns = other.shape[1]
    if table is None:
        crossed = np.broadcast_to(other.residues, (rows, inner, columns))
        local: Residues = np.zeros((rows, columns), np.uint64)
    else:
        turned = table.T.copy() if transposed else table
        crossed = np.broadcast_to(turned[..., None], (rows, inner, columns))
        local = turned @ other.own
    found = cross_products(engine, crossed.reshape(-1), ring, terms.feature_width)
    total: Residues = found.reshape(rows, inner, columns).sum(axis=1, dtype=np.uint64)
    return Shared(engine, ring.reduce(local + total), ring)


def _matrix_product(left: Shared, right: Shared) -> Shared:
    """Of shares in one ring, which holds it."""
    engine, ring = left.engine, left.ring
    rows, inner, columns = *left.shape, right.shape[1]
    one = np.broadcast_to(left.residues[..., None], (rows, inner, columns)).reshape(-1)
    other = np.broadcast_to(right.residues, (rows, inner, columns)).reshape(-1)
    pairs = np.concatenate([one, other] if engine.is_first else [other, one])
    crossed = cross_products(engine, pairs, ring).reshape(2, rows, inner, columns)
    total = left.own @ right.own + crossed.sum(axis=(0, 2), dtype=np.uint64)
    return Shared(engine, ring.reduce(total), ring)


def _scaled(values: Shared, bits: int) -> Shared:
    """Over 2^bits, in the same ring."""
    return widen(round_local(values, bits), values.ring)


def _capped(weights: Shared, cap: float) -> Shared:
    """Within ±cap."""
    engine, ring = weights.engine, weights.ring
    lines = Polyline((-cap, cap), (1, -1), 0, 0.0)
    level = Shared(engine, engine.public(np.full(weights.shape, round(cap * 2**WEIGHT_BITS), np.uint64)), ring)
    return lines.of_shares(weights, ring, WEIGHT_BITS) - level


def descend(terms: TrainingTerms, table: Any, labels: Any) -> tuple[Reals, Reals]:
    """The same in the clear, in doubles: both layers' weights."""
    x = np.concatenate((terms.clipped(table), np.ones((terms.rows, 1))), axis=1)
    hot = np.eye(terms.classes)[terms.checked(labels)]
    first, second = terms.start()
    for _ in range(terms.steps):
        z = x @ first
        a = np.concatenate((np.maximum(z, 0), np.ones((terms.rows, 1))), axis=1)
        e = np.clip(a @ second - hot, -1, 1)
        g = (e @ second[:-1].T) * (z > 0)
        rate = terms.rate / terms.rows
        first, second = (
            np.clip(first - rate * x.T @ g, -terms.cap, terms.cap),
            np.clip(second - rate * a.T @ e, -terms.cap, terms.cap),
        )
    return first, second


def predict(weights: tuple[Reals, Reals], table: Reals) -> NDArray[np.int64]:
    """The classes that a trained network gives rows `(rows, features)`."""
    ones = np.ones((len(table), 1))
    hidden = np.maximum(np.concatenate((table, ones), axis=1) @ weights[0], 0)
    found: NDArray[np.int64] = (np.concatenate((hidden, ones), axis=1) @ weights[1]).argmax(axis=1)
    return found
