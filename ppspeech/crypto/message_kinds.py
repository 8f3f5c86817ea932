"""The kinds of the messages this room sends; protocols number their own from 1."""

from ppspeech.channel import MessageKind


class Kind(MessageKind):
    """What a message is, to whoever receives it. All lie above 200, clear of the protocols' own."""

    BASE_POINT = 201, "a point of a group"
    BASE_REPLY = 202, "blinded points"
    BASE_COLUMNS = 206, "blinded transfers"
    RESUME = 203, "where both are in their transfers"
    COLUMNS = 204, "blinded transfers"
    CODE_COLUMNS = 205, "blinded transfers"
    ASK = 208, "masked choices"
    TABLES = 209, "masked tables"
    PRODUCT = 210, "masked residues"
    OPEN = 211, "a share of what is opened"
    SHARES = 214, "uniform residues"
    FLIGHT = 215, "masked residues and tables"
    GARBLE_KEY = 216, "the key of a hash"
    GARBLED = 217, "garbled tables"
    BLIND_CHOICES = 218, "masked choices"
    LABELS = 219, "labels, one a wire"
    MEANING = 220, "what the labels of outputs mean"
    HIDDEN_TEXTS = 221, "hidden texts, of which one opens"
    MAP = 222, "a sealed map"
    MAP_POINTS = 223, "blinded points of what is looked for"
    MAP_HELP = 224, "blinded points under the key of a map"
