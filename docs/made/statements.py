"""`{protocols}`: what every listed protocol states of itself."""

import re

from made.markdown import Written, plain, table
from ppspeech.cli.party import ROOMS, protocols
from ppspeech.protocols import PROTOCOLS, RegisteredProtocol

HARD = ("checked transfers", "ring", "one-more", "Diffie", "AES", "SHA", "decisional", "oblivious transfer")
"""How a clause begins that is about what nobody can compute, not about what people do."""


class Protocols(Written):
    """A table over all protocols: what is computed for whom, what is not hidden, who may cheat."""

    def text(self) -> str:
        """The table, in the order of names."""
        heads = ["protocol and parties", "computes", "not hidden", "who may cheat", "rests on"]
        return table(heads, [row(protocol) for protocol in listed()])


def listed() -> list[RegisteredProtocol]:
    """Every protocol that `ppspeech party` lists."""
    for room in ROOMS:
        PROTOCOLS.look_in(room)
    return [PROTOCOLS[name] for name in protocols()]


def row(protocol: RegisteredProtocol) -> list[str]:
    """What one protocol states; nothing is left out."""
    clauses = split(protocol.assumptions)
    hard = [clause for clause in clauses if clause.startswith(HARD)]
    people = [clause for clause in clauses if clause not in hard]
    named = f"`{protocol.name}`: {', '.join(protocol.parties)}"
    said = [protocol.functionality, protocol.leakage, joined(people), joined(hard)]
    return [named, *map(plain, said)]


def joined(clauses: list[str]) -> str:
    """One statement again.

    >>> joined(["both follow the protocol", "nobody colludes", "A keeper that cheats learns nothing"])
    'both follow the protocol; nobody colludes. A keeper that cheats learns nothing'
    """
    return "".join(f"{'. ' if clause[:1].isupper() else '; '}{clause}" for clause in clauses)[2:]


def split(assumptions: str) -> list[str]:
    """The clauses of a statement.

    >>> split("both follow the protocol. Diffie-Hellman on ed25519, AES a random permutation; nobody colludes")
    ['both follow the protocol', 'Diffie-Hellman on ed25519, AES a random permutation', 'nobody colludes']
    """
    return re.split(r"; |\. (?=[A-Z])", assumptions)
