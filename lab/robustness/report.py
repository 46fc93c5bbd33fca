#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Read the output of the parts of 'make robustness', and write the table.

report.py result PARTS NAME OUT STATUS SECONDS   judges one part: OUT/NAME.json
report.py write DIRECTORY OUT RESULTS            robustness.md
"""

import json
import operator
import pathlib
import re
import subprocess
import sys

FIELDS = ("name", "seconds", "where", "command", "value", "unit", "bar", "what")
PATTERNS = {
    "points": r"^(?:# )?(ok) \d+ (?!selftests: |.*# SKIP)",
    "value": r"^# value (\d+)",
}
COMPARE = {">=": operator.ge, "<=": operator.le, "==": operator.eq}


def parts(path):
    found = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            part = dict(zip(FIELDS, (word.strip() for word in line.split("|"))))
            found[part["name"]] = part
    return found


def number(text):
    return float(text) if "." in text else int(text)


def value_of(part, text):
    pattern = PATTERNS.get(part["value"], part["value"])
    numbers = re.findall(pattern, text, re.MULTILINE)
    return sum(1 if word == "ok" else number(word) for word in numbers)


def met(bar, value):
    sign, limit = bar.split()
    return COMPARE[sign](value, number(limit))


def commit():
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    return run.stdout.strip()


def result(parts_file, name, out, status, seconds):
    part, out = parts(parts_file)[name], pathlib.Path(out)
    text = (out / f"{name}.log").read_text(errors="replace")
    value = value_of(part, text)
    findings = re.findall(r"^(?:# )?not ok .*", text, re.MULTILINE)
    if status != "0":
        findings += (out / f"{name}.err").read_text(errors="replace").splitlines()[-3:]
        findings.append(f"it ended with {status}")
    judged = {
        "name": name, "value": value, "unit": part["unit"], "bar": part["bar"],
        "met": not findings and met(part["bar"], value),
        "where": part["where"], "command": part["command"], "what": part["what"],
        "findings": findings, "took_s": int(seconds), "commit": commit(),
    }
    (out / f"{name}.json").write_text(json.dumps(judged, indent=1) + "\n")
    print(f"   {value} {part['unit']} ({part['bar']}): "
          f"{'met' if judged['met'] else 'MISSED'}, {seconds} s")
    for finding in findings:
        print(f"     {finding}")
    return 0 if judged["met"] else 1


def row_of(r):
    """A judged part as a row, and why it missed its bar"""
    row = (f"| {r['name']} | {r['what']} | {r['value']} {r['unit']} | {r['bar']} "
           f"| {'met' if r['met'] else 'MISSED'} | {r['where']} | {r['commit']} |")
    why = "" if r["met"] else f"{r['name']}: " + "; ".join(r["findings"] or ["too few"])
    return row, why


def last_rows(page, known):
    """Rows of parts, and why they missed their bars, that the page has by now"""
    found = {}
    for line in page.read_text().splitlines() if page.exists() else []:
        name = line.split(" ")[1] if line.startswith("| ") else line.partition(":")[0]
        if line.startswith("| ") and name in known and name not in found:
            found[name] = line, ""
        elif name in found and line.startswith(f"{name}: "):
            found[name] = found[name][0], line
    return found


def write(directory, out, results):
    """Write robustness.md: parts that were not run keep their last result"""
    directory, page = pathlib.Path(directory), pathlib.Path(results) / "robustness.md"
    known = parts(directory / "parts")
    last = last_rows(page, known)
    for fresh in pathlib.Path(out).glob("*.json"):
        judged = json.loads(fresh.read_text())
        last[judged["name"]] = row_of(judged)
    rows = [last[name] for name in known if name in last]
    lines = ["| part | what | value | bar | | where | commit |", "|---|---|--:|---|---|---|---|"]
    lines += [row for row, _ in rows]
    missing = [name for name in known if name not in last]
    if missing:
        lines += ["", "Not run yet: " + ", ".join(missing) + "."]
    for _, why in rows:
        lines += ["", why] if why else []
    text = (directory / "results.in").read_text()
    page.write_text(text.replace("@TABLE@", "\n".join(lines)))
    return 0


if __name__ == "__main__":
    sys.exit({"result": result, "write": write}[sys.argv[1]](*sys.argv[2:]))
