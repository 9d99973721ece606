"""Writes a job of a format that older versions read as the study that it is now. Everything in it is public.

There were files of one response and one mechanism, and files of a synthesis. What a study chooses by itself, as the
mechanism of a regression, is said in comments of the new text.
"""

import datetime
import json
import math
import pathlib
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from kngjax.accounting.exact_costs import Number, exactly, inward

_TABLES = ("response", "terms", "loss", "mechanism", "privacy", "sampler", "synthesis")
_REGRESSIONS = {
    "quantile": {"method": "quantile_regression"},
    "smoothed_quantile": {"method": "quantile_regression"},
    "squared": {"method": "linear_regression", "fit": "squared"},
    "huber": {"method": "linear_regression"},
    "pseudo_huber": {"method": "linear_regression"},
    "logistic": {"method": "logistic_regression"},
    "poisson": {"method": "poisson_regression"},
    "capped_poisson": {"method": "poisson_regression"},
}
# Mechanisms that took a loss, each of which a study chooses by itself.
_WITH_LOSS = ("kng", "exponential", "objective_perturbation", "output_perturbation")
_OF_COLUMN = ("private_quantile", "quantile_interval", "k_norm", "geometric")


class OldFormat(ValueError):
    """Refuses a file of an older format. **Arguments:** `text`: of the same job as it is written now; or None."""

    def __init__(self, words: str, text: str | None):
        super().__init__(words)
        self.text = text


def refuse(path: pathlib.Path, tables: dict[str, Any]) -> None:
    """Raises OldFormat for a file with tables that older versions read, with the same job in the present format."""
    if "study" in tables or "analyses" in tables or not any(name in tables for name in _TABLES):
        return
    try:
        text = "".join(_lines(_synthesis(tables) if "synthesis" in tables else _regressions(tables)))
    except (KeyError, TypeError, AttributeError, ValueError):
        text = None
    words = f"{path} is written as for older versions, with [{next(name for name in _TABLES if name in tables)}]"
    if text is None:
        raise OldFormat(
            f"{words}: write it as a study, docs/jobs.md; what no study asks for, as one mechanism by its name, is "
            "released in Python, kngjax.release(mechanism, X, y)",
            None,
        )
    raise OldFormat(f"{words}: write this in its place, and see by 'kngjax plan' what it releases", text)


def _synthesis(tables: dict[str, Any]) -> dict[str, Any]:
    given = dict(tables["synthesis"])
    study = {name: given.pop(name) for name in ("adjacency", "ledger") if name in given}
    analysis = {"method": "synthesis", **{name: one for name, one in given.items() if name not in ("columns", "draws")}}
    analysis |= {name: given[name] for name in ("columns", "draws") if name in given}
    return _with_data(tables, {"study": study, "analyses": [analysis]})


