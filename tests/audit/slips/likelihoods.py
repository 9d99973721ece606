"""Small slips of the likelihood of a release, after which posteriors would be too narrow, too wide or biased."""

from tests.audit.slips.base import slip

_TESTS = "inference/test_observations.py"

SLIPS = (
    slip(
        "a likelihood at half of the rate of the noise",
        "inference/observations",
        "log_density -= part.noise.rate *",
        "log_density -= 0.5 * part.noise.rate *",
        f"{_TESTS}::test_kng_is_the_mean_of_its_density_over_data_sets",
    ),
    slip(
        "KNG's normaliser left out of its likelihood",
        "inference/observations",
        " + moments.log_determinants",
        "",
        f"{_TESTS}::test_kng_is_the_mean_of_its_density_over_data_sets",
    ),
    slip(
        "a likelihood that forgets what the ridge pulls",
        "inference/observations",
        "part.noise.pull(jnp.asarray(part.value))",
        "0.0 * jnp.asarray(part.value)",
        f"{_TESTS}::test_objective_perturbation_is_the_mean_of_its_density_over_data_sets",
    ),
)
