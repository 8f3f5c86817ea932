"""The kinds of the messages this room sends; those of `crypto` lie above 200."""

from enum import IntEnum


class Kind(IntEnum):
    """What a message is."""

    LATTICE_KEY = 1
    QUERY = 2
    REPLY = 3
    MODEL = 4
    FRAME = 5
    REQUEST = 6
    READY = 7

    # Speakers.
    GALLERY = 20
    NAME_SHARE = 21
    MASKED_INPUTS = 22
    DECISION_TABLE = 23
    DECISION = 24

    # The paper's own keyword protocols, `published`.
    PAILLIER_KEY = 40
    SCALED = 41
    LOGARITHM = 42
    BLINDED_LOG = 43
    EXPONENTIAL = 44
    CHOICE = 45
    OFFER = 46
    EMISSION = 47
    PRODUCTS = 48
    ORDERED = 49

    # Sums through a curator. 80 and 81 are the network's own, where a group meets.
    SESSION_KEY = 82
    ROSTER = 83
    MASKED_VECTOR = 84
    SUM = 85

    # Eigenvectors.
    DIRECTIONS = 120

    # The paper's own eigenvectors, `published`.
    COMPONENT_PRODUCT = 125
    SCALED_SUM = 126
    NORM_TERM = 127
    NORM = 128
    COMPONENT = 129

    # The paper's own aggregation, `published`.
    CURATOR_KEY = 140
    PARTIES_PRIMES = 141
    PARTIES_KEY = 142
    ORDER = 143
    SIZE_SHARE = 144
    SEALED_SHARE = 145
    CURATOR_SHARE = 146
    ENCRYPTED_SHARE = 147
    BLINDED = 148
    BLINDED_SHARE = 149
    INDICATOR = 150
    NOISE_TERM = 151
    MASKED_NOISE = 152
    CLASSIFIER_SHARE = 153

    # Personal filters.
    ENTER = 160
    COMMON_FILTER = 161
    TASK_LABELS = 162
    FILTERED = 163
    OTHERS = 164
