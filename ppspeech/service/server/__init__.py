"""Released models as services: sessions, stores, budgets."""

from ppspeech.service.server.book import log_as_json
from ppspeech.service.server.cohort import Rule
from ppspeech.service.server.keeper import PublishedGallery, own_gallery
from ppspeech.service.server.linear_scoring import rule_for_codes, rule_for_cosines
from ppspeech.service.server.serve import apart, kept_folder, listening, named, services_of
from ppspeech.service.server.stores import Gallery
from ppspeech.service.server.text import ServedText, texts_at

__all__ = [
    "Gallery",
    "PublishedGallery",
    "Rule",
    "ServedText",
    "apart",
    "kept_folder",
    "listening",
    "log_as_json",
    "named",
    "own_gallery",
    "rule_for_codes",
    "rule_for_cosines",
    "services_of",
    "texts_at",
]
