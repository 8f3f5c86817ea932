"""A bundle as an encrypted service: what it will cost, the server behind `ppspeech serve`, the client people call.

The door opens what is asked for and no more: a client of words loads no code of speakers, nor of servers.
"""

from typing import TYPE_CHECKING

from ppspeech.doors import door

if TYPE_CHECKING:
    from ppspeech.service.archive import Archive, Contents, Units, clear_segments, in_the_clear, index_recordings
    from ppspeech.service.client.connect import Client, Door, connect, connect_through, open_door, server_health
    from ppspeech.service.client.heads import Heard, Watching, spoken_in
    from ppspeech.service.client.session import Answer
    from ppspeech.service.client.spotting import Spotted, in_archive, patches_in_archive
    from ppspeech.service.client.wake import WAKE_RATE, Checked, HeadStage, SpeechStage, Wake
    from ppspeech.service.client.wyoming_bridge import Bridge
    from ppspeech.service.estimate import BYTES_PER_SECOND, Knowledge
    from ppspeech.service.exactness import error_budget
    from ppspeech.service.export import EXPORTERS, Deployment, export_words
    from ppspeech.service.export_networks import at_frames, export_ctc, export_network, export_sequence
    from ppspeech.service.export_sentences import (
        NetworkScored,
        Scored,
        at_length,
        export_bank,
        export_bundle,
        export_graph,
    )
    from ppspeech.service.export_spotting import SpotDeployment, export_keywords
    from ppspeech.service.offer import DESCRIBE, Offer, describe, offered_names
    from ppspeech.service.patches import PatchWord, band_frames, heard_inside, learn_patch_word, pieces_of
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
        NotNowError,
        Request,
        receive_ready,
        receive_request,
        send_ready,
        send_request,
        send_template,
    )
    from ppspeech.service.seek import sought
    from ppspeech.service.server.sentences import sentence_knowledge
    from ppspeech.service.server.serve import ServiceFiles, Serving, build_services, serve
    from ppspeech.service.server.speakers import SpeakerDeployment
    from ppspeech.service.server.stores import QueryBudget
    from ppspeech.service.server.text import TextDeployment
    from ppspeech.service.song_thresholds import CLIP_SECONDS, Alike, rivals, threshold_of, votes_of
    from ppspeech.service.songs import (
        ASKED,
        WAYS,
        FindBy,
        SongIndex,
        clip_frames,
        clip_landmarks,
        clip_of,
        index_folder,
        index_songs,
        read_index,
    )
    from ppspeech.service.tasks.sentences import SentenceDeployment

__all__ = [
    "ASKED",
    "BYTES_PER_SECOND",
    "CLIP_SECONDS",
    "DESCRIBE",
    "EXPORTERS",
    "MEETING_BYTES",
    "ROUND_TRIPS",
    "WAKE_RATE",
    "WAYS",
    "Alike",
    "Answer",
    "Archive",
    "Ask",
    "Bridge",
    "BudgetSpentError",
    "Checked",
    "Client",
    "Contents",
    "Deployment",
    "Door",
    "FindBy",
    "HeadStage",
    "Heard",
    "Knowledge",
    "NetworkScored",
    "NotNowError",
    "Offer",
    "PatchWord",
    "QueryBudget",
    "Request",
    "Scored",
    "SentenceDeployment",
    "ServiceFiles",
    "ServicePlan",
    "Serving",
    "SongIndex",
    "SpeakerDeployment",
    "SpeechStage",
    "SpotDeployment",
    "Spotted",
    "TextDeployment",
    "Units",
    "Wake",
    "Watching",
    "WayToRun",
    "at_frames",
    "at_length",
    "band_frames",
    "build_services",
    "clear_segments",
    "clip_frames",
    "clip_landmarks",
    "clip_of",
    "connect",
    "connect_through",
    "describe",
    "error_budget",
    "export_bank",
    "export_bundle",
    "export_ctc",
    "export_graph",
    "export_keywords",
    "export_network",
    "export_sequence",
    "export_words",
    "heard_inside",
    "in_archive",
    "in_the_clear",
    "index_folder",
    "index_recordings",
    "index_songs",
    "learn_patch_word",
    "offered_names",
    "open_door",
    "patches_in_archive",
    "pieces_of",
    "plan_network",
    "plan_sentences",
    "plan_speakers",
    "plan_words",
    "read_index",
    "receive_ready",
    "receive_request",
    "rivals",
    "send_ready",
    "send_request",
    "send_template",
    "sentence_knowledge",
    "serve",
    "server_health",
    "sought",
    "spoken_in",
    "threshold_of",
    "votes_of",
]

if not TYPE_CHECKING:
    __getattr__ = door(__name__)
