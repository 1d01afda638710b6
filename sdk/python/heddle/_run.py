"""Runs, what they tell, and what they give."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from typing import TYPE_CHECKING, Any, Callable, Generator, Optional

from . import _errors, _native

if TYPE_CHECKING:
    from ._engine import Engine


@dataclasses.dataclass(frozen=True)
class Preview:
    """A picture of work under way."""

    image: _native.Tensor  # height x width x 3, uint8
    step: int  # from 1
    step_count: int


@dataclasses.dataclass(frozen=True)
class Event:
    """What a run tells; each kind fills in its own.

    kind: "node_started" (device), "node_progress" (fraction, text), "node_done" (seconds), "node_cached", "file_written" (text: its
    path), "warning" (text), "node_waiting" for its turn to write, "preview" (preview, device), "node_shows" (text: JSON),
    "node_blocked" (text), "run_waiting" for `bytes` of the memory `device` (text: who holds it), "checkpoint_written" (text: its
    path), "picture_sent" (data: a PNG file that is sent instead of saved).
    """

    kind: str
    node: str  # its id; "" for what concerns the run
    class_type: str
    title: str
    device: str
    fraction: float  # 0 to 1
    seconds: float
    text: str
    run: int  # Run.id
    preview: Optional[Preview]
    # Of a node that another asked for: the id that people see, who asked, whence it comes.
    display_node: str
    parent_node: str
    real_node: str
    data: bytes
    bytes: int  # last: from here on this class has another `bytes`


@dataclasses.dataclass(frozen=True)
class Stage:
    node: str
    class_type: str
    seconds: float
    cached: bool
    planned_seconds: float  # as the plan estimated its calls of models; 0: nothing was known
    planned_load_seconds: float  # of loading weights besides


class Results:
    """What a run has made. Tensors that were taken out of it live by themselves; the rest goes with the engine."""

    def __init__(self, native: _native.Results) -> None:
        self._native = native

    @property
    def files(self) -> list[str]:
        """Written by the run."""
        return self._native.files()

    @property
    def stages(self) -> list[Stage]:
        """In the order they finished."""
        return [Stage(*stage) for stage in self._native.stages()]

    @property
    def remarks(self) -> list[str]:
        """Where the plan and the run differ by more than a fifth, for people."""
        return self._native.remarks()

    @property
    def ui(self) -> dict[str, Any]:
        """What nodes show, by node id, in the shape of "outputs" in ComfyUI's history."""
        return json.loads(self._native.ui())  # type: ignore[no-any-return]

    def tensor(self, output: str, field: str = "") -> _native.Tensor:
        """The tensor of an output NODE.OUTPUT that was asked for with `fetch`, or of a field of a record ("samples" of a LATENT).

        Each call copies it once out of the engine, whose own must not change: it is yours to write to. From then on nothing copies.
        """
        return self._native.tensor(output, field)

    def text(self, output: str) -> str:
        """The same as a text: a STRING as it is, else JSON."""
        return self._native.text(output)

    def __getitem__(self, output: str) -> _native.Tensor:
        return self.tensor(output)


def event_caller(function: Callable[[Event], object], loop: Optional[asyncio.AbstractEventLoop]) -> Callable[..., None]:
    """What the engine's threads call."""

    def tell(*values: Any) -> None:
        made = list(values)
        if made[9] is not None:
            made[9] = Preview(*made[9])
        event = Event(*made)
        if loop is None:
            function(event)
            return
        try:
            loop.call_soon_threadsafe(function, event)
        except RuntimeError:  # the loop is closed: nobody listens any more
            pass

    return tell


# Threads that wait for runs in the name of event loops. Exit waits for them (_engine.py).
waiters: set[threading.Thread] = set()


class Run:
    """One run. Dropping it cancels it: keep it, wait for it, or await it."""

    def __init__(self, native: _native.Run, engine: Engine) -> None:
        self._native = native
        self._engine = engine  # is there at exit, to be closed, as long as a run of it is
        self._lock = threading.Lock()
        self._over = False
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Results]]] = []

    @property
    def id(self) -> int:
        """Of no other run in this process; never 0."""
        return self._native.id

    def wait(self, timeout: Optional[float] = None) -> Results:
        """What the run has made, or what it raised. TimeoutError when `timeout` (seconds) is up first."""
        results = self._native.wait(timeout)
        if results is None:
            raise TimeoutError(f"run {self.id} is still under way after {timeout} s")
        return Results(results)

    def done(self) -> bool:
        try:
            return self._native.wait(0) is not None
        except _errors.Error:
            return True

    def cancel(self) -> None:
        """At once, at a row or tile of what runs, where devices know that. Whoever waits gets Cancelled."""
        self._native.cancel()

    def pause(self) -> None:
        """No node and no step of a model begins any more; those that have begun end."""
        self._native.pause()

    def pause_and_release(self) -> None:
        """The same, and the run's memory is given back; resume() places it anew."""
        self._native.pause_and_release()

    def resume(self) -> None:
        self._native.resume()

    @property
    def devices(self) -> list[str]:
        """Those that its plan keeps busy."""
        return self._native.devices()

    def __await__(self) -> Generator[Any, None, Results]:
        """Cancelling the task that awaits cancels the run."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Results] = loop.create_future()
        with self._lock:
            begins = not self._waiting
            self._waiting.append((loop, future))
        if begins:
            thread = threading.Thread(target=self._wait_for_loops, name=f"heddle run {self.id}", daemon=True)
            waiters.add(thread)
            thread.start()
        try:
            return (yield from future.__await__())
        except asyncio.CancelledError:
            self.cancel()
            raise

    def _wait_for_loops(self) -> None:
        results: Optional[Results] = None
        error: Optional[BaseException] = None
        try:
            results = self.wait()
        except BaseException as e:
            error = e
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_finish, future, results, error)
            except RuntimeError:  # the loop is closed
                pass
        waiters.discard(threading.current_thread())


def _finish(future: asyncio.Future[Results], results: Optional[Results], error: Optional[BaseException]) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    elif results is not None:
        future.set_result(results)
