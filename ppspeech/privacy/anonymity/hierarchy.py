"""How a value becomes a coarser one, step by step, until it says nothing."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ppspeech.arrays import Reals, Whole
from ppspeech.errors import PrivacyError
from ppspeech.privacy.anonymity.records import ANY, Coded, interval, number

Level = Callable[[str], str]

STEPS = 16  # intervals, at the most, that a usual hierarchy begins with


@dataclass(frozen=True)
class Hierarchy:
    """The levels above a value as it is; the last one, which says nothing, comes by itself.

    Levels are nested: what is equal on one is equal on the next, or else a coarser table could tell more.
    """

    levels: tuple[Level, ...] = ()

    @classmethod
    def groups(cls, *parents: Mapping[str, str]) -> "Hierarchy":
        """By tables from a value to its group, each coarser than the one before."""

        def level(parent: Mapping[str, str]) -> Level:
            def up(value: str) -> str:
                if value not in parent:
                    raise PrivacyError(f"the hierarchy has no group for {value!r:.40}; it knows {', '.join(parent)}")
                return parent[value]

            return up

        return cls(tuple(level(parent) for parent in parents))

    @classmethod
    def intervals(cls, *widths: float) -> "Hierarchy":
        """Of numbers: by intervals that begin at multiples of their width; each width is a multiple of the last.

        >>> [level("37") for level in Hierarchy.intervals(5, 20).levels]
        ['[35, 40)', '[20, 40)']
        """
        for narrow, wide in itertools.pairwise(widths):
            if wide <= narrow or abs(wide / narrow - round(wide / narrow)) > 1e-9:
                raise PrivacyError(f"widths must be multiples of the ones before, got {wide:g} after {narrow:g}")
        if any(not 0 < width < math.inf for width in widths):
            raise PrivacyError(f"widths must be > 0, got {', '.join(f'{width:g}' for width in widths)}")

        def level(width: float) -> Level:
            def up(value: str) -> str:
                real = number(value)
                if math.isnan(real):
                    raise PrivacyError(f"intervals are for numbers, got {value!r:.40}; give groups instead")
                start = math.floor(real / width + 1e-9) * width
                return interval(start, start + width, closed=False)

            return up

        return cls(tuple(level(width) for width in widths))

    @classmethod
    def usual(cls, column: Coded) -> "Hierarchy":
        """Of a column about which nothing else is known: intervals of 1, 2 or 5 and so on, doubled, for numbers."""
        if not column.ordered:
            return cls()
        ends = float(column.values[0]), float(column.values[-1])
        reach = ends[1] - ends[0]
        if not reach:
            return cls()
        power = 10.0 ** math.floor(math.log10(reach / STEPS))
        first = next(base * power for base in (1, 2, 5, 10) if base * power >= reach / STEPS)
        widths = (first * 2**times for times in range(5))
        return cls.intervals(*(width for width in widths if width < reach))


@dataclass(frozen=True, eq=False)
class Ladder:
    """A column on every level of its hierarchy, `values` being the V different ones that it has.

    Attributes:
        codes: of the rows, `(rows,)`, places among the values.
        texts: level by level, what each value becomes.
        groups: level by level, `(V,)`: which values become the same.
        losses: level by level, `(V,)`: (values that it may be - 1) / (V - 1) (Iyengar 2002).
    """

    codes: Whole
    texts: tuple[tuple[str, ...], ...]
    groups: tuple[Whole, ...]
    losses: tuple[Reals, ...]

    @classmethod
    def of(cls, column: Coded, hierarchy: Hierarchy) -> "Ladder":
        """Raises PrivacyError for levels that are not nested."""
        steps: list[Level] = [str, *hierarchy.levels, lambda value: ANY]  # noqa: ARG005
        texts = [tuple(step(value) for value in column.values) for step in steps]
        groups: list[Whole] = []
        losses: list[Reals] = []
        for each in texts:
            _, group, sizes = np.unique(each, return_inverse=True, return_counts=True)
            if groups and len(set(zip(groups[-1].tolist(), group.tolist(), strict=True))) > groups[-1].max() + 1:
                raise PrivacyError(f"levels must be nested: values that were equal differ again in {_few(each)}")
            groups.append(group.astype(np.int64))
            losses.append((sizes[group] - 1) / max(len(column.values) - 1, 1))
        return cls(column.codes, tuple(texts), tuple(groups), tuple(losses))

    def __len__(self) -> int:
        return len(self.texts)

    def column(self, level: int) -> tuple[str, ...]:
        """The rows on a level."""
        texts = self.texts[level]
        return tuple(texts[code] for code in self.codes.tolist())


def _few(texts: Sequence[str]) -> str:
    return ", ".join(sorted(set(texts))[:3])
