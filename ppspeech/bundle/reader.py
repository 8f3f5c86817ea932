"""A bundle back into a model: everything is checked, nothing is imported by name, nothing is unpickled."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ppspeech.audio import MfccConfig, Sound
from ppspeech.bundle.card import model_card
from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.embedded_recognizer import EmbeddedRecognizer, recognizer_of
from ppspeech.bundle.filterer import Filterer
from ppspeech.bundle.format import CARD, CONFIG, DIGESTS, EVENTS, METRICS, PRIVACY, SIZES, WEIGHTS, digests, read_files
from ppspeech.bundle.metrics import metrics_from_json
from ppspeech.bundle.model_types import Use
from ppspeech.bundle.recognizer import Recognized, Recognizer
from ppspeech.bundle.spoken import Spoken
from ppspeech.bundle.statement import PrivacyStatement, check_format
from ppspeech.bundle.strict_json import read_json
from ppspeech.bundle.transcriber import AnyTranscriber, transcriber_of
from ppspeech.bundle.verifier import FALSE_ACCEPT, Identified, Verified, Verifier
from ppspeech.bundle.weights import read_weights
from ppspeech.errors import BundleError, ModelError, PrivacyError
from ppspeech.figures import Figure
from ppspeech.privacy import Accountant, ApproximateEvent, Event, NonPrivateEvent, Relation, UnsupportedAnalysisError

Module = TypeVar("Module", bound=nn.Module)

MOST_EVENTS = 1_000  # different events an account may have; equal ones are counted, so training never comes near

MOST_RELEASES = 1_000_000
MOST_DIVERGENCE = 50.0
"""Of order 2, in nats, over all events. More is no privacy worth the name, and a forger's way to keep a reader busy:
the weaker an event, the longer its loss distribution."""


@dataclass(frozen=True)
class Bundle:
    """A released model (for evaluation, on the CPU, weights fixed) and what is said about it; digests by file name."""

    model: nn.Module
    config: BundleConfig
    statement: PrivacyStatement
    account: Accountant
    metrics: tuple[Figure, ...]
    digests: Mapping[str, str]

    @property
    def mfcc(self) -> MfccConfig:
        """The MFCC front end of the model. Raises BundleError for a model of rows or of a public embedding."""
        return self.config.front_end

    @property
    def labels(self) -> tuple[str, ...]:
        """What the scores stand for, in order."""
        return self.config.labels

    @property
    def fingerprint(self) -> str:
        """One digest for the whole bundle: that of `digests.json`."""
        return self.digests[DIGESTS]

    @property
    def recognizer(self) -> Recognizer | EmbeddedRecognizer:
        """The model as one that tells words, or classes of utterances. Raises ModelError for another kind of model."""
        self._check_use("recognize")
        return recognizer_of(self.model, self.config)

    @property
    def transcriber(self) -> AnyTranscriber:
        """The model as one that finds words in recordings. Raises ModelError for another kind of model."""
        self._check_use("transcribe")
        return transcriber_of(self.model, self.config)

    @property
    def verifier(self) -> Verifier:
        """The model as one that tells speakers. Raises ModelError for another kind of model."""
        if "verify" not in self.config.kind.uses:
            raise ModelError(
                f"a speaker_ubm is needed to tell speakers, or a voice_embedding; this bundle is a {self.config.type}"
            )
        return Verifier.of(self.model, self.config)

    @property
    def filterer(self) -> Filterer:
        """The model as one that turns features into others. Raises ModelError for another kind of model."""
        settings: Any = self.config.settings
        if "filter" not in self.config.kind.uses:
            raise ModelError(f"this bundle is a {self.config.type}, not a filter: make one by `ppspeech filter train`")
        return Filterer(self.model, settings.level, self.mfcc)

    def recognize(self, sound: Sound, rate: int | None = None, *, reject: bool = False) -> Recognized:
        """The word of one utterance, with `reject` or none of them; see `Recognizer`."""
        return self.recognizer.recognize_all([sound], rate, reject=reject)[0]

    def transcribe(self, sound: Sound, rate: int | None = None, *, grammar: str = "") -> list[Spoken]:
        """The words of one recording, with their times; see `ppspeech.bundle.transcriber`."""
        return self.transcriber.transcribe_all([sound], rate, grammar=grammar)[0]

    def verify(
        self,
        claimed: Sequence[Sound],
        sounds: Sequence[Sound],
        rate: int | None = None,
        *,
        false_accept: float = FALSE_ACCEPT,
        threshold: float | None = None,
    ) -> Verified:
        """Is it the voice of the person whose clips are `claimed`? See `Verifier`."""
        return self.verifier.verify(claimed, sounds, rate, false_accept=false_accept, threshold=threshold)

    def identify(
        self,
        sounds: Sequence[Sound],
        speakers: Mapping[str, Sequence[Sound]],
        rate: int | None = None,
        *,
        false_accept: float = FALSE_ACCEPT,
        threshold: float | None = None,
    ) -> Identified:
        """Whose voice is it, if any of these people's? See `Verifier`."""
        return self.verifier.identify(sounds, speakers, rate, false_accept=false_accept, threshold=threshold)

    def filter(self, sound: Sound, rate: int | None = None) -> Tensor:
        """The filtered features of one utterance; see `Filterer`."""
        return self.filterer.filter_all([sound], rate)[0]

    @torch.no_grad()
    def classify(self, rows: Tensor) -> list[str]:
        """The class of every row `(rows, columns)`, columns in the order of `config.columns`, as they come."""
        if "classify" not in self.config.kind.uses:
            raise ModelError(f"this bundle is a {self.config.type}, not a model of rows of a table")
        return [self.labels[place] for place in self.model(rows).argmax(-1).tolist()]

    @classmethod
    def from_pretrained(cls, name: str | Path, *, revision: str = "main") -> "Bundle":
        """The bundle of a folder, or of a repository `OWNER/NAME` on a hub; see `load_bundle` and `pull_bundle`."""
        if Path(name).exists() or not re.fullmatch(r"[\w.-]+/[\w.-]+", str(name)):
            return load_bundle(name)
        from ppspeech.bundle.releases.hub import pull_bundle

        with tempfile.TemporaryDirectory() as place:
            return pull_bundle(str(name), Path(place) / "bundle", revision=revision)

    def save_pretrained(self, folder: str | Path) -> None:
        """Write it into a new folder, file by file as it was loaded, but for a signature; see `write_bundle`."""
        from ppspeech.bundle.writer import write_bundle

        write_bundle(
            folder,
            model=self.model,
            config=self.config,
            statement=self.statement,
            account=self.account,
            metrics=self.metrics,
        )

    def load_into(self, module: Module) -> Module:
        """Put the weights into a module that was built for them, such as one's own of kind `weights`.

        Returns the module, for evaluation. Raises ModelError if its tensors are others.
        """
        try:
            module.load_state_dict(self.model.state_dict(), strict=True)
        except RuntimeError as other:
            raise ModelError(f"{type(module).__name__} does not take these weights: {other}") from None
        return module.eval()

    def _check_use(self, use: Use) -> None:
        uses = self.config.kind.uses
        if use not in uses:
            fate = f"it is there to {' and '.join(uses)}" if uses else "load it by `load_into` into its own module"
            raise ModelError(f"this bundle is a {self.config.type}, which has no words to {use}: {fate}")


