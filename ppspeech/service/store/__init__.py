"""What servers share: budgets, galleries, accounts and sums of sessions, in files or in PostgreSQL."""

from ppspeech.service.store.address import StoreAddress, refuse_password
from ppspeech.service.store.place import Place, is_address, open_store, opened, sealed, table_at, tagged
from ppspeech.service.store.postgres import PostgresStore, StoreLostError
from ppspeech.service.store.schema import MIGRATIONS
from ppspeech.service.store.seal import StoreSeal, write_store_key

__all__ = [
    "MIGRATIONS",
    "Place",
    "PostgresStore",
    "StoreAddress",
    "StoreLostError",
    "StoreSeal",
    "is_address",
    "open_store",
    "opened",
    "refuse_password",
    "sealed",
    "table_at",
    "tagged",
    "write_store_key",
]
