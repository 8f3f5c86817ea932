import pytest
import torch

from ppspeech.errors import ModelError
from ppspeech.models.hmm.topology import Topology, ergodic, left_right


def test_left_right_goes_forward_only() -> None:
    topology = left_right(4, skips=1, must_finish=True)
    for i, row in enumerate(topology.transitions):
        assert [j for j, allowed in enumerate(row) if allowed] == [j for j in (i, i + 1, i + 2) if j < 4]
    assert topology.initial == (True, False, False, False)
    assert topology.final == (False, False, False, True)


def test_any_matrix_has_its_diagonals_and_masks() -> None:
    topology = Topology(((False, True), (True, False)), (True, False), (True, True))
    assert topology.offsets == (-1, 1)
    transitions, initial, final = topology.masks(torch.zeros(1, device="meta"))
    assert transitions.device.type == initial.device.type == final.device.type == "meta"
    assert topology.masks(torch.zeros(1))[0].tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ergodic(0), "at least one state"),
        (lambda: left_right(0), "states >= 1"),
        (lambda: left_right(3, skips=-1), "skips >= 0"),
        (lambda: Topology(((True,),), (True, False), (True,)), "rows of 1 entries"),
        (lambda: Topology(((True, True), (False, False)), (True, False), (True, True)), "lead nowhere"),
        (lambda: Topology(((True,),), (False,), (True,)), "initial and one final"),
    ],
)
def test_impossible_structures_are_refused(build, message) -> None:
    with pytest.raises(ModelError, match=message):
        build()
