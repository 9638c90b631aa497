"""The list of jobs as one would write it down first: every job looked at, sorted whole."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pailot.store.server import ORDERS, PRIORITIES, JobQuery, JobRecord

KEYS: dict[str, Any] = {
    "jobName": lambda job: job.name.encode(),
    "submissionTime": lambda job: 0,
    "username": lambda job: job.user.encode(),
    "vc": lambda job: job.vc.encode(),
    "retries": lambda job: job.retries,
    "totalTaskNumber": lambda job: job.tasks,
    "totalGpuNumber": lambda job: job.gpus,
    "state": lambda job: job.state,
    "completionTime": lambda job: (job.ended is None, job.ended),
    "jobPriority": lambda job: (job.priority is None, job.priority),
}


def matches(job: JobRecord, query: JobQuery) -> bool:
    lists = (
        (query.users, job.user),
        (query.vcs, job.vc),
        (query.states, job.state),
        (query.priorities, job.priority),
        (query.types, job.execution_type),
    )
    return (
        all(not wanted or value in wanted for wanted, value in lists)
        and (not query.tags_contain or any(tag in job.tags for tag in query.tags_contain))
        and not any(tag in job.tags for tag in query.tags_not_contain)
        and all(job.labels.get(key) == value for key, value in query.labels.items())
        and (not query.keyword or any(query.keyword in text for text in (job.name, job.user, job.vc)))
        and (query.newer_than is None or job.submitted > query.newer_than)
        and (query.seen_by is None or job.user == query.seen_by[0] or job.vc in query.seen_by[1])
    )


def listed(jobs: list[JobRecord], query: JobQuery) -> tuple[list[JobRecord], int]:
    """The page and the total; `jobs` are in the order of submission."""
    found = sorted((job for job in jobs if matches(job, query)), key=KEYS[query.order])
    if query.descending:
        found.reverse()
    return found[query.offset : query.offset + query.limit], len(found)


STATES = ("WAITING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED")
USERS = st.sampled_from(["ann", "bob", "eve", "zoë", "Ann"])
VCS = st.sampled_from(["default", "research", "vc3"])
TAGS = st.sampled_from(["red", "green", "blue", "t=1"])
TIMES = st.none() | st.sampled_from([0.0, 1.0, 2.5, 7.0, 1e10])
PRIORITY = st.sampled_from([None, *PRIORITIES])
LABELS = st.dictionaries(st.sampled_from(["team", "x"]), st.sampled_from(["a", "b"]), max_size=2)
NAMES = st.text("ab_é", min_size=1, max_size=4)


def few(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.just(()) | st.lists(values, max_size=3).map(tuple)


RECORDS = st.builds(
    JobRecord,
    id=st.just(""),
    user=USERS,
    name=NAMES,
    submitted=st.sampled_from([1.0, 2.0, 3.0, 4.0]),
    vc=VCS,
    state=st.sampled_from(STATES),
    execution_type=st.sampled_from(["START", "STOP"]),
    priority=PRIORITY,
    ended=TIMES,
    retries=st.integers(0, 3),
    tasks=st.integers(0, 5),
    gpus=st.sampled_from([0, 1, 8]),
    tags=st.lists(TAGS, unique=True, max_size=3).map(tuple),
    labels=LABELS,
)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(STATES),
        "ended": TIMES,
        "retries": st.integers(0, 3),
        "execution_type": st.sampled_from(["START", "STOP"]),
        "priority": PRIORITY,
        "vc": VCS,
        "tasks": st.integers(0, 5),
        "reason": st.just("because"),
    },
)
QUERIES = st.builds(
    JobQuery,
    users=few(USERS),
    vcs=few(VCS),
    states=few(st.sampled_from(STATES)),
    priorities=few(PRIORITY),
    types=few(st.sampled_from(["START", "STOP"])),
    tags_contain=few(TAGS),
    tags_not_contain=few(TAGS),
    labels=st.just({}) | LABELS,
    keyword=st.just("") | st.text("ab_én\ud800", max_size=3) | st.sampled_from(["default", "ann", "a", "vc"]),
    newer_than=st.none() | st.sampled_from([0.0, 2.0, 3.5]),
    seen_by=st.none() | st.tuples(USERS, few(VCS)),
    order=st.sampled_from(ORDERS),
    descending=st.booleans(),
    offset=st.integers(0, 6),
    limit=st.integers(0, 8),
    want_total=st.just(value=True),
)
# A step: what to do, with which job (by its place among those there are), and how.
STEPS = st.lists(
    st.tuples(st.just("add"), st.just(0), RECORDS)
    | st.tuples(st.just("change"), st.integers(0, 30), CHANGES)
    | st.tuples(st.just("tag"), st.integers(0, 30), TAGS)
    | st.tuples(st.just("untag"), st.integers(0, 30), TAGS)
    | st.tuples(st.just("remove"), st.integers(0, 30), st.none())
    | st.tuples(st.just("ask"), st.just(0), QUERIES),
    max_size=40,
)
