"""What servers share: budgets, galleries, accounts and sums of sessions, in files or in PostgreSQL."""

from ppspeech.service.store.address import StoreAddress, refuse_password
from ppspeech.service.store.place import Place, is_address, open_store, opened, sealed, table_at, tagged
from ppspeech.service.store.postgres import PostgresStore, StoreLostError
from ppspeech.service.store.schema import MIGRATIONS
from ppspeech.service.store.seal import (
    KEY_BYTES,
    SEAL_BYTES,
    StoreSeal,
    open_under,
    read_key_file,
    seal_under,
    write_key_file,
    write_store_key,
)

__all__ = [
    "KEY_BYTES",
    "MIGRATIONS",
    "SEAL_BYTES",
    "Place",
    "PostgresStore",
    "StoreAddress",
    "StoreLostError",
    "StoreSeal",
    "is_address",
    "open_store",
    "open_under",
    "opened",
    "read_key_file",
    "refuse_password",
    "seal_under",
    "sealed",
    "table_at",
    "tagged",
    "write_key_file",
    "write_store_key",
]
