"""A finding as a text for the issue tracker of the framework whose lane failed: what is wrong, a script that
shows it with that framework alone, what is right and how that is known."""

from typing import Any

from assay.scripts.finding import FindingScript, NoScript
from assay.scripts.source import LANGUAGES, Lane
from assay.scripts.tracing import check_name, run
from assay.wire import Fields, Stop


def issue(facts: Fields) -> dict[str, Any]:
    """{"text": Markdown with the script, "script": …, "why": why there is none}."""
    lane = Lane(facts)
    script = why = ran = ""
    try:
        script = FindingScript(facts, lane).text()
        shown = f"```python\n{script}```"
        if facts.run:
            ran = f"- {_outcome_here(facts, script)}\n"
    except NoScript as reason:
        why = str(reason)
        shown = (
            f"There is no short script: {why}. `assay shrink` may find a smaller case; `assay repro` writes "
            "a longer script."
        )
    finding, version = facts.finding, facts.properties.get("version.assay", UNKNOWN)
    where = "".join([finding.where and f", {finding.where}", finding.how and f": {finding.how}"])
    name = LANGUAGES[lane.framework].full_name if lane.framework in LANGUAGES else lane.framework
    cases = f"{finding.cases} case{'' if finding.cases == 1 else 's'}"
    text = f"""\
# {finding.api}: {finding.outcome}{where}

{name} {lane.build}, device {lane.device}{_particulars(lane)}; found by assay {version}

`{facts.case}`

{shown}

- got: {facts.message}
- source of the expected result: {_known_by(facts)}
- seen in {cases} of the run{finding.circumstances and f": {finding.circumstances}"}
- rerun with assay: `{facts.rerun}`
"""
    return {"text": text + ran, "script": script, "why": why}


UNKNOWN = "of an unknown version"


def _particulars(lane: Lane) -> str:
    """The name of the lane, if assay.toml defines it, and what its processes have beside the framework."""
    text = f", lane {lane.label}" if lane.label != lane.framework else ""
    text += f", environment `{lane.environment}`" if lane.environment else ""
    return text + (f", with {', '.join(lane.modules)}" if lane.modules else "")


def _known_by(facts: Fields) -> str:
    """How the expected value is known."""
    fault, shown = facts.fault, facts.shown

    def of_run(name: str) -> str:
        return str(facts.properties.get(name, UNKNOWN))

    if fault.compares == "input":
        return "definition: the call does not promise to change this input"
    if not shown:
        if fault.outcome in ("crash", "timeout"):
            return "definition: a call returns a result or raises"
        other = "test" if fault.lane == "reference" else "reference"
        return f"the {of_run(f'{other}.lane')} lane, which computes a result for this call"
    if fault.by_truth:
        means = (
            "an evaluation of the same function in float64, repeated with every input moved by half a unit "
            "in its last place to bound the effect of rounding"
        )
        if shown.element:
            means += f"; the reference in the precision of the call gives {shown.by_reference}"
        return means
    if shown.equality == "bits":
        return "definition: no kernel rounds this result, so its bits are given"
    build = of_run(of_run("reference.lane"))
    return f"the reference lane, {of_run('reference.framework')} {build}, on the same inputs"


def _outcome_here(facts: Fields, script: str) -> str:
    """What the script does in this interpreter. An exception exits with 1, too, so its output counts."""
    try:
        check_name(facts.finding.api)
    except Stop as reason:
        return f"assay did not run the script: {reason}"
    code, output = run(script, facts.limit)
    if code == 1 and f"\n{output}".find("\ngot ") >= 0:
        return "assay ran the script here: it exits with 1, so the fault shows"
    ended = "does not end" if code is None else f"exits with {code}"
    last = (output.strip().splitlines() or [""])[-1]
    return f"assay ran the script here, and the fault did not show: it {ended}: {last}"
