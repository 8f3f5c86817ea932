"""The walk of a new user holds."""

import pytest

from ppspeech.data import corpus_names, table_names
from tests.walk.steps import STAGES
from tests.walk.walk import walk


def test_what_steps_need_can_be_there() -> None:
    """One that asks for something else would be left out everywhere."""
    needs = {step.needs for steps in STAGES.values() for step in steps if step.needs}
    assert {"fsdd", "yesno"} <= needs <= {*corpus_names(), *table_names()}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage(stage: str) -> None:
    faults = [f"{outcome.step.name}: {outcome.fault}" for outcome in walk(stage, slow=False) if outcome.fault]
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stage", [stage for stage, steps in STAGES.items() if any(step.slow for step in steps)])
def test_the_long_steps_of_a_stage(stage: str) -> None:
    faults = [f"{outcome.step.name}: {outcome.fault}" for outcome in walk(stage, slow=True) if outcome.fault]
    assert not faults, "\n".join(faults)
