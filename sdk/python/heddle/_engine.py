from __future__ import annotations

import asyncio
import atexit
import dataclasses
import json
import os
import re
import sys
import time
import weakref
from typing import Any, Callable, Literal, Mapping, Optional, Sequence, Union, overload

from . import _native
from ._run import Event, Results, Run, event_caller, waiters
from ._workflow import Workflow, WorkflowLike

Path = Union[str, "os.PathLike[str]"]
Size = Union[int, float, str]  # bytes; a share of 0 to 1; "14GiB", "60%"

_UNITS = {"": 1, "b": 1, **{letter: 1 << shift for letter, shift in (("k", 10), ("m", 20), ("g", 30), ("t", 40))},
          **{f"{letter}ib": 1 << shift for letter, shift in (("k", 10), ("m", 20), ("g", 30), ("t", 40))},
          **{f"{letter}b": 1000**power for letter, power in (("k", 1), ("m", 2), ("g", 3), ("t", 4))}}


def _size(value: Size) -> Union[int, float]:
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(%|[kmgt]?(?:ib?|b)?)\s*", value.lower())
        if match is not None and match[2] == "%":
            return float(match[1]) / 100
        unit = None if match is None else _UNITS.get(match[2])
        if match is None or unit is None:
            raise ValueError(f'the size is "{value}": give a number of bytes, a share of 0 to 1, "14GiB" or "60%"')
        return int(float(match[1]) * unit)
    if isinstance(value, float) and not 0 <= value <= 1:
        raise ValueError(f"the size is {value}: a float is a share, of 0 to 1; bytes are an int")
    return value


def _list(value: Union[None, Path, Sequence[Path]]) -> list[Path]:
    if value is None:
        return []
    return [value] if isinstance(value, (str, os.PathLike)) else list(value)


def _seconds(value: Optional[float], what: str) -> Optional[float]:
    if value is not None and not 0 <= value < float("inf"):
        raise ValueError(f"{what} is {value}: give a number of seconds, 0 for no limit")
    return value


def _worker_memory(size: Optional[Size]) -> Optional[int]:
    bytes = None if size is None else _size(size)
    if isinstance(bytes, float) or (bytes is not None and bytes < 0):
        raise ValueError(f"isolate_memory is {size!r}: give bytes or a text such as '2GiB'; it is no share of a memory")
    return bytes


def _own_python() -> Optional[str]:
    """The interpreter that runs this. None where it is none that can be started so: a program has Python embedded."""
    name = os.path.basename(sys.executable or "")
    return sys.executable if re.fullmatch(r"(python|pypy)[0-9.]*[a-z]*", name) else None


@dataclasses.dataclass(frozen=True)
class Problems:
    """Of a workflow, a line each. Without errors it can run."""

    errors: list[str]
    warnings: list[str]
    outputs: list[str]  # ids of the nodes that `partly` would run for


@dataclasses.dataclass(frozen=True)
class Plugin:
    id: str
    version: str
    path: str
    refused: str  # why, when it was not loaded
    brings: dict[str, list[str]]


