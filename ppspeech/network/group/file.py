"""A group of parties that find each other from one file: who they are, where they listen, and whom each trusts.

    protocol: train_descent
    hub: charlie                  # all others talk to charlie; leave it out and everyone talks to everyone
    parties:
      charlie: {role: curator, address: "127.0.0.1:7000", pin: 9f...}
      alice: {role: party, pin: 3b...}
      bob: {role: party, pin: c0...}
    params: {epsilon: 1.0}

All parties hold the same file, which is public; a party that holds another one is refused. Each keeps its certificate
and key to itself, and is known to the others by the certificate's fingerprint.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml  # type: ignore[import-untyped]

from ppspeech.errors import PpspeechError
from ppspeech.network.address import Address
from ppspeech.network.channel.hello import NAME, canonical
from ppspeech.network.tls.context import ClientTls

if TYPE_CHECKING:
    from ppspeech.network.group.identity import Identity

MOST_BYTES = 2**20
FIELDS = {"protocol", "hub", "parties", "params", "wait_seconds"}


@dataclass(frozen=True, slots=True)
class Member:
    """One party of a group. `pin`: SHA-256 fingerprint of its certificate, 64 hexadecimal digits. `address`: where it
    listens; None for one that only connects.
    """

    name: str
    role: str
    pin: str
    address: Address | None = None


@dataclass(frozen=True)
class Group:
    """Who takes part in what, the same for all; `PpspeechError` if they cannot meet.

    `members` are in order: where there is no `hub` that all others talk to, the earlier of two listens. `wait_seconds`:
    how long those who are there wait for those who are late.
    """

    protocol: str
    members: tuple[Member, ...]
    hub: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    wait_seconds: float = 60.0

    def __post_init__(self) -> None:
        names = self.names
        if len(names) < 2 or len(set(names)) < len(names):
            raise PpspeechError(f"a group has two parties or more, each with a name of its own, got {list(names)}")
        for name in (self.protocol, *names, *(member.role for member in self.members)):
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise PpspeechError(f"names and roles are up to 64 of a-z, 0-9, '_', '.', '-', got {name!r:.80}")
        if self.hub is not None and self.hub not in names:
            raise PpspeechError(f"the hub must be one of the parties {', '.join(names)}, got {self.hub!r:.80}")
        if not isinstance(self.wait_seconds, int | float) or not 0 < self.wait_seconds <= 86400:
            raise PpspeechError(f"wait_seconds must be in (0, 86400], got {self.wait_seconds!r:.80}")
        for member in self.members:
            try:
                ClientTls(pin=member.pin)
            except ValueError as error:
                raise PpspeechError(
                    f"the pin of {member.name} is what `ppspeech party --make` prints for its certificate: {error}"
                ) from None
            if member.address is None and any(self.listens(member.name, other) for other in self.others(member.name)):
                raise PpspeechError(f"{member.name} is waited for by others and needs an address, HOST:PORT")
        pins = [member.pin for member in self.members]
        if len(set(pins)) < len(pins):
            raise PpspeechError("two parties have the same pin: each needs a certificate of its own")
        try:
            canonical(dict(self.params))
        except ValueError as error:
            raise PpspeechError(f"params of the group: {error}") from None

    @property
    def names(self) -> tuple[str, ...]:
        """Of all members, in order."""
        return tuple(member.name for member in self.members)

    @property
    def digest(self) -> str:
        """Of everything above: two parties whose files differ in anything that matters do not meet."""
        parties = [[m.name, m.role, m.pin, str(m.address or "")] for m in self.members]
        plain = {"protocol": self.protocol, "hub": self.hub, "params": dict(self.params), "parties": parties}
        return hashlib.sha256(canonical(plain)).hexdigest()

    def member(self, name: str) -> Member:
        """The member called `name`. Raises `PpspeechError` if there is none."""
        for member in self.members:
            if member.name == name:
                return member
        raise PpspeechError(f"no party {name!r} in this group; there are {', '.join(self.names)}")

    def check_identity(self, name: str, identity: "Identity") -> None:
        """Refuse a certificate that is not the one pinned for `name`."""
        if identity.pin != self.member(name).pin:
            raise PpspeechError(f"the certificate {identity.certificate} is not the one pinned for {name} in the group")

    def with_role(self, role: str) -> tuple[str, ...]:
        """The names of those who play a role, in order."""
        return tuple(member.name for member in self.members if member.role == role)

    def others(self, name: str) -> tuple[str, ...]:
        """Whom `name` talks to, in order."""
        if self.hub is None or name == self.hub:
            return tuple(other for other in self.names if other != name)
        return (self.hub,)

    def listens(self, name: str, other: str) -> bool:
        """Whether, of two who talk, `name` is the one who listens."""
        if self.hub is not None:
            return name == self.hub
        return self.names.index(name) < self.names.index(other)

    def to_yaml(self) -> str:
        """The file."""
        parties = {
            m.name: {"role": m.role, "pin": m.pin} | ({"address": str(m.address)} if m.address else {})
            for m in self.members
        }
        plain: dict[str, Any] = {"protocol": self.protocol, "parties": parties, "params": dict(self.params)}
        if self.hub is not None:
            plain["hub"] = self.hub
        plain["wait_seconds"] = self.wait_seconds
        return str(yaml.safe_dump(plain, sort_keys=False))

    @classmethod
    def from_yaml(cls, text: str) -> "Group":
        """Read what `to_yaml` wrote, or a person. Raises `PpspeechError` for anything that is no group."""
        try:
            plain = yaml.load(text, _PlainLoader)  # noqa: S506 - it is a SafeLoader
        except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
            raise PpspeechError(f"the group's file is no YAML: {error}") from None
        _check_keys("the group's file", plain, ("protocol", "parties"), FIELDS)
        parties, params = plain["parties"], plain.get("params") or {}
        if not isinstance(parties, dict) or not isinstance(params, dict):
            raise PpspeechError("parties and params are mappings: NAME: {role: ..., pin: ..., address: ...}")
        members = tuple(_read_member(name, entry) for name, entry in parties.items())
        return cls(plain["protocol"], members, plain.get("hub"), params, plain.get("wait_seconds", 60.0))

    @classmethod
    def load(cls, path: Path) -> "Group":
        """Read a file. Raises `PpspeechError` if it cannot be read or is no group."""
        try:
            if path.stat().st_size > MOST_BYTES:
                raise PpspeechError(f"{path} is larger than {MOST_BYTES} bytes: no group's file is")
            return cls.from_yaml(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PpspeechError(f"cannot read the group's file {path}: {error}") from None


class _PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML without aliases: a few lines of them stand for more values than there is memory."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not read: write out what they stand for")
        return super().compose_node(parent, index)


def _check_keys(what: str, plain: Any, needed: Sequence[str], known: Collection[str]) -> None:
    """Refuse a mapping with keys too few or too many, by their names."""
    example = "`ppspeech party PROTOCOL --example` prints a file to start from"
    if not isinstance(plain, dict):
        raise PpspeechError(f"{what} has the keys {', '.join(sorted(known))}, got {plain!r:.80}; {example}")
    if missing := [key for key in needed if key not in plain]:
        raise PpspeechError(f"{what} lacks {', '.join(missing)}; {example}")
    if unknown := [str(key) for key in plain if key not in known]:
        raise PpspeechError(f"{what} has an unknown key {unknown[0]!r:.80}: known are {', '.join(sorted(known))}")


def _read_member(name: Any, entry: Any) -> Member:
    _check_keys(f"party {name!r:.80} of the group's file", entry, ("role", "pin"), {"role", "pin", "address"})
    address = None if entry.get("address") is None else Address.parse(str(entry["address"]))
    return Member(name, entry["role"], str(entry["pin"]).replace(":", "").lower(), address)
