import itertools
import math
from pathlib import Path

import pytest

from ppspeech.errors import ModelError
from ppspeech.models.decoding.language import END, START, NgramModel, estimate_ngrams, read_arpa, write_arpa

TEXTS = [line.split() for line in ("a b a", "a b", "b c a b", "c", "a a b c")]


@pytest.mark.parametrize("smoothing", ["absolute", "witten_bell"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_probabilities_of_every_history_sum_to_one(smoothing, order: int) -> None:
    model = estimate_ngrams(TEXTS, order, smoothing)
    outcomes = [*model.vocabulary, END]
    for length in range(order + 1):
        for history in itertools.product([START, "a", "b", "c"], repeat=length):
            total = sum(math.exp(model.score(word, history)) for word in outcomes)
            assert total == pytest.approx(1, abs=1e-12)


def test_absolute_discounting_by_hand() -> None:
    model = estimate_ngrams([["a", "b"], ["a", "a"]], order=2, discount=0.5)
    # Unigrams: a 3, b 1, </s> 2 of 6; three kinds, so 0.5 * 3 / 6 is spread evenly over three.
    unigram = {"a": 2.5 / 6, "b": 0.5 / 6, END: 1.5 / 6}
    unigram = {word: p + 0.25 / 3 for word, p in unigram.items()}
    assert math.exp(model.score("b")) == pytest.approx(unigram["b"])
    # After a: b, a, </s>, once each of 3; left 0.5 * 3 / 3.
    assert math.exp(model.score("b", ["a"])) == pytest.approx(0.5 / 3 + 0.5 * unigram["b"])
    # After b: </s> once; a was never seen there.
    assert math.exp(model.score("a", ["b"])) == pytest.approx(0.5 * unigram["a"])
    assert model.sentence_score(["a"]) == pytest.approx(model.score("a", [START]) + model.score(END, [START, "a"]))


def test_arpa_files_come_back(tmp_path: Path) -> None:
    model = estimate_ngrams(TEXTS, 3)
    write_arpa(model, tmp_path / "lm.arpa")
    again = read_arpa(tmp_path / "lm.arpa")
    assert again.order == 3
    assert again.vocabulary == model.vocabulary == ("a", "b", "c")
    for text in TEXTS:
        assert again.sentence_score(text) == pytest.approx(model.sentence_score(text), abs=1e-5)


def test_an_arpa_file_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "lm.arpa").write_text(
        "\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n-0.5\t</s>\n-99\t<s>\t-0.3\n-0.2\tyes\t-0.1\n\n"
        "\\2-grams:\n-0.1\t<s> yes\n\n\\end\\\n"
    )
    model = read_arpa(tmp_path / "lm.arpa")
    assert model.score("yes", [START]) / math.log(10) == pytest.approx(-0.1)
    assert model.score(END, ["yes"]) / math.log(10) == pytest.approx(-0.6)
    assert model.score("yes", ["yes"]) / math.log(10) == pytest.approx(-0.3)


def test_doors(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="'maybe' is not in the language model"):
        estimate_ngrams(TEXTS).score("maybe")
    with pytest.raises(ModelError, match="at least one sentence"):
        estimate_ngrams([])
    with pytest.raises(ModelError, match="split it first"):
        estimate_ngrams(["a b"])
    with pytest.raises(ModelError, match="discount"):
        estimate_ngrams(TEXTS, discount=1)
    (tmp_path / "bad.arpa").write_text("\\data\\\nngram 1=1\n\\1-grams:\nnot a number\n")
    with pytest.raises(ModelError, match="line 4, is not ARPA"):
        read_arpa(tmp_path / "bad.arpa")
    (tmp_path / "short.arpa").write_text("\\data\\\nngram 1=2\n\\1-grams:\n-1\ta\n\\end\\\n")
    with pytest.raises(ModelError, match="holds"):
        read_arpa(tmp_path / "short.arpa")
    assert isinstance(estimate_ngrams(TEXTS), NgramModel)
