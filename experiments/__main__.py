"""Run the experiment that a TOML file names: `python -m experiments CONFIG.toml [--smoke] [--output DIRECTORY]`.

The file says `experiment = "wages"`, the name of a module of this folder, and its other keys are that module's
settings. Such a module has a function `run(settings, output, smoke)`; `smoke` asks for the least work that shows it
running.
"""

import argparse
import importlib
import pathlib
import pkgutil
import sys
import tomllib

import experiments


def main(arguments: list[str] | None = None) -> int:
    """Run one experiment and return the exit status: 2 for a file that names none.

    **Arguments**: `arguments`, the words of the command; None takes those of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Run the experiment of a TOML file.")
    parser.add_argument("config", metavar="CONFIG", type=pathlib.Path, help="the TOML file of the experiment")
    parser.add_argument("--smoke", action="store_true", help="do the least work that shows the experiment running")
    parser.add_argument(
        "--output",
        metavar="DIRECTORY",
        type=pathlib.Path,
        help="where results are written (default: output/, the experiment and the name of the configuration)",
    )
    options = parser.parse_args(arguments)
    try:
        settings = tomllib.loads(options.config.read_text(encoding="utf-8"))
        name = settings.pop("experiment", None)
        known = sorted(part.name for part in pkgutil.iter_modules(experiments.__path__) if part.name != "__main__")
        if name not in known:
            raise ValueError(f"{options.config}: experiment must be one of {', '.join(known)}; not {name!r}")
    except (OSError, ValueError) as error:
        print(f"experiments: error: {error}", file=sys.stderr)
        return 2
    output = options.output or pathlib.Path("output") / name / options.config.stem
    output.mkdir(parents=True, exist_ok=True)
    importlib.import_module(f"experiments.{name}").run(settings, output, options.smoke)
    return 0


if __name__ == "__main__":
    sys.exit(main())
