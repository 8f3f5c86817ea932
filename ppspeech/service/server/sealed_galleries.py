"""Galleries that this server keeps and cannot read: templates encrypted under an enrollment key that is elsewhere.

    keeper   enrolls voices, holds the key and the templates, answers probes
    store    this server: ciphertexts, and who may replace them
    prober   takes a gallery from the store, multiplies its voice into it, and settles the bit with the keeper

`ppspeech.protocols.speakers.templates` has the protocol.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ppspeech.errors import PpspeechError
from ppspeech.protocols.speakers import EncryptedGallery, GalleryPlan, Prober
from ppspeech.service.server.budget import PATIENCE_SECONDS
from ppspeech.service.server.gallery import check_speaker

MOST_GALLERIES = 256
"""Of one model; a client that fills the disk is a client too many."""


@dataclass(frozen=True, slots=True)
class SealedGalleries:
    """Encrypted galleries by name, in a file that session processes share.

    Attributes:
        path: of the database.
        model: fingerprint of the bundle that templates were computed with.
        plan: sizes of every gallery.

    Raises:
        PpspeechError: for a file that is no such database.
    """

    path: Path
    model: str
    plan: GalleryPlan

    def __post_init__(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with closing(self._open()) as database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS sealed (model TEXT, name TEXT, places INTEGER, owner TEXT,"
                    " public_key BLOB, templates BLOB, PRIMARY KEY (model, name))"
                )
        except sqlite3.Error as damaged:
            raise PpspeechError(f"{self.path} cannot hold galleries: {damaged}") from None

    def put(self, name: str, owner: str, gallery: EncryptedGallery) -> bool:
        """Keep a gallery; one that is there already is replaced by its owner alone.

        Args:
            name: of the gallery.
            owner: who brings it, as `peer_name` tells: a certificate, or an address, which others may share; a store
                for strangers asks for certificates (`--client-ca`).
            gallery: of this plan.

        Returns:
            Whether it is kept: not where the name is another's, or there is no room.

        Raises:
            RangeError: for a name that cannot be.
            ProtocolError: for bytes that are no such gallery.
        """
        check_speaker(name)
        Prober(gallery)  # what could not be probed is not kept
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            found = database.execute(
                "SELECT owner FROM sealed WHERE model = ? AND name = ?", (self.model, name)
            ).fetchone()
            held = database.execute("SELECT COUNT(*) FROM sealed WHERE model = ?", (self.model,)).fetchone()[0]
            if (found is None and held >= MOST_GALLERIES) or (found is not None and found[0] != owner):
                database.execute("ROLLBACK")
                return False
            row = (self.model, name, self.plan.places, owner, gallery.public_key, gallery.templates)
            database.execute("INSERT OR REPLACE INTO sealed VALUES (?, ?, ?, ?, ?, ?)", row)
            database.execute("COMMIT")
        return True

    def get(self, name: str) -> EncryptedGallery | None:
        """The gallery of a name; None where there is none of this size."""
        with closing(self._open()) as database:
            found = database.execute(
                "SELECT public_key, templates FROM sealed WHERE model = ? AND name = ? AND places = ?",
                (self.model, name, self.plan.places),
            ).fetchone()
        return None if found is None else EncryptedGallery(self.plan, *found)

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
