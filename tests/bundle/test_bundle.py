"""Bundles: what is written is read, what is forged is refused, and nothing that must stay inside gets in."""

import io
import json
import math
import os
import pickle
import re
import struct
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ppspeech.audio import MfccConfig
from ppspeech.audio.embeddings import EmbeddingConfig
from ppspeech.bundle import (
    MODEL_TYPES,
    BundleConfig,
    CohortSettings,
    CtcNetworkSettings,
    EmbeddingHeadSettings,
    KernelTableSettings,
    KeywordHmmSettings,
    KeywordNetworkSettings,
    LargeMarginClassifierSettings,
    LargeMarginKeywordSettings,
    LargeMarginTableSettings,
    LinearTableSettings,
    MinimaxFilterSettings,
    ModelSettings,
    SentenceHmmSettings,
    SentenceNetworkSettings,
    SpeakerUbmSettings,
    VoiceEmbeddingSettings,
    WeightsSettings,
    load_bundle,
    model_type,
    write_bundle,
)
from ppspeech.bundle.format import CARD, CONFIG, DIGESTS, EVENTS, METRICS, PRIVACY, SIZES, WEIGHTS
from ppspeech.bundle.kinds.own import NamedShape
from ppspeech.errors import BundleError
from ppspeech.figures import Figure
from ppspeech.models import (
    FrameLayer,
    HiddenMarkovModel,
    HuberSvm,
    LargeMarginGaussians,
    LogisticRegression,
    SoftmaxRegression,
    TableClassifier,
)
from ppspeech.models.scaled import RowModel
from ppspeech.privacy import (
    Accountant,
    ApproximateEvent,
    Event,
    Guarantee,
    LaplaceEvent,
    PureEvent,
    Relation,
    SampledGaussianEvent,
    gaussian_epsilon,
)
from tests.bundle.conftest import (
    Edit,
    forge,
    gaussian_account,
    plain_account,
    seal,
    small_config,
    statement_of,
    trained,
)

COHORT = CohortSettings(source="public", voices="a corpus", frames=(30, 90), owners=(0, 1, 1))

ALL_SETTINGS: list[ModelSettings] = [
    *(
        KeywordHmmSettings(
            states=3, components=components, covariance=covariance, floor=0.01, skips=1, must_finish=False
        )
        for components in (1, 2)
        for covariance in ("full", "diagonal", "spherical", "tied")
    ),
    LargeMarginKeywordSettings(states=2, margin=1.0, width=0.5),
    KeywordNetworkSettings(frames=9, radius=2.0, layers=()),
    KeywordNetworkSettings(
        frames=40,
        radius=6.0,
        layers=(
            FrameLayer(6, width=3, stride=2, pool="max", pool_width=2),
            FrameLayer(5, width=2, dilation=2, activation="gelu"),
        ),
    ),
    CtcNetworkSettings(radius=2.0, layers=()),
    CtcNetworkSettings(radius=6.0, layers=(FrameLayer(6, width=3, stride=2, pool="max", pool_width=2),)),
    *(
        SentenceNetworkSettings(
            states=3, grammar=grammar, word_penalty=2.5, leave=0.3, scale=0.5, radius=6.0, layers=(FrameLayer(6),)
        )
        for grammar in (None, "(a | b)+ [c]")
    ),
    *(
        SentenceHmmSettings(states=3, covariance="full", floor=0.1, grammar=grammar, word_penalty=2.5, leave=0.2)
        for grammar in (None, "(a | b)+ [c]")
    ),
    SentenceHmmSettings(
        states=2,
        covariance="diagonal",
        floor=0.1,
        grammar=None,
        word_penalty=0.0,
        leave=0.2,
        units=("x", "y"),
        lexicon=((0,), (1,), (0, 1)),
        ngrams=((0,), (1,), (4,), (0, 1)),
        language_scale=2.0,
    ),
    SpeakerUbmSettings(components=4, covariance="full", floor=0.1, relevance=16.0),
    SpeakerUbmSettings(components=4, covariance="tied", floor=0.1, relevance=16.0, cohort=COHORT),
    VoiceEmbeddingSettings(cohort=COHORT),
    LargeMarginClassifierSettings(label="emotion", width=0.5, radius=2.0),
    *(
        EmbeddingHeadSettings(
            label="word", head=head, radius=2.0, width=0.5, background=known, alarms_an_hour=float(known)
        )
        for head, known in (("logistic", True), ("margin", False))
    ),
    MinimaxFilterSettings(
        shape="linear", inputs=16, hidden=0, features=3, level="utterance", keep="word", hide="speaker"
    ),
    MinimaxFilterSettings(shape="sigmoid", inputs=4, hidden=5, features=3, level="frames", keep="word", hide="speaker"),
    MinimaxFilterSettings(shape="mlp", inputs=7, hidden=5, features=3, level="table", keep="activity", hide="subject"),
    MinimaxFilterSettings(
        shape="codes", inputs=7, hidden=5, features=3, codes=4, level="table", keep="activity", hide="subject"
    ),
    WeightsSettings(module="Net", tensors=(NamedShape("a.0.weight", (2, 3)), NamedShape("a.0.bias", ()))),
    LinearTableSettings(loss="logistic", radius=1.0, constant=1.0),
    LinearTableSettings(loss="softmax", radius=None, constant=0.0),
    LinearTableSettings(loss="huber", radius=2.0, constant=1.0, width=0.5),
    KernelTableSettings(pairs=4, constant=0.1),
    LargeMarginTableSettings(components=2, width=0.5, radius=1.0, constant=1.0),
]


