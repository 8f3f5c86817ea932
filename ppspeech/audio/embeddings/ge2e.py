"""The sizes of the GE2E voice embedding, and where its pieces begin: for torch, and for numpy without it."""

MEL, WINDOW, HOP = 40, 400, 160
PIECE, STEP = 160, 77  # mel frames that are heard at a time, and from one time to the next
COVERED = 0.75  # of a piece, so that it counts
LOUDNESS_DB = -30.0  # what quieter speech is brought to
SILENT_DB, HANGOVER = 35.0, 5  # frames so far below the loudest are left out, unless so near one that is not
SHORTEST = 30  # mel frames
HIDDEN, LAYERS = 256, 3


def starts_of(frames: int) -> list[int]:
    """Where pieces begin: the last may lack a quarter, and the only one more.

    >>> starts_of(100), starts_of(300), starts_of(360)
    ([0], [0, 77, 154], [0, 77, 154, 231])
    """
    starts = list(range(0, max(1, frames - PIECE + STEP + 1), STEP))
    if len(starts) > 1 and frames - starts[-1] < COVERED * PIECE:
        starts.pop()
    return starts
