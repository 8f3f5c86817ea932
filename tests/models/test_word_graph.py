"""Graphs as drawn: what a recursion over their vertices finds is what the decoder finds."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ppspeech.errors import ModelError
from ppspeech.models.decoding.builder import GraphBuilder, Unit, joined_units
from ppspeech.models.decoding.decoder import decode
from ppspeech.models.decoding.grammar import OneOf, Repeated, parse_grammar
from ppspeech.models.decoding.graph import LATER, NOTHING, Edge, WordGraph
from ppspeech.models.decoding.language import END, START, NgramModel, estimate_ngrams
from ppspeech.models.decoding.tasks import (
    grammar_graph,
    lexicon_graph,
    loop_graph,
    ngram_graph,
    spotting_graph,
    transcript_graph,
)
from ppspeech.models.hmm.forward_backward import LOG_ZERO
from tests.models.test_decoder import GRAPHS, UNITS, scores, unit

Heard = list[tuple[str, int, int]]

APART = {"a": unit("a", 0, 1), "b": unit("b", 2, 3), "c": unit("c", 4, 5), "sil": unit(None, 6), "any": unit(None, 7)}
"""Units that share no column: no two paths of random scores are equally good."""

PLAIN = {
    "transcript": transcript_graph(["a", "b"], APART, "sil"),
    "grammar": grammar_graph(parse_grammar("(a | b [c])+"), APART, "sil"),
    "spotting": spotting_graph([["a"], ["b", "c"]], ["sil", "any"], APART, reward=1.0),
    "loop": loop_graph(["a", "b", "c"], APART, "sil", word_penalty=2.0),
    "lexicon": lexicon_graph({"ba": "ba", "bab": "bab", "b": "b", "c": "c"}, APART, "sil"),
    "bigram": ngram_graph(estimate_ngrams([["a", "b"], ["b", "c", "a"]], 2), APART, "sil", back_off="plain"),
    "empty rounds": grammar_graph(parse_grammar("([a] [b c])+ b?"), APART, "sil"),
}


def heard(graph: object, emissions: Tensor) -> Heard:
    return [(w.word, w.start, w.end) for w in decode(graph, emissions).words]  # type: ignore[arg-type]


def passed_on(graph: WordGraph, emissions: Tensor) -> tuple[float, Heard]:
    """Token passing over the graph as drawn: states take the frame before, nodes this frame, in their order.

    A token is a score, the words so far and, of the word that is going on, its number (or LATER) and first frame.
    """
    order, rows = graph.node_order(), emissions.tolist()
    into: dict[int, list[Edge]] = {v: [] for v in range(len(graph.pdfs))}
    for edge in graph.edges:
        into[edge.target].append(edge)
    token = tuple[float, tuple[tuple[int, int, int], ...], int, int]
    before: dict[int, token] = {graph.start: (0.0, (), NOTHING, 0)}  # type: ignore[valid-type]

    def taken(edge: Edge, given: dict[int, token], frame: int) -> token | None:  # type: ignore[valid-type]
        if edge.source not in given:
            return None
        score, words, word, since = given[edge.source]
        if edge.said != NOTHING:
            assert word == LATER
            word = edge.said
        if edge.entry != NOTHING:
            words = (*words, (word, since, frame)) if word != NOTHING else words
            word, since = edge.entry, frame
        return score + edge.log_weight, words, word, since

    def reach_nodes(now: dict[int, token], frame: int) -> None:  # type: ignore[valid-type]
        for node in order:
            found = [t for edge in into[node] if (t := taken(edge, now, frame)) is not None]
            if node in now:
                found.append(now[node])
            if found:
                now[node] = max(found)

    reach_nodes(before, 0)
    for frame, row in enumerate(rows):
        now = {}
        for vertex, pdf in enumerate(graph.pdfs):
            found = [t for edge in into[vertex] if (t := taken(edge, before, frame)) is not None]
            if pdf is not None and found:
                score, *rest = max(found)
                now[vertex] = (score + row[pdf], *rest)
        reach_nodes(now, frame + 1)
        before = now
    score, words, word, since = before[graph.end]
    words = (*words, (word, since, len(rows)))
    said = [(graph.words[w], a, b) for w, a, b in words]
    return score, [(w, a, b) for w, a, b in said if w is not None]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), frames=st.integers(6, 12), name=st.sampled_from(sorted(PLAIN)))
def test_a_recursion_over_the_drawn_graph_hears_the_same(seed: int, frames: int, name: str) -> None:
    graph, emissions = PLAIN[name], scores(frames, seed, 8)
    score, words = passed_on(graph.drawn, emissions)
    found = decode(graph, emissions)
    assert score == pytest.approx(found.score, abs=1e-9)
    assert words == [(w.word, w.start, w.end) for w in found.words]


def test_drawn_graphs_have_no_loop_of_nodes_and_nothing_to_spare() -> None:
    for graph in GRAPHS.values():
        drawn = graph.drawn
        nodes = [v for v, pdf in enumerate(drawn.pdfs) if pdf is None]
        assert sorted(drawn.node_order()) == nodes
        place = {v: i for i, v in enumerate(drawn.node_order())}
        for edge in drawn.edges:
            if edge.source in place and edge.target in place:
                assert place[edge.source] < place[edge.target]
        assert sum(pdf is not None for pdf in drawn.pdfs) == graph.states
        assert drawn.compile().log_weights.tolist() == graph.log_weights.tolist()


def test_words_that_lead_to_one_node_share_a_pause() -> None:
    builder, half = GraphBuilder(), math.log(0.5)
    start, begin, again, done, end = (builder.node() for _ in range(5))

    def pause(source: int, target: int) -> None:
        builder.edge(source, target, half)
        builder.unit(source, target, UNITS["sil"], half)

    pause(start, begin)
    builder.edge(begin, again)
    for word in "abc":
        spoken = builder.node()
        builder.unit(again, spoken, UNITS[word], -math.log(3))
        pause(spoken, done)
    builder.edge(done, again, half)
    builder.edge(done, end, half)
    apart = builder.compile(start, end)
    shared = grammar_graph(Repeated(OneOf(("a", "b", "c"))), UNITS, "sil")
    assert shared.states == apart.states - 2
    for seed in range(40):
        one, other = (decode(graph, scores(4 + seed % 9, seed)) for graph in (apart, shared))
        assert one.score == pytest.approx(other.score, abs=1e-9)
        assert [(w.word, w.start, w.end) for w in one.words] == [(w.word, w.start, w.end) for w in other.words]


def test_rounds_that_may_be_empty_are_taken_once_at_most() -> None:
    """([a] [b])+: every round costs a quarter, another round half; words need as many rounds as they do not rise."""
    graph = grammar_graph(parse_grammar("([a] [b])+"), UNITS)
    for seed in range(20):
        emissions, best = scores(6, seed), LOG_ZERO
        for words in itertools.chain.from_iterable(itertools.product("ab", repeat=n) for n in range(1, 7)):
            rounds = 1 + sum(left >= right for left, right in itertools.pairwise(words))
            try:
                spoken = decode(transcript_graph(words, UNITS), emissions).score
            except ModelError:
                continue  # longer than the frames
            best = max(best, spoken + rounds * math.log(0.25) + rounds * math.log(0.5))
        assert decode(graph, emissions).score == pytest.approx(best, abs=1e-9)


def plain_scores(model: NgramModel, sentence: tuple[str, ...]) -> float:
    """The best of all ways to back off, or not, before every word and the end."""
    known = {(), *model.log_backoff} | {ngram[:-1] for ngram in model.log_probability}

    def longest(words: tuple[str, ...]) -> tuple[str, ...]:
        words = words[max(0, len(words) - model.order + 1) :]
        return words if words in known else longest(words[1:])

    ways = {longest((START,)): 0.0}
    for word in (*sentence, END):
        after: dict[tuple[str, ...], float] = {}
        for context, score in ways.items():
            while True:
                if (*context, word) in model.log_probability:
                    then = longest((*context, word)) if word != END else ()
                    total = score + model.log_probability[*context, word]
                    after[then] = max(after.get(then, LOG_ZERO), total)
                if not context:
                    break
                score += model.log_backoff.get(context, 0.0)
                context = longest(context[1:])
        ways = after
    return max(ways.values())


@pytest.mark.parametrize("order", [2, 3])
def test_a_plain_back_off_is_the_best_of_all_ways(order: int) -> None:
    model = estimate_ngrams([["x", "y", "x"], ["y"], ["x", "y", "y", "z"], ["z", "x"], ["x", "x"]], order)
    model = replace(model, log_backoff={h: w + 1.0 for h, w in model.log_backoff.items()})  # so that it pays at times
    sure = {w: Unit(w, (i,), (0.0,), ((LOG_ZERO,),), (0.0,)) for i, w in enumerate("xyz")}
    plain, exact = ngram_graph(model, sure, back_off="plain"), ngram_graph(model, sure)
    assert exact.drawn.has_failures
    assert not plain.drawn.has_failures
    pays = 0
    for sentence in itertools.chain.from_iterable(itertools.product("xyz", repeat=n) for n in (1, 2, 3)):
        emissions = torch.full((len(sentence), 3), -1e6, dtype=torch.float64)
        emissions[range(len(sentence)), ["xyz".index(w) for w in sentence]] = 0.0
        found = decode(plain, emissions)
        assert tuple(w.word for w in found.words) == sentence
        assert found.score == pytest.approx(plain_scores(model, sentence), abs=1e-9)
        pays += found.score > decode(exact, emissions).score + 1e-6
    assert pays


def in_one(word: str, *parts: Unit) -> Unit:
    """Units one after the other as one."""
    size = sum(len(part.pdfs) for part in parts)
    rows, at, leaving = [[LOG_ZERO] * size for _ in range(size)], 0, [LOG_ZERO] * size
    for number, part in enumerate(parts):
        n = len(part.pdfs)
        for i in range(n):
            rows[at + i][at : at + n] = part.log_transitions[i]
            if number + 1 < len(parts):
                for j, enter in enumerate(parts[number + 1].log_initial):
                    rows[at + i][at + n + j] = part.log_exit[i] + enter
            else:
                leaving[at + i] = part.log_exit[i]
        at += n
    first = [*parts[0].log_initial, *[LOG_ZERO] * (size - len(parts[0].pdfs))]
    pdfs = tuple(pdf for part in parts for pdf in part.pdfs)
    return Unit(word, pdfs, tuple(first), tuple(map(tuple, rows)), tuple(leaving))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), frames=st.integers(3, 12))
def test_a_tree_hears_what_a_loop_of_whole_words_hears(seed: int, frames: int) -> None:
    lexicon = {
        "bar": "ba",
        "bark": "bac",
        "bay": "baa",
        "be": "bc",
        "bee": "bca",
    }  # no word ends as one begins: no ties
    tree = lexicon_graph(lexicon, UNITS, "sil", word_penalty=0.5)
    whole = {word: in_one(word, *(UNITS[part] for part in parts)) for word, parts in lexicon.items()}
    flat = loop_graph(tuple(lexicon), whole | {"sil": UNITS["sil"]}, "sil", word_penalty=0.5)
    assert tree.states < flat.states
    emissions = scores(frames, seed)
    found, expected = decode(tree, emissions), decode(flat, emissions)
    assert found.score == pytest.approx(expected.score, abs=1e-9)
    for one, other in zip(found.words, expected.words, strict=True):
        assert (one.word, one.start, one.end) == (other.word, other.start, other.end)
        assert one.score == pytest.approx(other.score, abs=1e-9)


def test_a_loop_is_one_node() -> None:
    drawn = loop_graph(["a", "b"], UNITS, "sil", word_penalty=1.5).drawn
    assert [v for v, pdf in enumerate(drawn.pdfs) if pdf is None] == [drawn.start] == [drawn.end]
    assert drawn.words == ("a", "b", None)
    entering = {drawn.words[e.entry]: e.log_weight for e in drawn.edges if e.entry != NOTHING}
    third = -math.log(3)
    assert entering == pytest.approx({"a": third - 1.5, "b": third - 1.5, None: third})
    line = torch.full((6, 6), -30.0)
    line[range(6), [4, 2, 2, 0, 1, 4]] = 0.0
    assert heard(loop_graph(["a", "b"], UNITS, "sil"), line) == [("b", 1, 3), ("a", 3, 5)]


NODES = (None, 0, None)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: WordGraph(NODES, (-1, 0, -1), (Edge(0, 3, 0.0),), 0, 2, ("a",)), "none of a graph of 3"),
        (lambda: WordGraph(NODES, (-1, 0, -1), (Edge(0, 1, 0.0, 1),), 0, 2, ("a",)), "none of the 1 words"),
        (lambda: WordGraph(NODES, (-1, 0, -1), (Edge(0, 2, 0.0, said=LATER),), 0, 2, ("a",)), "none of the 1 words"),
        (lambda: WordGraph(NODES, (-1, 0, -1), (), 1, 2, ("a",)), "starts and ends in nodes"),
        (lambda: WordGraph(NODES, (-1, 0, -1), (Edge(0, 2, -1.0), Edge(2, 0, -1.0)), 0, 2, ("a",)), "nodes alone"),
        (lambda: WordGraph(NODES, (-1, 0, -1), (Edge(0, 0, -1.0),), 0, 2, ("a",)), "nodes alone"),
    ],
)
def test_what_is_no_graph_is_refused(act: object, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        act()  # type: ignore[operator]


def test_loops_without_a_unit_that_mean_something_are_refused() -> None:
    for join in ({"said": "a"}, {"symbol": "a"}):
        builder = GraphBuilder()
        start, end = builder.node(), builder.node()
        builder.unit(start, end, UNITS["a"])
        builder.edge(start, end, -1.0)
        builder.edge(end, start, -1.0, **join)
        with pytest.raises(ModelError, match="holds no unit"):
            builder.graph(start, end)
    builder = GraphBuilder()
    start, end = builder.node(), builder.node()
    builder.unit(start, end, UNITS["a"])
    builder.edge(start, start, 0.5)
    with pytest.raises(ModelError, match="gains weight"):
        builder.graph(start, end)


def random_ngrams(seed: int, order: int) -> NgramModel:
    """A back-off model in which nothing adds up: shorter histories may be worth more than longer ones."""
    drawn, words = torch.Generator().manual_seed(seed), ("a", "b", "c")
    histories: list[tuple[str, ...]] = [(), (START,), *((word,) for word in words)]
    if order == 3:
        histories += [(START, "a"), ("a", "b"), ("b", "b")]
    listed = {
        (*history, word): float(-3 * torch.rand((), generator=drawn))
        for history in histories
        for word in (*words, END)
        if not history or torch.rand((), generator=drawn) < 0.6
    }
    listed[(START,)] = -228.0
    back_offs = {history: float(-torch.rand((), generator=drawn)) for history in histories if history}
    return NgramModel(order, listed, back_offs)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_back_offs_are_followed_exactly_without_failure_edges(seed: int, order: int) -> None:
    graph = ngram_graph(random_ngrams(seed, order), APART, "sil", scale=4.0)
    drawn = graph.drawn.without_failures()
    assert graph.drawn.has_failures
    assert not drawn.has_failures
    served = drawn.shortened().compile()
    for each in range(6):
        line = scores(14, 100 * seed + each, 8)
        exact, found = decode(graph, line), decode(served, line)
        assert found.score == pytest.approx(exact.score)
        assert [(w.word, w.start, w.end) for w in found.words] == [(w.word, w.start, w.end) for w in exact.words]
    plain = [decode(graph.drawn.plain().compile(), scores(14, 100 * seed + each, 8)).score for each in range(6)]
    assert all(worth >= decode(graph, scores(14, 100 * seed + e, 8)).score - 1e-6 for e, worth in enumerate(plain))


def test_interpolated_bigrams_stay_small_and_others_are_expanded() -> None:
    """No edge is added where backing off never gains; where it would, plain edges would be wrong."""
    smooth = ngram_graph(estimate_ngrams([list("abc"), list("ab"), list("ca")], 2), APART).drawn
    assert len(smooth.without_failures().edges) == len(smooth.edges)
    unigrams = {(word,): -1.0 for word in ("a", "b", END)} | {(START,): -228.0}
    rough = NgramModel(2, unigrams | {("a", "b"): -9.0, (START, "a"): -0.1}, {("a",): -0.1, (START,): -0.1})
    graph = ngram_graph(rough, APART)
    line = torch.full((4, 8), -30.0)
    line[range(4), [0, 1, 2, 3]] = 0.0
    exact = decode(graph, line).score
    assert decode(graph.drawn.without_failures().compile(), line).score == pytest.approx(exact)
    assert decode(graph.drawn.plain().compile(), line).score > exact + 5
    node = next(edge.source for edge in graph.drawn.edges if edge.failure)
    strange = replace(graph.drawn, edges=(*graph.drawn.edges, Edge(node, graph.drawn.end, -1.0)))
    with pytest.raises(ModelError, match="without a symbol"):
        strange.without_failures()


@pytest.mark.parametrize("name", PLAIN)
def test_a_shortened_graph_has_the_same_paths(name: str) -> None:
    graph = PLAIN[name]
    short = graph.drawn.shortened()
    assert len(short.pdfs) <= len(graph.drawn.pdfs)
    for seed in range(10):
        line = scores(9, seed, 8)
        one, other = decode(graph, line), decode(short.compile(), line)
        assert one.score == pytest.approx(other.score)
        assert [(w.word, w.start, w.end) for w in one.words] == [(w.word, w.start, w.end) for w in other.words]
    if name == "lexicon":
        assert len(short.pdfs) < len(graph.drawn.pdfs)


def test_a_word_of_units_is_the_units_one_after_another() -> None:
    """As many paths, with the same weights, as a transcript of the parts has."""
    word = joined_units("bac", [APART[part] for part in "bac"])
    together, apart = transcript_graph(["bac"], {"bac": word}), transcript_graph(["b", "a", "c"], APART)
    for seed in range(10):
        line = scores(11, seed, 8)
        assert decode(together, line).score == pytest.approx(decode(apart, line).score)
    assert [w.word for w in decode(together, line).words] == ["bac"]
