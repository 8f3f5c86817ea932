"""Released models as services: sessions, stores, budgets."""

from ppspeech.service.server.book import log_as_json
from ppspeech.service.server.keeper import PublishedGallery, own_gallery
from ppspeech.service.server.serve import kept_folder, listening, named, services_of
from ppspeech.service.server.stores import Gallery

__all__ = [
    "Gallery",
    "PublishedGallery",
    "kept_folder",
    "listening",
    "log_as_json",
    "named",
    "own_gallery",
    "services_of",
]