def config_of(settings: ModelSettings) -> BundleConfig:
    if isinstance(settings, WeightsSettings):
        return BundleConfig(settings, (), None)
    labels = () if isinstance(settings, SpeakerUbmSettings | MinimaxFilterSettings) else ("a", "b", "c")
    if isinstance(settings, LinearTableSettings | LargeMarginTableSettings | KernelTableSettings):
        two = getattr(settings, "loss", "softmax") != "softmax"
        return BundleConfig(settings, ("a", "b") if two else labels, None, ("age", "height"))
    if isinstance(settings, EmbeddingHeadSettings):
        return BundleConfig(settings, labels, None, embedding=EmbeddingConfig("speech"))
    if isinstance(settings, VoiceEmbeddingSettings):
        return BundleConfig(settings, (), None, embedding=EmbeddingConfig("voice"))
    return BundleConfig(settings, labels, MfccConfig(cepstra=4, deltas=0))


def test_a_bundle_gives_back_the_model_and_its_statement(folder: Path) -> None:
    bundle = load_bundle(folder)
    config, account = small_config(), gaussian_account()
    features, lengths = torch.randn(5, 9, 4), torch.tensor([9, 8, 7, 2, 9])
    torch.testing.assert_close(bundle.model(features, lengths), trained(config)(features, lengths), rtol=0, atol=0)
    assert isinstance(bundle.model, HiddenMarkovModel)
    assert not bundle.model.training
    assert not any(parameter.requires_grad for parameter in bundle.model.parameters())
    assert bundle.config == config
    assert (bundle.labels, bundle.mfcc) == (config.labels, config.mfcc)
    assert bundle.statement == statement_of(account)
    assert bundle.account.events == account.events
    assert bundle.metrics == (Figure("test.accuracy", 0.91, note="12 unseen speakers"),)
    assert re.fullmatch("[0-9a-f]{64}", bundle.fingerprint)


@pytest.mark.parametrize("chosen", ALL_SETTINGS, ids=lambda s: f"{type(s).__name__}")
def test_every_type_lists_exactly_its_tensors_and_survives_the_disk(chosen: ModelSettings, tmp_path: Path) -> None:
    config, account = config_of(chosen), gaussian_account()
    model = trained(config)
    state = model.state_dict()
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == dict(config.tensors())
    statement = statement_of(account, config=config)
    write_bundle(tmp_path / "b", model=model, config=config, statement=statement, account=account)
    bundle = load_bundle(tmp_path / "b")
    assert bundle.config == config
    for name, tensor in bundle.model.state_dict().items():
        assert torch.equal(tensor, state[name])


