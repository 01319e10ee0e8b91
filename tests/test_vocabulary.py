"""Strategy, caps, budget and trees: bounds, identity, and what they refuse."""

from __future__ import annotations

import pickle
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rsi import errors
from rsi.budget import Caps, Meter, Spend
from rsi.digest import canonical_json, digest_of, seed_of
from rsi.prism.tree import File, Tree, check_path
from rsi.records import RolloutRequest
from rsi.strategy import BOUNDS, MAX_LESSONS, Strategy, parse_strategy
from rsi.wire import to_snake


def test_a_strategy_is_spelled_in_camel_case_and_read_back():
    strategy = Strategy(max_rounds=2, lessons=("Read long files in parts.",))
    document = strategy.to_json()
    assert document["maxRounds"] == 2 and "max_rounds" not in document
    assert parse_strategy(document, "x") == strategy


@pytest.mark.parametrize("name", sorted(BOUNDS))
def test_every_number_has_its_bounds(name):
    lower, upper = BOUNDS[name]
    assert getattr(Strategy(**{name: lower}), name) == lower
    assert getattr(Strategy(**{name: upper}), name) == upper
    for outside in (lower - 1, upper + 1):
        with pytest.raises(errors.StrategyError, match=f"allowed {lower} to {upper}"):
            parse_strategy({name: outside}, "file")
    with pytest.raises(errors.StrategyError):
        parse_strategy({name: float(lower) + 0.5}, "file")


def test_an_unknown_field_is_named_and_caps_cannot_be_reached():
    for name in ("temperature", "modelCalls", "agents"):
        with pytest.raises(errors.StrategyError, match=f"s.json: {name}: unknown key"):
            parse_strategy({name: 1}, "s.json")


def test_texts_and_lessons_are_bounded():
    for values in (
        {"reviewGuidance": "x" * 1201},
        {"lessons": ["x"] * (MAX_LESSONS + 1)},
        {"lessons": ["x" * 301]},
        {"lessons": [""]},
    ):
        with pytest.raises(errors.StrategyError):
            parse_strategy(values, "s")


def test_the_strategy_id_depends_on_every_field_and_on_nothing_else():
    base = Strategy()
    assert base.strategy_id == Strategy.model_validate(base.to_json()).strategy_id
    others = [base.updated(**{name: BOUNDS[name][0]}) for name in BOUNDS]
    others += [base.updated(review_guidance="x"), base.updated(lessons=("x",))]
    assert len({s.strategy_id for s in (base, *others)}) == len(others) + 1


def test_updating_validates_again():
    with pytest.raises(ValidationError):
        Strategy().updated(agent_steps=10_000)


def test_records_are_frozen():
    with pytest.raises(ValidationError):
        Strategy().max_rounds = 3
    with pytest.raises(ValidationError):
        Caps().model_calls = 3


def test_rollout_ids_tell_strategy_task_repetition_and_scope_apart():
    requests = [
        RolloutRequest(strategy=Strategy(), task_id="a", repetition="r"),
        RolloutRequest(strategy=Strategy(max_rounds=2), task_id="a", repetition="r"),
        RolloutRequest(strategy=Strategy(), task_id="b", repetition="r"),
        RolloutRequest(strategy=Strategy(), task_id="a", repetition="s"),
        RolloutRequest(strategy=Strategy(), task_id="a", repetition="r", scope="full"),
    ]
    assert len({r.rollout_id for r in requests}) == 5
    assert requests[0].rollout_id == requests[0].updated().rollout_id


def test_canonical_json_ignores_order_and_refuses_nan():
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"é","b":1}'
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    with pytest.raises(ValueError):
        canonical_json(float("nan"))


def test_seeds_depend_on_every_part_and_do_not_run_together():
    assert seed_of(1, "ab", "c") != seed_of(1, "a", "bc")
    assert seed_of(1, "a") == seed_of(1, "a") < 2**31


def test_a_meter_refuses_what_has_no_room_and_names_it():
    meter = Meter({"calls": 3, "tokens": 100})
    held = meter.reserve("a", {"calls": 2, "tokens": 60})
    with pytest.raises(errors.LimitReached) as caught:
        meter.reserve("b", {"calls": 1, "tokens": 41})
    assert caught.value.limit == "tokens"
    assert meter.room("calls") == 1, "a refused reservation holds nothing"
    meter.settle(held, {"calls": 1, "tokens": 50})
    assert (meter.room("calls"), meter.room("tokens"), meter.total("tokens")) == (2, 50, 50)
    assert meter.room("unknown") == float("inf")


