"""Shows what a release will be worth: noise and standard errors, and the ε or n that would do. All of it is public."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kngjax.core.arrays import float64
from kngjax.core.later import pd
from kngjax.core.pictures import MARKERS, axes_of, style
from kngjax.core.summary_table import AbstractSummarised, SummaryTable
from kngjax.inference.far_draws import LITTLE
from kngjax.inference.interval_previews import IntervalPreview
from kngjax.inference.settings import Expected, Scenario
from kngjax.mechanisms.parameters import rounded_up

# The least n·ε/d: below it the limit law of KNG is not near.
LIMIT_LAW_FROM = 30.0
# A probability of draws from far off that is too much.
MUCH = 0.05
# The share that a ridge may take of a coefficient before little else is left.
MOST_PULLED = 0.5
# How large noise may be in units of the deviation of a number of which nothing is known but its bounds.
MOST_NOISE = 0.5
_FARTHEST = 1e9
# A bias in standard errors that is not spoken of.
NEXT_TO_NONE = 0.01


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Preview(AbstractSummarised):
    """Holds what `preview` found from public facts: nothing here is private. Print it for `explain()`.

    **Arguments:** `mechanism`: its kind. `num_records`: n. `setting`: the assumptions. `expected`: their consequences,
    in units of the mechanism's coefficients; None where these are not known. `names`: of the coefficients. `own_units`:
    the matrix from the mechanism's coefficients to those that are shown. `simulated`: the second moments of the noise
    on made-up tables; None where none were made. `again`: makes the assumptions at another n and ε, or None where there
    is no mechanism, if settings of the mechanism follow from n and ε. `kept`: the share of ε that a plan of intervals
    leaves to the estimate. `intervals`: the preview of a plan's intervals; None for a mechanism. `withheld`: says why
    figures are not printed, if they rest on rows or responses that nobody described; None where figures are printed.
    """

    mechanism: str
    num_records: int
    setting: Scenario | None
    expected: Expected | None
    names: tuple[str, ...]
    own_units: np.ndarray | None = None
    simulated: np.ndarray | None = None
    again: Callable[[int, float], Scenario | None] | None = None
    kept: float = 1.0
    intervals: IntervalPreview | None = None
    withheld: str | None = None

    def shown_in(self, names: tuple[str, ...], matrix: np.ndarray) -> "Preview":
        """Returns the preview of the coefficients Mθ. **Arguments:** `matrix`: M."""
        shown = None if self.intervals is None else dataclasses.replace(self.intervals, combinations=matrix)
        return dataclasses.replace(self, names=names, own_units=matrix, intervals=shown)

    def of_group(self, times: float) -> "Preview":
        """Copies the preview with every ε in the terms of what is asked of all groups.

        **Arguments:** `times`: ε of all groups over that of one.
        """
        again, own = self.again, self.intervals
        return dataclasses.replace(
            self,
            kept=self.kept / times,
            again=None if again is None else lambda count, epsilon: again(count, epsilon / times),
            intervals=None if own is None else dataclasses.replace(own, times=times),
        )

    @property
    def noise(self) -> "pd.Series | None":
        """Returns the expected standard deviation of each coefficient's privacy noise; None where it is unknown.

        The noise follows from the assumptions in `setting.words`. It is a guess where `withheld` says why, as are
        `ratio` and `width`.
        """
        if self.expected is None:
            return None
        covariance = self.expected.noise.covariance if self.simulated is None else self.simulated
        return self._named(self._deviations(covariance))

    @property
    def standard_error(self) -> "pd.Series | None":
        """Returns the expected standard error of the estimate without privacy."""
        return None if self.expected is None else self._named(self._deviations(self.expected.sampling))

    @property
    def ratio(self) -> "pd.Series | None":
        """Returns noise over standard error."""
        noise, error = self.noise, self.standard_error
        return None if noise is None or error is None else noise / error

    @property
    def width(self) -> "pd.Series | None":
        """Returns the expected width of a plan's 95% intervals over that without privacy; infinite if there are none.

        None for a mechanism alone: preview `kngjax.WithIntervals`.
        """
        found = None if self.intervals is None else self.intervals.width
        return None if found is None else self._named(found)

    @property
    def pull(self) -> "pd.Series | None":
        """Returns the share of each of the mechanism's coefficients that a ridge takes; θ̃ later tells it exactly."""
        return None if self.expected is None else self._named(np.diag(self.expected.noise.pull))

    @property
    def bias(self) -> "pd.Series | None":
        """Returns how far each estimated coefficient lies from its target, whatever n and ε are; None without a target.

        The bias is argmin_θ E ρ(e - x'θ) less the coefficients of the mean, or of the quantile, of the residual e given
        x. The pseudo-Huber loss has none for symmetric laws about the mean; that of a smoothed quantile loss falls with
        the bandwidth. Neither noise nor the pull of a ridge is part of it.
        """
        bias = None if self.setting is None else self.setting.bias
        if bias is None:
            return None
        return self._named(bias if self.own_units is None else self.own_units @ bias)

    @property
    def epsilon(self) -> float:
        """Returns ε of the mechanism, or of the whole plan."""
        return self._assumed.epsilon / self.kept

    @property
    def is_in_the_limit(self) -> bool:
        """Tells whether the limit law holds: n·ε is at least 30d and draws are hardly far off, or noise has one law."""
        if self.expected is None:
            return False
        return self.expected.noise.is_exact or (self.has_enough and (self.expected.far or 0.0) <= LITTLE)

    @property
    def has_enough(self) -> bool:
        """Tells whether n·ε is at least 30d, with the n and ε that one estimate has."""
        return self.num_records * self.kept * self.epsilon >= LIMIT_LAW_FROM * self._assumed.dimension

    @property
    def trusted(self) -> bool:
        """Tells whether noise follows from the limit law where that holds, or was simulated by the mechanism."""
        return self.expected is not None and (self.is_in_the_limit or self.simulated is not None)

    def epsilon_for(self, ratio: float = 0.5) -> float:
        """Finds the least ε with noise of at most `ratio` standard errors in every coefficient; infinite for none."""
        self._require_known()
        return self._least(lambda one: self._ratio_at(self.num_records, one) <= ratio, self.epsilon, 1e3)

    def num_records_for(self, ratio: float = 0.5) -> float | int:
        """Finds the least n with noise of at most `ratio` standard errors in every coefficient; infinite for none."""
        self._require_known()
        least = self._least(lambda n: self._ratio_at(n, self.epsilon) <= ratio, self.num_records, 1e12)
        return math.ceil(least) if math.isfinite(least) else least

    @property
    def hopeless(self) -> str | None:
        """Says why a release would be little but noise; None where it would not, and where that is not known."""
        if self.expected is None:
            return None
        return _why_hopeless(self._assumed, self.expected, self.own_units, self.intervals is not None)

    def enough(self) -> str:
        """Says in words which n, or which ε, would not be hopeless."""
        self._require_known()

        def serves(number: float | int, epsilon: float | int) -> bool:
            setting, expected = self._at(number, epsilon)
            if expected is None:
                return False
            return _why_hopeless(setting, expected, is_unpulled=self.intervals is not None) is None

        count = self._least(lambda number: serves(number, self.epsilon), self.num_records, 1e12, 1.05)
        epsilon = self._least(lambda one: serves(self.num_records, one), self.epsilon, 100.0, 1.05)
        ways = [f"{rounded_up(count)} {self._counted}"] if math.isfinite(count) else []
        ways += [f"epsilon = {rounded_up(epsilon)}"] if math.isfinite(epsilon) else []
        return " or ".join(ways) + " would do" if ways else "no n or epsilon alone would do"

    def least_curvature(self) -> float:
        """Finds the least share of the expected curvature H, at most 1, with which a release is more than noise.

        For counts H is proportional to their mean, which is private, and noise is proportional to 1/H. The share is
        infinite where a release is little but noise even with all of H.
        """
        self._require_known()
        setting = dataclasses.replace(self._assumed, law=None)

        def serves(share: float) -> bool:
            thinner = dataclasses.replace(
                setting, hessian=share * setting.hessian, score_covariance=share * setting.score_covariance
            )
            expected = thinner.expected(self.num_records, and_far=False)
            return expected is not None and _why_hopeless(thinner, expected) is None

        return self._least(serves, 1.0, 1.0, 1.02)

    def explain(self) -> str:
        """Says in words what is expected, and under which assumptions."""
        return self.summary().unwrapped()

    def summary(self) -> SummaryTable:
        """Lays out noise and standard error of each coefficient, and what was assumed."""
        [title, *notes], frame = self.told(), self.stated()
        numbers = pd.DataFrame() if frame is None else frame.reset_index()
        return SummaryTable.of_frame(title, (), numbers, min(1, numbers.shape[1]), notes)

    def stated(self) -> "pd.DataFrame | None":
        """Returns `to_frame()`; None where no figure is known, or none is stated."""
        return None if self.expected is None or self.withheld is not None else self.to_frame()

    def told(self) -> list[str]:
        """Says what is previewed, and then what is to be known of it, a sentence each."""
        if self.expected is None or (ratio := self.ratio) is None:
            return [f"{self.mechanism}: how large its noise will be is not known beforehand."]
        lines = [f"{self.mechanism} of {self.num_records:,} {self._counted} at epsilon = {self.epsilon:g}, previewed"]
        if self.withheld is not None:
            return [*lines, f"Its noise is not stated: {self.withheld}.", *self._other_words()]
        if len(pull := [one for one in np.diag(self.expected.noise.pull) if one > 0.01]):
            lines.append(f"A ridge takes up to {max(pull):.0%} of a coefficient, by which it is biased.")
        if (growth := self.expected.noise.growth) > 1.0:
            lines.append(
                f"That is noise of small coefficients: of such as explain responses that fill their bounds it is up to "
                f"{growth:.2g} times as large."
            )
        if self._assumed.coefficients is not None and self.expected.noise.at is not None:
            lines.append("That is noise of the coefficients that were guessed, by which it goes.")
        lines += self._bias_in_words()
        if self.intervals is None:
            wide = math.hypot(1.0, ratio.max())
            lines.append(f"Errors would be up to {wide:.3g} times as large as without privacy.")
        lines += self._other_words()
        if self.expected.noise.is_exact:
            lines.append("The noise is exact, whatever the records are.")
        elif self.simulated is not None:
            lines.append("The noise was simulated by the mechanism itself on made-up tables.")
        elif not self.trusted:
            lines.append("Not to be trusted: so few records are far from the limit law that this rests on.")
        if self.hopeless is None and ratio.max() > 1.0:
            lines.append(f"Noise would be half of a standard error at epsilon = {self.epsilon_for():.3g}.")
        return lines

    def _other_words(self) -> list[str]:
        """Says what is expected of far draws and of intervals, what was assumed, and whether it is hopeless."""
        far, lines = None if self.expected is None else self.expected.far, []
        if far is not None and far > LITTLE:
            lines.append(f"With probability {far:.0%} a draw comes from anywhere in the domain.")
        if self.intervals is not None:
            lines.append(self.intervals.explain(is_guess=self.withheld is not None))
        lines.append("Assumed: " + "; ".join(self._assumed.words) + ".")
        if self.hopeless is not None:
            lines.append(f"Little but noise: {self.hopeless}; {self.enough()}.")
        return lines

    def to_frame(self) -> "pd.DataFrame":
        """Makes a frame of a row for each coefficient: noise, standard error, their ratio, and the bias if any."""
        columns = {"noise": self.noise, "standard_error": self.standard_error, "ratio": self.ratio}
        return pd.DataFrame(columns if self._largest_bias() is None else columns | {"bias": self.bias})

    def plot(self, ax: Any = None) -> Any:
        """Plots noise and standard error of each coefficient over ε, and returns the logarithmic axes of Matplotlib."""
        if (errors := self.standard_error) is None:
            raise ValueError(f"the noise of {self.mechanism} is not known beforehand")
        if self.withheld is not None:
            raise ValueError(f"the noise of {self.mechanism} is not stated: {self.withheld}")
        axes, bias = axes_of(ax), self.bias
        epsilons = np.geomspace(self.epsilon / 30.0, min(30.0 * self.epsilon, 100.0), 25)
        parts = [self._at(self.num_records, one, and_far=False)[1] for one in epsilons]
        noises = np.array([self._deviations(part.noise.covariance) for part in parts if part is not None])
        drawn = epsilons[[part is not None for part in parts]]
        for number, (name, curve, error) in enumerate(zip(self.names, noises.T, errors, strict=True)):
            looks = style(number, marker=MARKERS)
            axes.loglog(drawn, curve, label=name, markevery=(number, 5), **looks)
            axes.axhline(error, color=looks["color"], linestyle=":")
        words = "noise (dotted: standard error)"
        if self._largest_bias() is not None and bias is not None:
            words = "noise (dotted: standard error; dashed: bias)"
            for line, one, error in zip(list(axes.lines[::2]), bias, errors, strict=True):
                if abs(one) > NEXT_TO_NONE * error:
                    axes.axhline(abs(one), color=line.get_color(), linestyle="--")
        axes.set_xlabel("epsilon")
        axes.set_ylabel(words)
        axes.legend(frameon=False)
        return axes

    @property
    def _counted(self) -> str:
        return self._assumed.mechanism.bounds.counted

    def _largest_bias(self) -> "tuple[str, float, float] | None":
        """Finds the largest bias over its standard error: the coefficient, its bias, the ratio; None for next to 0."""
        bias, error = self.bias, self.standard_error
        if bias is None or error is None:
            return None
        shares = np.abs(bias.to_numpy()) / error.to_numpy()
        worst = int(np.argmax(shares))
        largest = self.names[worst], float(bias.iloc[worst]), float(shares[worst])
        return largest if largest[2] > NEXT_TO_NONE else None

    def _bias_in_words(self) -> list[str]:
        if (largest := self._largest_bias()) is None:
            return []
        name, bias, share = largest
        return [
            f"What the loss estimates is not quite the {self._assumed.target}: the bias is up to {share:.2g} standard "
            f"errors, {bias:.2g} of {name}, whatever epsilon is."
        ]

    def _at(self, num_records: float | int, epsilon: float, and_far: bool = True) -> tuple[Any, Any]:
        """Returns what is assumed and expected at another n and ε; twice None where no mechanism is made there."""
        count = round(num_records)
        setting = self._assumed.at(self.kept * epsilon) if self.again is None else self.again(count, epsilon)
        if setting is None or not setting.mechanism.intake.allows(max(count, 1)):
            return None, None
        return setting, setting.expected(max(count, 1), and_far=and_far)

    def _ratio_at(self, num_records: float | int, epsilon: float) -> float:
        _, expected = self._at(num_records, epsilon, and_far=False)
        if expected is None:
            return math.inf
        return float(np.max(self._deviations(expected.noise.covariance) / self._deviations(expected.sampling)))

    def _require_known(self) -> None:
        if self.expected is None:
            raise ValueError(f"the noise of {self.mechanism} is not known beforehand")

    @property
    def _assumed(self) -> Scenario:
        """Returns the assumptions, where there are some."""
        assert self.setting is not None
        return self.setting

    def _least(self, serves: Any, start: float | int, most: float, precision: float = 1.01) -> float:
        """Finds the least number from which on something serves, to that factor; infinite where no number serves."""
        low, high = start, start
        while not serves(high):
            low, high = high, 2.0 * high
            if high > most:
                return math.inf
        while serves(low) and low > start / _FARTHEST:
            low, high = low / 2.0, low
        while high / low > precision:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if serves(middle) else (middle, high)
        return high

    def _deviations(self, covariance: np.ndarray) -> np.ndarray:
        matrix = np.eye(len(covariance)) if self.own_units is None else self.own_units
        return np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", matrix, covariance, matrix), 0.0))

    def _named(self, values: np.ndarray) -> "pd.Series":
        return pd.Series(values, pd.Index(self.names, name="coefficient"))


