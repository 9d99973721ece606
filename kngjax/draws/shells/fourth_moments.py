"""Proves a radius by fourth moments, which reaches farther than the worst record of every record does.

Notation of `kngjax.draws.shells.shell_certificate`. Let |e| = 1, v_i = Rx_i and δ = ρR'e, so that |δ|_M = ρ and
u_i = x_i'δ = ρ·v_i'e, and let κ̄_i(u) = (s_i(η_i + u) - s_i(η_i))/u, the mean of ρ'' between η_i and η_i + u. Then

    δ'(G(θ₀ + δ) - z₀) = ρ²·Σκ̄_i(ρ·v_i'e)(v_i'e)².

*Records.* If κ̄_i(u) ≥ a_i + c_i u - b_i u² for |u| ≤ U_i, the sum is at least P(e), a polynomial of degree 4,

    P(e) = Σa_i(v_i'e)² + ρΣc_i(v_i'e)³ - ρ²Σb_i(v_i'e)⁴.

Any numbers b_i and c_i would do, for which `parabolas` proves an a_i.

*Directions.* E = ee' as a vector of its d(d+1)/2 different entries, those beside the diagonal times √2, has |E| = 1 and
w'E = 1, w the trace. The parts of degree 2 and 4 are a quadratic form E'SE, as e'Ae = tr(E·½(AE + EA)), and that of
degree 3 is ρe'TE ≥ -ρ|T| or, for every β > 0, at least -½(β + ρ²E'T'TE/β). For every t

    E'SE = E'(S + tww')E - t ≥ λ(S + tww') - t,

λ the least eigenvalue, which is proved by a factorisation that runs to its end.

*All shorter steps.* The same parabolas serve ρ' ≤ ρ. The smaller of P(e) and P(-e) falls as ρ' grows where B(e) =
Σb_i(v_i'e)⁴ ≥ 0, and rises by at most ρ²|B(e)| elsewhere, which is subtracted.

*Errors.* For |Rx - v̂| ≤ η|v̂| and η ≤ .001 powers (v'e)^k differ from (v̂'e)^k by at most 1.03kη|v̂|^k. Sums over the
records err, in every direction, by at most γΣ(|a||v̂|² + ρ|c||v̂|³ + ρ²|b||v̂|⁴), as each entry of vv' or of E does by γ
times the product of sizes; what is made of the sums errs by γ times the Frobenius norm of what it is made of.
"""

import numpy as np
from jaxtyping import Float

from kngjax.core.verified import UNIT, sum_error
from kngjax.draws.shells import matrices
from kngjax.draws.shells.matrices import certain_least, matrix
from kngjax.draws.shells.shell_certificate import ShellCertificate, farthest_steps, whitened_rows
from kngjax.draws.shells.shell_records import UPWARD, ShellRecords
from kngjax.geometry.shapes import Shape

# κ̄ is bounded between the nodes U·γ^{-j}, j < J, on either side.
_RATIO, _NUM_NODES = 1.1, 40
# Exchanges of a node come close to the best parabola.
_EXCHANGES = 8
# Parabolas are made for every third radius, and serve the two before it.
_STRIDE = 3
# Where the odd part takes so much of P, more is tried.
_SOME_ODD, _MOST_ODD = 0.02, 0.05
_RECORDS_AT_A_TIME, _LEAST_REACH = 2048, 1e-12
# n·(2000 + (d(d + 1)/2)²) up to which fourth moments are computed, in some ten seconds: a record's parabola takes as
# long as some 2,000 products.
_MOST_PRODUCTS, _PRODUCTS_A_PARABOLA = 3e8, 2000.0

Entries = Float[np.ndarray, "entries entries"]


def is_affordable(records: ShellRecords) -> bool:
    """Tells whether fourth moments of all records are worth their time: a rule for time alone."""
    entries = records.dimension * (records.dimension + 1) / 2.0
    return records.count * (_PRODUCTS_A_PARABOLA + entries**2) <= _MOST_PRODUCTS


