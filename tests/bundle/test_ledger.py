"""A ledger: releases compose by the accountant, and no line is changed, moved, taken out or cut off unseen."""

import errno
import hashlib
import json
import math
import multiprocessing
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.bundle import (
    Bundle,
    Ledger,
    add_release,
    check_signed_head,
    load_bundle,
    make_signing_key,
    read_ledger,
    sign_head,
    write_bundle,
)
from ppspeech.bundle.releases.ledger import NOTHING, parse_ledger
from ppspeech.errors import BundleError, PrivacyError
from ppspeech.privacy import Accountant, GaussianEvent, PureEvent, Relation, gaussian_epsilon
from ppspeech.storage import atomic_write
from tests.bundle.conftest import plain_account, small_config, statement_of, trained

SPEAKER = Relation("speaker", "add_remove")
SEAL = len(', "hash": ""}') + 64  # the end of a line, which its hash is not about


def release(folder: Path, account: Accountant) -> Bundle:
    config = small_config()
    statement = statement_of(account)
    return write_bundle(folder, model=trained(config), config=config, statement=statement, account=account)


def gaussian(noise: float, relation: Relation = SPEAKER) -> Accountant:
    account = Accountant(relation)
    account.compose(GaussianEvent(noise, relation))
    return account


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    """Four releases of Gaussian noise 4, 5, 6 and 7."""
    folder = tmp_path_factory.mktemp("bundles")
    return [release(folder / str(noise), gaussian(noise)) for noise in (4.0, 5.0, 6.0, 7.0)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, bundles: list[Bundle]) -> bytes:
    """A ledger of three of them."""
    path = tmp_path_factory.mktemp("ledger") / "releases.jsonl"
    for bundle in bundles[:3]:
        add_release(path, bundle, data="ward 7", by="Ann Ünger")
    return path.read_bytes()


def test_releases_compose_as_one_gaussian_does(whole: bytes) -> None:
    """Noise z once each is exactly one Gaussian of (sum 1/z^2)^-1/2: less than the epsilons added up."""
    ledger = parse_ledger(whole)
    (total,) = ledger.totals("ward 7")
    exact = gaussian_epsilon(1e-5, math.sqrt(1 / 16 + 1 / 25 + 1 / 36))
    assert total.epsilon == pytest.approx(exact, rel=1e-9)
    added = sum(each.entry.epsilon or math.inf for each in ledger.booked)
    assert total.epsilon < 0.65 * added
    assert (total.releases, total.delta, total.relation) == (3, 1e-5, SPEAKER)
    assert ledger.totals("ward 7", 1e-7)[0].epsilon > total.epsilon
    assert ledger.totals("ward 8") == ()


def test_a_line_says_all_and_people_can_read_and_check_it(whole: bytes, bundles: list[Bundle]) -> None:
    lines = whole.splitlines()
    first = json.loads(lines[0])
    assert first["by"] == "Ann Ünger"
    assert "Ünger" in whole.decode()
    assert (first["number"], first["data"], first["what"], first["previous"]) == (1, "ward 7", "keyword_hmm", NOTHING)
    assert first["bundle"] == bundles[0].fingerprint
    assert first["account"] == bundles[0].account.to_json()
    body, seal = lines[0][:-SEAL], lines[0][-SEAL:]
    assert seal.decode() == f', "hash": "{hashlib.sha256(body).hexdigest()}"}}'
    assert json.loads(lines[1])["previous"] == first["hash"]
    for each in parse_ledger(whole).booked:
        each.check()


def rehashed(line: bytes, old: str, new: str) -> bytes:
    """A line that says something else, under a hash that fits it."""
    assert old.encode() in line
    body = line[:-SEAL].replace(old.encode(), new.encode())
    return body + f', "hash": "{hashlib.sha256(body).hexdigest()}"}}'.encode()


Change = Callable[[list[bytes]], Sequence[bytes]]

