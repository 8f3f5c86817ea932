"""The program that runs eSpeak NG in a process of its own; `ppspeech.audio.voices.espeak` starts it and talks to it.

What eSpeak says depends on everything it said before: it keeps state that is not cleared by setting voice and random
seed again, nor by terminating and initializing the library. So this process initializes the library once, never speaks
itself, and forks for every utterance: each is the first thing its child says, and depends on nothing else.

Protocol: one JSON object a line on standard input; for each, on standard output, a 4-byte little-endian length and that
many bytes of 16-bit samples at 22,050 Hz, or of text where phones are asked for. Whatever goes wrong ends the process,
with the reason on standard error.

It is started by its path and imports the standard library alone: a small process forks in a millisecond, one that holds
torch does not.
"""

import ctypes
import json
import os
import signal
import struct
import sys
from typing import Any, NoReturn

SAMPLE_RATE = 22050

# From speak_lib.h of eSpeak NG 1.52.
_OUTPUT_SYNCHRONOUS = 2
_DONT_EXIT = 0x8000
_POSITION_CHARACTER = 1
_CHARACTERS_UTF8 = 1  # and neither SSML (0x10) nor phoneme names (0x100): the text is only text
_BETWEEN_PHONES = ord("_") << 8  # phones by their names, not in IPA
_PARAMETERS = {"rate": 1, "pitch": 3, "pitch_range": 4}
_SECONDS_PER_UTTERANCE = 60

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def load(library: str, data: str) -> ctypes.CDLL:
    """Load and initialize eSpeak, up to the voice list, which is slow to read."""
    try:
        espeak = ctypes.CDLL(library)
    except OSError as unusable:
        sys.exit(f"the eSpeak library cannot be loaded: {unusable}")
    if espeak.espeak_Initialize(_OUTPUT_SYNCHRONOUS, 0, os.fsencode(data), _DONT_EXIT) != SAMPLE_RATE:
        sys.exit(f"eSpeak cannot use its data folder {data}")
    if espeak.espeak_SetVoiceByName(b"en"):
        sys.exit(f"eSpeak finds no English voice in its data folder {data}")
    # eSpeak's breath and roughness are random, seeded by the clock unless told otherwise.
    espeak.espeak_ng_SetRandSeed(ctypes.c_long(1))
    return espeak


def synthesize(espeak: ctypes.CDLL, request: dict[str, Any]) -> bytes:
    """Say one utterance; 16-bit samples in native order."""
    pieces: list[bytes] = []

    def keep(samples: Any, count: int, _events: int | None) -> int:
        if samples and count > 0:
            pieces.append(ctypes.string_at(samples, 2 * count))
        return 0

    callback = _Callback(keep)
    espeak.espeak_SetSynthCallback(callback)
    if espeak.espeak_SetVoiceByName(request["voice"].encode()):
        sys.exit(f"eSpeak has no voice {request['voice']!r}")
    for name, number in _PARAMETERS.items():
        espeak.espeak_SetParameter(number, request[name], 0)
    text = request["text"].encode()
    size = ctypes.c_size_t(len(text) + 1)
    if espeak.espeak_Synth(text, size, 0, _POSITION_CHARACTER, 0, _CHARACTERS_UTF8, None, None):
        sys.exit(f"eSpeak refused the text {request['text']!r}")
    espeak.espeak_Synchronize()
    return b"".join(pieces)


def phones(espeak: ctypes.CDLL, request: dict[str, Any]) -> bytes:
    """The phones of a text by eSpeak's names for them, with `_` between them and spaces between words."""
    if espeak.espeak_SetVoiceByName(request["voice"].encode()):
        sys.exit(f"eSpeak has no voice {request['voice']!r}")
    espeak.espeak_TextToPhonemes.restype = ctypes.c_char_p
    text, found = ctypes.c_char_p(request["phones"].encode()), []
    while text.value:
        found.append(espeak.espeak_TextToPhonemes(ctypes.byref(text), _CHARACTERS_UTF8, _BETWEEN_PHONES) or b"")
    return b" ".join(found)


def answer(espeak: ctypes.CDLL, line: bytes) -> NoReturn:
    """Be the child: speak, write, end without the clean-up that belongs to the parent."""
    signal.alarm(_SECONDS_PER_UTTERANCE)
    status = 1
    try:
        request = json.loads(line)
        samples = phones(espeak, request) if "phones" in request else synthesize(espeak, request)
        with open(1, "wb", closefd=False) as output:
            output.write(struct.pack("<I", len(samples)) + samples)
        status = 0
    except SystemExit as refusal:
        sys.stderr.write(f"{refusal.code}\n")
        sys.stderr.flush()
    finally:
        os._exit(status)


def main(library: str, data: str) -> None:
    """Answer each line of standard input until it ends."""
    espeak = load(library, data)
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            answer(espeak, line)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            sys.exit(f"eSpeak was ended by signal {os.WTERMSIG(status)} while saying {line.decode().strip()}")
        if status:
            sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