@pytest.mark.parametrize(
    ("names", "shape", "words"),
    [
        ([], (1,), "1 to 10,000 tensors"),
        (["a", "a"], (1,), "different names"),
        (["a..b"], (1,), "is called 'a..b'"),
        (["../a"], (1,), "is called '../a'"),
        (["a"], (-1,), "has shape"),
        (["a", "a.b"], (1,), "cannot all be those of one module"),
        (["forward"], (1,), "cannot all be those of one module"),
        (["a"], (1_000_000,) * 4, "does not make a model"),
    ],
)
def test_tensors_that_no_module_has_are_refused(names: list[str], shape: tuple[int, ...], words: str) -> None:
    """Nothing is allocated: the last would not fit any machine."""
    shapes = tuple(NamedShape(name, shape) for name in names)
    with pytest.raises(BundleError, match=words):
        BundleConfig(WeightsSettings(module="Net", tensors=shapes), (), None).tensors()


def test_every_registered_type_is_tested() -> None:
    ours = {kind.settings for kind in MODEL_TYPES.values() if kind.settings.__module__.startswith("ppspeech.")}
    assert {type(chosen) for chosen in ALL_SETTINGS} == ours
    with pytest.raises(BundleError, match="registered already"):
        model_type("keyword_hmm", "recognize")(KeywordHmmSettings)


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (LogisticRegression(2, radius=1.0, dtype=torch.float64), ("no", "yes")),
        (HuberSvm(2, width=0.25), ("no", "yes")),
        (SoftmaxRegression(2, 3, constant=0.5), ("a", "b", "c")),
        (LargeMarginGaussians(3, 2, radius=2.0, psd="projection"), ("a", "b", "c")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_model_of_rows_decides_as_before_on_unscaled_rows(
    model: RowModel, labels: tuple[str, ...], tmp_path: Path
) -> None:
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data.normal_(generator=generator)
    settings = (
        LargeMarginTableSettings.of(model) if isinstance(model, LargeMarginGaussians) else LinearTableSettings.of(model)
    )
    config = BundleConfig(settings, labels, None, ("age", "height"))
    released = TableClassifier(model).float()
    released.mean.copy_(torch.tensor([40.0, 170.0]))
    released.std.copy_(torch.tensor([10.0, 15.0]))
    account = gaussian_account()
    bundle = write_bundle(
        tmp_path / "rows", model=released, config=config, statement=statement_of(account), account=account
    )
    scaled = torch.randn(50, 2, generator=generator)
    rows = scaled * torch.tensor([10.0, 15.0]) + torch.tensor([40.0, 170.0])
    scores = bundle.model(rows)
    assert scores.shape == (50, len(labels))
    assert torch.equal(scores.argmax(-1), model.float().predict(scaled))
    assert "rows of 2 columns" in (tmp_path / "rows" / CARD).read_text()
    with pytest.raises(BundleError, match="takes rows of 2 columns, not MFCC features"):
        _ = bundle.mfcc


def test_a_model_of_rows_has_columns_and_one_of_speech_a_front_end() -> None:
    words, rows = config_of(ALL_SETTINGS[0]), config_of(ALL_SETTINGS[-1])
    for wrong in (
        lambda: BundleConfig(rows.settings, rows.labels, words.mfcc),
        lambda: BundleConfig(rows.settings, rows.labels, words.mfcc, rows.columns),
        lambda: BundleConfig(rows.settings, rows.labels, None),
        lambda: BundleConfig(words.settings, words.labels, None, rows.columns),
        lambda: BundleConfig(words.settings, words.labels, None),
    ):
        with pytest.raises(BundleError, match="it cannot have the other"):
            wrong()
    with pytest.raises(BundleError, match="two classes"):
        BundleConfig(LinearTableSettings(loss="logistic", radius=1.0, constant=1.0), ("a",), None, ("x",)).tensors()
    with pytest.raises(BundleError, match="width belongs"):
        LinearTableSettings(loss="logistic", radius=1.0, constant=1.0, width=1.0)
    with pytest.raises(BundleError, match="factorized"):
        LargeMarginTableSettings.of(LargeMarginGaussians(2, 2, psd="factorization"))


def test_the_same_model_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    config, account = small_config(), gaussian_account()
    metrics = [Figure("test.accuracy", 0.91, note="12 unseen speakers")]
    again = write_bundle(
        tmp_path / "again",
        model=trained(config),
        config=config,
        statement=statement_of(account),
        account=account,
        metrics=metrics,
    )
    assert again.fingerprint == load_bundle(folder).fingerprint


def delete(*path: str) -> Edit:
    def edit(plain: dict[str, Any]) -> None:
        for step in path[:-1]:
            plain = plain[step]
        del plain[path[-1]]

    return edit


def put(value: Any, *path: str) -> Edit:
    def edit(plain: dict[str, Any]) -> None:
        for step in path[:-1]:
            plain = plain[step]
        plain[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    ("name", "edit", "message"),
    [
        (PRIVACY, put(0.1, "guarantee", "epsilon"), "says epsilon = 0.1 .* but its events give"),
        (PRIVACY, put(9.0, "guarantee", "epsilon"), "do not trust this bundle"),
        (PRIVACY, put(1e-9, "guarantee", "delta"), "do not trust this bundle"),
        (PRIVACY, delete("guarantee", "unit"), "states no guarantee"),
        (PRIVACY, put(None, "guarantee", "unit"), "unit must be text"),
        (PRIVACY, put("village", "guarantee", "unit"), "unit must be one of"),
        (PRIVACY, put("utterance", "guarantee", "unit"), "its events for one speaker"),
        (PRIVACY, put("replace", "guarantee", "adjacency"), "its events for one speaker"),
        (PRIVACY, put(float("nan"), "guarantee", "epsilon"), "NaN is not a number"),
        (PRIVACY, put(4, "format"), "statements of format 3"),
        (PRIVACY, put(1, "format"), "`ppspeech export OLD --out NEW` writes it anew"),
        (PRIVACY, delete("caveats"), "privacy.json has the fields"),
        (PRIVACY, put([], "covers"), "covers .* alone"),
        (PRIVACY, put([], "touches"), "missing .*normalization"),
        (
            PRIVACY,
            put([{"topic": "tuning", "status": "free", "note": "x", "charge": None}], "touches"),
            "must be one of",
        ),
        (PRIVACY, put(["x" * 65], "caveats"), "looks like a key"),
        (PRIVACY, put(["-----BEGIN PRIVATE KEY-----"], "caveats"), "looks like a key"),
        (EVENTS, put([], "events"), "there are no events"),
        (EVENTS, put("os.system", "events", 0, "event", "type"), "no type of event called"),  # type: ignore[arg-type]
        (EVENTS, put(1, "events", 0, "count"), "do not trust this bundle"),  # type: ignore[arg-type]
        (EVENTS, put(1.5, "events", 0, "count"), "whole number"),  # type: ignore[arg-type]
        (EVENTS, put([{}] * 1001, "events"), "at most 1000"),
        (EVENTS, put(10**9, "events", 0, "count"), "1,000,000,001 releases"),  # type: ignore[arg-type]
        (EVENTS, put(1e-3, "events", 0, "event", "noise_multiplier"), "nothing is promised"),  # type: ignore[arg-type]
        (EVENTS, put(1e-300, "events", 0, "event", "noise_multiplier"), "replayed"),  # type: ignore[arg-type]
        (EVENTS, put("utterance", "unit"), "Convert it first"),
        (CONFIG, put("posix.system", "type"), "no model type called 'posix.system'"),
        (CONFIG, put(["keyword_hmm"], "type"), "type must be a name"),
        (CONFIG, put(3, "settings", "states"), "tensor .* must be F32 of shape"),
        (CONFIG, put(10**6, "settings", "states"), "states must lie in"),
        (CONFIG, put(10**9, "settings", "components"), "at most 1000000"),
        (CONFIG, put(True, "settings", "states"), "settings.states must be of type int"),
        (CONFIG, put("banded", "settings", "covariance"), "must be one of full"),
        (CONFIG, delete("settings", "floor"), "missing floor"),
        (CONFIG, put("torch.load", "settings", "loader"), "unknown loader"),
        (CONFIG, put(["no", "no", "yes"], "labels"), "distinct"),
        (CONFIG, put(["no", "stop"], "labels"), "must be F32 of shape"),
        (CONFIG, put(["no", "stop", "a\x00b"], "labels"), "printable"),
        (CONFIG, put(-1, "mfcc", "sample_rate"), "sample_rate must be > 0"),
        (CONFIG, put(5, "mfcc", "cepstra"), "must be F32 of shape"),
        (CONFIG, put(2, "format"), "bundles of format 1"),
        (METRICS, put([{"metric": "a b", "value": 1, "unit": "", "note": ""}], "figures"), "lower case"),
        (METRICS, put([{"metric": "a", "value": "1", "unit": "", "note": ""}], "figures"), "finite number"),
        (METRICS, put([1], "figures"), "a figure has the fields"),
    ],
)
def test_forged_files_are_refused_even_when_sealed(folder: Path, name: str, edit: Edit, message: str) -> None:
    forge(folder, name, edit)
    with pytest.raises(BundleError, match=message):
        load_bundle(folder)


@pytest.mark.parametrize("name", sorted(SIZES))
def test_a_changed_a_missing_and_an_empty_file_are_refused(folder: Path, name: str) -> None:
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:-2] + b" " + whole[-1:])
    with pytest.raises(BundleError, match="changed since export" if name != DIGESTS else "."):
        load_bundle(folder)
    (folder / name).write_bytes(b"")
    with pytest.raises(BundleError):
        load_bundle(folder)
    (folder / name).unlink()
    with pytest.raises(BundleError, match=f"missing {name}"):
        load_bundle(folder)


