"""A text that clients search for patterns of their own: folded and laid out before the first client comes.

A client learns what it asked for: whether, how many, which lines, or where. One that does not keep to the protocol can
ask about another pattern of the same size, and so reads as many bits of the text as an answer has. The usual budget is
a tenth of the text in such bits, but ten queries at the least: ten answers of `places`, a bit a symbol each, can hold
all of it, and who serves them must trust clients with that.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from pathlib import Path

from ppspeech.arrays import Whole
from ppspeech.channel import Channel
from ppspeech.crypto.transfer import PairSetup, Side
from ppspeech.errors import BundleError, PpspeechError
from ppspeech.protocols.text import TELLS, Tells, alphabet_of, search
from ppspeech.service.offer import Offer
from ppspeech.service.requests import Ask, Request
from ppspeech.service.server.book import Visitor
from ppspeech.service.server.session import Handler
from ppspeech.service.store import PostgresStore
from ppspeech.service.tasks.text import Texts, receive_wanted
from ppspeech.storage import atomic_write

KNOWN_PART = 10
LEAST_BUDGET = 10
LINES, WIDTHS = 64, 8
"""What the numbers of lines, and of their symbols, are rounded up to a multiple of."""
KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class TextDeployment:
    """How a text is served. `tells`: the most that a client may learn: found, count, lines or places."""

    alphabet: str = "letters"
    tells: Tells = "lines"

    def __post_init__(self) -> None:
        alphabet_of(self.alphabet)
        if self.tells not in TELLS:
            raise BundleError(f"a text tells {', '.join(TELLS)}, got {self.tells!r}")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text that was read."""

    lines: list[str]

    @classmethod
    def read(cls, path: Path) -> "TextFile":
        """From a file. Raises PpspeechError for one that cannot be read as text."""
        try:
            return cls(path.read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError) as error:
            raise PpspeechError(f"cannot read the text {path}: {error}") from None


@dataclass(frozen=True, eq=False)
class ServedText:
    """Everything a session needs; made before the server forks, shared by all sessions. `rows`: `(lines, width)`."""

    offer: Offer[Texts]
    rows: Whole
    usual_budget: int

    @classmethod
    def of(
        cls,
        name: str,
        lines: list[str],
        folder: Path,
        deployment: TextDeployment | None = None,
        store: PostgresStore | None = None,
    ) -> "ServedText":
        """Fold and lay out the lines of a text. `folder`: keeps a key, under which the text has the same name whenever
        it is served, and which tells nobody what it is; servers with one `store` have one such key, and so one budget.
        Raises PpspeechError for an empty text, RangeError for one that is too long.
        """
        chosen = deployment or TextDeployment()
        letters = alphabet_of(chosen.alphabet)
        lengths = [len(letters.fold(line)) for line in lines]
        if not sum(lengths):
            raise PpspeechError(f"{name} has no text to search")
        width = -(-(max(lengths) + 1) // WIDTHS) * WIDTHS
        terms = Texts(chosen.alphabet, -(-len(lines) // LINES) * LINES, width, chosen.tells)
        rows = letters.rows(lines, width, terms.lines)
        key = _kept_key(folder) if store is None else store.seal.key_for("texts")
        told = hmac.digest(key, f"{chosen.alphabet}\n".encode() + rows.tobytes(), hashlib.sha256).hex()
        task = f"Searches a text for patterns; tells {', '.join(terms.offered)}."
        privacy = "The text stays here. Answers tell of it what they say, and no noise is added to them."
        answer = {"found": 1, "count": len(lines).bit_length(), "lines": len(lines), "places": sum(lengths)}
        usual = sum(lengths) * letters.bits // (KNOWN_PART * answer[chosen.tells])
        return cls(Offer(name, task, told, privacy, terms), rows, max(LEAST_BUDGET, usual))

    def meet(self, channel: Channel, visitor: Visitor) -> dict[Ask, Handler]:  # noqa: ARG002
        """Agree on transfers with one client, which is the first party: it offers tables, and we look up in them."""
        setup = PairSetup.agree(channel, Side.SECOND)

        def answer(record: Channel, _: Request) -> None:
            shape = receive_wanted(record, self.offer.terms)
            with setup.session(record):
                search(record, setup, shape, self.rows)

        return {Ask.SEARCH: Handler(answer)}


def _kept_key(folder: Path) -> bytes:
    path = folder / "text.key"
    if not path.exists():
        with atomic_write(path, private=True) as temporary:
            temporary.write_bytes(secrets.token_bytes(KEY_BYTES))
    return path.read_bytes()
