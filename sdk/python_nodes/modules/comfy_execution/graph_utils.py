"""New nodes that a node asks for while it runs."""

from heddle_nodes import calls
from heddle_nodes.calls import is_link  # noqa: F401
from heddle_nodes.values import ExecutionBlocker  # noqa: F401


class Node:
    def __init__(self, id, class_type, inputs):
        self.id, self.class_type, self.inputs, self.override_display_id = id, class_type, inputs, None

    def out(self, index):
        return [self.id, index]

    def set_input(self, name, value):
        if value is None:
            self.inputs.pop(name, None)
        else:
            self.inputs[name] = value

    def get_input(self, name):
        return self.inputs.get(name)

    def set_override_display_id(self, id):
        self.override_display_id = id

    def serialize(self):
        made = {"class_type": self.class_type, "inputs": self.inputs}
        if self.override_display_id is not None:
            made["override_display_id"] = self.override_display_id
        return made


class GraphBuilder:
    """A graph whose ids belong to the call that makes it."""

    def __init__(self, prefix=None):
        self.prefix = self.alloc_prefix() if prefix is None else prefix
        self.nodes, self.next_id = {}, 1

    @classmethod
    def alloc_prefix(cls, root=None, call_index=None, graph_index=None):
        call = calls.current()
        if call is None:
            raise RuntimeError("a GraphBuilder is made while a node runs, and not before")
        if graph_index is None:
            graph_index = call.graphs
            call.graphs += 1
        root = call.id if root is None else root
        return f"{root}.{call.element if call_index is None else call_index}.{graph_index}."

    def node(self, class_type, id=None, **inputs):
        if id is None:
            id, self.next_id = str(self.next_id), self.next_id + 1
        id = self.prefix + id
        if id in self.nodes:
            return self.nodes[id]
        self.nodes[id] = Node(id, class_type, inputs)
        return self.nodes[id]

    def lookup_node(self, id):
        return self.nodes.get(self.prefix + id)

    def finalize(self):
        return {id: node.serialize() for id, node in self.nodes.items()}

    def replace_node_output(self, id, index, value):
        """Whoever reads that output has `value` instead; None: nothing."""
        old = [self.prefix + id, index]
        for node in self.nodes.values():
            for name in [name for name, given in node.inputs.items() if is_link(given) and list(given) == old]:
                node.set_input(name, value)

    def remove_node(self, id):
        del self.nodes[self.prefix + id]
