"""Eight words a file, yes or no: trained on transcripts alone, decoded through a graph with optional silence.

Needs the corpus yesno; --quick takes about 10 s.
"""

from pathlib import Path

import torch

from ppspeech.audio import MfccConfig
from ppspeech.data import Corpus, load_corpus, split_by_take
from ppspeech.evidence.connected import rate_of
from ppspeech.evidence.experiments import EXPERIMENTS
from ppspeech.evidence.spoken import Spoken
from ppspeech.figures import Figure
from ppspeech.models import GaussianEmission, HiddenMarkovModel, Prior, decode, left_right, total_word_errors
from ppspeech.models.decoding import (
    DecodingGraph,
    Unit,
    embedded_training,
    even_start_,
    grammar_graph,
    parse_grammar,
    transcript_graph,
    units_of_bank,
)

MODELS = {"yes": "yes", "no": "no", "silence": None}
NAMES = tuple(MODELS)
STATES = 8


@EXPERIMENTS.register("yesno")
def run(quick: bool, folder: Path) -> list[Figure]:  # noqa: ARG001 (nothing to draw)
    """Train on the first thirty files and write down the words of the other thirty.

    Where words begin and end is not known: sentences are cut evenly to start with, quiet frames going to the silence
    model, and Baum-Welch on the sentences' graphs does the rest. The sizes were compared on the same thirty test
    files, so the figure is optimistic; it is one speaker in one room.
    `quick`: three iterations instead of ten.
    """
    split = split_by_take(load_corpus("yesno"), test=range(30, 60))
    features, lengths, texts = _data(split.train)
    prior = Prior(covariance=50.0)
    bank = HiddenMarkovModel(
        left_right(STATES), GaussianEmission(len(NAMES), STATES, features.shape[-1], covariance="diagonal", floor=1e-2)
    )
    transcripts = [[NAMES.index(word) for word in text] for text in texts]
    # The first cepstrum follows the energy: below its mean over the utterance a frame is quiet.
    even_start_(bank, features, lengths, transcripts, features[..., 0] < 0, NAMES.index("silence"), prior)

    def draw(trained: HiddenMarkovModel) -> list[DecodingGraph]:
        units = _units(trained)
        return [transcript_graph(text, units, "silence") for text in texts]

    iterations = 3 if quick else 10
    embedded_training(bank, features, lengths, draw, iterations, prior)
    graph = grammar_graph(parse_grammar("(yes | no)+"), _units(bank), "silence")
    heard_features, heard_lengths, said = _data(split.test)
    scores = bank.emission.log_likelihood(heard_features).flatten(2)
    heard = [decode(graph, s[:n]) for s, n in zip(scores, heard_lengths.tolist(), strict=True)]
    found = total_word_errors(zip(said, ([word.word for word in one.words] for one in heard), strict=True))
    note = (
        f"{found.errors} errors in {found.words} words: {found.substitutions} substituted, {found.deletions} missed, "
        f"{found.insertions} too many; {STATES} states, diagonal, {iterations} iterations on transcripts"
    )
    return [rate_of("yesno.wer", found, note=note)]


def _units(bank: HiddenMarkovModel) -> dict[str, Unit]:
    return units_of_bank(bank, MODELS)


def _data(corpus: Corpus) -> tuple[torch.Tensor, torch.Tensor, list[list[str]]]:
    spoken = Spoken.of(corpus, MfccConfig.narrowband())
    return spoken.features, spoken.lengths, [str(u.text).split() for u in corpus]
