import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.decoding.builder import GraphBuilder, Unit, units_of_bank
from ppspeech.models.decoding.decoder import decode
from ppspeech.models.decoding.grammar import InOrder, Maybe, OneOf, Repeated, parse_grammar
from ppspeech.models.decoding.graph import DecodingGraph
from ppspeech.models.decoding.language import estimate_ngrams
from ppspeech.models.decoding.tasks import (
    grammar_graph,
    lexicon_graph,
    loop_graph,
    ngram_graph,
    spotting_graph,
    transcript_graph,
)
from ppspeech.models.hmm.bank import HiddenMarkovModel
from ppspeech.models.hmm.emissions import GaussianEmission
from ppspeech.models.hmm.forward_backward import LOG_ZERO
from ppspeech.models.hmm.topology import left_right


def unit(word: str | None, *pdfs: int) -> Unit:
    """A left-right unit that stays with probability 0.5 in every state."""
    half, n = math.log(0.5), len(pdfs)
    rows = tuple(tuple(half if j - i in (0, 1) else LOG_ZERO for j in range(n)) for i in range(n))
    exits = tuple(half if i == n - 1 else LOG_ZERO for i in range(n))
    return Unit(word, pdfs, tuple(0.0 if i == 0 else LOG_ZERO for i in range(n)), rows, exits)


UNITS = {"a": unit("a", 0, 1), "b": unit("b", 2), "c": unit("c", 1, 3), "sil": unit(None, 4), "any": unit(None, 5)}
GRAPHS = {
    "transcript": transcript_graph(["a", "b"], UNITS, "sil"),
    "grammar": grammar_graph(parse_grammar("(a | b [c])+"), UNITS),
    "spotting": spotting_graph([["a"], ["b", "c"]], ["sil", "any"], UNITS, reward=1.0),
    "loop": loop_graph(["a", "b"], UNITS, "sil", word_penalty=2.0),
    "lexicon": lexicon_graph({"ba": "ba", "bac": "bac"}, UNITS, "sil"),
    "bigram": ngram_graph(estimate_ngrams([["a", "b"], ["b", "c", "a"]], 2), UNITS, "sil"),
}


def scores(frames: int, seed: int = 0, columns: int = 6) -> Tensor:
    return 3 * torch.randn(frames, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def brute_force(graph: DecodingGraph, log_emissions: Tensor) -> float:
    """The best of all state sequences, one by one."""
    arcs: dict[tuple[int, int], float] = {}
    for s, t, w in zip(graph.sources.tolist(), graph.targets.tolist(), graph.log_weights.tolist(), strict=True):
        arcs[s, t] = max(w, arcs.get((s, t), LOG_ZERO))
    frames = log_emissions[:, graph.pdfs].tolist()
    initial, final = graph.log_initial.tolist(), graph.log_final.tolist()
    following = {s: [t for a, t in arcs if a == s] for s in range(graph.states)}
    best = LOG_ZERO

    def extend(path: list[int], score: float) -> None:
        nonlocal best
        if len(path) == len(frames):
            best = max(best, score + final[path[-1]])
            return
        for state in following[path[-1]]:
            extend([*path, state], score + arcs[path[-1], state] + frames[len(path)][state])

    for state in range(graph.states):
        if initial[state] > LOG_ZERO / 2:
            extend([state], initial[state] + frames[0][state])
    return best


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), frames=st.integers(3, 5), name=st.sampled_from(sorted(GRAPHS)))
def test_the_path_found_is_the_best_of_all(seed: int, frames: int, name: str) -> None:
    graph, emissions = GRAPHS[name], scores(frames, seed)
    found = decode(graph, emissions)
    assert found.score == pytest.approx(brute_force(graph, emissions), abs=1e-9)
    wide = decode(graph, emissions, beam=1e6, word_beam=1e6)
    assert wide.score == pytest.approx(found.score, abs=1e-9)
    assert wide.words == found.words
    narrow = decode(graph, emissions, beam=30.0, word_beam=30.0)
    assert narrow.score <= found.score + 1e-9


def test_words_have_times_and_scores() -> None:
    """Silence 2 frames, a 4, silence 1, b 3: the frames say so loudly."""
    line = [4, 4, 0, 0, 1, 1, 4, 2, 2, 2]
    emissions = torch.full((10, 6), -50.0, dtype=torch.float64)
    emissions[range(10), line] = 0.0
    found = decode(grammar_graph(Repeated(OneOf(("a", "b", "c"))), UNITS, "sil"), emissions)
    assert [(w.word, w.start, w.end) for w in found.words] == [("a", 2, 6), ("b", 7, 10)]
    # a: ends its pause, a third of the choice, four frames of which three follow another.
    assert found.words[0].score == pytest.approx(math.log(0.5) - math.log(3) + 3 * math.log(0.5))
    assert found.score < sum(w.score for w in found.words)


