"""`ppspeech info`: what is installed here and what it runs on."""

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from ppspeech import __version__
from ppspeech.screen import Console

PARTS = (
    "torch", "torchaudio", "pytorch-lightning", "opacus", "dp-accounting", "tenseal", "phe", "gmpy2", "numpy",
    "espeakng-loader",
)  # fmt: skip

DRIVERS = ("/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg", "/dev/kfd", "/dev/dri")


def info(as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False) -> None:
    """Show versions, device and cores.

    Example: `ppspeech info --json`
    """
    facts = gather()
    if as_json:
        typer.echo(json.dumps(facts))
        return
    table = Table("part", "here", title=f"ppspeech {__version__}", title_justify="left", box=box.SIMPLE_HEAD)
    for name, value in facts.items():
        table.add_row(name, str(value))
    Console().print(table)


def gather() -> dict[str, str | int]:
    """The facts: package versions, Python, system, cores, device."""
    from ppspeech.storage import cache_folder

    facts: dict[str, str | int] = {
        "ppspeech": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "device": _device(),
        "cache": str(cache_folder()),
    }
    return facts | {part: metadata.version(part) for part in PARTS}


def _device() -> str:
    """What training would use. Without a driver there is none but the processor, and torch need not be asked."""
    if not any(Path(driver).exists() for driver in DRIVERS) and platform.system() != "Darwin":
        return "cpu"
    import torch

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator.type if accelerator else "cpu"