def load_bundle(folder: str | Path) -> Bundle:
    """Load a released model.

    The digests show that no file changed since export, and what is said about privacy, the card included, that it
    follows from the events. That the events, the weights and the figures are those of a real run, nothing in a folder
    shows: where it comes from must be known, by its fingerprint, told over a trusted way, or by a signature, which
    `verify_release` checks.

    Raises BundleError for a missing, unknown, oversized or changed file; a type, tensor, shape or field that is not
    exactly as registered; weights that are not finite; a statement without a unit, or one that does not follow from its
    events; or another card than they give.
    """
    return bundle_of(read_files(Path(folder)))


def bundle_of(contents: Mapping[str, bytes]) -> Bundle:
    """The bundle of these files, all of them; errors as those of `load_bundle`."""
    plain = read_json(contents[PRIVACY], PRIVACY)
    check_format(plain)
    config, account, model, metrics = read_parts(contents)
    statement = PrivacyStatement.from_json(plain)
    try:
        statement.check(account, config)
    except (MemoryError, ArithmeticError) as beyond:
        raise BundleError(f"{EVENTS} cannot be replayed: {beyond}") from None
    if model_card(config, statement, account, metrics).encode() != contents[CARD]:
        raise BundleError(
            f"{CARD} is not the card that follows from this bundle's files: it was changed, and what it says is not "
            "checked; or another version wrote it: `ppspeech export OLD --out NEW` writes one that follows"
        )
    named = digests({name: contents[name] for name in SIZES})
    return Bundle(model, config, statement, account, metrics, named)


def read_parts(contents: Mapping[str, bytes]) -> tuple[BundleConfig, Accountant, nn.Module, tuple[Figure, ...]]:
    """All that is not said about privacy: the config, the events, the model, and figures."""
    config = BundleConfig.from_json(read_json(contents[CONFIG], CONFIG))
    account = replay(read_json(contents[EVENTS], EVENTS), EVENTS)
    state = read_weights(contents[WEIGHTS], config.tensors())
    model = config.build()
    model.load_state_dict(state, strict=True)
    metrics = metrics_from_json(read_json(contents[METRICS], METRICS))
    return config, account, model.eval().requires_grad_(False), metrics


def replay(plain: Mapping[str, Any], name: str) -> Accountant:
    """The account that a file of others holds, `name` in errors. Raises BundleError for one that cannot be replayed."""
    if isinstance(plain.get("events"), list) and len(plain["events"]) > MOST_EVENTS:
        raise BundleError(f"{name} has {len(plain['events'])} events, at most {MOST_EVENTS} are replayed")
    try:
        account = Accountant.from_json(plain)
        check_bounds(account, name)
    except (PrivacyError, TypeError, ArithmeticError) as refused:
        raise BundleError(f"{name} cannot be replayed: {refused}") from None
    return account


def check_bounds(account: Accountant, name: str) -> None:
    """Refuse events that are so many or so weak that nothing is promised, and that take long to find that out."""
    releases = sum(count * getattr(event, "steps", 1) for event, count in account.events)
    weight = sum(count * _divergence(event) for event, count in account.events)
    if releases > MOST_RELEASES or not weight <= MOST_DIVERGENCE:
        raise BundleError(
            f"{name} has {releases:,} releases with a divergence of {weight:.3g}: at most {MOST_RELEASES:,} and "
            f"{MOST_DIVERGENCE:g} are replayed, and beyond that nothing is promised"
        )


def _divergence(event: Event) -> float:
    """How weak an event is, roughly and quickly: its Renyi divergence of order 2, or what stands in for it."""
    if isinstance(event, NonPrivateEvent):
        return 0.0  # nothing is computed for it
    if isinstance(event, ApproximateEvent):
        return event.stated_epsilon
    try:
        return event.rdp(2.0)
    except UnsupportedAnalysisError:  # under `replace`; the sensitivity is at most twice that of add_remove
        return 4 * replace(event, relation=Relation(event.relation.unit, "add_remove")).rdp(2.0)  # type: ignore[type-var]
