"""The one registry: names given once, found lazily, refused with a hint."""

import sys
from pathlib import Path

import pytest

from ppspeech.errors import CorpusError, PpspeechError
from ppspeech.registry import Listed, Registry, listed


def test_entries_are_found_by_name_and_names_by_entry() -> None:
    numbers: Registry[int] = Registry("number")
    assert numbers.enter("seven", 7) == 7
    numbers.enter("five", 5)
    assert (list(numbers), len(numbers), numbers["seven"], "five" in numbers) == (["five", "seven"], 2, 7, True)
    assert numbers.name_of(numbers["five"]) == "five"


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("sevn", "no number called 'sevn': did you mean 'seven'"),
        ("xyzzy", "no number called 'xyzzy': known are five, seven"),
        ("", "no number called ''"),
        ("../five", "no number called '../five'"),
    ],
)
def test_unknown_names_are_refused(name: str, complaint: str) -> None:
    numbers: Registry[int] = Registry("number", error=CorpusError)
    numbers.enter("seven", 7)
    numbers.enter("five", 5)
    with pytest.raises(CorpusError, match=complaint):
        numbers[name]


def test_a_name_is_given_once() -> None:
    numbers: Registry[int] = Registry("number")
    numbers.enter("seven", 7)
    with pytest.raises(PpspeechError, match="a number called 'seven' is registered already"):
        numbers.register("seven")(8)
    with pytest.raises(PpspeechError, match="is not a registered number"):
        numbers.name_of(object())


ENTRY = """'''About {name}.

More.
'''
from shelf import BOOKS
BOOKS.register({name!r})({name!r})
"""


def test_modules_are_imported_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "__init__.py").write_text(
        "from ppspeech.registry import Registry\nBOOKS = Registry('book', 'shelf', 'annex')\n"
    )
    (shelf / "first_one.py").write_text(ENTRY.format(name="first-one"))
    (shelf / "second.py").write_text(ENTRY.format(name="second"))
    (tmp_path / "annex.py").write_text(ENTRY.format(name="third"))
    (tmp_path / "cellar.py").write_text(ENTRY.format(name="fourth"))
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        from shelf import BOOKS  # type: ignore[import-not-found]

        about = {name: Listed(f"About {name}.") for name in ("first-one", "second")}
        assert listed("shelf") == about
        assert listed("shelf.second") == {"second": about["second"]}
        assert not {"shelf.first_one", "shelf.second"} & set(sys.modules)  # files are read, not imported
        assert BOOKS["first-one"] == "first-one"
        assert "shelf.second" not in sys.modules  # an entry named after its file is found alone
        assert BOOKS.names() == ("first-one", "second", "third")
        BOOKS.look_in("cellar")
        assert BOOKS["fourth"] == "fourth"
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] in {"shelf", "annex", "cellar"}]:
            del sys.modules[name]
