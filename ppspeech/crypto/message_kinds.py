"""The kinds of the messages this room sends; protocols number their own from 1."""

from enum import IntEnum


class Kind(IntEnum):
    """What a message is. All lie above 200, clear of the protocols' own."""

    BASE_POINT = 201
    BASE_REPLY = 202
    RESUME = 203
    COLUMNS = 204
    CODE_COLUMNS = 205
    PAIRS = 207
    ASK = 208
    TABLES = 209
    PRODUCT = 210
    OPEN = 211
    MASKED_SUM = 212
    SUM_KEY = 213
    SHARES = 214
    FLIGHT = 215
