"""`ppspeech info`: what is installed here and what it runs on."""

import json
import os
import platform
from dataclasses import asdict
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


def info(
    licenses: Annotated[
        bool, typer.Option("--licenses", help="Under which licenses the packages are that are needed.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object instead of a table; of licenses, one a line.")
    ] = False,
) -> None:
    """Show versions, device and cores; or licenses.

    Examples: `ppspeech info --json`, `ppspeech info --licenses`
    """
    if licenses:
        _show_licenses(as_json)
        return
    facts = gather()
    if as_json:
        typer.echo(json.dumps(facts))
        return
    table = Table("part", "here", title=f"ppspeech {__version__}", title_justify="left", box=box.SIMPLE_HEAD)
    for name, value in facts.items():
        table.add_row(name, str(value))
    Console().print(table)


def _show_licenses(as_json: bool) -> None:
    from ppspeech.licenses import FITTING, NEEDED
    from ppspeech.licenses import licenses as found

    every = found()
    if as_json:
        for each in every:
            typer.echo(json.dumps(asdict(each)))
        return
    table = Table("package", "version", "license", "kind", "needed for", box=box.SIMPLE_HEAD)
    for each in every:
        table.add_row(each.name, each.version, each.license, each.kind, each.needed_for)
    console = Console()
    console.print(table)
    wrong = [each.name for each in every if each.needed_for in NEEDED and each.kind not in FITTING]
    console.print(f"do not fit Apache-2.0: {', '.join(wrong)}" if wrong else "all that is linked with fits Apache-2.0")
    apart = [each.name for each in every if each.kind == "apart"]
    console.print(f"copyleft, and run as a program of its own: {', '.join(apart) or 'none'}")


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
    return facts | {part: _version(part) for part in PARTS}


def _version(part: str) -> str:
    try:
        return metadata.version(part)
    except metadata.PackageNotFoundError:
        return "not installed"


def _device() -> str:
    """What training would use. Without a driver there is none but the processor, and torch need not be asked."""
    if not any(Path(driver).exists() for driver in DRIVERS) and platform.system() != "Darwin":
        return "cpu"
    try:
        import torch
    except ModuleNotFoundError:
        return "none: a light installation does not train"

    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    return accelerator.type if accelerator else "cpu"
