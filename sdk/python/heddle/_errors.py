"""What the engine throws: a class for each of its codes."""

from __future__ import annotations

from typing import Sequence


class Error(Exception):
    """What failed, where, and what to do about it.

    code: the engine's (HEDDLE_INVALID_ARGUMENT is 1, and so on). trail: where, outermost first: "node '6' (KSampler)", "step 7".
    """

    code: int = 0
    trail: tuple[str, ...] = ()


class InvalidArgument(Error, ValueError):
    code = 1


class NotFound(Error, LookupError):
    code = 2


class Unsupported(Error):
    code = 3


class OutOfMemory(Error, MemoryError):
    code = 4


class Cancelled(Error):
    code = 5


class IOFailure(Error):
    code = 6


class InternalError(Error):
    """A bug of the engine or of a plugin."""

    code = 7


_BY_CODE: dict[int, type[Error]] = {c.code: c for c in (InvalidArgument, NotFound, Unsupported, OutOfMemory, Cancelled, IOFailure, InternalError)}


def error_of(code: int, message: str, trail: Sequence[str]) -> Error:
    error = _BY_CODE.get(code, Error)(message)
    error.code = code
    error.trail = tuple(trail)
    return error
