"""Mutants of attackers: a filter looks better than it is, because those who attack it got weaker."""

from tests.mutants.mutant import mutant

ATTACK, REPORT = "filters/attack/attack.py", "filters/attack/report.py"
KNOWN = "filters/attack/known_filter.py"
GAUSSIANS, DENSITIES = "filters/attack/attackers/gaussians.py", "filters/attack/attackers/densities.py"
SETS, NETWORKS = "filters/attack/attackers/sets.py", "filters/attack/attackers/networks.py"
SETS_TESTS, KNOWN_TESTS = "tests/filters/test_attack_sets.py", "tests/filters/test_attack_known_filter.py"
VOICES, HEARD = "filters/attack/attackers/voices.py", "filters/attack/heard.py"
VOICES_TESTS = "tests/filters/test_attack_voices.py"
MARGINS = f"{SETS_TESTS}::test_every_attacker_names_unfiltered_people_as_often_as_it_should"
MANNERS = f"{SETS_TESTS}::test_who_is_hidden_in_the_mean_is_named_by_one_model_a_word"

SHUFFLED, DRAWN = "torch.randperm(len(own), generator", "torch.randint(len(own), (len(own),), generator"
COUNTED = "own = own.double().view(words, classes, number)"
GUESSED = "functional.mse_loss(network(x[rows]), "

ATTACKERS = [
    mutant(
        "one of ten clips looked at",
        "a person who speaks ten times is judged as if once",
        f"{MARGINS}[lda]",
        (ATTACK, "yield size, scores[rows].mean(1)", "yield size, scores[rows[:, :1]].mean(1)"),
    ),
    mutant(
        "words kept from the attackers",
        "what a filter leaves in the way a word is said is not found",
        MANNERS,
        (ATTACK, "Clips(_vectors(train), words[0])", "Clips(_vectors(train), 0 * words[0])"),
    ),
    mutant(
        "the best for the filter in the headline",
        "the weakest attacker stands for all",
        f"{SETS_TESTS}::test_the_headline_is_the_worst_at_each_number_of_clips",
        (REPORT, "return max(self.at(clips), key=", "return min(self.at(clips), key="),
    ),
    mutant(
        "attackers without time not said",
        "what did not fit looks as if it had been tried",
        f"{SETS_TESTS}::test_the_time_is_spent_on_the_first_and_the_others_are_named",
        (ATTACK, "left_out += [name for name, those in zip(names, found, strict=True) if those is None]", ""),
    ),
    mutant(
        "clips twice in a set",
        "ten clips that are six say less",
        f"{SETS_TESTS}::test_sets_are_of_one_person_and_hold_no_clip_twice",
        (ATTACK, SHUFFLED, DRAWN),
    ),
    mutant(
        "strangers met before",
        "verification of strangers is that of old acquaintances",
        f"{SETS_TESTS}::test_strangers_are_impostors",
        (ATTACK, "rows = place < met", "rows = place >= 0"),
    ),
    mutant(
        "intervals of clips instead of people",
        "a figure looks surer than it is",
        f"{SETS_TESTS}::test_people_are_drawn_again_not_clips",
        (
            REPORT,
            "whose, place = torch.unique(people, return_inverse=True)",
            "whose = place = torch.arange(len(people))",
        ),
    ),
    mutant(
        "the wrong end of the false claims",
        "verification looks easier to fool than it is",
        f"{SETS_TESTS}::test_true_positives_are_those_of_the_best_threshold",
        (REPORT, "rates.miss[rates.false_alarm <= rate].min()", "rates.miss[rates.false_alarm <= rate].max()"),
    ),
    mutant(
        "no manner of saying a word",
        "the Bayesian discriminants know a person's mean alone, which filters take out",
        MANNERS,
        (GAUSSIANS, "expected @ white + believed * (own @ turn)", "expected @ white + 0 * (own @ turn)"),
    ),
    mutant(
        "covariances shrunk to nothing",
        "discriminants that look along the wrong directions",
        f"{SETS_TESTS}::test_shrinkage_is_scikit_learns",
        (GAUSSIANS, "weight = float((variance / distance.clamp_min(1e-300)).clamp(0, 1))", "weight = float(1.0)"),
    ),
    mutant(
        "spreads that are everyone's",
        "who varies in a way of their own is not told by it",
        "tests/filters/test_attack.py::test_people_told_by_their_spread_alone_escape_the_linear_attacker_only",
        (GAUSSIANS, "(own.mT @ own + weight * common) / (len(own) + weight)", "common"),
    ),
    mutant(
        "codes counted for all words together",
        "who has other codes for one word is not told by it",
        f"{SETS_TESTS}::test_filters_of_a_few_codes_are_attacked_by_counting",
        (DENSITIES, COUNTED, f"{COUNTED}.mean(0, keepdim=True).expand(words, -1, -1)"),
    ),
    mutant(
        "kernels of the first width",
        "the density attacker is not tuned",
        f"{MARGINS}[parzen]",
        (DENSITIES, "max(settings, key=likely)", "min(settings, key=likely)"),
    ),
    mutant(
        "a set that is its first clip",
        "the network on sets looks at one",
        f"{MARGINS}[deep_sets]",
        (SETS, "self.whole(self.clip(x).mean(-2))", "self.whole(self.clip(x)[..., 0, :])"),
    ),
    mutant(
        "networks trained for a moment",
        "networks name hardly anyone",
        f"{MARGINS}[networks]",
        (NETWORKS, "len(labels), EPOCHS)", "len(labels), 1)"),
    ),
    mutant(
        "sigmoids left as they are",
        "an invertible network looks like a filter",
        KNOWN_TESTS,
        (KNOWN, "lambda y, edge: torch.logit(y.clamp(edge, 1 - edge))", "lambda y, _: y"),
    ),
    mutant(
        "layers that lose something undone",
        "what is guessed at random passes for the sample",
        KNOWN_TESTS,
        (KNOWN, "if weight.shape[0] < weight.shape[1] or", "if"),
    ),
    mutant(
        "public speech not looked at",
        "nothing is learned from other people",
        KNOWN_TESTS,
        (KNOWN, f"{GUESSED}wanted[rows])", f"{GUESSED}0 * wanted[rows])"),
    ),
    mutant(
        "voices of other people",
        "the voice embedding compares with the wrong people, and names nobody",
        f"{VOICES_TESTS}::test_people_are_named_by_their_sound[voice]",
        (VOICES, "index_add(0, labels, voices)", "index_add(0, labels.flip(0), voices)"),
    ),
    mutant(
        "cepstra heard as if they were spectra",
        "the voice in frames that are given back is not heard",
        f"{VOICES_TESTS}::test_people_are_named_by_cepstra[normalized]",
        (HEARD, "statics = statics * std[:size] + mean[:size]", "statics = 0 * statics + mean[:size]"),
    ),
    mutant(
        "a voice embedding that is never tuned",
        "whoever goes on training it on what the filter gives is not tried",
        f"{VOICES_TESTS}::test_tuning_changes_a_copy_and_fits_the_people",
        (VOICES, "        optimizer.step()\n", ""),
    ),
    mutant(
        "a missing voice embedding not said",
        "what is not installed looks as if it had been tried",
        f"{VOICES_TESTS}::test_why_nothing_is_heard_is_said",
        (ATTACK, "if attackers is None and speech and hearing.refusal else []", "if False else []"),
    ),
]
