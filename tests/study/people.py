"""A table of made-up people, and studies of it."""

import numpy as np
import pandas as pd

import kngjax as kng

BOUNDS = {"wage": (20, 20_000), "education": (0, 18), "experience": (0, 60), "sick": (0, 30)}
LEVELS = {"region": ("north", "south", "west"), "parttime": ("no", "yes")}
FORMULA = "log(wage) ~ education + poly(experience, 2)"
# A number of the data that no text may show.
SECRET = 4711.25


def people(count=4000):
    """Wages that are linear in their logarithm, part time by odds and days of sickness by a rate."""
    generator = np.random.default_rng(0)
    education, experience = generator.integers(6, 19, count), generator.uniform(0, 50, count)
    region, noise = generator.choice(LEVELS["region"], count), 0.4 * generator.standard_normal(count)
    logarithm = 4.5 + 0.09 * education + 0.06 * experience - 0.001 * experience**2 + 0.1 * (region == "south") + noise
    return pd.DataFrame(
        {
            "wage": np.exp(logarithm),
            "education": education.astype(float),
            "experience": experience,
            "region": region,
            "parttime": np.where(generator.uniform(size=count) < 1 / (1 + np.exp(2 - 0.1 * education)), "yes", "no"),
            "sick": generator.poisson(np.exp(1.0 - 0.05 * education)).astype(float),
        }
    )


PEOPLE = people()


def study(frame=PEOPLE, **changed):
    """A study of the people by `replace`, unless another fact is given."""
    facts = {"bounds": BOUNDS, "levels": LEVELS, "adjacency": "replace"} | changed
    return kng.Study(frame, **facts)
