"""`ppspeech simulate`: all parties of a protocol as processes of this machine, over TLS, for an experiment."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ppspeech.cli.transcripts import saw_table
from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:  # torch is loaded when a simulation runs, not for `--help`
    from ppspeech.data import Corpus
    from ppspeech.data.tables import Table as Rows
    from ppspeech.network.local import Outcome

RADII = {"adult": 14**0.5}  # norms that no row of a table exceeds by its coding; other tables are divided by --radius
TABLES, SPEECH = ("eigen", "train_average", "train_descent"), ("train_mixture", "train_words")


def simulate(
    name: Annotated[str, typer.Argument(help=f"Which protocol: {', '.join((*TABLES, *SPEECH))}.")],
    parties: Annotated[int, typer.Option(help="How many parties hold data.", min=2, max=100)] = 5,
    table: Annotated[str, typer.Option(help="The table whose rows they hold, such as adult.")] = "adult",
    corpus: Annotated[str, typer.Option(help="The corpus whose speakers they are: mixtures and words.")] = "fsdd",
    model: Annotated[str, typer.Option(help="logistic, softmax, huber_svm or large_margin.")] = "softmax",
    epsilon: Annotated[float, typer.Option(help="Of the release.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Of the release; 0 for pure privacy.")] = 1e-5,
    penalty: Annotated[float, typer.Option(help="Lambda of the papers, beside an average loss.")] = 0.01,
    radius: Annotated[float, typer.Option(help="Rows are divided by it and clipped to norm 1.")] = 0.0,
    colluders: Annotated[int, typer.Option(help="How many parties may share what they know.", min=1)] = 1,
    param: Annotated[list[str] | None, typer.Option(help="NAME=VALUE; another public term. May be repeated.")] = None,
    kill: Annotated[str, typer.Option(help="A party that dies in the middle, to see what the others are told.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the released model here, as a bundle.")] = None,
) -> None:
    """Let parties who keep their data compute together, and show what each of them saw.

    The train_ ones release a private model; `eigen` finds the principal direction of all rows, exactly. Terms beside
    the options, such as rounds, clip, components or words, come as --param.

    Examples: `ppspeech simulate train_descent --parties 5 --table adult --model logistic --epsilon 1 --out BUNDLE`,
    `ppspeech simulate train_words --corpus fsdd --epsilon 8 --param states=8`,
    `ppspeech simulate train_average --parties 20 --kill party3`,
    `ppspeech simulate eigen --parties 3 --table breast_cancer`
    """
    if name not in (*TABLES, *SPEECH):
        raise PpspeechError(f"{', '.join((*TABLES, *SPEECH))} can be simulated, got {name!r}; use `ppspeech party`")
    import torch

    from ppspeech.cli.party import parse_param

    torch.set_num_threads(1)  # the parties are forks of this process, and thread pools do not survive a fork
    console = Console()
    more = dict(parse_param(each) for each in param or ())
    terms: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "colluders": colluders}
    if name in SPEECH:
        inputs, judge, terms = _speech(name, corpus, parties, terms | more)
    else:
        from ppspeech.data import load_table

        rows = load_table(table)
        if name == "eigen":
            _find_direction(console, rows, parties, kill)
            return
        scale = radius or RADII.get(table, 1.0)
        terms |= {"model": model, "scale": scale, "penalty": penalty} | more
        inputs, judge, terms = _rows(name, rows, parties, terms)
    from ppspeech.cli.party_group import check_out
    from ppspeech.training.together import model_of, terms_of, write_plain

    check_out(out, name, terms)
    agreed = terms_of(name, terms)
    outcomes, took = _run(console, name, inputs, terms, kill)
    given = [outcome.result["result"] for who, outcome in outcomes.items() if who != "curator" and outcome.result]
    if not given:
        raise PpspeechError("the round ended without a result: the table says what each party was told")
    from ppspeech.privacy import Guarantee

    module = model_of(agreed, given[0])
    with torch.no_grad():
        console.print(f"released in {took:.1f} s: {judge(module)}")
    console.print(str(Guarantee.from_json(given[0]["guarantee"])))
    if out is not None:
        write_plain(out, agreed, given[0])
        console.print(f"written to {out}")


Judge = Callable[[Any], str]  # from the released model to how well it does, in words


def _rows(name: str, rows: "Rows", parties: int, terms: dict[str, Any]) -> tuple[list[Any], Judge, dict[str, Any]]:
    """Parts of a table in a random order, and the terms about it."""
    import torch

    train, test = rows.split_by_row(0.25) if rows.is_test is None else rows.train_test()
    sizes = [len(train) // parties + (place < len(train) % parties) for place in range(parties)]
    penalty = terms.pop("penalty")
    public: dict[str, Any] = {
        "features": train.features.shape[1],
        "classes": len(train.label_names),
        "radius": 1.0,
        "columns": train.feature_names,
        "labels": train.label_names,
    }
    if name == "train_average":
        public |= {"penalty": penalty, "sizes": sizes}
    else:  # a descent that moves as far a round whatever the number of rows
        epsilon = terms["epsilon"]
        public |= {"rounds": 40, "step": 5 / len(train) * epsilon**0.48, "clip": 2 * epsilon**0.3}
        public |= {"regularization": 1.0, "momentum": 0.8, "averaged": 10}
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    labeled = torch.cat([train.features.double(), train.labels[:, None].double()], dim=1)
    parts = [(labeled[part],) for part in torch.split(order, sizes)]

    def judge(module: Any) -> str:
        right = module(test.features).argmax(-1) == test.labels
        return f"{float(right.double().mean()):.3f} of {len(test):,} test rows right"

    return parts, judge, public | terms


def _speech(name: str, corpus: str, parties: int, terms: dict[str, Any]) -> tuple[list[Any], Judge, dict[str, Any]]:
    """Recordings of the speakers of each party, as features, and the terms about them."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ppspeech.audio import MfccConfig
    from ppspeech.data import FeatureStore, load_corpus, split_by_speaker

    split = split_by_speaker(load_corpus(corpus), 0.25)
    speakers = sorted({utterance.speaker for utterance in split.train})
    if len(speakers) < parties:
        raise PpspeechError(f"{corpus} has {len(speakers)} speakers to train on, fewer than {parties} parties")
    terms = {"unit": "utterance", "sample_rate": 16_000} | terms
    if name == "train_words":
        terms = {"words": sorted({str(utterance.word) for utterance in split.train})} | terms
    else:
        terms = {"components": 16} | terms
    store = FeatureStore(MfccConfig.at_rate(terms["sample_rate"]))

    def held(part: "Corpus", own: Sequence[str]) -> dict[str, Any]:
        spoken = [utterance for utterance in part if utterance.speaker in own]
        if name == "train_words":
            spoken = [utterance for utterance in spoken if utterance.word in terms["words"]]
        return {"utterances": store.load(spoken), "words": [utterance.word for utterance in spoken]}

    inputs = [(held(split.train, speakers[place::parties]),) for place in range(parties)]
    test = held(split.test, sorted({utterance.speaker for utterance in split.test}))

    def judge(module: Any) -> str:
        lengths = torch.tensor([len(each) for each in test["utterances"]])
        if name == "train_mixture":
            likely = module.log_prob(torch.cat(test["utterances"])).mean()
            return f"{float(likely):.2f} nats a frame of {len(lengths):,} test utterances"
        found = module(pad_sequence(test["utterances"], batch_first=True), lengths).argmax(-1)
        right = [terms["words"][place] == word for place, word in zip(found.tolist(), test["words"], strict=True)]
        return f"{sum(right) / len(right):.3f} of {len(right):,} test words right, of speakers nobody trained on"

    return inputs, judge, terms


