"""Other settings of the scaling rule, as the command line names them: for `explain` and `simulate recorded`."""

import json
from collections.abc import Mapping
from typing import Any, Final

from joinery.model.errors import UserMustAct
from joinery.model.spec import JoinQuerySpec
from joinery.model.spec_change import read_spec, write_spec
from joinery.simulate.recorded import Change

FIELDS: Final = {
    "beta": ("scaling", "beta"),
    "th_sup": ("scaling", "supplierThreshold"),
    "th_con": ("scaling", "consumerThreshold"),
    "t_r": ("epochs", "reorganization"),
    "s_low": ("scaling", "minSuppliers"),
    "step": ("scaling", "step"),
    "target": ("scaling", "target"),
    "min": ("scaling", "min"),
    "max": ("scaling", "max"),
    "rule": ("scaling", "rule"),
    "scale_up": ("scaling", "scaleUp", "stabilization"),
    "scale_down": ("scaling", "scaleDown", "stabilization"),
}
"""Where each one is in a spec."""
_WHOLE: Final = ("s_low", "step", "min", "max")
_TEXTS: Final = ("t_r", "rule", "scale_up", "scale_down")


def sweep_of(text: str) -> tuple[str, list[str]]:
    """`beta=0.2,0.5` as a name and values."""
    name, is_there, values = text.partition("=")
    found = [one.strip() for one in values.split(",") if one.strip()]
    key = name.strip().lower().replace("-", "_")
    if not is_there or key not in FIELDS or not found:
        raise UserMustAct(
            f"--sweep: found {text!r}, wanted NAME=VALUE,VALUE...; NAME is one of {', '.join(FIELDS)}; "
            "say for example --sweep beta=0.2,0.5,0.8"
        )
    return key, found


def change_of(asked: Mapping[str, str]) -> Change:
    """Replaces these settings in a spec; a value that does not fit is refused, as a query file's would be."""

    def change(spec: JoinQuerySpec) -> JoinQuerySpec:
        if not asked:
            return spec
        held: dict[str, Any] = json.loads(write_spec(spec))
        for name, text in asked.items():
            *way, last = FIELDS[name]
            section = held
            for part in way:
                section = section[part]
            section[last] = _value(name, text)
        return read_spec(json.dumps(held))

    return change


def given(options: Mapping[str, object]) -> dict[str, str]:
    """The settings among a command's options that were given."""
    return {name: str(value) for name, value in options.items() if value is not None}


def in_words(asked: Mapping[str, str]) -> str:
    """beta = 0.2, th_sup = 0.4."""
    return ", ".join(f"{name} = {value}" for name, value in asked.items())


def _value(name: str, text: str) -> object:
    if name in _TEXTS:
        return text
    try:
        return int(text) if name in _WHOLE else float(text)
    except ValueError:
        wanted = "a whole number" if name in _WHOLE else "a number"
        raise UserMustAct(
            f"{name}: found {text!r}, wanted {wanted}; say for example {name}={1 if name in _WHOLE else 0.5}"
        ) from None