def _with_data(tables: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    return ({"data": tables["data"]} if "data" in tables else {}) | made


def _regressions(tables: dict[str, Any]) -> dict[str, Any]:
    response, terms, privacy = tables["response"], tables.get("terms", []), tables["privacy"]
    loss, mechanism = tables.get("loss", {}), {"type": "kng"} | tables["mechanism"]
    study = {name: privacy[name] for name in ("adjacency", "ledger") if name in privacy}
    columns = [*terms, response]
    for key in ("bounds", "levels", "missing", "missing_codes"):
        if of_columns := {one["column"]: one[key] for one in columns if key in one}:
            study[key] = of_columns
    if mechanism["type"] == "geometric":
        low, high = response["bounds"]
        _give_levels(study, response["column"], mechanism.get("counted") or list(range(int(low), int(high) + 1)))
    if loss.get("type") == "logistic" and "levels" not in response:
        _give_levels(study, response["column"], [0, 1])
    # They may be `true`.
    asked = dict(given) if isinstance(given := tables.get("intervals"), dict) else {}
    if "num_records" in asked:
        study["num_records"] = asked.pop("num_records")
    analyses = list(_analyses(response, terms, loss, mechanism, privacy))
    for one in analyses:
        if "domain" in mechanism and terms:
            one["domain"] = mechanism["domain"]
        if asked.get("force"):
            one["force"] = True
        if "sampler" in tables:
            one["sampler"] = tables["sampler"]
    asked.pop("force", None)
    made = _with_data(tables, {"study": study, "analyses": analyses})
    if "intervals" in tables:
        made["intervals"] = asked
    if "figure" in tables:
        units = {one["column"]: one["units"] for one in columns if "units" in one}
        made["figure"] = tables["figure"] | ({"units": units} if units else {})
    return made


def _analyses(response: Any, terms: Any, loss: Any, mechanism: Any, privacy: Any) -> Iterator[dict[str, Any]]:
    """Asks for what the mechanism estimated; raises ValueError for what no study asks for."""
    kind, spent = mechanism["type"], {"epsilon": privacy.get("epsilon")}
    if kind in _OF_COLUMN and "transform" not in response:
        yield _of_column(kind, mechanism, response) | spent
        return
    if kind == "ada_ssp":
        spent |= {"delta": privacy["delta"]}
        one: dict[str, Any] = {"method": "linear_regression", "fit": "adassp"}
    elif kind in _WITH_LOSS and terms:
        one = dict(_REGRESSIONS[loss["type"]])
    else:
        raise ValueError("no analysis of a study is by this mechanism")
    asked = {"#": _choices(kind, loss, mechanism), "method": one["method"], "formula": _formula(response, terms)}
    if "fit" in one:
        asked["fit"] = one["fit"]
    if one["method"] != "quantile_regression":
        yield asked | spent
        return
    levels = loss["tau"] if isinstance(loss["tau"], list) else [loss["tau"]]
    shares = privacy.get("shares")
    if shares is None:
        yield asked | {"tau": loss["tau"]} | spent
        return
    for level, share in zip(levels, shares, strict=True):
        yield asked | {"tau": level, "epsilon": _part(privacy["epsilon"], share, shares)}


def _part(epsilon: Number, share: Number, shares: list[Number]) -> float:
    """Rounds a part of ε down, in binary and as the decimal that it prints as, so that parts add up to no more."""
    exact = exactly(epsilon) * exactly(share) / sum(map(exactly, shares))
    nearest = inward(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, 0.0)


def _of_column(kind: str, mechanism: Any, response: Any) -> dict[str, Any]:
    column = {"column": response["column"]}
    others = {name: mechanism[name] for name in ("tau", "budget", "level", "spread", "force") if name in mechanism}
    if kind == "private_quantile":
        return {"method": "quantile", **column, **others}
    if kind == "quantile_interval":
        return {"method": "quantile_interval", **column, **others}
    if kind == "k_norm":
        return {"method": mechanism.get("statistic", "mean"), **column}
    return {"method": "histogram", **column}


def _give_levels(study: dict[str, Any], column: str, levels: list[Any]) -> None:
    """Declares a column by levels in the place of bounds."""
    study.setdefault("levels", {})[column] = levels
    study.get("bounds", {}).pop(column, None)


def _choices(kind: str, loss: Any, mechanism: Any) -> str:
    """Says in a comment what the file said and a study chooses by itself; empty where that is the same."""
    said = {name: one for name, one in loss.items() if name not in ("type", "tau")}
    said |= {name: one for name, one in mechanism.items() if name not in ("type", "domain")}
    if kind in ("kng", "ada_ssp") and not said:
        return ""
    settings = "".join(f", {name} = {_written(one)}" for name, one in said.items())
    return f'it was [mechanism] type = "{kind}"{settings}: a study chooses these itself'


def _formula(response: Any, terms: Any) -> str:
    left = f"log({_named(response)})" if response.get("transform") == "log" else _named(response)
    degrees = [(one, one.get("degree", 1)) for one in terms]
    right = [_named(one) if degree == 1 else f"poly({_named(one)}, {degree})" for one, degree in degrees]
    return f"{left} ~ {' + '.join(right)}"


def _named(one: Any) -> str:
    name = one["column"]
    return name if name.isidentifier() else f"`{name}`"


def _lines(tables: dict[str, Any], path: str = "") -> Iterator[str]:
    """Writes tables as TOML: first keys with values, then tables, and each of a list of tables by itself."""
    for name, value in tables.items():
        if name == "#":
            yield f"# {value}\n" if value else ""
        elif not _is_table(name, value, path):
            yield f"{_key(name)} = {_written(value)}\n"
    for name, value in tables.items():
        if _is_table(name, value, path):
            own = f"{path}.{name}" if path else name
            for one in value if isinstance(value, list) else [value]:
                yield f"\n[[{own}]]\n" if isinstance(value, list) else f"\n[{own}]\n"
                yield from _lines(one, own)


def _is_table(name: str, value: Any, path: str) -> bool:
    if isinstance(value, list):
        return bool(value) and name in ("analyses", "columns") and all(isinstance(one, dict) for one in value)
    return isinstance(value, dict) and (path in ("", "study") or name == "draws")


def _written(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(name)} = {_written(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)
