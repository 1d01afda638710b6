"""Nodes of the whole contract, without tensors: each answers with what it was given, as text."""
from .basics import NODES as BASICS
from .flow import NODES as FLOW

NODE_CLASS_MAPPINGS = {**BASICS, **FLOW}
NODE_DISPLAY_NAME_MAPPINGS = {"t.Join": "Join texts"}
