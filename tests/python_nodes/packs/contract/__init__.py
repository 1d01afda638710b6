"""Nodes of the whole contract, without tensors: each answers with what it was given, as text."""
from .basics import NODES as BASICS
from .flow import NODES as FLOW

# The last has the name of a node that ships, which is the one that runs.
NODE_CLASS_MAPPINGS = {**BASICS, **FLOW, "StringConcatenate": BASICS["t.Join"]}
NODE_DISPLAY_NAME_MAPPINGS = {"t.Join": "Join texts"}
