# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Numbers, and loss budgets and times as text, which libdblp parses."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Mapping, Union

from . import _c

#: One, in the unit of every loss budget: parts per million (DBLP_PPM)
PPM = 1000000


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
    if isinstance(budget, str):
        return _parse(_c.lib.dblp_share_parse, "budget", budget)
    if not 0 <= budget <= PPM:
        raise ValueError(f"budget {budget} is not within 0 ... {PPM} ppm")
    return budget


def parse_time(text: str) -> int:
    """
    A time in milliseconds, 1 ... 2^32 - 1.

    text: a number with a unit: "90s", "1.5s", "500ms", "10min" or "2h".

    Raises ValueError.
    """
    ms = _parse(_c.lib.dblp_time_parse, "time", text)
    if not ms:
        raise ValueError(f"time {text!r} is not above 0")
    return ms


def format_budget(ppm: int) -> str:
    """A budget in ppm as text for parse_budget(), such as "2%"."""
    text = ctypes.create_string_buffer(_c.VALUE_TEXT)
    _c.lib.dblp_share_format(ppm, text)
    return text.value.decode()


def _parse(parse: Any, what: str, text: str) -> int:
    """The value that a parser of libdblp finds in `text`. Raises ValueError with its reason."""
    value = ctypes.c_uint32()
    # C takes a NUL for the end of the text
    reason = parse(text.replace("\0", "\1").encode(errors="surrogateescape"), ctypes.byref(value))
    if reason is not None:
        raise ValueError(f"{what} {text!r} {reason.decode()}")
    return value.value
