"""Bounds from below how long work takes on a device: by its memory, its arithmetic and its longest chain.

The bound is max(bytes/bandwidth, bytes that cross/link, operations/peak, moves·depth·latency) for whatever program does
the work. Beside it stands what the chain alone takes if each of its moves is a launch, which only a program of one
launch avoids.

Bytes are arguments that are read once and results that are written once; what a program keeps between is its own
affair. Those cross that come from the host's memory or end there. Operations are of float64, each addition and each
product one. A square root, a division or an exponential counts as `FUNCTION`, a random number as `RANDOM`: the twenty
rounds of threefry and a transformation.
"""

import math
import os
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

FUNCTION, RANDOM = 10.0, 100.0
# Operations that wait for one another in a move of a walk: a step, a score, its largest entry, the choice.
DEPTH = 30.0


class Work(NamedTuple):
    """What must be done. **Arguments:** `moved`: bytes. `operations`. `moves`: how many follow one another.
    `depth`: operations that wait for one another in a move. `crossed`: bytes between a card and its host.
    """

    moved: float
    operations: float
    moves: float = 0.0
    depth: float = DEPTH
    crossed: float = 0.0


class Peaks(NamedTuple):
    """What a device can do. **Arguments:** `bandwidth`: bytes a second. `float64`, `float32`: operations a second.
    `latency`: seconds of an operation that the next one waits for. `launch`: of a program's part that the next waits
    for. `link`: bytes a second to the host, or from it. `source`: where the figures are from.
    """

    bandwidth: float
    float64: float
    float32: float
    latency: float
    launch: float
    link: float
    source: str

    def parts(self, work: Work) -> dict[str, float]:
        """Seconds that each resource takes at least."""
        return {
            "memory": work.moved / self.bandwidth,
            "link": work.crossed / self.link,
            "arithmetic": work.operations / self.float64,
            "chain": work.moves * work.depth * self.latency,
        }

    def allowed(self, work: Work) -> tuple[float, str]:
        """The bound in seconds, and what binds."""
        parts = self.parts(work)
        binds = max(parts, key=lambda name: parts[name])
        return parts[binds], binds

    def launches(self, work: Work) -> float:
        """Seconds of the chain where each move is a launch."""
        return work.moves * self.launch


# NVIDIA's data sheets of the SXM cards, without tensor cores, and PCIe 5 of 16 lanes; latencies are assumed: some 8
# cycles of 1.98 GHz, and what one kernel after another takes in a CUDA graph, about.
LINK, SOURCE = 64e9, "published; latencies assumed"
CARDS = {
    "H100": Peaks(3.35e12, 33.5e12, 66.9e12, 4e-9, 2.5e-6, LINK, SOURCE),
    "H200": Peaks(4.8e12, 33.5e12, 66.9e12, 4e-9, 2.5e-6, LINK, SOURCE),
}


def seconds(device: Any) -> float:
    """The clock by which shares are taken: the wall's on a card; on processors their work, divided by their number.

    Others may use the processors of a machine, and then the wall says little. Work does not see processors that wait.
    """
    return time.process_time() / (os.cpu_count() or 1) if device.platform == "cpu" else time.perf_counter()


def _least(device: Any, function: Callable[..., Any], *arguments: Any) -> float:
    """The least time of a few calls."""
    jax.block_until_ready(function(*arguments))
    taken = []
    for _ in range(7):
        start = seconds(device)
        jax.block_until_ready(function(*arguments))
        taken.append(seconds(device) - start)
    return min(taken)


def measured(device: Any, size: int = 1 << 24, side: int = 1536, turns: int = 20_000) -> Peaks:
    """Peaks of a device without published ones, in float64 and the bandwidth of a triad; by `seconds`.

    **Arguments:** `size`: numbers in each array of the triad a = b + sc. `side`: of the matrices that are multiplied.
    `turns`: of the loops, one of a hundred operations that wait for one another, one of twelve sines.
    """
    cores = (os.cpu_count() or 1) if device.platform == "cpu" else 1

    def long(value):
        for _ in range(100):
            value = value * 0.999 + 1e-3
        return value

    def turn(function):
        return jax.jit(lambda value: jax.lax.fori_loop(0, turns, lambda _, value: function(value), value))

    with jax.enable_x64(True), jax.default_device(device):
        b, c = jnp.ones(size), jnp.ones(size)
        triad = _least(device, jax.jit(lambda b, c: b + 3.0 * c), b, c)
        matrix = jnp.ones((side, side))
        product = jax.jit(lambda matrix: matrix @ matrix)
        peaks = [2.0 * side**3 / _least(device, product, matrix.astype(dtype)) for dtype in (float, jnp.float32)]
        # One processor works on a chain.
        latency = cores * _least(device, turn(long), jnp.ones(())) / (100.0 * turns)
        launch = cores * _least(device, turn(jnp.sin), jnp.ones(12)) / turns
    link = math.inf if device.platform == "cpu" else LINK
    return Peaks(24.0 * size / triad, peaks[0], peaks[1], latency, launch, link, "measured in this run")


def peaks(device: Any) -> Peaks:
    """The published peaks of a card that is known by its kind, with `measured` ones for all else.

    Of a card other than SXM, "NVIDIA H100 PCIe" say, they are measured.
    """
    found = re.fullmatch(r"NVIDIA (H100|H200)( \d+GB HBM3e?)?", device.device_kind)
    return CARDS[found[1]] if found else measured(device)
