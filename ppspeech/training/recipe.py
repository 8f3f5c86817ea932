"""`train.py`: a recipe is a YAML file that names a model, a corpus and the result it must give."""

import inspect
from typing import Any

from pytorch_lightning import LightningDataModule, LightningModule
from pytorch_lightning.cli import ArgsType, LightningArgumentParser, LightningCLI

import ppspeech.data
import ppspeech.training  # noqa: F401 (so that a recipe may say `class_path: WordModels`)
from ppspeech.errors import ModelError, PrivacyError, plain_warnings
from ppspeech.figures import Figure, show_figures
from ppspeech.training.module import quiet_lightning
from ppspeech.training.private import PrivacyHook


class RecipeCLI(LightningCLI):
    """LightningCLI that trains privately if the recipe says so, and tests after fitting what the recipe promises."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """`expect` maps test metrics to the least value the recipe must give; `privacy` is what `PrivacyHook` takes."""
        parser.add_argument(
            "--privacy", type=dict[str, Any] | None, default=None, help="Train privately: see the hook."
        )
        parser.add_argument("--expect", type=dict[str, float], default={}, help="Least value of each test metric.")
        # Our samplers know their rank; Lightning must not deal their batches out once more.
        parser.set_defaults({"trainer.enable_model_summary": False, "trainer.use_distributed_sampler": False})

    def instantiate_classes(self) -> None:
        """Add the hook of the `privacy` block. Raises PrivacyError for a setting that there is not."""
        super().instantiate_classes()
        asked: dict[str, Any] | None = self._get(self.config, "privacy")
        if asked is not None:
            known = inspect.signature(PrivacyHook).parameters
            strange = sorted(set(asked) - set(known))
            if strange:
                raise PrivacyError(f"the privacy block has no {', '.join(strange)}: there are {', '.join(known)}")
            self.trainer.callbacks.insert(0, PrivacyHook(**asked))  # type: ignore[attr-defined]

    def after_fit(self) -> None:
        """Test, show the figures, and refuse by ModelError a metric below the promise."""
        results = self.trainer.test(self.model, datamodule=self.datamodule, verbose=False)
        measured = {name: float(value) for result in results for name, value in result.items()}
        expected: dict[str, float] = self.config["fit"]["expect"]
        figures = [
            Figure(name, value, note=f"at least {expected[name]} is expected" if name in expected else None)
            for name, value in measured.items()
        ]
        show_figures(figures, as_json=False, title="test")
        for name, least in expected.items():
            if name not in measured:
                raise ModelError(f"the recipe expects {name}, which this model does not measure: {sorted(measured)}")
            if measured[name] < least:
                raise ModelError(f"{name} is {measured[name]:.4f}, below the {least} that the recipe must give")


def main(args: ArgsType = None) -> RecipeCLI:
    """Run a recipe: `fit`, `validate`, `test` or `predict`, with `--config` and overrides."""
    quiet_lightning()
    with plain_warnings():
        return RecipeCLI(
            LightningModule,
            LightningDataModule,
            subclass_mode_model=True,
            subclass_mode_data=True,
            seed_everything_default=0,
            save_config_kwargs={"overwrite": True},
            args=args,
        )
