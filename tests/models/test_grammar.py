import pytest

from ppspeech.errors import ModelError
from ppspeech.models.decoding.grammar import InOrder, Maybe, OneOf, Repeated, parse_grammar, words_of


def test_text_becomes_structure() -> None:
    assert parse_grammar("go") == "go"
    assert parse_grammar("a b | c") == OneOf((InOrder(("a", "b")), "c"))
    assert parse_grammar("(a | b)* c?") == InOrder((Maybe(Repeated(OneOf(("a", "b")))), Maybe("c")))
    assert words_of(parse_grammar("play [the] (one | two)+")) == {"play", "the", "one", "two"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "needs a word"),
        ("a | ", "needs a word"),
        ("(a", "never closes"),
        ("a)", r"unexpected '\)'"),
        ("+ a", "must follow"),
        ("[a)", "never closes"),
        ("(" * 33 + "a" + ")" * 33, "nests at most 32"),
        ("a" + "+" * 33, "nests at most 32"),
    ],
)
def test_what_is_not_a_grammar_is_refused(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        parse_grammar(text)
    with pytest.raises(ModelError, match="at least one part"):
        OneOf(())
    with pytest.raises(ModelError, match="strictly between"):
        Repeated("a", probability=1.0)