def _find_direction(console: Console, rows: "Rows", parties: int, kill: str) -> None:
    """Run the protocol between processes that hold parts of the rows, and say how good the answer is."""
    import numpy as np

    from ppspeech.protocols.eigen import MOST_FEATURES

    values = rows.features.double().numpy()
    features = values.shape[1]
    if features > MOST_FEATURES:
        raise PpspeechError(
            f"{rows.name} has {features} features, and directions are found among up to {MOST_FEATURES}: try --table "
            "adult"
        )
    # Public by the coding of the table: no party can have more.
    bound = len(values) * float(np.square(values).sum(axis=1).max())
    order = np.random.default_rng(0).permutation(len(values))
    parts = [(part,) for part in np.array_split(values[order], parties)]
    outcomes, took = _run(console, "eigen", parts, {"features": features, "bound": bound}, kill, hub=None)
    found = [outcome.result["result"][0] for outcome in outcomes.values() if outcome.result]
    if len(found) < parties:
        raise PpspeechError("the round ended without a result for everybody; nothing was published")
    central = np.linalg.eigh(values.T @ values)[1][:, -1]
    console.print(
        f"all have the same direction after {took:.1f} s; with all rows in one place: "
        f"|cos| = {abs(float(np.asarray(found[0]) @ central)):.8f}"
    )


