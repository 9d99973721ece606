"""The one jit boundary: mechanism, data and sampler go in as arguments, so that one program serves all of a shape.

Private data are never closed over: what a compiled program closes over ends in its text and in compilation caches.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from tqdm import tqdm

from kngjax.chains.advice import Density, chain
from kngjax.chains.base import AbstractChainSampler, AbstractIndependentSampler, AbstractSampler, Info
from kngjax.chains.newton import descend
from kngjax.core.arrays import Vector, is_traced
from kngjax.core.compiling import Compiled, quick_compilation
from kngjax.core.errors import raise_from_outside
from kngjax.data.records import Data, QuadraticSummary
from kngjax.draws.lattice.lattice import Lattice
from kngjax.draws.shells.shells import Shells
from kngjax.mechanisms.base import AbstractMechanism
from kngjax.mechanisms.declared_facts import require_declared
from kngjax.mechanisms.density import AbstractDensityMechanism
from kngjax.mechanisms.direct import AbstractDirectMechanism
from kngjax.owner import nonprivate

# A call of a compiled block takes about as long as so many sweeps of a hundred chains, or fewer.
_SWEEPS_A_CALL = 10

SEARCH_GIVEN_UP = (
    "the exact search reached its public limit of proposals, or an equation that float64 cannot solve: the domain and "
    "the data fit each other badly; or scores contradict what the loss declares, as kngjax.check_loss may tell. "
    "Enlarge the domain, give Exact(max_proposals=...) a higher limit, or ask for a Markov chain by name"
)


def draw(
    mechanism: AbstractMechanism,
    data: Data,
    key: PRNGKeyArray,
    sampler: AbstractSampler | Lattice | Shells | None = None,
    centre: Vector | None = None,
) -> tuple[Float[Array, " dimension"], Bool[Array, ""]]:
    """Draws once as a release does, as a pure function: for your own jit, vmap over data, keys, mechanisms.

    For research: what is published goes through `release`.

    **Arguments:** `data`: from `mechanism.prepare`. `sampler`: for KNG and the exponential mechanism; the others draw
    directly from their law and take none. `centre`: about which a chain starts: an estimate of θ, or None for one by
    Newton steps within the program. Exact samplers need none, but those that run on the host are faster with one.

    **Returns** θ of shape (d,), and whether it succeeded. θ is no number if an exact search was given up: of smooth
    losses under jit after some hundreds of proposals, whatever `max_proposals` is, and infinite there if something
    spoke against its proof.
    """
    require_sampler(mechanism, sampler)
    require_declared(mechanism, data.dimension, sampler)
    if sampler is None:
        draws, succeeded = _independent_draws(mechanism, data, None, key, 1)
        return draws[0], succeeded
    assert isinstance(mechanism, AbstractDensityMechanism)
    assert isinstance(sampler, AbstractSampler)
    target = mechanism.target(data)
    sampler.admit(target)
    sampler = sampler.for_release()
    if isinstance(sampler, AbstractIndependentSampler):
        if not sampler.may_be_traced(target) and is_traced(*jax.tree.leaves((target, key))):
            raise ValueError(
                f"{type(sampler).__name__} works on the host for this density, between compiled calls, and "
                f"cannot be traced: call kngjax.draw outside of jit and vmap, or ask for {chain(Density.of(target))}"
            )
        draws, succeeded = _independent_draws(mechanism, data, sampler, key, 1, centre)
        return draws[0], succeeded
    assert isinstance(sampler, AbstractChainSampler)
    num_blocks, block = blocks(sampler, target.dimension)
    state = sampler.start(target, descend(target) if centre is None else centre, jax.random.fold_in(key, 0))

    def advance_block(state, index):
        noise = sampler.noise(jax.random.fold_in(key, index), target, state, block)
        state, _ = jax.lax.scan(lambda state, noise: (sampler.step(target, state, noise)[0], None), state, noise)
        return state, None

    state, _ = jax.lax.scan(advance_block, state, jnp.arange(1, num_blocks + 1))
    return sampler.position(target, state), jnp.asarray(True)


def require_sampler(mechanism: AbstractMechanism, sampler: AbstractSampler | Lattice | Shells | None) -> None:
    """Raises ValueError unless a density has a sampler, and what draws directly has none; TypeError for no sampler."""
    name = type(mechanism).__name__
    if isinstance(mechanism, AbstractDirectMechanism):
        if sampler is not None:
            raise ValueError(f"{name} draws from its own law directly: leave the sampler out")
    elif sampler is None:
        raise ValueError(
            f"{name} is a density: say which sampler draws from it, for instance kngjax.chains.EnsembleWalk()"
        )
    elif isinstance(sampler, Lattice | Shells):
        raise ValueError(
            f"{type(sampler).__name__} draws for release alone; for research draws ask for Exact(), the law in real "
            "numbers, or for LineGibbs() of a quantile loss with more than one coefficient"
        )
    elif not isinstance(sampler, AbstractSampler):
        raise TypeError(
            f"sampler must be an object like kngjax.chains.Exact(), or None, not a {type(sampler).__name__}"
        )


def estimate(mechanism: AbstractDensityMechanism, data: Data) -> Float[np.ndarray, " dimension"]:
    """Computes θ̂ without privacy, about which chains start; Θ's interior point where no minimum is found. Private.

    For smooth losses one program computes it approximately (`descend`). θ̂ decides how long a draw takes, and must not
    decide whether there is a draw: the search for it has limits of its own.
    """
    reach = _reach(mechanism.domain, mechanism.intake.bounds_of_rows(data.dimension), data.dimension)
    try:
        near = nonprivate.clipped(data, reach)
        is_smooth = mechanism.loss.is_smooth and not isinstance(data, QuadraticSummary)
        found = np.array(_descent(mechanism, near)) if is_smooth else nonprivate.minimiser(mechanism.loss, near)
    except Exception as error:
        raise_from_outside(error)
        found = np.full(data.dimension, np.nan)
    return found if np.all(np.isfinite(found)) else np.asarray(mechanism.domain.interior_point(data.dimension))


@Compiled
def _descent(mechanism, data):
    return descend(mechanism.target(data))


@functools.partial(Compiled, static_argnames="dimension")
def _reach(domain, bounds, dimension):
    return domain.linear_interval(*bounds.features(dimension))


def blocks(sampler: AbstractChainSampler, dimension: int) -> tuple[int, int]:
    """Returns how many blocks of how many sweeps a release makes: at least `release_sweeps` sweeps in all."""
    num_sweeps = sampler.release_sweeps(dimension)
    block = min(sampler.sweeps_a_block, num_sweeps)
    return -(-num_sweeps // block), block


def independent_draws(
    mechanism: AbstractMechanism,
    data: Data,
    sampler: AbstractIndependentSampler | None,
    key: PRNGKeyArray,
    num_draws: int,
) -> Float[Array, "draws dimension"]:
    """Makes independent draws by a sampler of a density, or, without one, from a mechanism's own law.

    Raises RuntimeError, with advice, unless all of them were found.
    """
    source: Any = mechanism
    if sampler is None:
        runs_on_host, advice = source.runs_on_host, source.advice
    else:
        runs_on_host, advice = sampler.runs_on_host(jax.eval_shape(source.target, data)), SEARCH_GIVEN_UP
    draw_all = _independent_draws if runs_on_host else compiled_independent_draws
    draws, succeeded = draw_all(mechanism, data, sampler, key, num_draws)
    if not succeeded:
        raise RuntimeError(advice)
    return draws


def _independent_draws(mechanism, data, sampler, key, num_draws, centre=None):
    if sampler is None:
        return mechanism.draws(data, key, num_draws)
    return sampler.draws(mechanism.target(data), key, num_draws, centre)


compiled_independent_draws = Compiled(_independent_draws, static_argnames="num_draws")


@functools.partial(Compiled, static_argnames="num_chains")
def start_chains(
    mechanism: AbstractDensityMechanism,
    data: Data,
    sampler: AbstractChainSampler,
    centre: Vector,
    key: PRNGKeyArray,
    num_chains: int,
) -> Any:
    """Starts independent chains, each by its own key, at points that scatter widely about the centre.

    `key` gives these keys, and no randomness of a block: see `advance`.
    """
    target, key = mechanism.target(data), jax.random.fold_in(key, 0)
    return jax.vmap(lambda key: sampler.start(target, centre, key, num_chains))(jax.random.split(key, num_chains))


@functools.partial(Compiled, static_argnames=("num_kept", "thinning"))
def advance(
    mechanism: AbstractDensityMechanism,
    data: Data,
    sampler: AbstractChainSampler,
    states: Any,
    key: PRNGKeyArray,
    block: int | Array,
    num_kept: int,
    thinning: int,
) -> tuple[Any, Float[Array, "kept chains dimension"], Info]:
    """Moves every chain by one block of num_kept·thinning sweeps, of which every `thinning`-th position is kept.

    `key` and the block's number give the block's randomness.
    """
    target = mechanism.target(data)
    noises = sampler.noises(jax.random.fold_in(key, block), target, states, num_kept * thinning)
    noises = jax.tree.map(lambda part: part.reshape(num_kept, thinning, *part.shape[1:]), noises)

    def keep(states, noises):
        states, infos = jax.lax.scan(lambda states, noises: sampler.steps(target, states, noises), states, noises)
        positions = jax.vmap(lambda state: sampler.position(target, state))(states)
        return states, (positions, jax.tree.map(lambda part: part[-1], infos))

    states, (positions, infos) = jax.lax.scan(keep, states, noises)
    return states, positions, infos


def _kept_a_block(num_discarded: int, num_kept: int, thinning: int, num_chains: int, longest: int) -> int:
    """Chooses how many sweeps every block keeps: one program runs all blocks, and a last one may do more than is asked.

    The choice has the least time of sweeps and of calls. A block has at most `longest` sweeps, or keeps one.
    """
    call = max(1, min(_SWEEPS_A_CALL, 100 * _SWEEPS_A_CALL // num_chains))

    def time(kept):
        return (-(-num_discarded // (kept * thinning)) - (-num_kept // kept)) * (kept * thinning + call)

    return min(range(max(1, longest // thinning), 0, -1), key=time)


def run_chains(
    mechanism: AbstractDensityMechanism,
    data: Data,
    sampler: AbstractChainSampler,
    centre: Vector,
    key: PRNGKeyArray,
    num_chains: int,
    num_discarded: int,
    num_kept: int,
    thinning: int,
    progress: bool | None,
) -> tuple[np.ndarray, Info]:
    """Chains in compiled blocks with a progress bar between them: positions (chains, kept, d) and infos, on the host.

    `progress`: None shows the bar on a terminal only.
    """
    sampler = sampler.gather(mechanism.target(data), centre)
    states = start_chains(mechanism, data, sampler, centre, key, num_chains)
    kept_block = _kept_a_block(num_discarded, num_kept, thinning, num_chains, sampler.sweeps_a_block)
    block = kept_block * thinning
    num_discarded_blocks, num_kept_blocks = -(-num_discarded // block), -(-num_kept // kept_block)
    positions, infos = [], []
    total = (num_discarded_blocks + num_kept_blocks) * block
    hidden = None if progress is None else not progress
    # Of a release too: thousands of sweeps over many records take longer than their program takes to be compiled.
    points = num_chains * sampler.num_points(data.dimension)
    read = points * total * sampler.reads_a_sweep * sum(map(np.size, jax.tree.leaves(data)))
    with quick_compilation(read), tqdm(total=total, unit="sweep", disable=hidden) as bar:
        for number in range(1, num_discarded_blocks + num_kept_blocks + 1):
            states, thetas, info = advance(mechanism, data, sampler, states, key, number, kept_block, thinning)
            if number > num_discarded_blocks:
                positions.append(np.asarray(thetas))
                infos.append(jax.tree.map(np.asarray, info))
            jax.block_until_ready(states)
            bar.update(block)
    thetas = np.swapaxes(np.concatenate(positions)[:num_kept], 0, 1)
    joined = jax.tree.map(lambda *parts: np.swapaxes(np.concatenate(parts)[:num_kept], 0, 1), *infos)
    return thetas, joined
