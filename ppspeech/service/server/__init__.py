"""Released models as services: sessions, stores, budgets."""

from ppspeech.service.server.book import log_as_json
from ppspeech.service.server.cohort import Rule
from ppspeech.service.server.keeper import PublishedGallery, own_gallery
from ppspeech.service.server.linear_scoring import rule_for_codes, rule_for_cosines
from ppspeech.service.server.music import ServedMusic
from ppspeech.service.server.serve import (
    Doors,
    kept_folder,
    listening,
    open_all,
    page_address,
    pinned_address,
    services_of,
)
from ppspeech.service.server.session import Served
from ppspeech.service.server.sources import Choices, named
from ppspeech.service.server.stores import Gallery

__all__ = [
    "Choices",
    "Doors",
    "Gallery",
    "PublishedGallery",
    "Rule",
    "Served",
    "ServedMusic",
    "kept_folder",
    "listening",
    "log_as_json",
    "named",
    "open_all",
    "own_gallery",
    "page_address",
    "pinned_address",
    "rule_for_codes",
    "rule_for_cosines",
    "services_of",
]
