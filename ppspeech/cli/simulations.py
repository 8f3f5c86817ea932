"""What `ppspeech simulate` runs: who holds which rows or recordings, on what terms, and how well the result does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ppspeech.errors import PpspeechError

if TYPE_CHECKING:  # torch is loaded when a simulation runs, not for `--help`
    from ppspeech.data import Corpus
    from ppspeech.data.tables import Table

Options = Mapping[str, Any]

TRAINING = ("epsilon", "delta", "colluders", "out")
TAKES: dict[str, tuple[str, ...]] = {
    "eigen": ("table", "epsilon", "delta", "radius"),
    "train_average": ("table", "label", "radius", "model", "penalty", *TRAINING),
    "train_descent": ("table", "label", "radius", "model", *TRAINING),
    "train_mixture": ("corpus", *TRAINING),
    "train_words": ("corpus", *TRAINING),
}
"""The options that each protocol uses, beside --parties, --param, --kill and --json; it refuses the others."""


@dataclass(frozen=True)
class Said:
    """One figure about a result, for programs and for people, to so many digits."""

    name: str
    value: float
    words: str
    digits: int = 3


@dataclass(frozen=True)
class Simulation:
    """One protocol with data: the private inputs of each party, the public terms, and who judges the result.

    `judge`: from what a party returned to figures, the first about the result itself, the others beside it.
    `promise`: the guarantee where the protocol does not return it. `hub`: the role that all others talk to.
    """

    protocol: str
    inputs: Sequence[tuple[Any, ...]]
    terms: Options
    judge: Callable[[Any], list[Said]]
    hub: str | None = "curator"
    promise: str = ""


def prepare(protocol: str, parties: int, given: Options, more: Options) -> Simulation:
    """A simulation from the options that were `given` and `more` public terms.

    Raises PpspeechError for an option that the protocol does not use, or a term that an option or the data decides.
    """
    if protocol not in TAKES:
        raise PpspeechError(f"{', '.join(TAKES)} can be simulated, got {protocol!r}; use `ppspeech party`")
    unused = [f"--{name}" for name in given if name not in TAKES[protocol]]
    if unused:
        takes = ", ".join(f"--{name}" for name in (*TAKES[protocol], "parties", "param", "kill", "json"))
        raise PpspeechError(f"{protocol} does not use {', '.join(unused)}: it takes {takes}")
    decided = [name for name in more if name in {"epsilon", "delta", "colluders", "model", "penalty", "scale"}]
    if decided:
        raise PpspeechError(
            f"{decided[0]} is no --param of a simulation: say --{decided[0].replace('scale', 'radius')}"
        )
    if protocol == "eigen":
        return _directions(parties, given, more)
    budget = {"epsilon": 1.0} | {name: given[name] for name in ("epsilon", "delta", "colluders") if name in given}
    if "table" in TAKES[protocol]:
        return _rows(protocol, parties, given, budget, more)
    return _speech(protocol, parties, given.get("corpus", "fsdd"), budget, more)


def _terms(decided: Options, usual: Options, more: Options) -> dict[str, Any]:
    """All public terms: what the data decides, and what is usual where nothing else was said."""
    taken = [name for name in more if name in decided]
    if taken:
        raise PpspeechError(f"{', '.join(taken)} comes from the data: leave --param {taken[0]} away")
    return {**usual, **more, **decided}


def _load(given: Options, needs_class: bool) -> "Table":
    from ppspeech.data import load_table

    name, label = given.get("table", "adult"), given.get("label", "")
    own = name.endswith(".csv")
    if label and not own:
        raise PpspeechError(f"--label names a column of a CSV file; {name} knows its classes by itself")
    if own and needs_class and not label:
        raise PpspeechError(f"say which column of {name} is the class: --label COLUMN")
    table = load_table(name, **({"label": label} if label else {}))
    if needs_class and len(table.label_names) < 2:
        raise PpspeechError(f"{name} has one class only, {table.label_names[0]!r}: there is nothing to learn")
    return table


def _norm(table: "Table", given: Options) -> float:
    """The public number that rows are divided by."""
    norm = given.get("radius", table.norm)
    if norm is None:
        raise PpspeechError(
            f"say --radius: a norm that no row of {table.name} exceeds, known without looking at the rows (the root of "
            "the number of columns, where each lies between -1 and 1); longer rows are cut"
        )
    if norm <= 0:
        raise PpspeechError(f"--radius must be > 0, got {norm}")
    return float(norm)


def _rows(protocol: str, parties: int, given: Options, budget: Options, more: Options) -> Simulation:
    """Parts of a table in a random order."""
    import torch

    rows = _load(given, needs_class=True)
    train, test = rows.split_by_row(0.25) if rows.is_test is None else rows.train_test()
    if len(train) < parties:
        raise PpspeechError(f"{rows.name} has {len(train)} rows to train on, fewer than {parties} parties")
    sizes = [len(train) // parties + (place < len(train) % parties) for place in range(parties)]
    model = given.get("model") or ("logistic" if len(train.label_names) == 2 else "softmax")
    decided: dict[str, Any] = {
        "features": train.features.shape[1],
        "classes": len(train.label_names),
        "columns": list(train.feature_names),
        "labels": list(train.label_names),
        "model": model,
        "scale": _norm(rows, given),
        **budget,
    }
    usual: dict[str, Any] = {"radius": 1.0}
    if protocol == "train_average":
        decided |= {"sizes": sizes} | ({"penalty": given["penalty"]} if "penalty" in given else {})
    else:  # a descent that moves as far a round whatever the number of rows
        epsilon = budget["epsilon"]
        usual |= {"rounds": 40, "step": 5 / len(train) * epsilon**0.48, "clip": 2 * epsilon**0.3}
        usual |= {"regularization": 1.0, "momentum": 0.8, "averaged": 10}
    terms = _terms(decided, usual, more)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    labeled = torch.cat([train.features.double(), train.labels[:, None].double()], dim=1)
    inputs = [(labeled[part],) for part in torch.split(order, sizes)]

    def judge(result: Any) -> list[Said]:
        from ppspeech.training.together import model_of, terms_of

        agreed: Any = terms_of(protocol, terms)
        often = test.labels.bincount().max() / len(test)

        def right(module: Any) -> float:
            with torch.no_grad():
                return float((module(test.features).argmax(-1) == test.labels).double().mean())

        alone = right(agreed.released(agreed.fit_alone(labeled)))
        return [
            Said("accuracy", right(model_of(agreed, result)), f"of {len(test):,} test rows right"),
            Said("majority", float(often), "by always saying the most frequent class"),
            Said("one_party", alone, "by one party that holds all rows, with the same epsilon and delta"),
        ]

    return Simulation(protocol, inputs, terms, judge)


def _speech(protocol: str, parties: int, corpus: str, budget: Options, more: Options) -> Simulation:
    """Recordings of the speakers of each party, as features."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    from ppspeech.audio import MfccConfig
    from ppspeech.data import FeatureStore, load_corpus, split_by_speaker

    split = split_by_speaker(load_corpus(corpus), 0.25)
    speakers = sorted({utterance.speaker for utterance in split.train})
    if len(speakers) < parties:
        raise PpspeechError(
            f"{corpus} has {len(speakers)} speakers to train on, fewer than {parties} parties: say --parties"
        )
    usual: dict[str, Any] = {"unit": "utterance", "sample_rate": 16_000}
    if protocol == "train_words":
        usual["words"] = sorted({str(utterance.word) for utterance in split.train})
    else:
        usual["components"] = 16
    terms = _terms(budget, usual, more)
    store = FeatureStore(MfccConfig.at_rate(terms["sample_rate"]))

    def held(part: "Corpus", own: Sequence[str]) -> dict[str, Any]:
        spoken = [utterance for utterance in part if utterance.speaker in own]
        if protocol == "train_words":
            spoken = [utterance for utterance in spoken if utterance.word in terms["words"]]
        return {"utterances": store.load(spoken), "words": [utterance.word for utterance in spoken]}

    inputs = [(held(split.train, speakers[place::parties]),) for place in range(parties)]

    def judge(result: Any) -> list[Said]:
        from ppspeech.training.together import model_of, terms_of

        agreed: Any = terms_of(protocol, terms)
        test = held(split.test, sorted({utterance.speaker for utterance in split.test}))
        lengths = torch.tensor([len(each) for each in test["utterances"]])

        @torch.no_grad()
        def figure(module: Any) -> float:
            if protocol == "train_mixture":
                return float(module.log_prob(torch.cat(test["utterances"])).mean())
            found = module(pad_sequence(test["utterances"], batch_first=True), lengths).argmax(-1)
            right = [terms["words"][place] == word for place, word in zip(found.tolist(), test["words"], strict=True)]
            return float(sum(right) / len(right))

        mixture = protocol == "train_mixture"
        name = "log_density" if mixture else "accuracy"
        words = "nats a frame of {:,} test utterances" if mixture else "of {:,} test words right"
        return [
            Said(
                name, figure(model_of(agreed, result)), words.format(len(lengths)) + ", of speakers nobody trained on"
            ),
            Said("start", figure(agreed.start()), "by the public start, before anyone's speech"),
        ]

    return Simulation(protocol, inputs, terms, judge)


