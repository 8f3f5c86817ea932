"""What a private training run writes into its checkpoint about privacy, and what the exporter reads there."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ppspeech.bundle import DataTouch
from ppspeech.errors import PrivacyError
from ppspeech.privacy import Accountant, Guarantee, Relation

KEY = "privacy"  # where it stands in a checkpoint


def counts_touch(relation: Relation) -> DataTouch:
    """For a release that computes nothing from the number of units: it is hidden, unless neighbors agree on it."""
    if relation.adjacency == "replace":
        return DataTouch("counts", "not_covered", f"under replace the number of {relation.unit}s is public")
    return DataTouch("counts", "untouched", "numbers and lengths enter what is released through noisy sums alone")


@dataclass(frozen=True, kw_only=True)
class PrivacyRecord:
    """The account of a run and what the run knows about its edges; plain JSON values in the checkpoint.

    `epsilon` is stated at `delta`, 0 for pure privacy. `touches` tell where the run looked, or did not look, at private
    data outside the account's events; what a run does not mention is exported as not covered.
    """

    account: Accountant
    delta: float
    touches: tuple[DataTouch, ...] = ()
    assumptions: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()

    @classmethod
    def of(cls, account: Accountant, guarantee: Guarantee, touches: Sequence[DataTouch] = ()) -> "PrivacyRecord":
        """The record of an account and of the guarantee that the run states from it."""
        terms: dict[str, Any] = {"delta": guarantee.delta}
        terms |= {"assumptions": guarantee.assumptions, "caveats": (guarantee.caveat,) if guarantee.caveat else ()}
        return cls(account=account, touches=tuple(touches), **terms)

    def guarantee(self) -> Guarantee:
        """What the account comes to; kind `none` if something in it is not private."""
        return self.account.guarantee(self.delta, assumptions=self.assumptions)

    def to_plain(self) -> dict[str, Any]:
        """Plain JSON values: what `checkpoint["privacy"]` holds."""
        account = self.account.to_json()
        return {
            **{name: account[name] for name in ("events", "unit", "adjacency")},
            "delta": self.delta,
            "touches": [asdict(touch) for touch in self.touches],
            "assumptions": list(self.assumptions),
            "caveats": list(self.caveats),
        }

    def write_(self, checkpoint: dict[str, Any]) -> None:
        """Enter the record into a checkpoint."""
        checkpoint[KEY] = self.to_plain()

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "PrivacyRecord":
        """Read what `to_plain` wrote, the last two fields optional; PrivacyError for anything else.

        Earlier records claim `float_safe`; the events say it now.
        """
        needed = {"events", "unit", "adjacency", "delta", "touches"}
        optional = {"assumptions", "caveats", "float_safe"}
        if not isinstance(plain, Mapping) or not needed <= set(plain) <= needed | optional:
            found = sorted(plain) if isinstance(plain, Mapping) else type(plain).__name__
            raise PrivacyError(
                f"a privacy record has the fields {sorted(needed)} (and {sorted(optional)}), got {found}"
            )
        account = Accountant.from_json({"format": 1, **{name: plain[name] for name in ("unit", "adjacency", "events")}})
        try:
            touches = tuple(DataTouch(**touch) for touch in plain["touches"])
        except TypeError:
            raise PrivacyError(f"a touch has a topic, a status and a note, got {plain['touches']!r:.200}") from None
        return cls(
            account=account,
            delta=plain["delta"],
            touches=touches,
            assumptions=tuple(map(str, plain.get("assumptions", ()))),
            caveats=tuple(map(str, plain.get("caveats", ()))),
        )
