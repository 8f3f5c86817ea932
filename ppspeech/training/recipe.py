"""`ppspeech train`: a recipe is a YAML file that names a model, a corpus and the result it must give."""

import copy
import csv
import inspect
import os
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import yaml  # type: ignore[import-untyped]
from pytorch_lightning import LightningDataModule, LightningModule, Trainer
from pytorch_lightning.cli import ArgsType, LightningArgumentParser, LightningCLI
from pytorch_lightning.utilities import rank_zero_only
from pytorch_lightning.utilities.exceptions import MisconfigurationException  # type: ignore[attr-defined]

from ppspeech.bundle import in_words
from ppspeech.data import SpeechDataModule, check_shared
from ppspeech.errors import ModelError, PpspeechError, PrivacyError, SpeechWarning, plain_warnings
from ppspeech.figures import Figure, show_figures
from ppspeech.privacy.audit import AuditReport
from ppspeech.ranks import Ranks, reasons
from ppspeech.screen import Console
from ppspeech.storage import atomic_write
from ppspeech.training.audit import audit_recipe, figures_of
from ppspeech.training.module import SpeechModule, check_strategy, quiet_lightning
from ppspeech.training.private import PrivacyHook
from ppspeech.training.release import note_audited, note_measured


class RecipeCLI(LightningCLI):
    """LightningCLI that trains privately if the recipe says so, and tests after fitting what the recipe promises."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """`expect` maps test metrics to the least value the recipe must give; `privacy` is what `PrivacyHook` takes."""
        parser.add_argument(
            "--privacy", type=dict[str, Any] | None, default=None, help="Train privately: see the hook."
        )
        parser.add_argument(
            "--audit", type=dict[str, Any] | str | None, default=None, help="After training: canaries=1000."
        )
        parser.add_argument("--expect", type=dict[str, float], default={}, help="Least value of each test metric.")
        # Our samplers know their rank; Lightning must not deal their batches out once more.
        parser.set_defaults({"trainer.enable_model_summary": False, "trainer.use_distributed_sampler": False})

    def instantiate_trainer(self, **kwargs: Any) -> Trainer:
        """Lightning's own. Raises ModelError, in one sentence, for devices or a strategy that there are not."""
        try:
            trainer = super().instantiate_trainer(**kwargs)
        except (MisconfigurationException, ValueError, TypeError) as refused:
            if isinstance(refused, PpspeechError):
                raise
            raise ModelError(f"these settings make no Trainer: {' '.join(str(refused).split())}") from None
        check_strategy(trainer)
        return trainer

    def instantiate_classes(self) -> None:
        """Say that a test follows, and add the hook of the `privacy` block.

        Raises PrivacyError for a setting that there is not, and CorpusError for batches smaller than processes are
        many.
        """
        super().instantiate_classes()
        if isinstance(self.model, SpeechModule):
            self.model.will_be_tested = True
        asked: dict[str, Any] | None = self._get(self.config, "privacy")
        self.ranks = Ranks.of(self.trainer)
        if isinstance(self.datamodule, SpeechDataModule):
            check_shared(self.datamodule.batch_size, self.ranks)
        self.canaries = _canaries(self._get(self.config, "audit"))
        if self.canaries and self.ranks.ranks > 1:
            raise PrivacyError(
                "--audit trains canaries in one process: leave trainer.devices at 1, or audit the recipe by itself "
                "(ppspeech audit RECIPE)"
            )
        if self.canaries and asked is None:
            raise PrivacyError("--audit tries to refute what a privacy block promises: this recipe has none")
        self.untrained = copy.deepcopy(self.model)
        if asked is not None:
            known = inspect.signature(PrivacyHook).parameters
            strange = sorted(set(asked) - set(known))
            if strange:
                raise PrivacyError(f"the privacy block has no {', '.join(strange)}: there are {', '.join(known)}")
            self.trainer.callbacks.insert(0, PrivacyHook(**asked))  # type: ignore[attr-defined]

    def after_fit(self) -> None:
        """Audit, if asked to; test on what was held out, if anything; and say where the checkpoint is.

        Raises ModelError for a metric below the promise, and PrivacyError if the audit refutes what is stated.
        """
        if self.canaries:
            self._audit()
        if isinstance(self.datamodule, SpeechDataModule) and "test" not in self.datamodule.parts:
            self._say_what_next({})
            return
        results = self.trainer.test(self.model, datamodule=self.datamodule, verbose=False)
        measured = {name: float(value) for result in results for name, value in result.items()}
        expected = self._promised()
        meanings = dict(getattr(self.model, "meanings", {}))
        promises = {name: f"at least {least} is expected" for name, least in expected.items()}
        notes = {name: "; ".join(told[name] for told in (meanings, promises) if name in told) for name in measured}
        figures = [Figure(name, value, note=notes[name] or None) for name, value in measured.items()]
        if figures and self.ranks.first:
            show_figures(figures, as_json=False, title="test")
        self._say_what_next(measured)
        for name, least in expected.items():
            if name not in measured:
                raise ModelError(f"the recipe expects {name}, which this model does not measure: {sorted(measured)}")
            if measured[name] < least:
                raise ModelError(f"{name} is {measured[name]:.4f}, below the {least} that the recipe must give")

    def audited(self, name: str, canaries: int, runs: int | None = None) -> list[AuditReport]:
        """Audit the recipe's module, untrained, under a hook of the same settings: see `audit_recipe`."""
        module, trained = copy.deepcopy(self.untrained), self.model
        asked = self._get(self.config, "privacy")
        if asked is None:
            raise PrivacyError(f"{name} has no privacy block: there is nothing to refute")
        if not isinstance(module, SpeechModule) or not isinstance(trained, SpeechModule):
            raise PrivacyError(f"canaries are known for recipes of speech, not for a {type(module).__name__}")
        if trained.model is None:
            self.datamodule.setup("fit")
            label, data = module.label, self.datamodule
            module.build_(() if label is None else data.vocabulary[label], data.config(data.corpus))
        else:
            module.build_(trained.labels, trained.mfcc)
        epochs = self.trainer.max_epochs
        assert epochs is not None
        more = {} if runs is None else {"runs": runs}
        return audit_recipe(name, module, PrivacyHook(**asked), epochs, canaries=canaries, **more)

    def _audit(self) -> None:
        """Say what the audit found, in the checkpoint too."""
        reports = self.audited("recipe", self.canaries)
        figures = figures_of(reports)
        show_figures(figures, as_json=False, title="audit")
        path = str(getattr(self.trainer.checkpoint_callback, "best_model_path", ""))
        if path:
            note_audited(path, figures)
        refuted = [report for report in reports if report.verdict == "violated"]
        if refuted:
            found = ", ".join(f"{report.eps_lower:.4g} by {report.method} of {report.mechanism}" for report in refuted)
            raise PrivacyError(f"the audit refutes epsilon = {reports[0].eps_stated:.4g}: {found}. Do not release this")

    def _promised(self) -> dict[str, float]:
        """What `expect` says; what a recipe expects of its own corpus is not expected of another."""
        settings = self.config["fit"]
        expected: dict[str, float] = settings["expect"]
        for path in settings["config"] or ():
            recipe = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
            own, used = recipe.get("data", {}).get("init_args", {}), settings["data"]["init_args"]
            same = all(own.get(name) == used.get(name) for name in ("corpus", "options"))
            if not same and recipe.get("expect") == expected:
                return {}
        return expected

    def _say_what_next(self, measured: dict[str, float]) -> None:
        """Where the checkpoint is, what a private run promises, and the command that releases it; said once."""
        if not self.ranks.first:
            return
        saver, console = self.trainer.checkpoint_callback, Console()
        path = str(getattr(saver, "best_model_path", ""))
        if not path:
            return
        if isinstance(self.model, SpeechModule) and getattr(saver, "monitor", None) is None:
            # The checkpoint is what was tested: it may say how well it does.
            note_measured(path, [Figure(name, value, note=self._tested_on()) for name, value in measured.items()])
        if not measured:
            held_out = "test" in getattr(self.datamodule, "parts", {})
            why = "nobody who was held out can be tried" if held_out else "nothing was held out"
            console.print(f"{why}: the model was not tested")
        console.print(f"checkpoint: {path} (private: it remembers the training data)")
        hooks = [hook for hook in self.trainer.callbacks if isinstance(hook, PrivacyHook)]  # type: ignore[attr-defined]
        for guarantee in [hook.guarantee() for hook in hooks]:
            console.print(f"{guarantee}\n{in_words(guarantee)}")
        public = "" if hooks else " --not-private"
        console.print(f"release it by: ppspeech export {shlex.quote(path)} --out FOLDER{public}")

    def _tested_on(self) -> str:
        """The held-out part in a few words; names of people and folders are not among them."""
        parts = getattr(self.datamodule, "parts", {})
        if not {"train", "test"} <= set(parts):
            return "on the held-out part"
        test, heard = parts["test"].speakers.unique(), parts["train"].speakers.unique()
        known = "some of them heard in training" if torch.isin(test, heard).any() else "none of them heard in training"
        return f"on {len(parts['test']):,} utterances of {len(test)} speakers, {known}"

    def predict(self, **options: Any) -> None:
        """Write what the model hears in the held-out part: a row an utterance, a column of scores a label."""
        found: Any = self.trainer.predict(**options)
        model, data = self.model, self.datamodule
        if not isinstance(model, SpeechModule) or not isinstance(data, SpeechDataModule):
            return
        found = self.ranks.gathered(found)
        path = Path(self.trainer.log_dir or self.trainer.default_root_dir) / "predictions.csv"
        if not self.ranks.first:
            return
        label, corpus, labels = model.label, data.parts["test"].corpus, model.labels
        rows = [row for batch in found for row in zip(batch["index"].tolist(), batch["scores"].tolist(), strict=True)]
        with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["utterance", "speaker", *(("said", "heard", *labels) if label else ("score",))])
            for index, scores in sorted(rows):
                utterance = corpus[index]
                best = labels[scores.index(max(scores))] if label else None
                answer = (getattr(utterance, label), best) if label else ()
                table.writerow([utterance.path, utterance.speaker, *answer, *(f"{s:.6g}" for s in scores)])
        Console().print(f"{len(rows):,} utterances: {path}")


