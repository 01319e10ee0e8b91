"""What the model-free reflector knows: which field a symptom points at, and general advice."""

from __future__ import annotations

from typing import NamedTuple


class Remedy(NamedTuple):
    """A symptom, the field that causes it, by what factor to raise it, and what that teaches."""

    symptom: str
    name: str
    factor: float
    lesson: str


REMEDIES = (
    Remedy(
        "steps_exhausted",
        "agent_steps",
        1.5,
        "Agents that run out of steps submit unfinished suites; more steps help.",
    ),
    Remedy(
        "repair_steps_exhausted",
        "repair_steps",
        1.5,
        "A pair that is nearly consistent is worth a few more repair steps.",
    ),
    Remedy(
        "context_elided",
        "context_tokens",
        1.5,
        "Examples elided from the context are not tested; a wider context helps.",
    ),
    Remedy(
        "tool_output_cut",
        "tool_output_chars",
        2.0,
        "Tool output that is cut hides examples; longer output helps.",
    ),
    Remedy(
        "review_cut",
        "review_max_output_tokens",
        2.0,
        "A review that is cut gives no counterexample; longer reviews help.",
    ),
    Remedy(
        "rounds_exhausted",
        "max_rounds",
        1.5,
        "Disagreements left after the last round need one more round.",
    ),
    Remedy(
        "challenge_differences",
        "challenge_inputs",
        2.0,
        "Repairs that still differ call for more challenge inputs.",
    ),
)


class Advice(NamedTuple):
    """General guidance for a kind of failure: words in its label or a symptom, field, text."""

    words: tuple[str, ...]
    name: str
    text: str


ADVICE = (
    Advice(
        ("tool_output_cut",),
        "synthesis_guidance",
        "Read long files in parts, up to their end, before writing tests.",
    ),
    Advice(
        ("missed",),
        "synthesis_guidance",
        "Test boundary inputs: empty, one element, duplicates, negative and very large values.",
    ),
    Advice(
        ("untested", "requirement"),
        "synthesis_guidance",
        "List every sentence of the requirement and write at least one test for each.",
    ),
    Advice(
        ("weak",),
        "synthesis_guidance",
        "Compare whole results with exact expected values.",
    ),
    Advice(
        ("oracle",),
        "review_guidance",
        "Derive expected values from the requirement's text, never from a program's output.",
    ),
    Advice(
        ("fitted", "overfit"),
        "review_guidance",
        "Do not test what the requirement leaves open, such as wording, order or internals.",
    ),
    Advice(
        ("fixture", "api", "command", "parsing"),
        "repair_guidance",
        "Run the suite in a clean copy before submitting; mend imports, paths and entry script.",
    ),
    Advice(
        ("malformed_replies",),
        "synthesis_guidance",
        "Answer with one well-formed tool call at a time.",
    ),
)
