r"""N-gram language models with back-off: estimated from texts, read from and written to ARPA files.

    P(w | h) = stated value                       if the n-gram (h, w) is in the model
             = backoff(h) P(w | h without its first word)   otherwise

Estimation interpolates each order with the one below, down to the uniform distribution over the vocabulary,
so probabilities of every history sum to one:

    P(w | h) = ( c(h, w) - d )+ / c(h)  +  g(h) P(w | shorter h)

absolute discounting: d = the discount, g(h) = d N(h) / c(h); Witten-Bell: d = 0, c(h) counts N(h) more, and
g(h) = N(h) / (c(h) + N(h)), where N(h) is the number of different words seen after h.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ppspeech.errors import ModelError
from ppspeech.storage import atomic_write

START, END = "<s>", "</s>"
NEVER = -99.0  # how ARPA files write log10 of zero, as for <s>, which only ever begins a sentence

Ngram = tuple[str, ...]


@dataclass(frozen=True)
class NgramModel:
    """A back-off model over a closed vocabulary.

    Attributes:
        log_probability: natural log of P(w | h) for each n-gram (*h, w) in the model.
        log_backoff: natural log of the back-off weight of each history that has one; 0 elsewhere.
    """

    order: int
    log_probability: dict[Ngram, float]
    log_backoff: dict[Ngram, float]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words, sorted, without the sentence marks."""
        return tuple(
            sorted(ngram[0] for ngram in self.log_probability if len(ngram) == 1 and ngram[0] not in {START, END})
        )

    def history(self, words: Sequence[str]) -> Ngram:
        """The longest end of `words` that the model tells apart."""
        context = tuple(words)[max(0, len(words) - self.order + 1) :]
        while context and context not in self.log_backoff:
            context = context[1:]
        return context

    def score(self, word: str, history: Sequence[str] = ()) -> float:
        """ln P(word | history). Raises ModelError if the word is not in the vocabulary."""
        if (word,) not in self.log_probability:
            raise ModelError(
                f"the word {word!r} is not in the language model's vocabulary of {len(self.vocabulary)} words"
            )
        context, total = self.history(history), 0.0
        while (*context, word) not in self.log_probability:
            total += self.log_backoff.get(context, 0.0)
            context = context[1:]
        return total + self.log_probability[(*context, word)]

    def sentence_score(self, words: Sequence[str]) -> float:
        """ln P of a whole sentence, its end included."""
        marked = [START, *words, END]
        return sum(self.score(word, marked[:i]) for i, word in enumerate(marked) if i)


def estimate_ngrams(
    texts: Iterable[Sequence[str]],
    order: int = 2,
    smoothing: Literal["absolute", "witten_bell"] = "absolute",
    discount: float = 0.5,
) -> NgramModel:
    """Estimate a model from sentences, each a sequence of words; `discount` is d of absolute discounting, in (0, 1)."""
    if order < 1 or not 0 < discount < 1:
        raise ModelError(f"order must be >= 1 and discount in (0, 1), got {order} and {discount}")
    followers: dict[Ngram, Counter[str]] = defaultdict(Counter)
    for text in texts:
        if isinstance(text, str):
            raise ModelError(f"a text must be a sequence of words, got the string {text!r}: split it first")
        marked = (START, *text, END)
        for i in range(1, len(marked)):
            for n in range(min(order, i + 1)):
                followers[marked[i - n : i]][marked[i]] += 1
    if not followers:
        raise ModelError("a language model needs at least one sentence, got none")

    probability: dict[Ngram, float] = {}
    backoff: dict[Ngram, float] = {}
    uniform = 1 / len(followers[()])
    for history in sorted(followers, key=len):
        counts = followers[history]
        seen, distinct = sum(counts.values()), len(counts)
        if smoothing == "absolute":
            taken, whole, left = discount, seen, discount * distinct / seen
        else:
            taken, whole, left = 0.0, seen + distinct, distinct / (seen + distinct)
        for word, count in counts.items():
            below = probability[(*history[1:], word)] if history else uniform
            probability[(*history, word)] = (count - taken) / whole + left * below
        if history:
            backoff[history] = math.log(left)
    logs = {ngram: math.log(p) for ngram, p in probability.items()}
    logs.setdefault((START,), NEVER * math.log(10))
    return NgramModel(order, logs, backoff)


def write_arpa(model: NgramModel, path: Path) -> None:
    """Write the model as ARPA text, whole or not at all."""
    lines = ["\\data\\"]
    by_order = [sorted(g for g in model.log_probability if len(g) == n) for n in range(1, model.order + 1)]
    lines += [f"ngram {n}={len(ngrams)}" for n, ngrams in enumerate(by_order, start=1)]
    for n, ngrams in enumerate(by_order, start=1):
        lines += ["", f"\\{n}-grams:"]
        for ngram in ngrams:
            line = f"{model.log_probability[ngram] / math.log(10):.7f}\t{' '.join(ngram)}"
            if ngram in model.log_backoff:
                line += f"\t{model.log_backoff[ngram] / math.log(10):.7f}"
            lines.append(line)
    lines += ["", "\\end\\", ""]
    with atomic_write(path) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")


def read_arpa(path: Path) -> NgramModel:
    """Read a model from ARPA text. Raises ModelError naming the line that is not ARPA, or a count that differs."""
    probability: dict[Ngram, float] = {}
    backoff: dict[Ngram, float] = {}
    stated: dict[int, int] = {}
    n = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        line = line.strip()
        if not line or line == "\\data\\":
            continue
        if line == "\\end\\":
            break
        try:
            if line.startswith("ngram "):
                of, count = line.removeprefix("ngram ").split("=")
                stated[int(of)] = int(count)
            elif line.startswith("\\"):
                n = int(line.removeprefix("\\").removesuffix("-grams:"))
            else:
                value, *rest = line.split()
                ngram = tuple(rest[:n])
                if n < 1 or not n <= len(rest) <= n + 1:
                    raise ValueError("wrong number of words")
                probability[ngram] = float(value) * math.log(10)
                if len(rest) == n + 1:
                    backoff[ngram] = float(rest[n]) * math.log(10)
        except ValueError as wrong:
            raise ModelError(f"{path}, line {number}, is not ARPA: {line!r} ({wrong})") from wrong
    found = {k: sum(len(ngram) == k for ngram in probability) for k in stated}
    if not stated or found != stated:
        raise ModelError(f"{path} states {stated or 'no'} n-grams and holds {found}")
    return NgramModel(max(stated), probability, backoff)