def test_grammar_allows_what_it_says_and_nothing_else() -> None:
    graph = grammar_graph(InOrder((Maybe("a"), OneOf(("b", "c")))), UNITS)
    heard = {tuple(w.word for w in decode(graph, scores(6, seed)).words) for seed in range(60)}
    assert heard == {("b",), ("c",), ("a", "b"), ("a", "c")}


def test_spotting_finds_a_phrase_in_garbage() -> None:
    emissions = torch.full((8, 6), -20.0)
    emissions[range(8), [5, 5, 2, 2, 1, 3, 5, 4]] = 0.0
    graph = spotting_graph([["b", "c"]], ["sil", "any"], UNITS)
    found = decode(graph, emissions)
    assert [(w.word, w.start, w.end) for w in found.words] == [("b", 2, 4), ("c", 4, 6)]
    assert not decode(spotting_graph([["b", "c"]], ["sil", "any"], UNITS, reward=-90.0), emissions).words


@pytest.mark.parametrize("order", [1, 2, 3])
def test_language_model_paths_weigh_what_the_model_says(order: int) -> None:
    """One-frame words, frames that name them: what is left of the score is the language model's."""
    texts = [["x", "y", "x"], ["y"], ["x", "y", "y", "z"], ["z", "x"]]
    model = estimate_ngrams(texts, order)
    sure = {w: Unit(w, (i,), (0.0,), ((LOG_ZERO,),), (0.0,)) for i, w in enumerate("xyz")}
    graph = ngram_graph(model, sure)
    for sentence in itertools.chain.from_iterable(itertools.product("xyz", repeat=n) for n in (1, 2, 3, 4)):
        emissions = torch.full((len(sentence), 3), -1e6, dtype=torch.float64)
        emissions[range(len(sentence)), ["xyz".index(w) for w in sentence]] = 0.0
        found = decode(graph, emissions)
        assert tuple(w.word for w in found.words) == sentence
        assert found.score == pytest.approx(model.sentence_score(sentence), abs=1e-9)


def test_a_bank_of_models_becomes_units() -> None:
    bank = HiddenMarkovModel(left_right(3), GaussianEmission(2, 3, 2))
    units = units_of_bank(bank, {"yes": "yes", "pause": None}, leave=0.25)
    assert units["pause"].pdfs == (3, 4, 5)
    assert units["pause"].word is None
    for i in range(3):
        row = [*units["yes"].log_transitions[i], units["yes"].log_exit[i]]
        assert sum(math.exp(max(v, -700)) for v in row) == pytest.approx(1)
    with pytest.raises(ModelError, match="2 models need as many"):
        units_of_bank(bank, ("yes",))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: decode(GRAPHS["grammar"], torch.zeros(0, 6)), "audio is empty"),
        (lambda: decode(GRAPHS["grammar"], torch.zeros(4, 3)), "3 columns"),
        (lambda: decode(GRAPHS["transcript"], torch.zeros(2, 6)), "too short"),
        (lambda: decode(GRAPHS["grammar"], torch.zeros(4, 6), beam=0.0), "beam must be > 0"),
        (lambda: decode(transcript_graph(["a", "b"], UNITS), scores(3), beam=1e-9, word_beam=1e-9), "widen them"),
        (lambda: transcript_graph(["a", "maybe"], UNITS), "no unit for maybe"),
        (lambda: transcript_graph([], UNITS), "empty or disconnected"),
        (lambda: spotting_graph([[]], ["sil"], UNITS), "at least one phrase"),
        (lambda: ngram_graph(estimate_ngrams([["q"]]), UNITS), "no unit for q"),
        (lambda: loop_graph([], UNITS), "at least one"),
        (lambda: loop_graph(["a", "a"], UNITS), "different words"),
        (lambda: loop_graph(["a", "q"], UNITS, "sil"), "no unit for q"),
        (lambda: lexicon_graph({}, UNITS), "at least one word"),
        (lambda: lexicon_graph({"x": ""}, UNITS), "at least one unit"),
        (lambda: lexicon_graph({"x": "q"}, UNITS), "no unit for q"),
        (lambda: lexicon_graph({"one": "ab", "won": "ab"}, UNITS), "'one' and 'won' have the same units"),
    ],
)
def test_clear_errors(act, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        act()


def test_disconnected_and_gaining_graphs_are_refused() -> None:
    builder = GraphBuilder()
    start, middle, end = builder.node(), builder.node(), builder.node()
    builder.unit(start, middle, UNITS["a"])
    with pytest.raises(ModelError, match="disconnected"):
        builder.compile(start, end)
    builder.edge(middle, start, 1.0)
    builder.edge(start, middle, 1.0)
    builder.edge(middle, end)
    with pytest.raises(ModelError, match="gains weight"):
        builder.compile(start, end)