def _why_hopeless(
    setting: Scenario, expected: Expected, own_units: np.ndarray | None = None, is_unpulled: bool = False
) -> str | None:
    """Says why a release would be little but noise, in the mechanism's units or those of a sum; None if it would not.

    **Arguments:** `own_units`: as of `Preview`. `is_unpulled`: whether what a ridge takes is added again.
    """
    noise = np.sqrt(np.diag(expected.noise.covariance))
    if not np.all(noise < MOST_NOISE * setting.room):
        worst = int(np.argmax(noise / setting.room))
        what, times = "a coefficient", 1.0
        if own_units is not None and getattr(setting.mechanism, "statistic", None) == "sum":
            what, times = "a sum", float(own_units[worst, worst])
        return (
            f"noise of standard deviation {times * noise[worst]:.2g} is expected in {what} that is known to "
            f"{times * setting.room[worst]:.2g} by the public bounds alone"
        )
    if expected.far is not None and expected.far > MUCH:
        return f"with probability {expected.far:.0%} or more a draw would come from anywhere in the domain"
    if is_unpulled:
        return None
    if (most := float(np.max(np.diag(expected.noise.pull)))) > MOST_PULLED:
        return f"a ridge would take {most:.0%} of a coefficient"
    if (domain := getattr(setting.mechanism, "domain", None)) is not None:
        # A ridge's pull on an intercept that lies far from its centre is shared out among all coefficients.
        with float64():
            centre = np.asarray(domain.interior_point(setting.dimension), np.float64)
        towards = 0.0 if expected.noise.towards is None else expected.noise.towards
        taken = np.abs(expected.noise.pull @ (centre - towards))
        if not np.all(taken < MOST_NOISE * setting.room):
            worst = int(np.argmax(taken / setting.room))
            of_intercept = ", most of it for an intercept" if setting.mechanism.bounds.intercept else ":"
            return (
                f"a ridge would move a coefficient by {taken[worst]:.2g} that is known to {setting.room[worst]:.2g} by "
                f"the public bounds alone{of_intercept} far from where the ridge pulls to"
            )
    return None
