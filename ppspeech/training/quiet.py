"""What Lightning says that helps nobody here."""

import logging
import warnings


def quiet_lightning() -> None:
    """Silence advertisements and warnings about choices that are made on purpose; real warnings stay."""
    for name in ("pytorch_lightning.utilities.rank_zero", "lightning.pytorch.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    for message in (
        ".*does not have many workers.*",  # features come from memory
        ".*Total length of `list` across ranks is zero.*",  # a recipe without a validation part
        ".*`val_dataloader` but have no `validation_step`.*",  # a background model has nothing to validate
        ".*number of training batches.*smaller than the logging interval.*",  # EM logs once an epoch
        ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",  # inside Lightning
        ".*The dirpath has changed from.*",  # a resumed run keeps its checkpoints in a folder of its own
        ".*Checkpoint directory .* exists and is not empty.*",
    ):
        warnings.filterwarnings("ignore", message=message)
