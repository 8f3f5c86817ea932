"""A bundle as an encrypted service: what it will cost, the server behind `ppspeech serve`, the client people call.

The door opens what is asked for and no more: a client of words loads no code of speakers, nor of servers.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppspeech.service.client.connect import Client, Door, connect, connect_through, open_door, server_health
    from ppspeech.service.client.session import Answer
    from ppspeech.service.estimate import BYTES_PER_SECOND, Knowledge
    from ppspeech.service.exactness import error_budget
    from ppspeech.service.export import EXPORTERS, Deployment, export_words
    from ppspeech.service.export_networks import export_network
    from ppspeech.service.export_sentences import (
        Scored,
        SentenceDeployment,
        at_length,
        export_bank,
        export_bundle,
        export_graph,
    )
    from ppspeech.service.offer import DESCRIBE, Offer, describe
    from ppspeech.service.plan import (
        MEETING_BYTES,
        ROUND_TRIPS,
        ServicePlan,
        WayToRun,
        plan_network,
        plan_sentences,
        plan_speakers,
        plan_words,
    )
    from ppspeech.service.requests import (
        Ask,
        BudgetSpentError,
        Request,
        receive_ready,
        receive_request,
        send_ready,
        send_request,
        send_template,
    )
    from ppspeech.service.server.serve import ServiceFiles, Serving, build_services, serve
    from ppspeech.service.server.speakers import SpeakerDeployment
    from ppspeech.service.server.stores import QueryBudget

__all__ = [
    "BYTES_PER_SECOND",
    "DESCRIBE",
    "EXPORTERS",
    "MEETING_BYTES",
    "ROUND_TRIPS",
    "Answer",
    "Ask",
    "BudgetSpentError",
    "Client",
    "Deployment",
    "Door",
    "Knowledge",
    "Offer",
    "QueryBudget",
    "Request",
    "Scored",
    "SentenceDeployment",
    "ServiceFiles",
    "ServicePlan",
    "Serving",
    "SpeakerDeployment",
    "WayToRun",
    "at_length",
    "build_services",
    "connect",
    "connect_through",
    "describe",
    "error_budget",
    "export_bank",
    "export_bundle",
    "export_graph",
    "export_network",
    "export_words",
    "open_door",
    "plan_network",
    "plan_sentences",
    "plan_speakers",
    "plan_words",
    "receive_ready",
    "receive_request",
    "send_ready",
    "send_request",
    "send_template",
    "serve",
    "server_health",
]

_MODULES = {
    "client.connect": {"Client", "Door", "connect", "connect_through", "open_door", "server_health"},
    "client.session": {"Answer"},
    "estimate": {"BYTES_PER_SECOND", "Knowledge"},
    "exactness": {"error_budget"},
    "export": {"EXPORTERS", "Deployment", "export_words"},
    "export_networks": {"export_network"},
    "export_sentences": {
        "Scored",
        "SentenceDeployment",
        "at_length",
        "export_bank",
        "export_bundle",
        "export_graph",
    },
    "offer": {"DESCRIBE", "Offer", "describe"},
    "plan": {
        "MEETING_BYTES",
        "ROUND_TRIPS",
        "ServicePlan",
        "WayToRun",
        "plan_network",
        "plan_sentences",
        "plan_speakers",
        "plan_words",
    },
    "requests": {
        "Ask",
        "BudgetSpentError",
        "Request",
        "receive_ready",
        "receive_request",
        "send_ready",
        "send_request",
        "send_template",
    },
    "server.serve": {"ServiceFiles", "Serving", "build_services", "serve"},
    "server.speakers": {"SpeakerDeployment"},
    "server.stores": {"QueryBudget"},
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(f"{__name__}.{module}"), name)
        raise AttributeError(f"{__name__} has no {name!r}")