def test_unknown_linked_and_oversized_files_are_refused(folder: Path) -> None:
    (folder / "extra.pkl").write_bytes(b"x")
    with pytest.raises(BundleError, match=r"unknown extra\.pkl"):
        load_bundle(folder)
    (folder / "extra.pkl").rename(folder.parent / "elsewhere")
    (folder / CARD).unlink()
    (folder / CARD).symlink_to(folder.parent / "elsewhere")
    with pytest.raises(BundleError, match="not a link"):
        load_bundle(folder)
    (folder / CARD).unlink()
    (folder / CARD).write_bytes(b"x" * (SIZES[CARD] + 1))
    with pytest.raises(BundleError, match="more than"):
        load_bundle(folder)
    with pytest.raises(BundleError, match="no bundle at"):
        load_bundle(folder / "absent")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: {**s, "noise": torch.zeros(3)}, "unknown noise"),
        (lambda s: {k: v for k, v in s.items() if k != "initial_logits"}, "missing initial_logits"),
        (lambda s: {**s, "initial_logits": s["initial_logits"].T.contiguous()}, "must be F32 of shape"),
        (lambda s: {**s, "initial_logits": s["initial_logits"].double()}, "got F64"),
        (lambda s: {**s, "initial_logits": s["initial_logits"] * torch.nan}, "not finite"),
        (lambda s: {**s, "initial_logits": s["initial_logits"] + torch.inf}, "not finite"),
    ],
)
def test_forged_weights_are_refused(folder: Path, change: Any, message: str) -> None:
    state = safetensors.torch.load((folder / WEIGHTS).read_bytes())
    (folder / WEIGHTS).write_bytes(safetensors.torch.save(change(state)))
    seal(folder)
    with pytest.raises(BundleError, match=message):
        load_bundle(folder)


