"""Sentences by models of a public encoder's outputs, beside models of the features that it takes.

The encoder is a small network that was learned from the built-in voices alone; a client runs it in the clear before it
asks. Digits of 15 people never heard (AudioMNIST), joined to sentences, at 30 ms a frame; some of them under encryption
too, by two processes over TLS.

Needs the corpus audiomnist; --quick takes about 40 s.
"""

from dataclasses import replace
from pathlib import Path

from ppspeech.audio import MfccConfig, in_usual_range
from ppspeech.data import publicly_encoded
from ppspeech.evidence.connected import HOP_S, Connected, audiomnist_digits, rate_of
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.experiments.encrypted_sentences import STEP, encrypted
from ppspeech.figures import Figure
from ppspeech.protocols.sentences import total_bytes
from ppspeech.service import SentenceDeployment, export_bank

ENCRYPTED = 12  # sentences


@EXPERIMENTS.register("encoded-sentences")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Word error rates and bytes with and without an encoder, and whether its words are those in the clear. `quick`: 30
    sentences.
    """
    count = 30 if quick else 120
    usual = replace(MfccConfig.wideband(), hop_s=HOP_S)
    encoded = publicly_encoded(usual)
    assert encoded.encoder is not None
    plain, made = (audiomnist_digits(count, mfcc=mfcc) for mfcc in (usual, encoded))
    size = f"{encoded.encoder.outputs} of {usual.features} features, {len(encoded.encoder.numbers):,} numbers"
    errors = [each.errors(each.sentences) for each in (made, plain)]
    note = f"word error rate of {count} sentences; {size}, learned from the built-in voices"
    figures = [rate_of("sentences.encoder.wer", errors[0], "MFCC features", errors[1].rate, note)]
    said = made.sentences[:ENCRYPTED]
    frames = [in_usual_range(features, encoded) for features, _ in said]
    longest = SentenceDeployment(frames=-(-max(map(len, frames)) // STEP) * STEP)
    arrays = export_bank(made.bank, made.config, longest)
    found = encrypted(arrays, frames, garbled=False)
    clear = [[(word.word, word.start, word.end) for word in made.transcriber.words(features)] for features, _ in said]
    alike = sum(
        [each.word for each in heard] == [word for word, _, _ in own] for heard, own in zip(found, clear, strict=True)
    )
    sizes = [_bytes(each, longest) for each in (made, plain)]
    counted = (alike, len(said), "sentences", "sentences", "the clear decoder", len(said), "same words, by TLS")
    return [
        *figures,
        Figure.count("sentences.encoder.equal", *counted),
        Figure("sentences.encoder.mb_per_s", sizes[0], "MB/s", "MFCC features", sizes[1], note="on shares"),
    ]


def _bytes(made: Connected, longest: SentenceDeployment) -> float:
    shape = export_bank(made.bank, made.config, longest).shape
    return total_bytes(shape) / (shape.frames * HOP_S) / 1e6
