from __future__ import annotations

import json
import os
from typing import Any, Mapping, Sequence, Union

from . import _native

# A workflow in either of ComfyUI's forms, or a file with one: JSON, a picture, a video.
WorkflowLike = Union["Workflow", Mapping[str, Any], str, "os.PathLike[str]"]


class Workflow:
    """A workflow, to be changed and kept. Engine.load() makes one."""

    def __init__(self, native: _native.Workflow) -> None:
        self._native = native

    def set(self, input: str, value: Any) -> None:
        """input: NODE.INPUT; NODE is a title, an id, or a class used once. value: a str, or what JSON has."""
        self._native.set(input, value if isinstance(value, str) else json.dumps(value))

    def place(self, node: str, device: str) -> None:
        self._native.place(node, device)

    def parallel(self, node: str, mode: str) -> None:
        self._native.parallel(node, mode)

    def only(self, nodes: Sequence[str]) -> None:
        """Runs these output nodes and what they need."""
        self._native.only(list(nodes))

    def copy(self) -> Workflow:
        return Workflow(self._native.copy())

    def to_dict(self) -> dict[str, Any]:
        return json.loads(self._native.text())  # type: ignore[no-any-return]
