"""The failure taxonomy: one name for each failed rollout, from its verdicts and its solution.

The classes are the TestHelix paper's: coverage gaps (missed input, untested requirement), faulty
checks (weak assertion, wrong oracle, over-fitted), execution logic (fixture or API, command or
parsing). The rules below are ours; the first that holds gives the name.
"""

from __future__ import annotations

from rsi.prism.outcome import Outcome, Reason, State
from rsi.records import Solution

MISSED_INPUT = "missed input"
UNTESTED_REQUIREMENT = "untested requirement"
WEAK_ASSERTION = "weak assertion"
WRONG_ORACLE = "wrong oracle"
OVER_FITTED = "over-fitted"
FIXTURE_OR_API = "fixture or API"
COMMAND_OR_PARSING = "command or parsing"
LABELS = (
    MISSED_INPUT,
    UNTESTED_REQUIREMENT,
    WEAK_ASSERTION,
    WRONG_ORACLE,
    OVER_FITTED,
    FIXTURE_OR_API,
    COMMAND_OR_PARSING,
)
_STOPPED = frozenset({State.TIMEOUT, State.RESOURCE, State.TAMPER})
_BROKEN = frozenset({Reason.IMPORT, Reason.CRASH})


def label_of(outcome: Outcome | None, solution: Solution) -> str:
    """Name the failure of a rollout; empty on success and without a score.

    1. Nothing submitted: command or parsing when replies were malformed, else untested
       requirement. 2. The entry could not run somewhere: command or parsing. 3. A limit or a
       changed program somewhere: fixture or API. 4. A right program rejected: command or parsing
       when the tests could not be collected, fixture or API when they broke off, over-fitted
       when another right program was accepted (or, where only g was judged, when the suite is a
       single one that peers' repairs contradicted), else wrong oracle. 5. b accepted: missed
       input. 6. A wrong program accepted: weak assertion when b fell by no assertion, untested
       requirement when all were accepted, else missed input.
    """
    if outcome is None or not outcome.complete or outcome.s:
        return ""
    if solution.suite.empty:
        malformed = solution.symptoms.malformed_replies
        return COMMAND_OR_PARSING if malformed else UNTESTED_REQUIREMENT
    states = {verdict.state for verdict in outcome.of("initial", "reference", "valid", "invalid")}
    if State.SUITE_ERROR in states:
        return COMMAND_OR_PARSING
    if states & _STOPPED:
        return FIXTURE_OR_API
    return _of_right_programs(outcome, solution) or _of_wrong_programs(outcome)


def _of_right_programs(outcome: Outcome, solution: Solution) -> str:
    right = outcome.of("reference", "valid")
    rejected = [verdict for verdict in right if verdict.rejects]
    if not rejected:
        return ""
    reasons = {verdict.reason for verdict in rejected}
    if Reason.COLLECTION in reasons:
        return COMMAND_OR_PARSING
    if reasons <= _BROKEN:
        return FIXTURE_OR_API
    contradicted = len(right) == 1 and bool(solution.fallback) and _peers_disagreed(solution)
    return OVER_FITTED if len(rejected) < len(right) or contradicted else WRONG_ORACLE


def _of_wrong_programs(outcome: Outcome) -> str:
    initial, wrong = outcome.of("initial")[0], outcome.of("invalid")
    if initial.accepts:
        return MISSED_INPUT
    if not initial.rejects_strictly:
        return WEAK_ASSERTION
    return UNTESTED_REQUIREMENT if all(v.accepts for v in wrong) else MISSED_INPUT


def _peers_disagreed(solution: Solution) -> bool:
    return any(state not in ("", State.ACCEPT) for row in solution.verdicts_kk for state in row)
