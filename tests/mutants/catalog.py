"""The mutants that are kept. A change that moves one of these texts moves it there too, or finds a better one."""

from tests.mutants.anonymity import ANONYMITY
from tests.mutants.attackers import ATTACKERS
from tests.mutants.beliefs import BELIEFS
from tests.mutants.central import CENTRAL
from tests.mutants.cluster import CLUSTER
from tests.mutants.crypto import CRYPTO
from tests.mutants.embedded import EMBEDDED
from tests.mutants.filters import FILTERS
from tests.mutants.garbled import GARBLED
from tests.mutants.heads import HEADS_MUTANTS
from tests.mutants.login import LOGIN
from tests.mutants.music import MUSIC
from tests.mutants.networks import NETWORKS
from tests.mutants.noise import NOISE
from tests.mutants.privacy import PRIVACY
from tests.mutants.promises import PROMISES
from tests.mutants.protocols import PROTOCOLS
from tests.mutants.ranks import RANK_MUTANTS
from tests.mutants.releases import RELEASES
from tests.mutants.search import SEARCH
from tests.mutants.sentences import SENTENCES
from tests.mutants.service import SERVICE
from tests.mutants.spotting import SPOTTING
from tests.mutants.store import STORE
from tests.mutants.studio import STUDIO
from tests.mutants.tables import TABLES
from tests.mutants.text import TEXT
from tests.mutants.voices import VOICES
from tests.mutants.web import WEB
from tests.mutants.words import WORDS

MUTANTS = [
    *CRYPTO,
    *GARBLED,
    *PROTOCOLS,
    *WORDS,
    *EMBEDDED,
    *HEADS_MUTANTS,
    *SEARCH,
    *MUSIC,
    *TEXT,
    *BELIEFS,
    *SERVICE,
    *VOICES,
    *LOGIN,
    *STORE,
    *WEB,
    *STUDIO,
    *SENTENCES,
    *NETWORKS,
    *SPOTTING,
    *NOISE,
    *FILTERS,
    *PROMISES,
    *RELEASES,
    *PRIVACY,
    *RANK_MUTANTS,
    *TABLES,
    *CENTRAL,
    *ANONYMITY,
    *ATTACKERS,
    *CLUSTER,
]