DAMAGED: dict[str, tuple[Change, str]] = {
    "edited": (lambda o: [o[0].replace(b"ward 7", b"ward 8"), *o[1:]], "line 1 of the ledger was changed after"),
    "edited, hash and all": (lambda o: [rehashed(o[0], "ward 7", "ward 8"), *o[1:]], "entry 2 does not follow"),
    "reordered": (lambda o: [o[0], o[2], o[1]], "not in its order: entry 3 stands where entry 2 belongs"),
    "one taken out": (lambda o: [o[0], o[2]], "entry 2 was taken out of the ledger: entry 3"),
    "the first taken out": (lambda o: o[1:], "entry 1 was taken out"),
    "one twice": (lambda o: [o[0], o[0], o[1], o[2]], "entry 1 twice"),
    "without a beginning": (lambda o: [rehashed(o[0], NOTHING, "1" * 64)], "the beginning of the ledger was cut off"),
    "without a hash": (lambda o: [b'{"format": 1}', *o[1:]], "does not end with its hash"),
    "an empty line": (lambda o: [o[0], b"", *o[1:]], "does not end with its hash"),
    "no account": (lambda o: [rehashed(o[0], '"account": {', '"accounts": {')], "has no account"),
    "another format": (lambda o: [rehashed(o[0], '{"format": 1, "number"', '{"format": 2, "number"')], "of format 1"),
    "no time": (lambda o: [rehashed(o[0], "T", " ")], "time must read like"),
    "a secret": (lambda o: [rehashed(o[0], "Ann", "A" * 70)], "looks like a key"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_refused_each_in_its_own_words(name: str, whole: bytes) -> None:
    change, message = DAMAGED[name]
    with pytest.raises(BundleError, match=message):
        parse_ledger(b"".join(line + b"\n" for line in change(whole.splitlines())))


def test_a_torn_line_is_refused(whole: bytes) -> None:
    for end in (whole[:-1], whole[:-40]):
        with pytest.raises(BundleError, match="ends within a line"):
            parse_ledger(end)


@settings(max_examples=200, deadline=None)
@given(place=st.integers(min_value=0), to=st.integers(min_value=0, max_value=255))
def test_no_byte_is_changed_unseen(whole: bytes, place: int, to: int) -> None:
    place %= len(whole)
    changed = whole[:place] + bytes([to]) + whole[place + 1 :]
    if changed != whole:
        with pytest.raises(BundleError):
            parse_ledger(changed)


def test_what_is_cut_off_only_a_known_head_shows(whole: bytes) -> None:
    ledger = parse_ledger(whole)
    cut = parse_ledger(b"".join(line + b"\n" for line in whole.splitlines()[:2]))
    assert len(cut.booked) == 2  # whole by itself
    with pytest.raises(BundleError, match="cut off: it ends with entry 2, and the head that is known is of entry 3"):
        cut.check_head(ledger.head)
    ledger.check_head(cut.head)
    ledger.check_head(Ledger().head)
    first = rehashed(whole.splitlines()[0], "ward 7", "ward 8")
    with pytest.raises(BundleError, match="written anew: entry 1 is not the one"):
        parse_ledger(first + b"\n").check_head("1:" + ledger.booked[0].entry.hash)
    for wrong in ("", "3", "x:" + NOTHING, ledger.head + "0", ledger.head.upper()):
        with pytest.raises(BundleError, match="reads NUMBER:HASH"):
            ledger.check_head(wrong)


def test_an_epsilon_that_does_not_follow_is_refused(whole: bytes) -> None:
    """Chained as it should be, by someone who states too little."""
    line = whole.splitlines()[0]
    stated = re.search(rb'"epsilon": ([0-9.]+)', line)
    assert stated is not None
    (forged,) = parse_ledger(rehashed(line, stated[1].decode(), "0.1") + b"\n").booked
    with pytest.raises(BundleError, match=r"says epsilon = 0.1 .*but its events give"):
        forged.check()


def test_bundles_are_compared_with_what_is_entered(whole: bytes, bundles: list[Bundle]) -> None:
    ledger = parse_ledger(whole)
    assert ledger.check_bundle(bundles[1]).number == 2
    with pytest.raises(BundleError, match="not in the ledger: it was released without being entered"):
        ledger.check_bundle(bundles[3])
    line = rehashed(whole.splitlines()[0], '"delta": 1e-05', '"delta": 1e-06')
    with pytest.raises(BundleError, match="entry 1 says something else about the bundle"):
        parse_ledger(line + b"\n").check_bundle(bundles[0])


def test_no_more_than_was_stated_is_entered(tmp_path: Path, bundles: list[Bundle]) -> None:
    path = tmp_path / "deeper" / "releases.jsonl"
    both = gaussian_epsilon(1e-5, math.sqrt(1 / 16 + 1 / 25))
    told = {"data": "a", "by": "ann"}
    add_release(path, bundles[0], **told, most=1.001 * both)
    before = path.read_bytes()
    with pytest.raises(PrivacyError, match=r"nothing is released: 2 releases of a: .*the most that was stated is"):
        add_release(path, bundles[1], **told, most=0.999 * both)
    with pytest.raises(PrivacyError, match="nothing is released"):
        add_release(path, bundles[1], **told, most=1.001 * both, delta=1e-7)
    with pytest.raises(PrivacyError, match="a number > 0"):
        add_release(path, bundles[1], **told, most=math.nan)
    with pytest.raises(BundleError, match="in the ledger already: entry 1"):
        add_release(path, bundles[0], **told)
    assert path.read_bytes() == before
    add_release(path, bundles[1], **told, most=1.001 * both)
    add_release(path, bundles[2], data="b", by="ann", most=1.001 * both)  # another data set
    assert [p.name for p in path.parent.iterdir()] == ["releases.jsonl"]


def test_what_has_no_total_is_not_promised(tmp_path: Path, bundles: list[Bundle]) -> None:
    """Other units, releases without any guarantee, and noise so weak that replaying it is not worth it."""
    path = tmp_path / "releases.jsonl"
    add_release(path, bundles[0], data="a", by="ann")
    other = release(tmp_path / "party", gaussian(5.0, Relation("party", "add_remove")))
    with pytest.raises(PrivacyError, match=r"for one party .*others in the ledger are for one speaker"):
        add_release(path, other, data="a", by="bob", most=100)
    add_release(path, other, data="a", by="bob")
    assert [total.relation.unit for total in read_ledger(path).totals("a")] == ["speaker", "party"]
    plain = release(tmp_path / "plain", plain_account())
    with pytest.raises(PrivacyError, match="nothing bounds what they tell about one speaker"):
        add_release(path, plain, data="b", by="ann", most=100)
    add_release(path, plain, data="b", by="ann")
    assert read_ledger(path).totals("b")[0].epsilon == math.inf
    for number in range(2):
        weak = Accountant(SPEAKER)
        weak.compose(PureEvent(26.0 + number, SPEAKER))  # each is replayed, and both together are beyond that
        add_release(path, release(tmp_path / f"weak{number}", weak), data="c", by="ann")
    assert read_ledger(path).totals("c")[0].epsilon == math.inf
    for each in read_ledger(path).booked:
        each.check()


def test_what_a_ledger_refuses_is_not_there(tmp_path: Path, bundles: list[Bundle]) -> None:
    path, config, account = tmp_path / "releases.jsonl", small_config(), gaussian(5.5)
    seen = []

    def admit(made: Bundle) -> None:
        seen.append((tmp_path / "words").exists())
        add_release(path, made, data="a", by="ann", most=0.01)

    with pytest.raises(PrivacyError, match="nothing is released"):
        write_bundle(
            tmp_path / "words",
            model=trained(config),
            config=config,
            statement=statement_of(account),
            account=account,
            admit=admit,
        )
    assert seen == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_old_ledger(
    tmp_path: Path, bundles: list[Bundle], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "releases.jsonl"
    add_release(path, bundles[0], data="a", by="ann")
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            add_release(path, bundles[1], data="a", by="ann")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def _add_some(path: Path, folders: list[Path], by: str) -> None:
    for folder in folders:
        add_release(path, load_bundle(folder), data="a", by=by)


def test_many_add_at_the_same_time_and_no_entry_is_lost(tmp_path: Path) -> None:
    folders = [tmp_path / "bundles" / str(place) for place in range(12)]
    for place, folder in enumerate(folders):
        release(folder, gaussian(20.0 + place))
    path = tmp_path / "releases.jsonl"
    context = multiprocessing.get_context("fork")
    jobs = [context.Process(target=_add_some, args=(path, folders[who::3], f"person {who}")) for who in range(3)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
        assert job.exitcode == 0
    ledger = read_ledger(path)
    assert len(ledger.booked) == 12
    assert {each.entry.by for each in ledger.booked} == {"person 0", "person 1", "person 2"}


@pytest.mark.skipif(find_spec("model_signing") is None, reason='needs pip install "ppspeech[sign]"')
def test_a_signed_head_shows_what_is_cut_off(tmp_path: Path, whole: bytes, bundles: list[Bundle]) -> None:
    path, key = tmp_path / "releases.jsonl", tmp_path / "signing.pem"
    public = make_signing_key(key)
    path.write_bytes(whole)
    with pytest.raises(BundleError, match=r"no head of .* is signed"):
        check_signed_head(path, read_ledger(path), public)
    head = sign_head(path, read_ledger(path), key)
    add_release(path, bundles[3], data="ward 7", by="bob")
    assert check_signed_head(path, read_ledger(path), public) == head  # grown, and whole
    with atomic_write(path) as temporary:
        temporary.write_bytes(b"".join(line + b"\n" for line in whole.splitlines()[:2]))
    with pytest.raises(BundleError, match="was cut off: it ends with entry 2"):
        check_signed_head(path, read_ledger(path), public)
    shorter = path.with_name("releases.jsonl.head")
    shorter.write_text(json.dumps({"head": read_ledger(path).head}))
    with pytest.raises(BundleError, match="is not the head that was signed"):
        check_signed_head(path, read_ledger(path), public)
    sign_head(path, read_ledger(path), key)
    mallory = make_signing_key(tmp_path / "mallory.pem")
    with pytest.raises(BundleError, match="signed by another key"):
        check_signed_head(path, read_ledger(path), mallory)


def test_a_ledger_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no ledger at"):
        read_ledger(tmp_path / "absent")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 25)
    with pytest.raises(BundleError, match="more than 16,777,216 bytes"):
        read_ledger(tmp_path / "large")
