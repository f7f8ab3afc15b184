"""What became of the cases, for people: one block a command, one line at the end."""

from __future__ import annotations

from collections.abc import Sequence

from winfleet.contract.run import Outcome

STATUSES = ("passed", "failed", "skipped")


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many passed, failed and were skipped."""
    return {status: sum(outcome.status == status for outcome in outcomes) for status in STATUSES}


def block(command: str, outcomes: Sequence[Outcome]) -> list[str]:
    """The lines of one command: its counts, every failed case with its differences, every skipped one with the
    reason.
    """
    tally = ", ".join(f"{number} {status}" for status, number in counts(outcomes).items() if number)
    lines = [f"{command:<26}{tally}"]
    for outcome in outcomes:
        if outcome.status == "failed":
            lines.append(f"  FAILED   {outcome.case.name}")
            lines += [f"           {line}" for line in outcome.differences]
    reasons = dict.fromkeys(outcome.reason for outcome in outcomes if outcome.status == "skipped")
    for reason in reasons:
        names = [outcome.case.name for outcome in outcomes if outcome.reason == reason]
        lines.append(f"  skipped  {'; '.join(names)}: {reason}")
    return lines


def total(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The last line."""
    tally = ", ".join(f"{status} {number}" for status, number in counts(outcomes).items())
    return f"{tally} of {len(outcomes)} cases in {seconds:.0f} s"
