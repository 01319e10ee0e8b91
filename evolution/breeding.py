"""From a parent's evidence to children: proposals, checked and recorded, and the canary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from evolution.archive import Archive
from evolution.candidate import CANARY, Candidate
from evolution.edits import Proposal, apply_edits, edit_key, refuse_repeat
from evolution.evidence import Evidence, gather
from evolution.lessons import active
from evolution.parents import choose_mate
from evolution.proposers import Material, allot, credits_of, pool
from evolution.sampling import balanced_order
from evolution.search import Player, Search, State, play
from rsi.errors import StrategyError

ATTEMPTS = 3


def trace(search: Search, state: State, number: int, parent: Candidate) -> Evidence:
    """Roll the parent out on trace tasks, which are never compared on, and condense that."""
    order = balanced_order(search.trace, search.rng_seed, "trace", number)
    chosen = order[: search.plan.trace_tasks]
    players = [Player(parent, f"g{number}-trace")]
    played = play(search.world, players, chosen, f"generation {number}, traces")
    rollouts = [played[parent.candidate_id][task_id] for task_id, _ in chosen]
    evidence = gather(rollouts, search.world.caps, [x.statement for x in active(state.lessons)])
    search.tell("trace", number, f"{evidence.failed} of {evidence.rollouts} traces failed")
    return evidence


def breed(
    search: Search, state: State, number: int, parent: Candidate, evidence: Evidence
) -> tuple[State, tuple[Candidate, ...]]:
    """Fill the places of a generation; a place stays empty when nobody has anything new."""
    plan = search.plan
    mate = choose_mate(state.archive, parent, plan.parents_from, search.rng("mate", number))
    material = Material(parent, mate, evidence)
    credit = credits_of(state.archive, plan.proposers)
    places = allot(plan.proposers, plan.children, credit, number, search.rng("places", number))
    asked: Counter[str] = Counter()
    children: list[Candidate] = []
    for place, name in enumerate(places, 1):
        candidate_id = f"g{number}-c{place}"
        child = _child(search, state, candidate_id, material, (name, asked[name]))
        asked[name] += 1
        if child is not None:
            children.append(child)
            state = state.with_candidate(child)
    if _has_canary(search, number):
        canary = _canary(state.incumbent, number)
        children.append(canary)
        state = state.with_candidate(canary)
    for child in children:
        search.world.ledger.once("candidate", child.candidate_id, child.event)
    search.tell("propose", number, f"{len(children)} children of {parent.candidate_id}")
    return state, tuple(children)


def rejected_edits(archive: Archive) -> frozenset[str]:
    """Keys of the edits of candidates that did worse than their incumbent in all they played."""
    worse = set()
    for candidate in archive.candidates:
        seen = archive.observed(candidate.candidate_id)
        if candidate.edits and sum(o.gains - o.losses for o in seen) < 0:
            worse.add(edit_key(candidate.edits))
    return frozenset(worse)


def _child(
    search: Search,
    state: State,
    candidate_id: str,
    material: Material,
    place: tuple[str, int],
) -> Candidate | None:
    """Ask once (the ledger keeps the answer) and build the child it describes."""
    recorded = search.world.ledger.once(
        "proposal", candidate_id, lambda: _ask(search, state, candidate_id, material, place)
    )
    if recorded["proposal"] is None:
        return None
    proposal = Proposal.model_validate(recorded["proposal"])
    parent = material.parent
    return Candidate(
        candidate_id=candidate_id,
        strategy=apply_edits(parent.strategy, proposal),
        parent_ids=tuple(recorded["parentIds"]),
        generation=int(recorded["generation"]),
        proposer=recorded["proposer"],
        diagnosis=proposal.diagnosis,
        edits=proposal.edits,
        lesson=proposal.lesson,
    )


def _ask(
    search: Search,
    state: State,
    candidate_id: str,
    material: Material,
    place: tuple[str, int],
) -> dict[str, Any]:
    """Get a valid, new proposal from the place's proposer, else from chance if it takes part."""
    asked, index = place
    proposers = pool(search.plan.proposers, search.world.reflector)
    refused: list[str] = []
    proposal, proposer = None, asked
    for name in [asked, *(n for n in ("random",) if n in proposers and n != asked)]:
        for attempt in range(ATTEMPTS):
            rng = search.rng("proposal", candidate_id, name, attempt)
            found = proposers[name].propose(material, index + attempt, rng)
            if found is None:
                refused.append(f"{name}: declined")
                break
            reason = _objection(state.archive, material, found)
            if reason is None:
                proposal, proposer = found, name
                break
            refused.append(f"{name}: {reason}")
        if proposal is not None:
            break
    return {
        "candidateId": candidate_id,
        "generation": int(candidate_id.split("-")[0][1:]),
        "parentIds": _parent_ids(material, proposer),
        "asked": asked,
        "proposer": proposer,
        "proposal": proposal.to_json() if proposal else None,
        "refused": refused,
    }


def _objection(archive: Archive, material: Material, proposal: Proposal) -> str | None:
    """Say why a proposal cannot be used, None when it can."""
    tried = {c.strategy_id for c in archive.candidates}
    try:
        child = apply_edits(material.parent.strategy, proposal, material.evidence.task_ids)
        refuse_repeat(child, proposal, tried, rejected_edits(archive))
    except StrategyError as error:
        return str(error)[:400]
    return None


def _parent_ids(material: Material, proposer: str) -> Sequence[str]:
    if proposer == "crossover" and material.mate is not None:
        return [material.parent.candidate_id, material.mate.candidate_id]
    return [material.parent.candidate_id]


def _has_canary(search: Search, number: int) -> bool:
    return bool(search.plan.canaries) and number == search.rng("canary").randint(
        1, search.plan.generations
    )


def _canary(incumbent: Candidate, number: int) -> Candidate:
    return Candidate(
        candidate_id=f"g{number}-{CANARY}",
        strategy=incumbent.strategy,
        parent_ids=(incumbent.candidate_id,),
        generation=number,
        proposer=CANARY,
        diagnosis="a clone of the incumbent: whatever it seems to gain is chance",
    )
