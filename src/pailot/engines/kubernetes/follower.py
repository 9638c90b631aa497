"""The threads that speak to the cluster for one attempt: one watches its pods, one for each task brings what that writes.

What they learn they tell by a queue, from which the engine takes it. The end of a connection is no news of a task: the
API may be away, a watch may be cut off, a node may not respond. Each thread goes on until it is told that it is not needed.
"""

from __future__ import annotations

import os
import threading
import time

from ...errors import PailotError
from ...runfolder import layout
from ...runtime.folder_copy.receiver import Receiver
from ...runtime.kubernetes import pod_layout
from ...values import Value
from . import exec_stream, node_log, objects
from .cluster import ApiError
from .reasons import PodSeen, pod_seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .cluster import Cluster
    from .exec_stream import ExecStream

SHORTEST_SECONDS, LONGEST_SECONDS = 0.1, 5.0


class Pods(Value):
    """All pods of the attempt, as they are now."""

    seen: tuple[PodSeen, ...]


class PodChanged(Value):
    pod: PodSeen


class PodGone(Value):
    """A pod was removed; how it was last."""

    pod: PodSeen


class Away(Value):
    """The API cannot be asked, in words; empty: it can be again."""

    words: str


class Grown(Value):
    """Something of a task's folder was brought: the paths in it."""

    role: int
    index: int
    paths: tuple[str, ...]


class Brought(Value):
    """The thread of a task has ended; `whole` says whether every byte of the ended task is here."""

    role: int
    index: int
    whole: bool


class Watcher(threading.Thread):
    """Tells of every change of the pods with some labels."""

    def __init__(self, cluster: Cluster, selector: str, tell: Callable[[Value], None]) -> None:
        super().__init__(name=f"pods of {selector}", daemon=True)
        self.cluster, self.selector, self.tell = cluster, selector, tell
        self.quit = threading.Event()
        self._is_away = False

    def run(self) -> None:
        pause = SHORTEST_SECONDS
        while not self.quit.is_set():
            try:
                self._follow()
                pause = SHORTEST_SECONDS
            except PailotError as error:
                if isinstance(error, ApiError) and error.status == 410:
                    continue  # it took too long: all of them are asked for anew
                self._is_away = True
                self.tell(Away(str(error)))
                self.quit.wait(pause)
                pause = min(pause * 1.5, LONGEST_SECONDS)
        self.cluster.close()

    def close(self) -> None:
        self.quit.set()

    def _follow(self) -> None:
        path = self.cluster.path("pods")
        items, version = self.cluster.listed(path, self.selector)
        if self._is_away:
            self._is_away = False
            self.tell(Away(""))
        self.tell(Pods(tuple(seen for seen in map(pod_seen, items) if seen is not None)))
        while not self.quit.is_set():
            began = time.monotonic()
            for event in self.cluster.watch(path, self.selector, version):
                if self.quit.is_set():
                    return
                version = str(event.item["metadata"]["resourceVersion"])
                seen = None if event.kind == "BOOKMARK" else pod_seen(event.item)
                if seen is not None:
                    self.tell(PodGone(seen) if event.kind == "DELETED" else PodChanged(seen))
            if time.monotonic() - began < 1:
                return  # it ends at once: a list tells why, or that all is well
            # the end of a watch is normal; it goes on from the last version


class Mirror(threading.Thread):
    """Keeps a copy of a task's folder, until that is whole or the pod is over."""

    def __init__(
        self, cluster: Cluster, pod: PodSeen, role: str, folder: str, tell: Callable[[Value], None], *, once: bool = False
    ) -> None:
        super().__init__(name=f"files of {pod.name}", daemon=True)
        self.cluster, self.pod, self.role, self.folder, self.tell, self.once = cluster, pod, role, folder, tell, once
        self.quit = threading.Event()
        self.pod_over = False
        """Whether there is nothing to connect to any more."""
        self.whole = False
        self.problem = ""
        self.missing = 0
        """How many bytes of its logs are lost."""
        self._stream: ExecStream | None = None

    def run(self) -> None:
        pause = SHORTEST_SECONDS
        try:
            while not (self.pod_over or self.quit.is_set()):
                try:
                    began = self._bring()
                    pause = SHORTEST_SECONDS if began else min(pause * 1.5, LONGEST_SECONDS)
                except (PailotError, OSError, ValueError) as error:
                    self.problem = str(error)
                    pause = min(pause * 1.5, LONGEST_SECONDS)
                if self.is_enough():
                    break
                self.quit.wait(pause)
            if not (self.whole or self.once or self.quit.is_set()):
                self._ask_node()
        finally:
            self.cluster.close()
            self.tell(Brought(self.pod.role, self.pod.index, self.whole))

    def is_enough(self) -> bool:
        return self.whole or self.pod_over or self.once

    def finish(self, pod: PodSeen) -> None:
        """The pod is over: what is on its way still comes, the rest is asked of its node, and then it is enough."""
        self.pod = pod
        self.pod_over = True

    def close(self) -> None:
        self.quit.set()
        stream = self._stream
        if stream is not None:
            stream.hang_up()

    def _bring(self) -> bool:
        """One connection, to its end; returns whether it came to anything."""
        words = [pod_layout.READY, f"{pod_layout.GIVEN}/{pod_layout.CODE}", "show", self.role, str(self.pod.index)]
        stream = self.cluster.run_in(
            self.pod.name, objects.MAIN, ["/bin/sh", "-c", objects.SHOW, *words, *(["once"] if self.once else [])]
        )
        self._stream = stream
        receiver = Receiver(self.folder)
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            while not self.quit.is_set():
                heard = stream.read()
                if heard is None:
                    break
                channel, data = heard
                if channel == exec_stream.STDERR:
                    self.problem = data.decode("utf-8", "replace").strip()
                if channel != exec_stream.STDOUT:
                    continue
                grown = receiver.take(data, stream.write)
                if grown:
                    self.tell(Grown(self.pod.role, self.pod.index, tuple(dict.fromkeys(grown))))
                if receiver.arrived:
                    self._hear_the_end(stream)
                    break
        finally:
            self._stream = None
            stream.close()
        self.whole = receiver.arrived and os.path.exists(os.path.join(self.folder, layout.FINAL))
        return receiver.began

    def _ask_node(self) -> None:
        """The pod ended before all of it was brought."""
        try:
            data = self.cluster.log(self.pod.name, objects.MAIN)
        except PailotError as error:
            self.problem, data = str(error), b""
        if data or self.pod.printed:
            self.missing = node_log.complete(self.folder, data, self.pod.printed)
            self.tell(Grown(self.pod.role, self.pod.index, (layout.ALL,)))

    def _hear_the_end(self, stream: ExecStream) -> None:
        """The other side notes that all has arrived: only then the pod may end."""
        while stream.read() is not None:
            pass