def _run(
    console: Console,
    name: str,
    inputs: Sequence[Sequence[Any]],
    terms: Mapping[str, Any],
    kill: str,
    hub: str | None = "curator",
) -> tuple[Mapping[str, "Outcome"], float]:
    """Run a registered protocol, every party a process, and print what each saw; also how long it took."""
    from ppspeech.network import Limits
    from ppspeech.network.local import Player, run_group
    from ppspeech.protocols import PROTOCOLS

    PROTOCOLS.look_in("ppspeech.training.together")
    protocol = PROTOCOLS[name]
    players = {} if hub is None else {hub: Player(hub, _program(protocol.bind(hub, (), terms), dies=kill == hub))}
    for place, own in enumerate(inputs):
        program = _program(protocol.bind("party", own, terms), dies=kill == f"party{place}")
        players[f"party{place}"] = Player("party", program)
    if kill and kill not in players:
        raise PpspeechError(f"no party {kill!r} to kill; there are {', '.join(players)}")
    also = "" if hub is None else f" and a {hub}"
    console.print(f"{len(inputs)} parties{also}, each a process; TLS on loopback")
    start = time.perf_counter()
    outcomes = run_group(name, players, hub=hub, limits=Limits(message_seconds=600.0))  # they train after they have met
    took = time.perf_counter() - start
    console.print(saw_table({who: outcome.result["saw"] for who, outcome in outcomes.items() if outcome.result}))
    console.print(_ends(outcomes))
    return outcomes, took


def _program(bound: Callable[[Any], Any], *, dies: bool) -> Callable[..., dict[str, Any]]:
    """A party's process: its result as JSON can hold it, and what it received from whom."""

    def program(channels: Mapping[str, Any], group: Any, identity: Any) -> dict[str, Any]:
        from ppspeech.network import Transcript
        from ppspeech.protocols import Party

        if dies:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)
        records = {other: Transcript(channel) for other, channel in channels.items()}
        result = bound(Party.met(records, group, identity))
        plain = result.tolist() if hasattr(result, "tolist") else result
        return {"result": plain, "saw": {other: record.received() for other, record in records.items()}}

    return program


def _ends(outcomes: Mapping[str, "Outcome"]) -> Table:
    table = Table(title="How each party ended")
    for heading in ("party", "end", "bytes sent", "bytes received"):
        table.add_column(heading, justify="left" if heading in {"party", "end"} else "right")
    for who, outcome in outcomes.items():
        table.add_row(who, outcome.error or "well", f"{outcome.bytes_sent:,}", f"{outcome.bytes_received:,}")
    return table
