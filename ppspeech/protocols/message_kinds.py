"""The kinds of the messages this room sends; those of `crypto` lie above 200."""

from ppspeech.channel import MessageKind
from ppspeech.crypto import Kind as CryptoKind


class Kind(MessageKind):
    """What a message is, to whoever receives it."""

    LATTICE_KEY = 1, "a public key"
    QUERY = 2, "ciphertexts"
    REPLY = 3, "masked ciphertexts"
    MODEL = 4, "a model under the server's key"
    FRAME = 5, "masked ciphertexts of a frame"
    REQUEST = 6, "which task, and its public sizes"
    READY = 7, "that the task can begin"
    STEP = 8, "whether another question comes"

    # Speakers.
    GALLERY = 20, "encrypted templates, or one template to enroll"
    NAME_SHARE = 21, "a share of a name"
    MASKED_INPUTS = 22, "masked inputs of a table"
    DECISION_TABLE = 23, "an encrypted table"
    DECISION = 24, "the decision"
    GALLERY_DIGEST = 25, "a digest of encrypted templates"
    CLAIM = 26, "a masked claim"
    RECORDS = 27, "masked templates, of which one opens"
    VOICE_CODE = 28, "a masked code of a voice"
    CHALLENGE = 29, "digits to be said"
    SEAL_KEY = 30, "the key of one's own sealed template"
    MASKED_VOICE = 31, "a masked voice"

    # The papers' own keyword and network protocols, `published`.
    PAILLIER_KEY = 40, "a public key"
    SCALED = 41, "ciphertexts"
    LOGARITHM = 42, "ciphertexts"
    BLINDED_LOG = 43, "ciphertexts"
    EXPONENTIAL = 44, "ciphertexts"
    CHOICE = 45, "masked choices"
    OFFER = 46, "masked tables"
    EMISSION = 47, "ciphertexts"
    PRODUCTS = 48, "ciphertexts"
    ORDERED = 49, "blinded scores under one's own key"
    ACTIVATIONS = 50, "ciphertexts"
    PRE_ACTIVATIONS = 51, "every pre-activation, under one's own key"

    # Sums through a curator. 79 to 81 are the network's own, where parties meet.
    SESSION_KEY = 82, "a public key"
    ROSTER = 83, "everyone's public keys"
    MASKED_VECTOR = 84, "uniform residues"
    SUM = 85, "the released sum"
    SIGNED_KEYS = 86, "a signature on everyone's public keys"
    SIGNATURES = 87, "everyone's signatures"

    # Beliefs among peers.
    PEER_KEY = 100, "a public key"
    PEER_SHARES = 101, "ciphertexts that others open when they are added up and masked"
    MASKED_SUM = 102, "masked ciphertexts"

    # Eigenvectors.
    DIRECTIONS = 120, "the released directions"

    # The paper's own eigenvectors, `published`.
    COMPONENT_PRODUCT = 125, "ciphertexts"
    SCALED_SUM = 126, "ciphertexts that every party opens"
    NORM_TERM = 127, "ciphertexts"
    NORM = 128, "ciphertexts that every party opens"
    COMPONENT = 129, "weights of the frames"

    # The paper's own aggregation, `published`.
    CURATOR_KEY = 140, "a public key"
    PARTIES_PRIMES = 141, "the parties' secret key"
    PARTIES_KEY = 142, "a public key"
    ORDER = 143, "an order that the curator must not know"
    SIZE_SHARE = 144, "a share of a size"
    SEALED_SHARE = 145, "ciphertexts"
    CURATOR_SHARE = 146, "ciphertexts"
    ENCRYPTED_SHARE = 147, "ciphertexts"
    BLINDED = 148, "ciphertexts"
    BLINDED_SHARE = 149, "a blinded size"
    INDICATOR = 150, "ciphertexts"
    NOISE_TERM = 151, "ciphertexts from which the noise can be found"
    MASKED_NOISE = 152, "ciphertexts"
    CLASSIFIER_SHARE = 153, "a share of the released mean"

    # Personal filters.
    ENTER = 160, "a ticket, if it was here before"
    COMMON_FILTER = 161, "the public filter to start from"
    TASK_LABELS = 162, "labels of the task"
    FILTERED = 163, "filtered samples"
    OTHERS = 164, "filtered samples of the others"


def kind_of(number: int) -> MessageKind | None:
    """The kind of a message in a transcript; None for one of neither room."""
    return next((kind for kinds in (Kind, CryptoKind) for kind in kinds if kind == number), None)
