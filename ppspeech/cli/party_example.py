"""`ppspeech party NAME --example`: a group's file to start from."""

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ppspeech.protocols import RegisteredProtocol

SEVERAL = ("party", "contributor", "person", "peer")  # roles that any number may hold
PEOPLE = ("alice", "bob", "carol")
PAIRS = {"beliefs": {"server": ("left", "right")}}  # roles that two hold, by protocol
CENTERS = ("curator", "aggregator")  # roles that all others talk to

EXAMPLES: dict[str, Any] = {
    "model": "logistic",
    "features": 2,
    "classes": 2,
    "columns": ["height", "weight"],
    "labels": ["no", "yes"],
    "radius": 1.0,
    "scale": 100.0,
    "epsilon": 1.0,
    "sizes": [40, 60, 50],
    "rounds": 20,
    "step": 0.02,
    "clip": 1.0,
    "regularization": 1.0,
    "momentum": 0.8,
    "averaged": 5,
    "components": 8,
    "words": ["yes", "no"],
    "dimension": 2,
    "sensitivity": 0.1,
    "bound": 1000.0,
    "inputs": 3,
    "graph": {"nodes": 3, "edges": [[0, 1], [1, 2]], "couplings": [0.5, 0.5], "rounds": 10},
    "holds": [[0], [1], [2]],
    "common": "…",
}
"""Values that work, by the term's name."""

MEANINGS = {
    "model": "logistic, huber_svm (two classes), softmax, large_margin (train_average)",
    "features": "how many columns of numbers",
    "columns": "their names, in order: what `--table` looks for in everyone's CSV file",
    "labels": "the classes by name, in order",
    "scale": "a public norm that rows hardly exceed: they are divided by it",
    "radius": "then longer ones are cut to this norm",
    "epsilon": "of all that is released, together",
    "delta": "0 for pure privacy",
    "unit": "what is protected",
    "colluders": "how many parties may share what they know",
    "sizes": "rows of each party, in the order above",
    "penalty": "lambda; by default from rows, epsilon and delta",
    "rounds": "how many sums are released; fixed in advance",
    "step": "about 5 / rows of all parties together",
    "clip": "the largest gradient of one row",
    "averaged": "the result is the mean of so many last rounds",
    "dimension": "how many numbers everyone brings",
    "sensitivity": "how far one unit moves the sum",
    "bound": "what no party's sum of squares exceeds",
    "common": "SHA-256 of the filter that all begin with; the aggregator's command says it",
    "graph": "who is linked to whom and how strongly; also operation (sum or min), damping in eighths, prior",
    "holds": "the nodes of each person, in the order above; each brings the log odds of its own",
    "words": "the vocabulary; recordings are a folder with a manifest.csv",
}


def example_file(protocol: "RegisteredProtocol", folder: Path = Path()) -> str:
    """A commented parties.yaml for one machine. Pins are those of NAME.pem in `folder`, where these are."""
    from ppspeech.network import fingerprint

    members: list[tuple[str, str]] = []
    for role in protocol.parties:
        alone = PAIRS.get(protocol.name, {}).get(role, (role,))
        members += [(name, role) for name in (PEOPLE if role in SEVERAL else alone)]
    hub = next((name for name, role in members if role in CENTERS), None)
    lines = [
        "# Who takes part: the same file for all, nothing in it is secret. Each makes a certificate and a key:",
        "#   ppspeech party --make --certificate alice.pem --key alice.key",
        "# and sends the certificate to whoever writes this file; --example fills in the pins of those in its folder.",
        f"protocol: {protocol.name}",
        *([f"hub: {hub}  # all others talk to {hub}"] if hub else []),
        "wait_seconds: 60  # for those who are late",
        "parties:",
    ]
    listening = [hub] if hub else [name for name, _ in members[:-1]]
    for place, (name, role) in enumerate(members):
        file = folder / f"{name}.pem"
        pin = fingerprint(file) if file.is_file() else f"the fingerprint of {name}.pem"
        address = f', address: "127.0.0.1:{7000 + place}"' if name in listening else ""
        lines.append(f'  {name}: {{role: {role}, pin: "{pin}"{address}}}')
    lines += ["params:  # what all agree on, before anyone looks at data", *_terms(protocol)]
    for name, role in members:
        given = f" --input {'@' + name + '.json'}" if inspect_inputs(protocol, role) else ""
        given = f" --table {name}.csv --label LABEL" if given and "labels" in protocol.all_terms else given
        files = f"--config parties.yaml --certificate {name}.pem --key {name}.key"
        lines.append(f"# {name}: ppspeech party {protocol.name} --role {name} {files}{given}")
    return "\n".join(lines) + "\n"


def inspect_inputs(protocol: "RegisteredProtocol", role: str) -> bool:
    """Whether a role brings an input."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in kinds for each in inspect.signature(protocol.parties[role]).parameters.values()) > 1


def _terms(protocol: "RegisteredProtocol") -> list[str]:
    """Needed terms with a value, the others commented out with their default."""
    empty = inspect.Parameter.empty
    shown = {"columns", "labels", "scale", "momentum", "averaged", "sizes"}  # optional, and worth seeing
    lines = []
    for name, term in protocol.all_terms.items():
        meaning = f"  # {MEANINGS[name]}" if name in MEANINGS else ""
        default = term.default
        if default is empty or (name in shown and name in EXAMPLES):
            value = json.dumps(EXAMPLES.get(name)) if name in EXAMPLES else f"…  # needed: {term.annotation}"
            lines.append(f"  {name}: {value}{meaning}")
        else:  # one that JSON cannot hold is made anew each time, and is not shown
            plain = list(default) if isinstance(default, tuple) else default
            lines.append(f"  # {name}: {json.dumps(plain, default=lambda _: None)}{meaning}")
    return lines
