"""Decoding graphs for common tasks: transcripts, grammars, loops, spotting, lexicons, n-gram language models.

All are compiled for `decode`; `graph.drawn` is the same graph with its nodes, as a trellis takes it. Words that lead to
the same node share one copy of the silence that may follow.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ppspeech.errors import ModelError
from ppspeech.models.decoding.builder import GraphBuilder, Unit
from ppspeech.models.decoding.grammar import Grammar, InOrder, Maybe, OneOf, Repeated, words_of
from ppspeech.models.decoding.graph import DecodingGraph
from ppspeech.models.decoding.language import END, START, Ngram, NgramModel

Units = Mapping[str, Unit]


def grammar_graph(grammar: Grammar, units: Units, silence: str | None = None) -> DecodingGraph:
    """What a grammar over names of units allows, with optional silence (a unit; None for no pauses) around words."""
    _require({*words_of(grammar), silence}, units)
    drawing = _Drawing(units, silence)
    builder = drawing.builder
    begin, end = builder.node(), builder.node()
    drawing.grammar(begin, end, grammar)
    return builder.compile(drawing.pause(begin), end)


def transcript_graph(words: Sequence[str], units: Units, silence: str | None = None) -> DecodingGraph:
    """Given words in their order, with optional silence: for alignment and for training on transcripts."""
    return grammar_graph(InOrder(tuple(words)), units, silence)


def loop_graph(
    words: Sequence[str], units: Units, silence: str | None = None, word_penalty: float = 0.0
) -> DecodingGraph:
    """Any words in any order, at least one or some silence: one node, at which every unit begins and ends.

    Silence, if there is a unit of it, is one more unit of the loop. All are equally probable; `word_penalty` is what
    every word costs besides, in nats, against short false ones. Raises ModelError for no word, one that is named twice,
    or one without a unit.
    """
    if not words or len({*words, silence}) < len(words) + 1:
        raise ModelError(f"a loop needs different words, at least one, besides silence; got {list(words)}")
    _require({*words, silence}, units)
    builder = GraphBuilder()
    hub, choice = builder.node(), -math.log(len(words) + (silence is not None))
    for word in words:
        builder.unit(hub, hub, units[word], choice - word_penalty)
    if silence is not None:
        builder.unit(hub, hub, units[silence], choice)
    return builder.compile(hub, hub)


def lexicon_graph(
    lexicon: Mapping[str, Sequence[str]], units: Units, silence: str | None = None, word_penalty: float = 0.0
) -> DecodingGraph:
    """A loop as `loop_graph` over words that are sequences of units, such as phones: a tree with shared beginnings.

    Which word it is becomes known at the end of its path, and is told there. Raises ModelError for no word, one without
    units or one that sounds as another, which no score could tell apart.
    """
    spelled = {tuple(parts): word for word, parts in lexicon.items()}
    if not lexicon or not all(lexicon.values()):
        raise ModelError("a lexicon needs at least one word, and every word at least one unit")
    alike = [word for word, parts in lexicon.items() if spelled[tuple(parts)] != word]
    if alike:
        same = spelled[tuple(lexicon[alike[0]])]
        raise ModelError(f"{alike[0]!r} and {same!r} have the same units: leave one of them out")
    _require({*itertools.chain(*lexicon.values()), silence}, units)
    builder = GraphBuilder()
    hub, choice = builder.node(), -math.log(len(lexicon) + (silence is not None))
    reached: dict[tuple[str, ...], int] = {(): hub}
    for parts, word in spelled.items():
        for size in range(1, len(parts) + 1):
            if parts[:size] not in reached:
                reached[parts[:size]] = builder.node()
                weight = choice - word_penalty if size == 1 else 0.0
                ends = reached[parts[: size - 1]], reached[parts[:size]]
                builder.unit(*ends, units[parts[size - 1]], weight, "first" if size == 1 else "further")
        builder.edge(reached[parts], hub, said=word)
    if silence is not None:
        builder.unit(hub, hub, units[silence], choice)
    return builder.compile(hub, hub)


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
    model: NgramModel,
    units: Units,
    silence: str | None = None,
    scale: float = 1.0,
    word_bonus: float = 0.0,
    back_off: Literal["exact", "plain"] = "exact",
) -> DecodingGraph:
    """Sentences of a language model, with optional silence around words.

    One node a history, one copy of a word for each history it leads to, and failure edges to shorter histories: a
    path's weight is exactly the model's score, never that of a back-off the model has a value for. With a `plain`
    back-off it is the better of the two: what a trellis, which has no failure edges, can do. `scale` weighs the
    language model against the emissions; `word_bonus` is added for each word, negative against short false words.
    Raises ModelError for a word of the model without a unit.
    """
    _require({*model.vocabulary, silence}, units)
    drawing = _Drawing(units, silence)
    builder = drawing.builder
    end = builder.node()
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
            builder.unit(enter, drawing.before(nodes[after]), units[word], word_bonus)
        builder.edge(here, copies[after, word], weight, symbol=word)
    for context, node in nodes.items():
        if context:
            weight = scale * model.log_backoff.get(context, 0.0)
            builder.failure(node, nodes[_longest(nodes, context[1:], model.order)], weight)
    start = drawing.pause(nodes[_longest(nodes, (START,), model.order)])
    graph = builder.graph(start, end)
    return (graph if back_off == "exact" else graph.plain()).compile()


def _longest(nodes: Mapping[Ngram, int], words: Ngram, order: int) -> Ngram:
    """The longest end of `words` that is a history with a node."""
    context = words[max(0, len(words) - order + 1) :]
    while context not in nodes:
        context = context[1:]
    return context


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A graph of words and the silence that may follow them."""

    units: Units
    silence: str | None
    builder: GraphBuilder = field(default_factory=GraphBuilder)
    _before: dict[int, int] = field(default_factory=dict)

    def pause(self, target: int) -> int:
        """A new node that leads to another directly or through silence, equally probable."""
        source = self.builder.node()
        self.builder.edge(source, target, 0.0 if self.silence is None else math.log(0.5))
        if self.silence is not None:
            self.builder.unit(source, target, self.units[self.silence], math.log(0.5))
        return source

    def before(self, target: int) -> int:
        """The node that words lead to which lead to another: all of them share one pause."""
        if target not in self._before:
            self._before[target] = self.pause(target)
        return self._before[target]

    def grammar(self, source: int, target: int, grammar: Grammar) -> None:
        """Draw what it allows between two nodes."""
        builder = self.builder
        match grammar:
            case str():
                builder.unit(source, self.before(target), self.units[grammar])
            case InOrder(parts):
                for part in parts:
                    following = builder.node()
                    self.grammar(source, following, part)
                    source = following
                builder.edge(source, target)
            case OneOf(parts):
                for part in parts:
                    chosen = builder.node()
                    builder.edge(source, chosen, -math.log(len(parts)))
                    self.grammar(chosen, target, part)
            case Maybe(part, probability):
                present = builder.node()
                builder.edge(source, present, math.log(probability))
                builder.edge(source, target, math.log1p(-probability))
                self.grammar(present, target, part)
            case Repeated(part, probability):
                again, done = builder.node(), builder.node()
                builder.edge(source, again)
                self.grammar(again, done, part)
                builder.edge(done, again, math.log(probability))
                builder.edge(done, target, math.log1p(-probability))


def _require(names: Iterable[str | None], units: Units) -> None:
    unknown = sorted(name for name in names if name is not None and name not in units)
    if unknown:
        raise ModelError(f"no unit for {', '.join(unknown)}; there are units for {', '.join(sorted(units))}")
