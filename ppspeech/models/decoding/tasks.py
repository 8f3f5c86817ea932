"""Decoding graphs for common tasks: transcripts, grammars, spotting, and n-gram language models."""

import itertools
import math
from collections.abc import Mapping, Sequence

from ppspeech.errors import ModelError
from ppspeech.models.decoding.grammar import Grammar, InOrder, Maybe, OneOf, Repeated, words_of
from ppspeech.models.decoding.graph import DecodingGraph, GraphBuilder, Unit
from ppspeech.models.decoding.language import END, START, Ngram, NgramModel

Units = Mapping[str, Unit]


def grammar_graph(grammar: Grammar, units: Units, silence: str | None = None) -> DecodingGraph:
    """What a grammar over names of units allows, with optional silence (a unit; None for no pauses) around words."""
    _require({*words_of(grammar), silence}, units)
    builder = GraphBuilder()
    start, begin, end = builder.node(), builder.node(), builder.node()
    _pause(builder, start, begin, units, silence)
    _draw(builder, begin, end, grammar, units, silence)
    return builder.compile(start, end)


def transcript_graph(words: Sequence[str], units: Units, silence: str | None = None) -> DecodingGraph:
    """Given words in their order, with optional silence: for alignment and for training on transcripts."""
    return grammar_graph(InOrder(tuple(words)), units, silence)


def spotting_graph(
    phrases: Sequence[Sequence[str]], garbage: Sequence[str], units: Units, reward: float = 0.0
) -> DecodingGraph:
    """Any number of phrases among garbage: keywords, or key phrases of several words.

    `garbage` units are for everything else, such as silence and a model of all speech; their `word` is None. `reward`
    is the log-weight of beginning a phrase: raise it to find more, lower it for fewer false alarms. Raises ModelError
    for a name without a unit, no phrase, or no garbage.
    """
    if not phrases or not all(phrases) or not garbage:
        raise ModelError("spotting needs at least one phrase of at least one word, and one garbage unit")
    _require({*garbage, *itertools.chain(*phrases)}, units)
    builder = GraphBuilder()
    hub, done = builder.node(), builder.node()
    for name in garbage:
        builder.unit(hub, done, units[name])
    for phrase in phrases:
        here = hub
        for i, name in enumerate(phrase):
            there = builder.node() if i < len(phrase) - 1 else done
            builder.unit(here, there, units[name], reward if i == 0 else 0.0)
            here = there
    start = builder.node()
    builder.edge(start, hub)
    builder.edge(done, hub)
    return builder.compile(start, done)


def ngram_graph(
    model: NgramModel, units: Units, silence: str | None = None, scale: float = 1.0, word_bonus: float = 0.0
) -> DecodingGraph:
    """Sentences of a language model, with optional silence around words.

    One node a history, one copy of a word for each history it leads to, and failure edges to shorter histories: a
    path's weight is exactly the model's score, never that of a back-off the model has a value for. `scale` weighs the
    language model against the emissions; `word_bonus` is added for each word, negative against short false words.
    Raises ModelError for a word of the model without a unit.
    """
    _require({*model.vocabulary, silence}, units)
    builder = GraphBuilder()
    start, end = builder.node(), builder.node()
    nodes: dict[Ngram, int] = {(): builder.node()}
    for ngram in [*model.log_backoff, *model.log_probability]:
        context = ngram if ngram in model.log_backoff else ngram[:-1]
        if END not in context and context not in nodes:
            nodes[context] = builder.node()
    copies: dict[tuple[Ngram, str], int] = {}
    for ngram, log_probability in model.log_probability.items():
        *before, word = ngram
        if word == START:
            continue
        here, weight = nodes[tuple(before)], scale * log_probability
        if word == END:
            builder.edge(here, end, weight, symbol=END)
            continue
        after = _longest(nodes, ngram, model.order)
        if (after, word) not in copies:
            copies[after, word] = enter = builder.node()
            leave = builder.node()
            builder.unit(enter, leave, units[word], word_bonus)
            _pause(builder, leave, nodes[after], units, silence)
        builder.edge(here, copies[after, word], weight, symbol=word)
    for context, node in nodes.items():
        if context:
            weight = scale * model.log_backoff.get(context, 0.0)
            builder.failure(node, nodes[_longest(nodes, context[1:], model.order)], weight)
    _pause(builder, start, nodes[_longest(nodes, (START,), model.order)], units, silence)
    return builder.compile(start, end)


def _longest(nodes: Mapping[Ngram, int], words: Ngram, order: int) -> Ngram:
    """The longest end of `words` that is a history with a node."""
    context = words[max(0, len(words) - order + 1) :]
    while context not in nodes:
        context = context[1:]
    return context


def _pause(builder: GraphBuilder, source: int, target: int, units: Units, silence: str | None) -> None:
    """Join two nodes directly or through silence, equally probable."""
    builder.edge(source, target, 0.0 if silence is None else math.log(0.5))
    if silence is not None:
        builder.unit(source, target, units[silence], math.log(0.5))


def _draw(builder: GraphBuilder, source: int, target: int, grammar: Grammar, units: Units, silence: str | None) -> None:
    match grammar:
        case str():
            spoken = builder.node()
            builder.unit(source, spoken, units[grammar])
            _pause(builder, spoken, target, units, silence)
        case InOrder(parts):
            for part in parts:
                following = builder.node()
                _draw(builder, source, following, part, units, silence)
                source = following
            builder.edge(source, target)
        case OneOf(parts):
            for part in parts:
                chosen = builder.node()
                builder.edge(source, chosen, -math.log(len(parts)))
                _draw(builder, chosen, target, part, units, silence)
        case Maybe(part, probability):
            present = builder.node()
            builder.edge(source, present, math.log(probability))
            builder.edge(source, target, math.log1p(-probability))
            _draw(builder, present, target, part, units, silence)
        case Repeated(part, probability):
            again, done = builder.node(), builder.node()
            builder.edge(source, again)
            _draw(builder, again, done, part, units, silence)
            builder.edge(done, again, math.log(probability))
            builder.edge(done, target, math.log1p(-probability))


def _require(names: set[str | None], units: Units) -> None:
    unknown = sorted(name for name in names if name is not None and name not in units)
    if unknown:
        raise ModelError(f"no unit for {', '.join(unknown)}; there are units for {', '.join(sorted(units))}")
