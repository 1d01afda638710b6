"""Names of types, for annotations."""

from .node_typing import IO, CheckLazyMixin, ComfyNodeABC, FileLocator, InputTypeDict, InputTypeOptions  # noqa: F401
