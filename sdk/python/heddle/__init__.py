"""Runs workflow graphs of diffusion models on whatever devices there are.

    with heddle.Engine() as engine:
        results = engine.run("graphs/scene.json", fetch=["decode.IMAGE"])
        picture = numpy.from_dlpack(results["decode.IMAGE"])
"""

from ._engine import Engine, Plugin, Problems
from ._errors import Cancelled, Error, InternalError, InvalidArgument, IOFailure, NotFound, OutOfMemory, Unsupported
from ._native import RunCheckpoint, Tensor
from ._run import Event, Preview, Results, Run, Stage
from ._workflow import Workflow

__version__ = "0.1.0"
__all__ = ["Cancelled", "Engine", "Error", "Event", "IOFailure", "InternalError", "InvalidArgument", "NotFound", "OutOfMemory", "Plugin",
           "Preview", "Problems", "Results", "Run", "RunCheckpoint", "Stage", "Tensor", "Unsupported", "Workflow"]
