"""What a party has sent to be added up, kept from run to run.

A curator that has every vector may say that one is missing. The parties begin again, with the same data and fresh
noise, and it has two noisy sums, of which nobody booked the first; after n times the noise is sqrt(n) times smaller.
So what is sent is counted before it goes, under the group's file that all agreed on, and that file is good for few
sessions: who wants more has to agree on another one, and can see what the first has cost. Theorem 3.4 in
docs/theory/together.md.
"""

from dataclasses import dataclass
from pathlib import Path

from ppspeech.errors import PpspeechError, PrivacyError
from ppspeech.storage import SharedTable

MOST_SESSIONS = 3
"""With one group's file: the first, and two after somebody was gone."""

_COLUMNS = "agreement TEXT PRIMARY KEY, sessions INTEGER NOT NULL, sent INTEGER NOT NULL"
_FOUND = "SELECT sessions, sent FROM sums WHERE agreement = ?"


@dataclass(frozen=True, slots=True)
class Ledger:
    """Sessions in which something was sent, and vectors, under one agreement.

    Raises PrivacyError if there were too many sessions already; PpspeechError for a file that cannot be written.
    """

    table: SharedTable
    agreement: str

    def __post_init__(self) -> None:
        self._check(*self.spent)

    @classmethod
    def beside(cls, key: Path, agreement: str) -> "Ledger":
        """That of the party with this key: `alice.key` has `alice.sums.sqlite`."""
        path = key.with_suffix(".sums.sqlite")
        try:
            return cls(SharedTable(path, "sums", _COLUMNS, "what was sent to be added up"), agreement)
        except OSError as error:
            raise PpspeechError(
                f"cannot write {path}, where a party remembers what it has sent: {error.strerror}"
            ) from None

    @property
    def spent(self) -> tuple[int, int]:
        """How many sessions, and how many vectors were sent in them."""
        found = self.table.rows(_FOUND, self.agreement)
        return (found[0][0], found[0][1]) if found else (0, 0)

    def book(self, *, new_session: bool) -> None:
        """Count a vector that is about to be sent, the first of a session or another. Raises PrivacyError."""
        with self.table.transaction() as database:
            found = database.execute(_FOUND, (self.agreement,)).fetchone() or (0, 0)
            if new_session:
                self._check(*found)
            row = (self.agreement, found[0] + new_session, found[1] + 1)
            database.execute("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", row)

    def _check(self, sessions: int, sent: int) -> None:
        if sessions >= MOST_SESSIONS:
            raise PrivacyError(
                f"{sent} vectors were sent in {sessions} sessions with this group's file, and each spends what the "
                "terms state, whether its sum came back or not: agree on another file, whose epsilon leaves room for "
                f"that, or remove {self.table.path} if the data are new"
            )