class Engine:
    """Loads plugins and opens devices. Any thread may call anything of it; what blocks lets other threads run.

    devices: "auto", "cuda", "cuda:1", a UUID, a PCI address; also several. budgets, reserves: of memory, by device or kind of device
    ("host": host memory), to be used at most, or left free. plugins, models: folders, searched after what ships. log: called with
    a level (0 debug to 3 error) and a message; of the whole process. What is not given has the engine's default; heddle/engine.hpp
    says more of each.

    isolate: plugins whose nodes run in processes of their own, by file name, path or id: a crash of one raises InternalError in the
    run that called it, and nowhere else. python_nodes: folders of packs of nodes in Python, or packs, which run so, too, in processes
    of `python`: by default the interpreter that runs this, with what is installed for it. Limits of these processes: isolate_timeout
    of seconds that a call works, isolate_memory of address space (no share), isolate_sandbox without network and other programs.
    """

    def __init__(self, *, devices: Union[None, str, Sequence[str]] = None, budgets: Optional[Mapping[str, Size]] = None,
                 plugins: Union[None, Path, Sequence[Path]] = None, models: Union[None, Path, Sequence[Path]] = None,
                 reserves: Optional[Mapping[str, Size]] = None, default_plugins: Optional[Path] = None, input: Optional[Path] = None,
                 output: Optional[Path] = None, comfyui: Optional[Path] = None, compute: Optional[Mapping[str, str]] = None,
                 attention_dtype: Optional[Literal["default", "fp8_e4m3fn"]] = None,
                 linear_dtype: Optional[Literal["default", "int8"]] = None,
                 device_options: Optional[Mapping[str, Mapping[str, Any]]] = None, threads: Optional[int] = None,
                 costs: Optional[Path] = None, cache_bytes: Optional[int] = None, cache_dir: Optional[Path] = None,
                 cache_dir_bytes: Optional[int] = None, host_budget: Optional[Size] = None, host_floor: Optional[Size] = None,
                 pinned: Optional[Size] = None, idle_seconds: Optional[float] = None, prompt_limit: Optional[int] = None,
                 fidelity: Optional[Literal["exact", "rounding"]] = None,
                 isolate: Union[None, Path, Sequence[Path]] = None, isolate_timeout: Optional[float] = None,
                 isolate_memory: Optional[Size] = None, isolate_sandbox: Optional[bool] = None,
                 python_nodes: Union[None, Path, Sequence[Path]] = None, python: Optional[Path] = None,
                 log: Optional[Callable[[int, str], object]] = None) -> None:
        options: dict[str, Any] = {
            "devices": None if devices is None else [str(name) for name in _list(devices)], "plugins": _list(plugins), "models": _list(models),
            "budgets": {name: _size(size) for name, size in (budgets or {}).items()},
            "reserves": {name: _size(size) for name, size in (reserves or {}).items()},
            "default_plugins": default_plugins, "input": input, "output": output, "comfyui": comfyui, "compute": compute and dict(compute),
            "attention_dtype": attention_dtype,
            "linear_dtype": linear_dtype,
            "device_options": {kind: json.dumps(dict(given)) for kind, given in (device_options or {}).items()}, "threads": threads,
            "costs": costs, "cache_bytes": cache_bytes, "cache_dir": cache_dir, "cache_dir_bytes": cache_dir_bytes,
            "idle_seconds": idle_seconds, "prompt_limit": prompt_limit, "fidelity": fidelity, "log": log,
            "isolate": [os.fspath(plugin) for plugin in _list(isolate)], "isolate_timeout": _seconds(isolate_timeout, "isolate_timeout"),
            "isolate_memory": _worker_memory(isolate_memory), "isolate_sandbox": isolate_sandbox,
            "python_nodes": _list(python_nodes), "python": python if python is not None or not _list(python_nodes) else _own_python()}
        for name, size in (("host_budget", host_budget), ("host_floor", host_floor), ("pinned", pinned)):
            options[name] = None if size is None else _size(size)
        self._native = _native.Engine({key: value for key, value in options.items() if value is not None})
        _engines.add(self)

    def close(self) -> None:
        """Cancels its runs, waits for them, and gives back all that it holds. Not to be called by an event's function."""
        self._native.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, workflow: WorkflowLike) -> Workflow:
        """A workflow as a dict in either of ComfyUI's forms, or a file: JSON, or a picture or video with one inside."""
        if isinstance(workflow, Workflow):
            return workflow.copy()
        if isinstance(workflow, Mapping):
            return Workflow(self._native.parse(json.dumps(workflow), "workflow"))
        return Workflow(self._native.load(workflow))

    def convert(self, workflow: WorkflowLike) -> dict[str, Any]:
        """The workflow in ComfyUI's API format."""
        return json.loads(self._native.convert(self._flow(workflow), []))  # type: ignore[no-any-return]

    def check(self, workflow: WorkflowLike, *, inputs: Optional[Mapping[str, Any]] = None) -> Problems:
        return Problems(*self._native.check(self._flow(workflow), dict(inputs or {})))

    @overload
    def plan(self, workflow: WorkflowLike, *, inputs: Optional[Mapping[str, Any]] = None, as_dict: Literal[False] = False) -> str: ...

    @overload
    def plan(self, workflow: WorkflowLike, *, inputs: Optional[Mapping[str, Any]] = None, as_dict: Literal[True]) -> dict[str, Any]: ...

    def plan(self, workflow: WorkflowLike, *, inputs: Optional[Mapping[str, Any]] = None, as_dict: bool = False) -> Union[str, dict[str, Any]]:
        """What would run where and why, without running it; a text for people, or a dict."""
        said = self._native.plan(self._flow(workflow), dict(inputs or {}), "json" if as_dict else "text")
        return json.loads(said) if as_dict else said

    def least_memory(self, workflow: WorkflowLike) -> dict[str, Any]:
        """The least budget of each device with which the workflow gives the bytes that it always gives."""
        return json.loads(self._native.least_memory(self._flow(workflow)))  # type: ignore[no-any-return]

    def start(self, workflow: WorkflowLike, *, fetch: Sequence[str] = (), inputs: Optional[Mapping[str, Any]] = None,
              on_event: Optional[Callable[[Event], object]] = None, **options: Any) -> Run:
        """Starts a run: `await` it, or call its wait().

        fetch: outputs NODE.OUTPUT that are wanted in the results. inputs: values by NODE.INPUT for this run alone; a tensor is
        whatever has __dlpack__ in host memory and is row-major, for a LATENT {"samples": tensor}. Tensors are not copied: nobody
        changes them while the run may read them.

        on_event: called with each Event; in the event loop of whoever starts the run in one, else on a thread of the run's, where
        it keeps the run from going on: keep it short, and wait for no run in it. What it raises does not stop the run.

        options: previews ("none", "auto", "latent2rgb", "taesd"), priority, partly, anew, among_many, writes_after, trace, checkpoint,
        checkpoint_every, checkpoint_note, keeps_checkpoint, memory_wait_seconds, fidelity: see StartOptions of heddle/engine.hpp.
        """
        return Run(self._native.start(self._flow(workflow), dict(inputs or {}), self._start_options(fetch, on_event, options)), self)

    def run(self, workflow: WorkflowLike, **options: Any) -> Results:
        """The same, and waits for it. Ctrl-C cancels it."""
        run = self.start(workflow, **options)
        try:
            return run.wait()
        except KeyboardInterrupt:
            run.cancel()
            raise

    def resume(self, checkpoint: Union[Path, _native.RunCheckpoint], *, fetch: Sequence[str] = (),
               on_event: Optional[Callable[[Event], object]] = None, **options: Any) -> Run:
        """Goes on with a run of another process that was started with `checkpoint`."""
        if not isinstance(checkpoint, _native.RunCheckpoint):
            checkpoint = _native.RunCheckpoint.load(checkpoint)
        return Run(self._native.resume(checkpoint, self._start_options(fetch, on_event, options)), self)

    def devices(self) -> list[dict[str, Any]]:
        """As `heddle devices --json` prints them."""
        told = json.loads(self._native.devices_json())
        return told["devices"] if isinstance(told, dict) else told  # type: ignore[no-any-return]

    def enable(self, device: str) -> None:
        self._native.enable(device)

    def disable(self, device: str) -> None:
        """The device gets nothing new; what is planned on it and has begun finishes there."""
        self._native.disable(device)

    def drain(self, device: str, timeout: Optional[float] = None) -> bool:
        """Disables it, and gives back all that it holds when the runs that have it are over. False: not yet, after so many seconds."""
        return self._native.drain(device, timeout)

    def unload(self, device: str = "", model: str = "") -> int:
        """Evicts what nobody uses now; the bytes that went back."""
        return self._native.unload(device, model)

    def drop_cached(self) -> int:
        """Forgets the results that are kept for later runs; their bytes."""
        return self._native.drop_cached()

    def plugins(self) -> list[Plugin]:
        return [Plugin(**plugin) for plugin in self._native.plugins()]

    def node_types(self) -> list[str]:
        return self._native.node_types()

    def object_info(self, class_type: str = "") -> dict[str, Any]:
        """In the shape of ComfyUI's /object_info; of all classes, where none is named."""
        return json.loads(self._native.object_info(class_type))  # type: ignore[no-any-return]

    @property
    def version(self) -> str:
        return self._native.version()

    def _flow(self, workflow: WorkflowLike) -> _native.Workflow:
        return (workflow if isinstance(workflow, Workflow) else self.load(workflow))._native

    @staticmethod
    def _start_options(fetch: Sequence[str], on_event: Optional[Callable[[Event], object]], options: dict[str, Any]) -> dict[str, Any]:
        given = {key: value for key, value in options.items() if value is not None}
        given["fetch"] = [fetch] if isinstance(fetch, str) else list(fetch)
        if on_event is not None:
            try:
                loop: Optional[asyncio.AbstractEventLoop] = asyncio.get_running_loop()
            except RuntimeError:
                loop = None
            given["on_event"] = event_caller(on_event, loop)
        return given


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """No thread of an engine may call an interpreter that is gone, and none may come back to it out of a call."""
    for engine in list(_engines):
        engine.close()
    for thread in list(waiters):
        thread.join()
    while _native.calls_under_way() > 0:
        time.sleep(0.001)