def test_a_meter_can_be_used_up_exactly():
    meter = Meter({"calls": 2})
    meter.charge("earlier", {"calls": 1})
    meter.settle(meter.reserve("now", {"calls": 1}), {"calls": 1})
    assert meter.room("calls") == 0 and meter.spent["now"] == {"calls": 1}


@given(st.lists(st.tuples(st.integers(1, 7), st.floats(0, 1)), min_size=1, max_size=60))
def test_reserved_and_spent_never_pass_the_ceiling(schedule):
    meter = Meter({"tokens": 20})
    open_reservations = []
    for amount, share in schedule:
        try:
            open_reservations.append((meter.reserve("x", {"tokens": amount}), amount * share))
        except errors.LimitReached:
            if open_reservations:
                reservation, used = open_reservations.pop(0)
                meter.settle(reservation, {"tokens": used})
        held = sum(r.amounts["tokens"] for r, _ in open_reservations)
        assert meter.total("tokens") + held <= 20 + 1e-9


def test_a_meter_is_safe_for_threads():
    meter = Meter({"calls": 500})
    granted = []

    def work() -> None:
        for _ in range(200):
            try:
                held = meter.reserve("x", {"calls": 1})
            except errors.LimitReached:
                return
            granted.append(1)
            meter.settle(held, {"calls": 1})

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 500 and meter.total("calls") == 500


def test_spends_add_by_field():
    total = Spend(model_calls=1, input_tokens=5, usd=0.5) + Spend(output_tokens=2, usd=0.25)
    assert (total.model_calls, total.tokens, total.usd) == (1, 7, 0.75)


@pytest.mark.parametrize(
    "path", ["/etc/x", "../x", "a/../b", "a//b", "./a", "", "a\\b", "a\x00b", "a\nb", "x" * 241]
)
def test_paths_that_leave_the_tree_are_refused(path):
    with pytest.raises(errors.SubmissionError):
        check_path(path)


def test_a_tree_digest_sees_bytes_names_and_the_executable_bit():
    trees = [
        Tree.of({"a": "x"}),
        Tree.of({"a": "y"}),
        Tree.of({"b": "x"}),
        Tree.of({"a": "x"}, ["a"]),
        Tree.of({"a": "x", "b": ""}),
    ]
    assert len({t.digest for t in trees}) == 5
    assert Tree.of({"b": "1", "a": "2"}).digest == Tree.of({"a": "2", "b": "1"}).digest


def test_a_tree_survives_json_byte_for_byte():
    tree = Tree.of({"x.bin": bytes(range(256))}, ["x.bin"])
    assert Tree.model_validate(tree.to_json()) == tree


def test_trees_split_and_change_without_touching_the_old():
    tree = Tree.of({"s/run": "#!", "s.py": "1", "p.py": "2"}, ["s/run"])
    assert tree.under("s").files == {"run": File(content=b"#!", executable=True)}
    changed = tree.with_file("s/run", "#!2")
    assert changed.files["s/run"].executable and tree.text("s/run") == "#!"
    assert set(tree.without(["p.py"]).files) == {"s/run", "s.py"}


def test_a_tree_has_caps_on_files_and_bytes():
    with pytest.raises(errors.SubmissionError, match="at most"):
        Tree.of({f"f{i}": "" for i in range(2001)})
    with pytest.raises(errors.SubmissionError, match="at most"):
        Tree.of({"big": b"x" * (32 * 1024 * 1024 + 1)})


def test_errors_survive_pickling_and_carry_their_manners():
    for kind in (errors.ModelRefused, errors.SandboxFailure, errors.LimitReached):
        again = pickle.loads(pickle.dumps(kind("what")))
        assert type(again) is kind and str(again) == "what"
    late = pickle.loads(pickle.dumps(errors.ModelUnavailable("slow", 2.5)))
    assert (str(late), late.retry_after_s, late.retryable) == ("slow", 2.5, True)
    assert errors.ModelRefused("x").exit_code == 2 and not errors.ModelRefused("x").retryable
    assert errors.SandboxFailure("x").exit_code == 1


def test_camel_names_are_read_as_attributes():
    assert to_snake("reviewMaxOutputTokens") == "review_max_output_tokens"
