"""Small slips of private choices, and of estimators for scikit-learn."""

from tests.audit.slips.base import slip

_CHOICE = "mechanisms/test_private_choice.py"
_ESTIMATORS, _PIPELINE = "sklearn/test_estimators.py", "sklearn/test_public_pipeline.py"
_SEARCH = "sklearn/test_private_search.py"

SLIPS = (
    slip(
        "a choice at twice its rate",
        "sensitivity/choices",
        "return epsilon / (largest - least)",
        "return 2 * epsilon / (largest - least)",
        f"{_CHOICE}::test_the_price_is_epsilon_and_no_less",
    ),
    slip(
        "an exchanged record that moves losses one way alone",
        "sensitivity/choices",
        "return (-1, 1) if adjacency",
        "return (0, 1) if adjacency",
        f"{_CHOICE}::test_the_price_is_epsilon_and_no_less",
    ),
    slip(
        "losses that are not clipped",
        "mechanisms/private_choice",
        "losses = self.mechanism.records(X, y).x",
        "losses = X",
        f"{_CHOICE}::test_a_release_has_a_certificate_and_is_paid",
    ),
    slip(
        "losses that are rounded together",
        "mechanisms/private_choice",
        "np.rint(np.asarray(losses) * 2.0**_DIGITS).astype(np.int64).sum(axis=0).tolist()",
        "np.rint(np.asarray(losses).sum(axis=0) * 2.0**_DIGITS).astype(np.int64).tolist()",
        f"{_CHOICE}::test_a_release_has_a_certificate_and_is_paid",
    ),
    slip(
        "fits to records that are held out",
        "sklearn/private_search",
        "own = [_safe_indexing(values, training) for values in (X, y)]",
        "own = [X, y]",
        f"{_SEARCH}::test_each_record_meets_one_part_alone",
    ),
    slip(
        "a choice for nothing beside cheaper fits",
        "sklearn/holdouts",
        "and part.exact_epsilon >= choice.exact_epsilon",
        "and part.exact_epsilon >= 0",
        f"{_SEARCH}::test_a_choice_is_covered_by_what_is_no_better_in_any_sum",
    ),
    slip(
        "a choice that is not debited",
        "sklearn/private_search",
        "else [*fits, choosing]",
        "else fits",
        f"{_SEARCH}::test_a_choice_that_is_dearer_than_every_fit_is_debited",
    ),
    slip(
        "predictions that are not clipped before they are compared",
        "sklearn/regressors",
        "(np.clip(y, low, high) - np.clip(predicted._mean(eta), low, high))",
        "(y - predicted._mean(eta))",
        f"{_SEARCH}::test_losses_are_between_0_and_1_and_those_of_one_record_its_own",
    ),
    slip(
        "clones that are not marked",
        "sklearn/base",
        "made._is_clone = True",
        "made._is_clone = False",
        f"{_ESTIMATORS}::test_the_original_may_fit_without_a_ledger_and_no_clone_may",
    ),
    slip(
        "steps that are fitted to records",
        "sklearn/public_pipeline",
        "made, self.steps = made_up_rows(X), list(self.steps)",
        "made, self.steps = X, list(self.steps)",
        f"{_PIPELINE}::test_no_step_is_fitted_to_a_record_and_none_passes_before_the_debit",
    ),
    slip(
        "steps that inherit from public ones",
        "sklearn/public_steps",
        "if kind in (PublicDesign, PolynomialFeatures, Binarizer):",
        "if isinstance(step, PublicDesign | PolynomialFeatures | Binarizer):",
        f"{_PIPELINE}::test_steps_that_learn_are_refused_wherever_they_are",
    ),
    slip(
        "steps that see types which follow from all cells",
        "sklearn/public_pipeline",
        "        X = with_public_types(X)\n        for _, step",
        "        for _, step",
        f"{_PIPELINE}::test_steps_of_a_pipeline_are_given_floats",
    ),
    slip(
        "functions of any kind in a pipeline",
        "sklearn/public_steps",
        "and getattr(np, function.__name__, None) is function",
        "",
        f"{_PIPELINE}::test_steps_that_learn_are_refused_wherever_they_are",
    ),
    slip(
        "records that pass through steps before the debit",
        "sklearn/base",
        "after_debit=lambda: with_responses(table_of(make(X), expected)))",
        "after_debit=lambda made=with_responses(table_of(make(X), expected)): made)",
        f"{_PIPELINE}::test_no_step_is_fitted_to_a_record_and_none_passes_before_the_debit",
    ),
    slip(
        "one row of a list that makes all of it refused",
        "sklearn/tables",
        "2 * number <= len(rows)",
        "number < len(rows)",
        "sklearn/test_estimators.py::test_frames_arrays_and_lists_agree",
    ),
)
