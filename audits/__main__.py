"""Prints the figures of docs/promises.md, measured anew; exits with 1 where one is not as promised.

python -m audits            audits, hostile inputs, dumps, races and kills, in some twenty minutes
python -m audits --quick    the same with small numbers, in some six
"""

import argparse
import sys

from audits import figures


def main(arguments: list[str] | None = None) -> int:
    """Prints each figure as soon as it is measured; returns 1 if one is not as promised, else 0."""
    parser = argparse.ArgumentParser(prog="python -m audits", description="Measures what kngjax withstands.")
    parser.add_argument("--quick", action="store_true", help="small numbers; the whole takes some twenty minutes")
    options = parser.parse_args(arguments)
    passed = True
    for figure in figures.figures(quick=options.quick):
        print(figure, flush=True)
        passed &= figure.passed
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