def least_curvatures(
    records: ShellRecords, region: Shape, certificate: ShellCertificate
) -> Float[np.ndarray, " radii"]:
    """α of each radius that was tried but for the last, with δ'(G(θ₀ + δ) - z₀) ≥ α|δ|²_M for |δ|_M ≤ ρ; else -∞.

    From the least radius on until one reaches beyond what matters.
    """
    radii, enough = certificate.tried[:-1], certificate.reach
    found = np.full(radii.size, -np.inf)
    moments = _Moments(records, region, certificate)
    for number in range(_STRIDE - 1, radii.size, _STRIDE):
        places = slice(number - _STRIDE + 1, number + 1)
        bounds, odd = moments.bounds(radii[places], is_even=False)
        if not odd < _MOST_ODD:
            others, _ = moments.bounds(radii[places], is_even=True)
            bounds = np.maximum(bounds, others)
        found[places] = bounds
        if bounds[-1] * radii[number] > enough:
            break
    # What holds at a radius holds below.
    return np.maximum.accumulate(found[::-1])[::-1]


class _Moments:
    """Holds the numbers that bounds at all radii are made of. Private."""

    def __init__(self, records: ShellRecords, region: Shape, certificate: ShellCertificate):
        self._records, self._dimension = records, records.dimension
        predictor, self._off = records.predictors(certificate.theta)
        rows = whitened_rows(records, certificate.factor)
        self._relative, self._values = rows.relative, rows.values.reshape(-1, self._dimension)
        self._lengths, self._predictor = rows.lengths.ravel(), predictor.ravel()
        self._caps = farthest_steps(records, region, certificate.theta).ravel()
        self._rows, self._columns = np.triu_indices(self._dimension)
        self._trace = (self._rows == self._columns) * 1.0
        blocks = -(-records.count // _RECORDS_AT_A_TIME)
        # Of sums of records, and of their vectors.
        self._summing = 2.0 * sum_error(_RECORDS_AT_A_TIME + blocks + 16) + 4.2 * self._relative

    def bounds(self, radii: Float[np.ndarray, " some"], is_even: bool) -> tuple[np.ndarray, float]:
        """Bounds from below at these radii, by parabolas up to the last, and what the odd part takes there."""
        second, third, fourth, sizes = self._sums(float(radii[-1]), is_even)
        if not (np.all(np.isfinite(sizes)) and self._relative < 1e-3):
            return np.full(radii.size, -np.inf), np.inf
        lifted = lift(second)
        # Of what is made of the sums.
        making = 4.0 * sum_error(self._dimension + 16)
        coarse = making * float(np.linalg.norm(lift(np.abs(second))))
        odd = matrix(third)
        length = float(np.sqrt(max(matrices.largest_eigenvalue(odd * odd.transpose()), 0.0))) * UPWARD
        squared = third.T @ third
        squared = (squared + squared.T) / 2
        negative = max(-self._on_slice(fourth), 0.0) + self._summing * sizes[2]
        found = []
        for radius in map(float, radii):
            form, size = lifted - radius**2 * fourth, radius * length
            options = [self._on_slice(form) - size * UPWARD]
            for beta in (size, 0.5 * size) if size > _SOME_ODD else ():
                part = radius**2 / (2.0 * beta) * squared
                slack = making * radius**2 / (2.0 * beta) * float(np.linalg.norm(third)) ** 2
                options.append(self._on_slice(form - part) - 0.5 * beta * UPWARD - slack)
            off = self._summing * (sizes[0] + radius * sizes[1] + radius**2 * sizes[2]) + coarse
            off += making * radius**2 * float(np.linalg.norm(fourth)) + radius**2 * negative
            found.append(max(options) - off * UPWARD)
        # A few roundings of the last lines.
        return np.array(found) - 1e-13 * np.abs(found), float(radii[-1]) * length

    def _on_slice(self, form: Entries) -> float:
        return least_on_slice(form, self._trace)

    def _sums(self, radius: float, is_even: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Σa vv', Σc v⊗E and Σb E⊗E with E the entries of vv'; and Σ|a||v|², Σ|c||v|³ and Σ|b||v|⁴, rounded up."""
        dimension, entries = self._dimension, self._rows.size
        second, third, fourth = np.zeros((dimension,) * 2), np.zeros((dimension, entries)), np.zeros((entries,) * 2)
        sizes, scales = np.zeros(3), np.where(self._trace > 0.0, 1.0, np.sqrt(2.0))
        score, responses = self._records.score, self._records.y.ravel()
        for start in range(0, responses.size, _RECORDS_AT_A_TIME):
            part = slice(start, start + _RECORDS_AT_A_TIME)
            v, lengths = self._values[part], self._lengths[part]
            reach = np.maximum(np.minimum(radius * lengths, self._caps[part]) * UPWARD, _LEAST_REACH)
            # Over the sphere u² has the mean ρ²|v|²/d and u⁴ 3d/(d + 2) times its square.
            steps = 3.0 / (dimension + 2.0) * (radius * lengths) ** 2
            a, c, b = parabolas(score, self._predictor[part], self._off, responses[part], reach, steps, is_even)
            products = v[:, self._rows] * v[:, self._columns] * scales
            second += (v * a[:, None]).T @ v
            third += (v * c[:, None]).T @ products
            fourth += (products * b[:, None]).T @ products
            powers = lengths**2 * np.stack([np.abs(a), np.abs(c) * lengths, np.abs(b) * lengths**2])
            sizes += powers.sum(axis=1)
        return (second + second.T) / 2, third, (fourth + fourth.T) / 2, sizes * (1.0 + 1e-6)


def lift(form: Float[np.ndarray, "dimension dimension"]) -> Entries:
    """Returns the matrix of E ↦ ½(AE + EA) in the d(d+1)/2 coordinates."""
    rows, columns = np.triu_indices(form.shape[0])
    basis = np.zeros((rows.size, *form.shape))
    scales = np.where(rows == columns, 1.0, np.sqrt(0.5))
    basis[np.arange(rows.size), rows, columns] = basis[np.arange(rows.size), columns, rows] = scales
    lifted = (basis @ form).reshape(rows.size, -1) @ basis.reshape(rows.size, -1).T
    return (lifted + lifted.T) / 2


def least_on_slice(form: Entries, trace: Float[np.ndarray, " entries"]) -> float:
    """Bounds E'SE from below over |E| = 1 with w'E = 1: the best λ(S + tww') - t of some t, concave in t."""
    if not np.all(np.isfinite(form)):
        return -np.inf
    outer = np.outer(trace, trace)
    size = float(np.abs(form).sum(axis=0).max())
    low, high, share = -size, 8.0 * size, 0.5 * (np.sqrt(5.0) - 1.0)
    for _ in range(24):
        left, right = high - share * (high - low), low + share * (high - low)
        values = [np.linalg.eigvalsh(form + t * outer)[0] - t for t in (left, right)]
        low, high = (low, right) if values[0] > values[1] else (left, high)
    t = 0.5 * (low + high)
    # Entries of S + tww' are rounded by u of their sizes each.
    rounding = 4.0 * UNIT * form.shape[0] * (size + abs(t))
    return certain_least(form + t * outer) - t - rounding


def parabolas(
    score, predictor: np.ndarray, off: float, response: np.ndarray, reach: np.ndarray, square: np.ndarray, is_even: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a, c and b of each record with κ̄(u) ≥ a + cu - bu² for |u| ≤ reach, where a - b·square is nearly the largest.

    `off` is how far predictors are off, `square` is E[u⁴]/E[u²] of the steps that matter. If `is_even`, c = 0, b ≥ 0.

    Between neighbouring nodes l < h = γl, where g(u) = κ̄(u) - cu + bu²: u·κ̄(u) = s(η + u) - s(η) is at least its
    chord less Kw²/8, w = h - l, with |ρ'''| ≤ K; the chord over u falls short of a straight line by no more than
    κ̄(l)(1 - γ^{-½})², and bu² by no more than bw²/4. And s is at least s(η + l), so that κ̄(u) ≥ κ̄(l)/γ. For |u| below
    the least node κ̄ is at least its `means` there. All of it is rounded by far less than the relative 1e-12 by which
    slacks are made larger, and a smaller.
    """
    sizes = reach[:, None] * _RATIO ** -np.arange(_NUM_NODES, dtype=float)[::-1]
    means, largest = score.means(predictor, off, response), score.bends(predictor, off, response)(reach)[:, None]
    inner, flat = means(sizes[:, 0]), means(reach)
    # What a sum of predictor and step is off, and the step itself.
    moved = off + 4.0 * UNIT * float(np.max(np.abs(predictor) + reach))
    here = score.at(predictor[:, None], off, response[:, None])

    def side(sign: float) -> np.ndarray:
        there = score.at(predictor[:, None] + sign * sizes, moved, response[:, None])
        errors = np.broadcast_to(here.score_error + there.score_error, sizes.shape) * UPWARD
        values = (sign * (there.score - here.score) - errors) / sizes
        values -= 4.0 * UNIT * (np.abs(values) + (np.abs(there.score) + np.abs(here.score)) / sizes)
        near = np.maximum(values[:, :-1], 0.0) + 4.0 * errors[:, :-1] / sizes[:, :-1]
        bent = near * (1.0 - _RATIO**-0.5) ** 2 + largest * (_RATIO - 1.0) ** 2 * sizes[:, :-1] / 8.0
        fallen = np.maximum(values[:, :-1], values[:, 1:]) - values[:, :-1] / _RATIO
        slack = np.maximum(np.fmin(bent, fallen), 0.0) * (1.0 + 1e-12) + 1e-15 * np.abs(values[:, :-1])
        zero = np.zeros((reach.size, 1))
        return values - np.maximum(np.hstack([slack, zero]), np.hstack([zero, slack]))

    nodes = np.hstack([-sizes[:, ::-1], np.zeros((reach.size, 1)), sizes])
    values = np.hstack([side(-1.0)[:, ::-1], inner[:, None], side(1.0)])
    if is_even:
        values = np.minimum(values, values[:, ::-1])
    square = np.minimum(square, 0.9 * reach**2)
    c, b = _best_parabolas(nodes, values, square)
    c, b = (np.where(np.isfinite(one), one, 0.0) for one in (c, b))
    if is_even:
        c, b = np.zeros_like(c), np.maximum(b, 0.0)
    curved = b - np.maximum(b, 0.0) * (_RATIO - 1.0) ** 2 / 4.0
    least = (values - c[:, None] * nodes + curved[:, None] * nodes**2).min(axis=1)
    # Below the least nodes the parabola is above its value at 0 by no more than this.
    a = least - (np.abs(c) + np.maximum(-b, 0.0) * sizes[:, 0]) * sizes[:, 0]
    a -= 1e-12 * (np.abs(a) + np.abs(flat) + np.abs(c) * reach + np.abs(b) * reach**2)
    is_better = a - b * square > flat
    return np.where(is_better, a, flat), np.where(is_better, c, 0.0), np.where(is_better, b, 0.0)


def _best_parabolas(nodes: np.ndarray, values: np.ndarray, square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """c and b of the largest a - b·square with a + cu - bu² ≤ value at every node u, nearly; of nothing else is asked.

    The simplex method on the dual problem, probabilities on the nodes with mean 0 and second moment `square`: three
    nodes have some, the parabola is the one through their values, and the node that it exceeds most enters.
    """
    count, number = nodes.shape
    each, places = np.arange(count), np.tile([0, number // 2, number - 1], (count, 1))

    def through(places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        u, value = nodes[each[:, None], places], values[each[:, None], places]
        first = (value[:, 1] - value[:, 0]) / (u[:, 1] - u[:, 0])
        second = ((value[:, 2] - value[:, 1]) / (u[:, 2] - u[:, 1]) - first) / (u[:, 2] - u[:, 0])
        middle = value[:, 0] - first * u[:, 0] + second * u[:, 0] * u[:, 1]
        return first - second * (u[:, 0] + u[:, 1]), -second, middle

    def lagrange(u: np.ndarray, mean: np.ndarray, second_moment: np.ndarray) -> np.ndarray:
        one, other = np.roll(u, -1, 1), np.roll(u, -2, 1)
        top = second_moment[:, None] - mean[:, None] * (one + other) + one * other
        return top / ((u - one) * (u - other))

    for _ in range(_EXCHANGES):
        c, b, a = through(places)
        entering = np.argmin(values - a[:, None] - c[:, None] * nodes + b[:, None] * nodes**2, axis=1)
        u, new = nodes[each[:, None], places], nodes[each, entering]
        shares, column = lagrange(u, np.zeros(count), square), lagrange(u, new, new**2)
        is_positive = column > 1e-12
        leaving = np.argmin(np.where(is_positive, shares / np.where(is_positive, column, 1.0), np.inf), axis=1)
        known = np.any(places == entering[:, None], axis=1)
        moved = places.copy()
        moved[each, leaving] = entering
        places = np.where(known[:, None], places, moved)
    c, b, _ = through(places)
    return c, b
