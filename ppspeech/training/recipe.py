"""`train.py`: a recipe is a YAML file that names a model, a corpus and the result it must give."""

from pytorch_lightning import LightningDataModule, LightningModule
from pytorch_lightning.cli import ArgsType, LightningArgumentParser, LightningCLI

import ppspeech.data
import ppspeech.training  # noqa: F401 (so that a recipe may say `class_path: WordModels`)
from ppspeech.errors import ModelError
from ppspeech.figures import Figure, show_figures
from ppspeech.training.module import quiet_lightning


class RecipeCLI(LightningCLI):
    """LightningCLI that tests after fitting and compares the result with what the recipe promises."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """`expect` maps test metrics to the least value the recipe must give."""
        parser.add_argument("--expect", type=dict[str, float], default={}, help="Least value of each test metric.")
        parser.set_defaults({"trainer.enable_model_summary": False})

    def after_fit(self) -> None:
        """Test, show the figures, and refuse a result below the promise.

        Raises:
            ModelError: if a metric falls short, naming both values.
        """
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
    return RecipeCLI(
        LightningModule,
        LightningDataModule,
        subclass_mode_model=True,
        subclass_mode_data=True,
        seed_everything_default=0,
        save_config_kwargs={"overwrite": True},
        args=args,
    )
