"""What a job may come to at most, how many problems are told, and chains of any length."""

from __future__ import annotations

import pytest

from pailot.errors import suggestion
from pailot.planning import plan
from pailot.problem import MOST_SHOWN, Rest, together
from pailot.protocol import InvalidJob, Problem, read

from ...support.growing_jobs import FAMILIES, START, job, many


def problems_of(text: str) -> tuple[Problem, ...]:
    try:
        return plan(read(text)).warnings
    except InvalidJob as invalid:
        return invalid.problems


def codes_of(text: str) -> set[str]:
    return {problem.code for problem in problems_of(text)}


def errors_of(text: str) -> set[str]:
    return {problem.code for problem in problems_of(text) if problem.is_error}


@pytest.mark.parametrize(("count", "shown"), [(MOST_SHOWN, MOST_SHOWN), (MOST_SHOWN + 1, MOST_SHOWN), (1_334, MOST_SHOWN)])
def test_so_many_problems_are_told_and_the_number_of_the_rest(count: int, shown: int) -> None:
    problems = problems_of(job(more=many(count, "unheardOf#: 1\n")))
    told = [problem for problem in problems if problem.code == "unknown-key"]
    rests = [problem for problem in problems if isinstance(problem, Rest)]
    assert len(told) == shown
    assert [rest.message for rest in rests] == ([f"and {count - shown:,} more"] if count > shown else [])


def test_errors_are_told_rather_than_warnings() -> None:
    text = job(parameters=many(500, "  name#: 1\n"), role="    script: nothing\n")
    problems = problems_of(text)
    assert sum(problem.is_error for problem in problems) == 1
    assert len(problems) == MOST_SHOWN + 1
    assert problems[-1].message == "and 401 more"


def test_rests_are_added_up() -> None:
    first = together(Problem("unused-parameter", str(number)) for number in range(150))
    second = together((*first, *(Problem("bad-value", str(number)) for number in range(30))))
    assert [problem.is_error for problem in second].count(True) == 30
    assert second[-1] == Rest("more-problems", "and 80 more", count=80)
    assert together(second) == second


def test_a_tag_in_many_places_is_one_problem() -> None:
    assert [problem.code for problem in problems_of(FAMILIES["empty tags"](5_000))] == ["template-malformed"]


def test_places_are_right_after_many_lines() -> None:
    (problem,) = problems_of(job(parameters="\n" * 700 + "  x: 1\n" + "\n" * 300))
    assert (problem.line, problem.column, problem.source) == (705, 3, "  x: 1")


@pytest.mark.parametrize("name", ["a chain of required ones", "a circle of required ones"])
def test_a_chain_of_requires_may_be_long(name: str) -> None:
    codes = codes_of(FAMILIES[name](2_000))
    assert codes == ({"require-cycle"} if "circle" in name else set())


def test_what_is_required_comes_first_also_in_a_long_chain() -> None:
    role = read(FAMILIES["a chain of required ones"](1_000)).task_roles["worker"]
    assert [each.name for each in role.prerequisites] == ["image", *(f"p{number}" for number in reversed(range(1_000)))]


def test_a_long_circle_is_told_in_few_words() -> None:
    (problem,) = problems_of(FAMILIES["a circle of required ones"](100))
    assert problem.message == (
        "these require each other: p0 -> p1 -> p2 -> p3 -> p4 -> p5 -> p6 -> p7 -> … -> p99 -> p0; break the circle"
    )


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("roles and their prerequisites", 100),
        ("roles and plugins", 100),
        ("tags of a long text", 2_000),
        ("tags of a long text in a callback", 2_000),
        ("a chain of required ones with callbacks", 1_000),
        ("roles", 2_000),
    ],
)
def test_what_comes_to_too_much_is_refused(name: str, size: int) -> None:
    assert errors_of(FAMILIES[name](size)) == {"job-limit"}
    assert errors_of(FAMILIES[name](50)) == set()


def test_the_variables_of_many_roles_are_bounded() -> None:
    assert errors_of(FAMILIES["roles"](500)) == set()
    long = f"extras:\n  pailot:\n    environment:\n      V: {'x' * 100_000}\n"
    assert errors_of(FAMILIES["roles"](500) + long) == {"job-limit"}


def test_secrets_count_as_what_they_are_when_inserted() -> None:
    commands = '["' + "<% $secrets.s %>" * 500 + '"]'
    assert codes_of(job(secrets=f"  s: {'x' * 1_000}\n", commands=commands)) == set()
    assert codes_of(job(secrets=f"  s: {'x' * 20_000}\n", commands=commands)) == {"job-limit"}


def test_leniency_does_not_lift_a_limit() -> None:
    with pytest.raises(InvalidJob):
        read(FAMILIES["tags of a long text"](2_000), lenient=True)


def test_aliases_repeat_so_much_text_and_no_more() -> None:
    def text(times: int) -> str:
        return job(parameters=f"  a: &a {'x' * 20_000}\n  b: [{'*a, ' * times}]\n", commands="['<% $parameters.b.length %>']")

    assert codes_of(text(50)) == {"unused-parameter"}
    assert codes_of(text(60)) == {"yaml-limit"}
    nested = f"  a: &a {'x' * 2_000}\n  b: &b [{'*a, ' * 20}]\n  c: &c [{'*b, ' * 20}]\n  d: [*c]\n"
    assert codes_of(job(parameters=nested)) == {"yaml-limit"}


def test_where_secrets_are_many_no_line_is_shown() -> None:
    few = problems_of(job(secrets=many(50, "  s#: value#\n"), parameters="  name: value7\n"))
    many_ones = problems_of(job(secrets=many(250, "  s#: value#\n"), parameters="  name: value7\n"))
    assert "  name: ******" in {problem.source for problem in few}
    assert {problem.source for problem in many_ones} == {""}


def test_of_two_secrets_the_longer_one_is_masked_first() -> None:
    problems = problems_of(job(secrets="  a: abc\n  b: abcdef\n", parameters="  name: abcdef\n"))
    assert "  name: ******" in {problem.source for problem in problems}


def test_hints_are_looked_for_as_long_as_it_is_worth_it() -> None:
    known = [f"name{number}" for number in range(100_000)]
    assert suggestion("nane7", known) == "; did you mean 'name7'?"
    assert suggestion("x" * 1_000_000, known) == ""
    text = FAMILIES["unresolved tags beside many names"](3_000)
    assert sum("did you mean" in problem.message for problem in problems_of(text)) >= 1


def test_commands_of_a_plain_prerequisite_run() -> None:
    keys = "preCommands: ['echo <% this.parameters.word %>'], postCommands: [date], word: hello"
    made = plan(read(job(role="    script: p\n", prerequisites=f"- {{name: p, type: script, plugin: cmd, {keys}}}\n")))
    assert "echo hello" in made.roles["worker"].scripts.start
    assert "date" in made.roles["worker"].scripts.exit


def test_commands_and_callbacks_exclude_each_other() -> None:
    keys = f"preCommands: [date], {START}date]}}]"
    assert codes_of(job(role="    script: p\n", prerequisites=f"- {{name: p, type: script, {keys}}}\n")) == {"plugin-parameters"}
