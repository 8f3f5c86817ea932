"""Where sessions keep what they share: a file of this machine, or a database that servers share."""

from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.service.store.address import SCHEMES, StoreAddress
from ppspeech.service.store.postgres import PostgresStore
from ppspeech.service.store.seal import StoreSeal
from ppspeech.storage import SharedTable, Table

Place = Path | PostgresStore
"""A file of SQLite, which its permissions close, or a database, which is given nothing that it could read."""


def is_address(text: str) -> bool:
    """Whether somebody means a database, and not a folder."""
    return text.startswith(("@", *(f"{scheme}:" for scheme in SCHEMES)))


def open_store(address: str | None, key: str | Path | None) -> PostgresStore | None:
    """The database at an address, under the key in a file; None without an address.

    Raises PpspeechError for an address or a key that is none, one without the other, or a database that cannot be used.
    """
    if address is None:
        if key is not None:
            raise PpspeechError("a --store-key is for what a database keeps: give --store postgresql://… too")
        return None
    if not is_address(address):
        raise PpspeechError(
            f"a store is postgresql://USER@HOST:PORT/DATABASE or @FILE, got {address!r:.80}; a folder of this machine "
            "is given by --state, and galleries of others are kept with --galleries"
        )
    read = StoreAddress.parse(address)
    if key is None:
        raise PpspeechError(
            "what a database keeps is sealed under a key that the servers hold: give --store-key FILE; `ppspeech keys "
            "store FOLDER` makes one"
        )
    return PostgresStore.open(read, StoreSeal.read(Path(key)))


def table_at(place: Place, name: str, columns: str, what: str) -> Table:
    """A table: in a file of its own with these columns, or the one of this name in a database."""
    if isinstance(place, PostgresStore):
        return place.table(name)
    return SharedTable(place, name, columns, what)


def tagged(place: Place, name: str, *where: str) -> str:
    """A name as it is kept: itself in a file of our own, a tag in a database.

    `where`: the table, and of which model or space; the same name elsewhere has another tag, so that a database does
    not see that somebody who asks here is enrolled there.
    """
    return place.seal.tag(name, *where) if isinstance(place, PostgresStore) else name


def sealed(place: Place, data: bytes, about: str) -> bytes:
    """Bytes as they are kept."""
    return place.seal.seal(data, about) if isinstance(place, PostgresStore) else data


def opened(place: Place, data: bytes, about: str) -> bytes:
    """Bytes as they were. Raises PpspeechError where a database gives back something else."""
    return place.seal.open(data, about) if isinstance(place, PostgresStore) else data
