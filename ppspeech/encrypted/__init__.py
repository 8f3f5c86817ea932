"""A bundle as an encrypted service: what it will cost, the server behind `ppspeech serve`, the client people call."""

from ppspeech.encrypted.answer import Answer
from ppspeech.encrypted.budget import QueryBudget
from ppspeech.encrypted.client import Client, connect, open_door, server_health
from ppspeech.encrypted.exporters import Deployment, export_words, register_exporter
from ppspeech.encrypted.keeper import PublishedGallery, own_gallery
from ppspeech.encrypted.probe_client import ProbeClient, connect_keeper
from ppspeech.encrypted.requests import BudgetSpentError
from ppspeech.encrypted.served_speakers import SpeakerDeployment
from ppspeech.encrypted.service import ServiceFiles, build_services
from ppspeech.encrypted.speaker_client import SpeakerClient, connect_speakers

__all__ = [
    "Answer",
    "BudgetSpentError",
    "Client",
    "Deployment",
    "ProbeClient",
    "PublishedGallery",
    "QueryBudget",
    "ServiceFiles",
    "SpeakerClient",
    "SpeakerDeployment",
    "build_services",
    "connect",
    "connect_keeper",
    "connect_speakers",
    "export_words",
    "open_door",
    "own_gallery",
    "register_exporter",
    "server_health",
]
