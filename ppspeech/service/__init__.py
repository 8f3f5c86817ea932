"""A bundle as an encrypted service: what it will cost, the server behind `ppspeech serve`, the client people call."""

from ppspeech.service.client.answer import Answer
from ppspeech.service.client.connect import Client, connect, open_door, server_health
from ppspeech.service.client.gallery import ProbeClient, connect_keeper
from ppspeech.service.client.speakers import SpeakerClient, connect_speakers
from ppspeech.service.export import EXPORTERS, Deployment, export_words
from ppspeech.service.picture import plot_views
from ppspeech.service.plan import MEETING_BYTES, ModePlan, ServicePlan, plan_service
from ppspeech.service.requests import BudgetSpentError
from ppspeech.service.server.keeper import PublishedGallery, own_gallery
from ppspeech.service.server.service import ServiceFiles, build_services
from ppspeech.service.server.speakers import SpeakerDeployment
from ppspeech.service.server.stores import QueryBudget
from ppspeech.service.speaker_plan import SpeakerPlan, plan_speakers

__all__ = [
    "EXPORTERS",
    "MEETING_BYTES",
    "Answer",
    "BudgetSpentError",
    "Client",
    "Deployment",
    "ModePlan",
    "ProbeClient",
    "PublishedGallery",
    "QueryBudget",
    "ServiceFiles",
    "ServicePlan",
    "SpeakerClient",
    "SpeakerDeployment",
    "SpeakerPlan",
    "build_services",
    "connect",
    "connect_keeper",
    "connect_speakers",
    "export_words",
    "open_door",
    "own_gallery",
    "plan_service",
    "plan_speakers",
    "plot_views",
    "server_health",
]
