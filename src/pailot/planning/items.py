"""Where the commands of the job file stand in the scripts of a task, so that the one that fails can be named."""

from __future__ import annotations

from ..lifecycle.script_items import LONGEST_SCRIPT, Item
from ..protocol.js_semantics import WHITE_SPACE, trim
from ..protocol.model import START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..protocol.model import Job, TaskRole
    from ..protocol.yaml.document import Step
    from .plan import PlannedCallback

MOST_ITEMS = 200
"""Of a script: to find the place of each takes time at every start."""
MOST_ROLES = 100


class Places:
    """Finds the commands of one job again."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.on = len(job.task_roles) <= MOST_ROLES

    def in_main(self, role: TaskRole, header: str) -> tuple[Item, ...]:
        """The commands of role and deployment below a header."""
        written = list(self._commands(role))
        if not self.on or len(written) > MOST_ITEMS or len(role.entrypoint) > LONGEST_SCRIPT:
            return ()
        texts = [trim(text) for _, _, text in written]
        if not self.job.legacy and any("<%" in text for text in texts):
            texts = self._rendered(role, texts)
        whole = "\n".join(texts)
        if trim(whole) != role.entrypoint:  # a tag goes from one command to the next
            return ()
        line = header.count("\n") + 1 - whole[: len(whole) - len(whole.lstrip(WHITE_SPACE))].count("\n")
        items = []
        for (name, path, _), text in zip(written, texts, strict=True):
            last = line + text.count("\n")
            if text:
                items.append(Item(line, last, name, self.job.place(path)))
            line = last + 1
        return tuple(items)

    def _rendered(self, role: TaskRole, texts: Iterable[str]) -> list[str]:
        from ..protocol.templates import Renderer

        renderer = Renderer(role.scope, self.job.secrets.reveal())
        return [renderer.render(text) for text in texts]

    def _commands(self, role: TaskRole) -> Iterable[tuple[str, tuple[Step, ...], str]]:
        chosen = self.job.deployment
        adapted = self.job.deployments[chosen].roles.get(role.name) if chosen is not None else None
        before, after = (adapted.pre_commands, adapted.post_commands) if adapted else ((), ())
        base: tuple[Step, ...] = ()
        if adapted and chosen is not None:
            base = ("deployments", list(self.job.deployments).index(chosen), "taskRoles", role.name)
        for kind, key, path, commands in (
            (f"preCommand {{}} of deployment {chosen} for {role.name}", "preCommands", base, before),
            (f"command {{}} of {role.name}", "commands", ("taskRoles", role.name), role.commands),
            (f"postCommand {{}} of deployment {chosen} for {role.name}", "postCommands", base, after),
        ):
            for number, text in enumerate(commands):
                yield kind.format(number + 1), (*path, key, number), text

    def in_start(self, callbacks: Sequence[PlannedCallback], lines: Sequence[int]) -> tuple[Item, ...]:
        """The commands of start callbacks, the first of each at its line; a failure that is ignored ends nothing."""
        if not self.on or sum(len(each.commands) for each in callbacks) > MOST_ITEMS:
            return ()
        items, seen = [], dict.fromkeys((each.prerequisite for each in callbacks), 0)
        for each, first in zip(callbacks, lines, strict=True):
            path = self._path(each, seen[each.prerequisite])
            seen[each.prerequisite] += 1
            line = first
            for number, text in enumerate(each.commands):
                last = line + text.rstrip("\n").count("\n")
                if not each.ignore_failure:
                    name = f"command {number + 1} of {each.event} of {each.prerequisite}"
                    items.append(Item(line, last, name, self.job.place((*path, "commands", number)) if path else ""))
                line = last + 1
        return tuple(items)

    def _path(self, planned: PlannedCallback, number: int) -> tuple[Step, ...]:
        """Where a start callback stands in the file, if it is one that the file holds as it is."""
        if any(plugin.plugin == planned.prerequisite for plugin in self.job.extras.runtime_plugins):
            return ()
        for each in self.job.prerequisites:
            if each.name == planned.prerequisite and each.path and each.plugin in ("cmd", "docker"):
                starts = [at for at, callback in enumerate(each.callbacks) if callback.event == START and callback.commands]
                if number < len(starts) and len(each.callbacks[starts[number]].commands) == len(planned.commands):
                    return (*each.path, "callbacks", starts[number])
        return ()
