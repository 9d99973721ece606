"""Compares draws with exact probabilities of their cells, with one failure rate for all laws together.

    python -m tests.draws [--draws 100000] [--seed 1] [words...]

tries all laws, or those whose names contain one of the words. A hundred thousand draws of each take more than an hour
on one core. Exits with 1 if a law is not right.
"""

import argparse
import sys
import time

from audits.grid_laws.cases import CASES
from audits.grid_laws.laws import FAILURE_RATE, are_right


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.draws", description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--draws", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    chosen = [name for name in CASES if not options.words or any(word in name for word in options.words)]
    found: list[float] = []
    for name in chosen:
        start = time.process_time()
        law = CASES[name]()
        values = law.p_values(options.draws, options.seed)
        found += values
        seconds = time.process_time() - start
        print(
            f"{name:40}{law.drawn_by.__name__:18}{options.draws:8} draws  least of {len(values):2} p-values "
            f"{min(values):.2g}  CPU {seconds:.0f} s",
            flush=True,
        )
    right = are_right(found)
    print(
        f"least p-value {min(found):.2g} of {len(found)}, times their number {min(1.0, min(found) * len(found)):.2g}: "
        f"{'as' if right else 'not as'} exact laws have it (failure rate {FAILURE_RATE:g} for all together)"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
