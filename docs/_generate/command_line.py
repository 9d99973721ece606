"""The commands of `kngjax` with their options, read off its parser."""

import argparse
from collections.abc import Iterator

from docs._generate.tables import table
from kngjax.command.cli import command_parser

_ABOUT = """# The command line

Exit status: 0; 1 for a release or audit that failed; 2 for an error of the user, in one line on the standard error
stream, that tells no value of the data; 130 where it was interrupted."""


def page_of_commands() -> str:
    """The whole page in MyST Markdown."""
    parts = [_ABOUT]
    for one in commands():
        parts += [f"## {one.prog}", _words(one.description), f"```sh\n{usage(one)}\n```"]
        if rows := options(one):
            parts.append(table(["argument", "what it does"], rows))
        parts.append(_words(one.epilog))
    return "\n\n".join(part for part in parts if part) + "\n"


def commands(of: argparse.ArgumentParser | None = None) -> Iterator[argparse.ArgumentParser]:
    """Every command that does something, in the order of the help."""
    of = of or command_parser()
    below = [action for action in of._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield of
    for action in below:
        said = {choice.dest: choice.help for choice in action._choices_actions}
        for name, one in action.choices.items():
            one.description = one.description or said.get(name)
            yield from commands(one)


def usage(one: argparse.ArgumentParser) -> str:
    """How it is called, in one line."""
    return " ".join(one.format_usage().removeprefix("usage: ").split())


def options(one: argparse.ArgumentParser) -> list[list[str]]:
    """Each argument as it is written, and what it does."""
    rows = []
    for action in one._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        named = action.metavar or ("|".join(action.choices) if action.choices else action.dest)
        value = "" if action.nargs == 0 else f" {named}"
        written = [f"`{option}{value}`" for option in action.option_strings] or [f"`{value.strip()}`"]
        needed = "; required" if action.required and action.option_strings else ""
        rows.append([", ".join(written), f"{action.help or 'the file'}{needed}"])
    return rows


def _words(text: str | None) -> str:
    return "" if not text else text[0].upper() + text[1:].rstrip(".") + "."
