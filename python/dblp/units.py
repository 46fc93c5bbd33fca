# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Parsing of numbers, loss budgets and times."""

from __future__ import annotations

import os
import re
from typing import Mapping, Union

#: One, in the unit of every loss budget: parts per million (DBLP_PPM)
PPM = 1000000

_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)")
_PERCENT = re.compile(r"([0-9]+)(?:\.([0-9]+))?%")


def number(name: str, value: int, least: int = 0, most: int = 0xffffffff) -> int:
    """Return `value`. Raises TypeError unless it is an int, ValueError unless within `least` ... `most`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name} {value} is not within {least} ... {most}")
    return value


def env_number(name: str, env: Mapping[str, str] = os.environ) -> int:
    """A number of 32 bits of the environment, 0 if it is not there or empty; else ValueError, which names it."""
    text = env.get(name) or "0"
    if not (text.isascii() and text.isdecimal()) or int(text) > 0xffffffff:
        raise ValueError(f"{name}={text} of the environment is not a number within 0 ... {0xffffffff}")
    return int(text)


def parse_budget(budget: Union[str, int]) -> int:
    """
    A loss budget in ppm, 0 ... PPM.

    budget: "2%", "0.8%" or "8000ppm", as for dblpctl(8), or an int in ppm.

    Raises ValueError with the reason, or TypeError for other types.
    """
    if isinstance(budget, bool) or not isinstance(budget, (str, int)):
        raise TypeError(f"budget must be a str such as '2%' or an int (ppm), not {budget!r}")
    ppm = budget if isinstance(budget, int) else _parse(budget)
    if not 0 <= ppm <= PPM:
        raise ValueError(f"budget {budget!r} is not within 0% ... 100%")
    return ppm


def parse_time(text: str) -> int:
    """
    A time in milliseconds, 1 ... 2^32 - 1.

    text: a number with a unit: "90s", "1.5s", "500ms", "10m" or "2h"; without a unit: seconds.

    Raises ValueError.
    """
    time = _TIME.fullmatch(text)
    if not time:
        raise ValueError(f"{text!r} is not a time such as 90, 500ms, 10m or 2h")
    ms = round(float(time.group(1)) * {"ms": 1, "s": 1000, "": 1000, "m": 60000, "h": 3600000}[time.group(2)])
    if not 0 < ms < 1 << 32:
        raise ValueError(f"{text!r} is not within 1ms ... 1193h")
    return ms


def format_budget(ppm: int) -> str:
    """A budget in ppm as text for parse_budget(), such as "2%"."""
    return f"{ppm / 10000:.4f}".rstrip("0").rstrip(".") + "%"


def _parse(text: str) -> int:
    if re.fullmatch(r"[0-9]+ppm", text):
        return int(text[:-3])
    if re.fullmatch(r"[0-9]+\.[0-9]+ppm", text):
        raise ValueError(f"budget {text!r} is finer than 1ppm")
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        raise ValueError(f"budget {text!r} has no unit: % or ppm")
    percent = _PERCENT.fullmatch(text)
    if not percent:
        raise ValueError(f"budget {text!r} is not a share such as 2% or 8000ppm")
    whole, fraction = percent.group(1), (percent.group(2) or "").rstrip("0")
    if len(fraction) > 4:
        raise ValueError(f"budget {text!r} is finer than 0.0001% (1ppm)")
    return int(whole) * 10000 + int(fraction.ljust(4, "0"))
