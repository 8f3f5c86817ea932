"""Mutants of training in several processes: what makes a stated epsilon untrue where one process is right."""

from tests.mutants.mutant import mutant

SUMS, PLAN = "privacy/mechanisms/unit_sum.py", "privacy/gradients/plan.py"
GRADIENTS, DATA = "training/private/gradients.py", "data/datamodule.py"
STATISTICS = "privacy/mechanisms/statistics.py"
MODULE, OBSERVED = "training/module.py", "training/private/observed.py"
TESTS, PLAN_TESTS = "tests/training/test_ranks.py", "tests/privacy/test_plan.py"
ONE_NOISE = f"{TESTS}::test_released_sums_have_one_noise_of_full_size"

ADDED = "return place.added(part + whole_noise(scale, part) if place.first else part)"
OWNED = "self.mine = place.owns(torch.arange(self.units))"
BOOKED = "sigma = float(dyadic(noise_multiplier * STEPS))"

RANK_MUTANTS = [
    mutant(
        "ranks 1 noise drawn on every rank and averaged",
        "half the variance that is booked",
        f"{ONE_NOISE} {PLAN_TESTS}::test_two_ranks_make_one_poisson_sample_and_one_noise",
        (SUMS, ADDED, "return place.added(part) + place.added(whole_noise(scale, part)) // place.ranks"),
    ),
    mutant(
        "ranks 2 every rank its own noise",
        "ranks differ, and who averages them takes noise off",
        f"{ONE_NOISE} {PLAN_TESTS}::test_two_ranks_make_one_poisson_sample_and_one_noise",
        (SUMS, ADDED, "return place.added(part) + whole_noise(scale, part)"),
    ),
    mutant(
        "ranks 3 a unit split across ranks",
        "somebody is clipped on every rank by itself, and moves the sum as often",
        f"{TESTS}::test_ranks_have_every_utterance_once",
        (DATA, "mine = place.owns(dataset.speakers).numpy()", "mine = place.owns(dataset.utterances).numpy()"),
    ),
    mutant(
        "ranks 4 a split unit that nobody notices",
        "somebody is clipped on every rank by itself, and moves the sum as often",
        f"{TESTS}::test_what_two_processes_add_is_everybodys",
        (STATISTICS, ".to(torch.int64)) > 1).any()):", ".to(torch.int64)) > 2).any()):"),
    ),
    mutant(
        "ranks 5 a batch drawn by both ranks from the same part",
        "half of the people join twice, with gradients of twice the bound, and the others never",
        PLAN_TESTS,
        (PLAN, OWNED, "self.mine = torch.arange(self.units) % place.ranks == 0"),
    ),
    mutant(
        "ranks 6 every rank draws from everybody",
        "a unit joins with 1 - (1 - q)^2, and sometimes twice",
        PLAN_TESTS,
        (PLAN, OWNED, "self.mine = torch.ones(self.units, dtype=torch.bool)"),
    ),
    mutant(
        "ranks 7 an event for a rank's share of the noise",
        "the account has more noise than there is",
        f"{PLAN_TESTS} tests/privacy/test_accountant.py",
        (PLAN, BOOKED, "sigma = float(dyadic(1.4142 * noise_multiplier * STEPS))"),
    ),
    mutant(
        "ranks 8 the trainer's place is not asked",
        "both ranks draw everybody's batches and release a sum of their own",
        f"{TESTS}::test_every_speaker_joins_once_and_whole",
        (GRADIENTS, "self._place = Ranks.of(trainer)", "self._place = ONE_RANK"),
    ),
    mutant(
        "ranks 11 processes with data in other orders",
        "somebody who stands elsewhere joins a step on both, with twice the bound",
        f"{TESTS}::test_what_two_processes_add_is_everybodys",
        (GRADIENTS, "units.cpu().numpy().tobytes()", 'b""'),
    ),
    mutant(
        "ranks 12 sums of a part of an epoch",
        "one more utterance changes which of the others are in it",
        "tests/training/test_private_hook.py::test_sums_of_a_part_of_an_epoch_are_not_released",
        (OBSERVED, "    if once < len(heard):", "    if once < 0:"),
    ),
    mutant(
        "ranks 13 processes with utterances of their own",
        "what one process calls the third utterance is another's fourth: it counts twice",
        f"{TESTS}::test_what_two_processes_add_is_everybodys",
        (DATA, "self.parts.values())]))) > 1:", "self.parts.values())]))) > 2:"),
    ),
    mutant(
        "ranks 9 processes that take the account with them",
        "the process that is left says that nothing was spent",
        f"{TESTS}::test_wrong_numbers_of_processes_are_refused_in_words",
        (MODULE, ' and strategy._start_method == "popen"', ""),
    ),
    mutant(
        "ranks 10 compiled kernels under a clip",
        "what somebody adds is rounded by who is computed beside them",
        "tests/training/test_gradient_privacy.py::test_compiled_modules_are_refused",
        (OBSERVED, "if any(is_compiled(part) for part in module.modules()):", "if False:"),
    ),
]
