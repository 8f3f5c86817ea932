"""One party of a group of any number: `ppspeech party NAME --role WHO --config parties.yaml`."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ppspeech.errors import PpspeechError

if TYPE_CHECKING:  # the network is loaded when a party runs, not for `--help`
    from torch import Tensor

    from ppspeech.network.channel import Transcript
    from ppspeech.network.group import Group, Identity


def run_in_group(
    console: Console,
    protocol: str,
    name: str,
    config: Path,
    files: tuple[Path | None, Path | None],
    inputs: Sequence[str],
    parse: Callable[[str], Any],
    seconds: float,
    out: Path | None,
) -> None:
    """Meet the others, run our part, and show what came of it and what we saw.

    Args:
        console: to print to.
        protocol: its name on the command line, which the file must agree with.
        name: who we are in the file.
        config: the group's file.
        files: our certificate and key.
        inputs: as on the command line; a `.csv` or `.npz` file of rows where the group trains together.
        parse: reads one input.
        seconds: how long to wait for a message.
        out: where to write the result as JSON.
    """
    from ppspeech.network import Limits, Transcript
    from ppspeech.network.group import Group, Identity, join

    group = Group.load(config)
    member = group.member(name)
    if group.protocol != protocol:
        raise PpspeechError(f"{config} is for {group.protocol!r}, not for {protocol!r}")
    certificate, key = files
    if certificate is None or key is None:
        raise PpspeechError("a party of a group proves who it is: give --certificate and --key")
    identity = Identity(certificate, key)
    work = _work(group, name, member.role, identity, inputs, parse)
    limits = Limits(message_seconds=seconds)
    with join(group, name, identity, limits=limits, say=lambda word: console.print(word, markup=False)) as channels:
        records = {other: Transcript(channel) for other, channel in channels.items()}
        result = work(records)
    console.print(saw_table({name: records}))
    if out is not None and result is not None:
        _write(out, result)
        console.print(f"{name}: written to {out}", markup=False)
    else:
        console.print(f"{name}: {'done' if result is None else _short(result)}", markup=False)


def saw_table(records: Mapping[str, "Mapping[str, Transcript]"]) -> Table:
    """What each party received: from whom, of what kind, how often and how much.

    Args:
        records: by party, then by whom it talked to.
    """
    from ppspeech.protocols import kind_of

    table = Table(title="What each party saw")
    for heading in ("party", "from", "message", "what it is", "messages", "bytes"):
        table.add_column(heading, justify="right" if heading in {"messages", "bytes"} else "left")
    for party, others in records.items():
        for other, record in others.items():
            for number, (count, size) in record.received().items():
                kind = kind_of(number)
                name, what = (kind.name.lower(), kind.meaning) if kind else (str(number), "")
                table.add_row(party, other, name, what, f"{count:,}", f"{size:,}")
    return table


def _work(
    group: "Group", name: str, role: str, identity: "Identity", inputs: Sequence[str], parse: Callable[[str], Any]
) -> Callable[[Mapping[str, Any]], Any]:
    """What to do once everyone is there; wrong inputs are refused before anyone is called."""
    if "training" in group.params:
        return _training(group, name, role, identity, inputs)
    from ppspeech.protocols import PROTOCOLS, Party

    bound = PROTOCOLS[group.protocol].bind(role, [parse(each) for each in inputs], group.params)
    return lambda channels: bound(Party.met(channels, group, identity))


def _training(
    group: "Group", name: str, role: str, identity: "Identity", inputs: Sequence[str]
) -> Callable[[Mapping[str, Any]], Any]:
    from ppspeech.training.together import CURATOR, PARTY, as_plain, curate, take_part, terms_of, train_alone

    terms = terms_of(group)
    if role == CURATOR:
        return lambda channels: curate(channels, group)
    if role != PARTY or len(inputs) != 1:
        raise PpspeechError("who trains has the role party and one --input: a .csv or .npz file of its rows")
    x, y = read_rows(Path(inputs[0].removeprefix("@")), terms.features)
    local = train_alone(group, name, x, y)
    return lambda channels: as_plain(take_part(channels, group, identity, name, local))


def read_rows(path: Path, features: int) -> "tuple[Tensor, Tensor]":
    """Examples `(n, features)` and their classes `(n,)`.

    Args:
        path: `.csv`, the class in the last column, without a header; or `.npz` with the arrays `x` and `y`.
        features: how many the others have.

    Raises:
        PpspeechError: for anything else.
    """
    import numpy as np
    import torch

    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                x, y = arrays["x"], arrays["y"]
        else:
            rows = np.loadtxt(path, delimiter=",", ndmin=2)
            x, y = rows[:, :-1], rows[:, -1]
    except (OSError, ValueError, KeyError) as error:
        raise PpspeechError(f"cannot read rows from {path}: {error}") from None
    whole = np.all(np.equal(np.mod(y, 1), 0))
    if x.ndim != 2 or x.shape[1] != features or y.shape != x.shape[:1] or not whole or not np.isfinite(x).all():
        raise PpspeechError(
            f"{path}: rows are {features} finite numbers and a whole class, got {x.shape} and {y.shape}"
        )
    return torch.from_numpy(x.astype(np.float64)), torch.from_numpy(y.astype(np.int64))


def _write(out: Path, result: Any) -> None:
    from ppspeech.storage import atomic_write

    plain = result.tolist() if hasattr(result, "tolist") else result
    with atomic_write(out) as temporary:
        temporary.write_text(json.dumps(plain), encoding="utf-8")


def _short(result: Any) -> str:
    if isinstance(result, dict) and "guarantee" in result:
        from ppspeech.privacy import Guarantee

        return f"trained {result['model']}: {Guarantee.from_json(result['guarantee'])}; --out FILE keeps it"
    return str(result)