def test_metadata_trailing_bytes_and_pickles_are_refused(folder: Path) -> None:
    whole = (folder / WEIGHTS).read_bytes()
    state = safetensors.torch.load(whole)
    pickled = io.BytesIO()
    torch.save(state, pickled)
    for data, message in (
        (safetensors.torch.save(state, {"seed": "17"}), "has metadata"),
        (whole + b"secret", "damaged"),
        (pickled.getvalue(), "not a safetensors file"),
        (pickle.dumps(1), "not a safetensors file"),
        (struct.pack("<Q", 1 << 60) + whole[8:], "not a safetensors file"),
        (struct.pack("<Q", 2) + b"{}", "missing"),
        (struct.pack("<Q", 6) + b'{"a":1', "not JSON"),
    ):
        (folder / WEIGHTS).write_bytes(data)
        seal(folder)
        with pytest.raises(BundleError, match=message):
            load_bundle(folder)


@settings(max_examples=80, deadline=None)
@given(data=st.binary(max_size=64), at=st.integers(0, 10_000), name=st.sampled_from(sorted(SIZES)))
def test_damaged_bytes_never_raise_anything_but_bundle_error(
    data: bytes, at: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = _cached_bundle(tmp_path_factory)
    whole = (folder / name).read_bytes()
    at %= len(whole)
    damaged = whole[:at] + data + whole[at + len(data) :]
    try:
        (folder / name).write_bytes(damaged)
        if name != DIGESTS:
            seal(folder)
        try:
            bundle = load_bundle(folder)
        except BundleError:
            return
        guarantee = bundle.statement.guarantee  # what still loads has a true statement, by the closed form
        assert isinstance(guarantee, Guarantee)
        mu = math.sqrt(sum(n / e.noise_multiplier**2 for e, n in bundle.account.events))  # type: ignore[attr-defined]
        assert guarantee.epsilon == pytest.approx(gaussian_epsilon(guarantee.delta, mu), rel=1e-5)
    finally:
        (folder / name).write_bytes(whole)
        seal(folder)


_FOLDERS: dict[int, Path] = {}


def _cached_bundle(factory: pytest.TempPathFactory) -> Path:
    if os.getpid() not in _FOLDERS:
        config, account = small_config(), gaussian_account()
        path = factory.mktemp("damage") / "b"
        write_bundle(path, model=trained(config), config=config, statement=statement_of(account), account=account)
        _FOLDERS[os.getpid()] = path
    return _FOLDERS[os.getpid()]


def test_a_model_that_is_not_private_says_so(tmp_path: Path) -> None:
    config, account = small_config(), plain_account()
    bundle = write_bundle(
        tmp_path / "plain", model=trained(config), config=config, statement=statement_of(account), account=account
    )
    assert bundle.statement.guarantee.kind == "none"
    assert json.loads((tmp_path / "plain" / PRIVACY).read_text())["guarantee"]["epsilon"] is None
    card = (tmp_path / "plain" / CARD).read_text()
    assert "NO differential privacy" in card
    assert "not-private" in card
    # Neither statement can stand on the other's events.
    with pytest.raises(BundleError, match="but its events give inf"):
        statement_of(gaussian_account()).check(account, config)
    with pytest.raises(BundleError, match="no event says what was not private"):
        statement_of(account).check(gaussian_account(), config)


def write(tmp_path: Path, **changed: Any) -> None:
    account = gaussian_account()
    config = small_config()
    given = {
        "model": trained(config),
        "config": config,
        "statement": statement_of(account),
        "account": account,
        "metrics": [],
    }
    write_bundle(tmp_path / "b", **{**given, **changed})


def test_the_writer_refuses_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config()
    noisy = trained(config)
    noisy.register_buffer("noise", torch.zeros(3))
    seeded = trained(config)
    seeded.register_buffer("generator_state", torch.get_rng_state())
    infinite = trained(config)
    infinite.initial_logits.data[0, 0] = torch.inf  # type: ignore[union-attr,operator]
    for changed, message in (
        ({"model": noisy}, "unknown noise"),
        ({"model": seeded}, "unknown generator_state"),
        ({"model": trained(config).double()}, "torch.float64"),
        ({"model": torch.nn.Linear(2, 2)}, "missing"),
        ({"model": infinite}, "not finite"),
        ({"account": gaussian_account(5.0)}, "do not trust"),
        ({"account": plain_account()}, "but its events give inf"),
        ({"metrics": [Figure("accuracy", float("nan"))]}, "finite number"),
        ({"metrics": [Figure("accuracy", 10**400)]}, "finite number"),
        ({"metrics": [Figure("a", 1.0), Figure("a", 2.0)]}, "name of its own"),
        ({"metrics": [Figure("a", 1.0, note="A" * 70)]}, "looks like a key"),
    ):
        with pytest.raises(BundleError, match=message):
            write(tmp_path, **changed)
        assert list(tmp_path.iterdir()) == []

    def full(self: Path, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if self.name == METRICS and "w" in mode:
            raise OSError(28, "No space left on device")
        return opened(self, mode, *rest, **options)

    opened = Path.open
    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    write(tmp_path)
    with pytest.raises(BundleError, match="exists already"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_config_refuses_what_is_not_registered() -> None:
    class Settings(KeywordHmmSettings):
        pass

    chosen = Settings(states=2, components=1, covariance="full", floor=0.1, skips=0, must_finish=False)
    with pytest.raises(BundleError, match="not a registered model type"):
        BundleConfig(chosen, ("a", "b"), MfccConfig())


PICKLE = re.compile(rb"\x80[\x02-\x05]|PK\x03\x04|archive/data\.pkl|\.pkl")
KEYS = re.compile(rb"-----BEGIN|PRIVATE KEY|ssh-(rsa|ed25519)|seed|generator|rng|optimizer|noise_vector", re.IGNORECASE)


def test_walking_a_bundle_finds_nothing_but_its_files(folder: Path) -> None:
    found = [path for path in folder.rglob("*") if path.is_file()]
    assert {str(path.relative_to(folder)) for path in found} == set(SIZES)
    for path in found:
        data = path.read_bytes()
        if path.name == WEIGHTS:
            length = struct.unpack("<Q", data[:8])[0]
            header = json.loads(data[8 : 8 + length])
            values = sum(torch.tensor(entry["shape"]).prod().item() for entry in header.values())
            assert set(header) == set(small_config().tensors())
            assert len(data) == 8 + length + 4 * values
            assert not KEYS.search(data[8 : 8 + length])
        else:
            assert not PICKLE.search(data)
            assert not KEYS.search(data)
            long_words = set(re.findall(rb"[A-Za-z0-9+/=_-]{65,}", data))
            assert not long_words


@pytest.mark.parametrize(
    "event",
    [
        PureEvent(1e6, Relation("speaker", "add_remove")),
        LaplaceEvent(1e-6, Relation("speaker", "add_remove")),
        ApproximateEvent(1e3, 1e-6, Relation("speaker", "add_remove")),
        SampledGaussianEvent(0.3, 0.01, 10**6, Relation("speaker", "add_remove")),
        SampledGaussianEvent(1.0, 0.01, 10**9, Relation("speaker", "add_remove")),
        SampledGaussianEvent(0.05, 0.01, 1, Relation("speaker", "replace")),
    ],
    ids=lambda event: f"{event}",
)
def test_events_that_would_keep_the_reader_busy_are_refused_before_the_replay(folder: Path, event: Event) -> None:
    account = Accountant(event.relation)
    account.compose(event)
    forge(folder, EVENTS, lambda plain: plain.update(account.to_json()))
    with pytest.raises(BundleError, match="nothing is promised"):
        load_bundle(folder)


def test_sampled_events_under_replace_are_replayed(tmp_path: Path) -> None:
    account = Accountant(Relation("speaker", "replace"))
    account.compose(SampledGaussianEvent(4.0, 0.01, 100, Relation("speaker", "replace")))
    config = small_config()
    bundle = write_bundle(
        tmp_path / "b", model=trained(config), config=config, statement=statement_of(account), account=account
    )
    assert bundle.statement.guarantee.epsilon == account.epsilon(1e-5)


def test_speaker_bundles_of_before_are_read(tmp_path: Path) -> None:
    """Their threshold was for scores that are no more; they decide with a cohort brought along."""
    settings = SpeakerUbmSettings(components=2, covariance="diagonal", floor=0.1, relevance=16.0)
    config, account = BundleConfig(settings, (), MfccConfig(cepstra=4, deltas=0)), gaussian_account()
    write_bundle(
        tmp_path / "old", model=trained(config), config=config, statement=statement_of(account), account=account
    )

    def before(plain: dict[str, Any]) -> None:
        del plain["settings"]["cohort"]
        plain["settings"]["threshold"] = 1.25

    forge(tmp_path / "old", "config.json", before)
    assert load_bundle(tmp_path / "old").config.settings == settings