def _directions(parties: int, given: Options, more: Options) -> Simulation:
    """Parts of a table whose principal direction all of them want."""
    import numpy as np

    from ppspeech.protocols.eigen import DELTA, MOST_FEATURES, noise_for, private_moments, second_moments

    rows = _load(given, needs_class=False)
    values = rows.features.double().numpy()
    features = values.shape[1]
    if features > MOST_FEATURES:
        raise PpspeechError(
            f"{rows.name} has {features} features, and directions are found among up to {MOST_FEATURES}: try --table "
            "adult"
        )
    norm = rows.norm or float(np.linalg.norm(values, axis=1).max())
    noise, budget = None, dict[str, Any]()
    if "epsilon" in given:
        norm = _norm(rows, given)
        budget = {"epsilon": given["epsilon"], "delta": given.get("delta", DELTA), "radius": norm}
        noise = noise_for(features, **budget)
    elif left := [f"--{name}" for name in ("delta", "radius") if name in given]:
        raise PpspeechError(f"without --epsilon directions are exact, and {' and '.join(left)} would do nothing")
    bound = len(values) * norm**2
    terms = _terms({"features": features, "bound": bound, **budget}, {}, more)
    order = np.random.default_rng(0).permutation(len(values))

    def judge(result: Any) -> list[Said]:
        exact = np.linalg.eigh(second_moments(values))[1][:, -1]
        said = [
            Said("cosine", abs(float(np.asarray(result[0]) @ exact)), "|cos| to the exact direction of all rows", 6)
        ]
        if noise is not None:
            alone = np.linalg.eigh(private_moments(values, noise, bound).value)[1][:, -1]
            words = "by one party that holds all rows, with the same epsilon and delta"
            said.append(Said("one_party", abs(float(alone @ exact)), words, 6))
        return said

    inputs = [(part,) for part in np.array_split(values[order], parties)]
    promise = "" if noise is None else f"{noise.guarantee} of each party, against all others together"
    return Simulation("eigen", inputs, terms, judge, None, promise)
