"""Released models as services: sessions, stores, budgets."""

from ppspeech.service.server.json_log import log_as_json
from ppspeech.service.server.keeper import PublishedGallery, own_gallery
from ppspeech.service.server.speakers import SpeakerDeployment

__all__ = ["PublishedGallery", "SpeakerDeployment", "log_as_json", "own_gallery"]