def _canaries(asked: Mapping[str, Any] | str | None) -> int:
    """How many are asked for; 0 for no audit.

    >>> _canaries("canaries=1000")
    1000
    """
    if asked is None:
        return 0
    if isinstance(asked, str):
        name, _, count = asked.partition("=")
        asked = {name: int(count) if count.isdecimal() else count}
    if set(asked) != {"canaries"} or not isinstance(asked["canaries"], int) or asked["canaries"] < 1:
        raise PrivacyError(f"an audit is asked for as canaries=1000, got {dict(asked)}")
    return int(asked["canaries"])


def audited_recipe(path: Path, *, canaries: int = 1000, runs: int | None = None) -> list[AuditReport]:
    """Audit a recipe's file without training it: see `audit_recipe`. Its corpus tells the labels, and nothing else."""
    quiet_lightning()
    with plain_warnings():
        recipe = _command(["--config", str(path), "--trainer.logger", "false"], run=False)
        return recipe.audited(path.stem, canaries, runs)


def run_recipe(args: ArgsType = None) -> RecipeCLI:
    """Run a recipe: `fit`, `validate`, `test` or `predict`, with `--config` and overrides.

    What training writes remembers the training data: nobody else may read it.
    """
    quiet_lightning()
    before = os.umask(0o077)
    try:
        with plain_warnings(), reasons():
            if getattr(rank_zero_only, "rank", 0):  # the first of several processes says what there is to say
                warnings.simplefilter("ignore", SpeechWarning)
            return _command(args)
    except SystemExit as ended:
        if isinstance(
            ended.__context__, KeyboardInterrupt
        ):  # which Lightning answers by leaving with 1, without a word
            raise ended.__context__ from None
        raise
    finally:
        os.umask(before)


def _command(args: ArgsType, *, run: bool = True) -> RecipeCLI:
    return RecipeCLI(
        LightningModule,
        LightningDataModule,
        subclass_mode_model=True,
        subclass_mode_data=True,
        seed_everything_default=0,
        save_config_kwargs={"overwrite": True},
        run=run,
        args=args,
    )
