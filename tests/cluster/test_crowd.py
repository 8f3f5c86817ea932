"""Names among a crowd that actors hold: the same, with a node killed in the middle; served, with who came later."""

from functools import partial
from pathlib import Path

import numpy as np

from ppspeech.cluster import shards
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.speakers import (
    Crowd,
    CrowdShard,
    CrowdTerms,
    Entries,
    Identity,
    name_of_best,
    prepare_as_client,
    prepare_as_server,
    shift_as_client,
    shift_as_server,
)
from ppspeech.service import SpeakerDeployment, connect, serve
from tests.cluster.conftest import Nodes
from tests.protocols.speaker_meeting import ask, unit
from tests.service.voices import RATE, SPEAKERS, released, voice

FEATURES = 16
TEMPLATES = unit(np.random.default_rng(3).normal(size=(40, FEATURES)), axis=1)
NAMES = [f"speaker {number}" for number in range(40)]


def test_a_node_killed_in_the_middle_of_an_identification_changes_nothing(nodes: Nodes) -> None:
    """After the mask was multiplied and before the voice is: what the dead held is held by others, and the same."""
    plan = CrowdTerms(FEATURES, 6000)
    places = np.arange(40) * 150
    factories = [partial(CrowdShard, plan.product, 1, 2048 * number) for number in range(3)]
    with shards(factories, ray=nodes.address) as held:
        who = Crowd.empty(plan, held)
        for part in (slice(0, 20), slice(20, 40)):
            who = who.added(Entries.of(plan, TEMPLATES[part], NAMES[part], 0.7), places[part])
        gone = []

        def identify(at: int, kills: bool) -> Identity | None:
            def ours(met: Meeting) -> Identity | None:
                with met.session():
                    prepared = prepare_as_client(met, plan)
                    return name_of_best(
                        prepared.engine, plan, shift_as_client(prepared, plan.numbers(0.99 * TEMPLATES[at]))
                    )

            def theirs(met: Meeting) -> None:
                with met.session():
                    prepared = prepare_as_server(met, who)
                    if kills:
                        gone.append(nodes.second)
                        nodes.kill_second()
                    name_of_best(prepared.engine, plan, shift_as_server(prepared), who)

            return ask(ours, theirs)[0]

        assert identify(31, kills=False) == Identity(NAMES[31])
        try:
            assert [identify(at, kills=at == 2) for at in (2, 17, 39)] == [Identity(NAMES[at]) for at in (2, 17, 39)]
        finally:
            nodes.replace_second()
        assert len(gone) == 1


def test_a_crowd_is_served_from_a_cluster(nodes: Nodes, tmp_path: Path) -> None:
    """Sessions are forks, which have no part in the cluster: who is enrolled in one is found in the next."""
    bundle = released(tmp_path / "voices", SPEAKERS)
    chosen = SpeakerDeployment(places=5000, scoring="crowd", threshold=0.93, enrolls=True, ray=nodes.address, shards=2)
    with serve(bundle, speakers=chosen, state=tmp_path / "people") as running:

        def session() -> object:
            return connect(running.address, pin=running.pin, bundle=bundle)

        for seed, name in enumerate(("ann", "bob")):
            with session() as client:  # type: ignore[attr-defined]
                client.enroll(name, [voice(seed)], RATE)
        with session() as client:  # type: ignore[attr-defined]
            assert client.identify([voice(1)], RATE).value == "bob"
            assert client.identify([voice(0)], RATE).value == "ann"
