"""The README stays true: its code runs, its commands are the ones that CI runs, and its table names every file."""

import pathlib
import re

import kngjax as kng

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_python_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert printed.startswith("1.0 0.125\n")
    assert "\n5.0 0.0625 1.66\n{'at': 1.6" in printed
    assert "Proved: this value is one draw from exactly the mechanism's law, which is pure 1-diff" in printed


def test_the_commands_name_what_exists():
    commands = re.findall(r"^python3 -m venv .*$", README, flags=re.MULTILINE)
    assert len(commands) == 2
    config = re.search(r"kngjax release (\S+)", commands[0])
    assert config is not None
    assert (ROOT / config.group(1)).is_file()
    assert "python3 -m venv .*pytest" in (ROOT / ".ci" / "run").read_text()


def test_every_path_that_it_names_exists():
    for path in re.findall(r"`((?:kngjax|configs|experiments|results|tests)/[^` ]*)`|\]\(([^)#]+)\)", README):
        named = next(part for part in path if part)
        assert (ROOT / named).exists(), f"README.md names {named}, which is not there"


def homes(*rooms):
    """The files of these rooms that define public names, and the names."""
    public = {name: getattr(getattr(kng, name), "__module__", "") for name in kng.__all__}
    return {name: home for name, home in public.items() if home.split(".")[1:2] and home.split(".")[1] in rooms}


def test_the_table_of_symbols_is_complete():
    """Every file that defines a public name of mathematics is in the table, by itself or with its folder."""
    for home in set(homes("geometry", "losses", "sensitivity", "mechanisms", "samplers", "releases").values()):
        file = pathlib.PurePosixPath(home.replace(".", "/"))
        named = [f"{file}.py", *(f"{folder}/" for folder in file.parents)]
        assert any(f"`{name}`" in README for name in named), f"{named[0]} is not in the table"


def test_every_sampler_is_in_the_table_of_samplers():
    samplers = homes("samplers")
    assert samplers
    assert all(f"`{name}`" in README for name in samplers)
