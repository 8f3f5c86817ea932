"""One party of a group of any number: `ppspeech party NAME --role WHO --config parties.yaml`."""

import inspect
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

MEANING = {
    "SESSION_KEY": "a public key and its signature",
    "ROSTER": "everyone's public keys and signatures",
    "MASKED_VECTOR": "uniform words",
    "SUM": "the released sum",
    "ENTER": "a name and how many samples",
    "COMMON_FILTER": "the public filter to start from",
    "TASK_LABELS": "labels of the task",
    "FILTERED": "filtered samples",
    "OTHERS": "filtered samples of the others",
    "SHARES": "uniform words",
    "LATTICE_KEY": "a public key",
    "QUERY": "ciphertexts",
    "REPLY": "masked ciphertexts",
    "DIRECTIONS": "the released directions",
    "BASE_POINT": "a point of a group",
    "BASE_REPLY": "blinded points",
    "RESUME": "where both are in their transfers",
    "COLUMNS": "blinded transfers",
    "CODE_COLUMNS": "blinded transfers",
    "FLIGHT": "masked words and tables",
}
"""What a message is to whoever receives it, where a protocol's kinds are known here."""


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
    from ppspeech.crypto import Kind as CryptoKind
    from ppspeech.protocols import Kind

    names = {int(kind): kind.name for kinds in (Kind, CryptoKind) for kind in kinds}
    table = Table(title="What each party saw")
    for heading in ("party", "from", "message", "what it is", "messages", "bytes"):
        table.add_column(heading, justify="right" if heading in {"messages", "bytes"} else "left")
    for party, others in records.items():
        for other, record in others.items():
            received = [entry for entry in record.entries if entry.direction == "received"]
            for kind in dict.fromkeys(entry.kind for entry in received):
                sizes = [entry.size for entry in received if entry.kind == kind]
                known = names.get(kind, str(kind))
                what = MEANING.get(known, "")
                table.add_row(party, other, known.lower(), what, f"{len(sizes):,}", f"{sum(sizes):,}")
    return table


def _work(
    group: "Group", name: str, role: str, identity: "Identity", inputs: Sequence[str], parse: Callable[[str], Any]
) -> Callable[[Mapping[str, Any]], Any]:
    """What to do once everyone is there; wrong inputs are refused before anyone is called."""
    if "training" in group.params:
        return _training(group, name, role, identity, inputs)
    from ppspeech.protocols import PROTOCOLS

    protocol = PROTOCOLS[group.protocol]
    if role not in protocol.parties:
        raise PpspeechError(f"{protocol.name} has the roles {', '.join(protocol.parties)}, the file says {role!r}")
    program = protocol.parties[role]
    terms = _terms(program, group, name, identity)
    values = [parse(each) for each in inputs]
    try:
        inspect.signature(program).bind(None, *values, **terms)
    except TypeError as error:
        wanted = ", ".join(list(inspect.signature(program).parameters)[1:])
        raise PpspeechError(f"{role} takes {wanted or 'nothing'} as inputs and parameters: {error}") from None
    numbered = "own" in inspect.signature(program).parameters

    def run(channels: Mapping[str, Any]) -> Any:
        known: Mapping[Any, Any] = channels
        if numbered:
            known = {group.names.index(other): channel for other, channel in channels.items()}
        return program(known, *values, **terms)

    return run


def _terms(program: Callable[..., Any], group: "Group", name: str, identity: "Identity") -> dict[str, Any]:
    """The public parameters, and what a program may ask for that follows from the group."""
    from ppspeech.protocols.sums import Signatures

    wanted = inspect.signature(program).parameters
    follows = {"own": group.names.index(name), "parties": len(group.with_role("party"))}
    terms = {key: value for key, value in follows.items() if key in wanted} | dict(group.params)
    if "signatures" in wanted:
        terms["signatures"] = Signatures(group, identity)
    return terms


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
