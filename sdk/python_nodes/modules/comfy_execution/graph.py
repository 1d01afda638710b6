"""ExecutionBlocker, in the place of an output that nobody shall read."""

from heddle_nodes.calls import DynamicPrompt  # noqa: F401
from heddle_nodes.values import ExecutionBlocker  # noqa: F401
