"""Calls of nodes: what the engine gives becomes arguments, and what a node returns becomes outputs."""

import asyncio
import hashlib
import inspect
import json
import os
import threading
import traceback

from . import pack as packs
from .schema import NodeOutput
from .values import ABSENT_VALUE, ExecutionBlocker, from_python, read_value, to_python, write_value
from .wire import CallKind, Code, Lane, Level, MOST_MESSAGE_BYTES, MOST_RESULT_HEAD, Reader, Refused, Writer, end_without_engine

NEVER = 2**64 - 1  # HEDDLE_FINGERPRINT_NEVER

_thread = threading.local()


class Interrupted(Exception):
    """The run has been cancelled: comfy.model_management.InterruptProcessingException."""


def current():
    """The call of this thread; None outside of one."""
    return getattr(_thread, "call", None)


class Call:
    def __init__(self, channel, flags, memory, node, reader=None):
        self.channel, self.flags, self.memory, self.node = channel, flags, memory, node
        self.graphs, self.id, self.element = 0, "", 0
        self.inputs, self.extras = [], {}
        self.asking = threading.Lock()
        if reader is None:
            return
        self.id = reader.text()
        _, _, self.element = reader.unpack("iiQ")
        reader.text()  # the device: nodes in Python have none
        self.inputs = [read_value(reader, memory) for _ in range(reader.unpack("I"))]
        for _ in range(reader.unpack("I")):
            name = reader.text()
            self.extras[name] = read_value(reader, memory)

    def tell(self, kind, body=None):
        self.channel.send(kind, b"" if body is None else body.bytes())

    def ask(self, kind, body):
        with self.asking:
            self.tell(kind, body)
            answer = self.channel.receive()
        if answer is None or answer[0] != Lane.ANSWER:
            end_without_engine()
        reader = Reader(answer[1])
        reader.failure()
        return reader.data[reader.at:]

    def log(self, level, text):
        body = Writer()
        body.pack("i", level)
        body.text(text)
        self.tell(Lane.LOG, body)

    def warn(self, text):
        body = Writer()
        body.text(text)
        self.tell(Lane.WARN, body)

    def progress(self, fraction, note=""):
        body = Writer()
        body.pack("d", fraction)
        body.text(note)
        self.tell(Lane.PROGRESS, body)

    def wrote(self, path, ui):
        body = Writer()
        body.text(path)
        body.text(ui)
        self.tell(Lane.WROTE, body)

    def is_cancelled(self):
        return self.flags is not None and self.flags[0] != 0

    def stop_if_cancelled(self):
        if self.is_cancelled():
            self.tell(Lane.HEARD_CANCELLED)
            raise Interrupted()

    def look_up(self, id):
        """A node of the workflow as a record; None: there is none."""
        body = Writer()
        body.text(str(id))
        found = read_value(Reader(self.ask(Lane.LOOK_UP, body)), self.memory)
        return None if found is ABSENT_VALUE else found

    # Arguments.

    def hidden(self, port, value):
        if port.type == "DYNPROMPT":
            return DynamicPrompt(self)
        if value is ABSENT_VALUE or value is None:
            return None
        return json.loads(value) if port.type in ("PROMPT", "EXTRA_PNGINFO") else value

    def argument(self, port, value):
        value = to_python(value, port.type)
        return port.originals.get(value, value) if isinstance(value, str) else value

    def arguments(self, wanted=None):
        """By name; `wanted`: names that have to be there, as None where nobody has given them."""
        given, lists = {}, self.node.takes_lists
        for port, value in zip(self.node.inputs, self.inputs):
            if port.flags & packs.HIDDEN:
                hidden = self.hidden(port, value)
                given[port.name] = [hidden] if lists else hidden
            elif value is ABSENT_VALUE:
                if port.flags & packs.LAZY or not port.flags & packs.OPTIONAL or port.name in (wanted or ()):
                    given[port.name] = [None] if lists else None
            elif lists and isinstance(value, list):
                given[port.name] = [self.argument(port, item) for item in value]
            else:
                given[port.name] = self.argument(port, value)
        for name, value in self.extras.items():
            value = to_python(value, "*")
            given[name] = value if not lists or isinstance(value, list) else [value]
        return given

    # Results.

    def write_result(self, returned, to):
        returned = returned.as_dict() if isinstance(returned, NodeOutput) else returned
        ui, expansion, outputs = None, None, returned
        if isinstance(returned, dict):
            ui, expansion, outputs = returned.get("ui"), returned.get("expand"), returned.get("result", ())
        ports = self.node.outputs
        if isinstance(outputs, ExecutionBlocker):
            outputs = (outputs,) * len(ports)
        elif outputs is None:
            outputs = ()
        elif not isinstance(outputs, (tuple, list)) or (isinstance(outputs, list) and len(ports) == 1 != len(outputs)):
            outputs = (outputs,)  # a forgotten comma
        if ui:
            self.show(ui)
        is_new = expansion is not None
        links = {i: v for i, v in enumerate(outputs[:len(ports)]) if is_new and is_link(v)}
        to.pack("I", len(ports))
        for i, port in enumerate(ports):
            if i in links:
                write_value(to, ABSENT_VALUE, self)
            else:
                self.write_output(to, port, outputs[i] if i < len(outputs) else None)
        to.pack("B", is_new)
        if is_new:
            self.write_new_nodes(to, expansion, links)

    def write_output(self, to, port, value):
        try:
            if port.flags & packs.LIST and not isinstance(value, ExecutionBlocker):
                if value is None:
                    value = []
                if not isinstance(value, (list, tuple)):
                    raise Refused(Code.INVALID_ARGUMENT, f"OUTPUT_IS_LIST says that it is a list, it is a {type(value).__name__}")
                return write_value(to, [from_python(item, port.type) for item in value], self)
            write_value(to, from_python(value, port.type), self)
        except Refused as error:
            raise Refused(error.code, f"output {port.name!r}: {error}", error.trail) from error

    def write_new_nodes(self, to, graph, links):
        if not self.node.flags() & packs.EXPANDS:
            raise Refused(Code.UNSUPPORTED, self.node.why_it_expands_not())
        to.pack("I", max(self.graphs, 1))
        to.pack("I", len(graph))
        for id, new in graph.items():
            for text in (str(id), str(new["class_type"]), str(new.get("override_display_id") or "")):
                to.text(text)
            inputs = new.get("inputs", {})
            to.pack("I", len(inputs))
            for name, value in inputs.items():
                to.text(str(name))
                to.pack("B", is_link(value))
                if is_link(value):
                    write_link(to, value)
                else:
                    write_value(to, from_python(value, "*"), self)
        to.pack("I", len(links))
        for output, link in links.items():
            to.pack("I", output)
            write_link(to, link)

    def show(self, ui):
        """Files by their paths, and all of it as it is."""
        import folder_paths
        for items in ui.values():
            for item in items if isinstance(items, (list, tuple)) else ():
                if isinstance(item, dict) and "filename" in item:
                    folder = folder_paths.get_directory_by_type(item.get("type", "output"))
                    path = os.path.join(folder or "", item.get("subfolder", ""), item["filename"])
                    if os.path.isfile(path):
                        self.wrote(path, "")
        lists = {k: list(v) if isinstance(v, (list, tuple)) else [v] for k, v in ui.items()}
        self.wrote("", json.dumps(lists, default=str))


class DynamicPrompt:
    """The nodes of a run, those that came while it was under way as well."""

    def __init__(self, call):
        self.call = call

    def get_node(self, id):
        found = self.call.look_up(id)
        if found is None:
            raise KeyError(f"no node has the id {id!r}")
        return {"class_type": found["class_type"], "inputs": {**found["values"], **found["links"]}}

    def has_node(self, id):
        return self.call.look_up(id) is not None

    def get_display_node_id(self, id):
        return self.call.look_up(id)["display"]

    def get_parent_node_id(self, id):
        return self.call.look_up(id)["parent"] or None

    def get_real_node_id(self, id):
        return self.call.look_up(id)["real"]


def is_link(value):
    return (isinstance(value, (list, tuple)) and len(value) == 2 and isinstance(value[0], str)
            and isinstance(value[1], (int, float)) and not isinstance(value[1], bool))


def write_link(to, link):
    to.text(link[0])
    to.pack("I", int(link[1]))


def run(function, arguments):
    made = function(**arguments)
    return asyncio.run(finish(made)) if inspect.isawaitable(made) else made


async def finish(made):
    return await made


def fingerprint(call):
    """Of what IS_CHANGED tells. One that fails, or tells what equals nothing, is never the same."""
    function = call.node.cls.IS_CHANGED
    try:
        names, _ = packs.takes_any(function)
        wanted = [name for name, p in names.items() if p.default is p.empty]
        told = run(function, call.arguments(wanted))
        if told != told:
            return NEVER
        return int.from_bytes(hashlib.sha256(repr(told).encode()).digest()[:8], "little") % NEVER
    except Exception as error:
        call.warn(f"{function.__name__} failed, so the node runs every time: {type(error).__name__}: {error}")
        return NEVER


def wanted_inputs(call, instance):
    function = getattr(instance, "check_lazy_status", None)
    if function is None:
        return []
    wanted = run(function, call.arguments()) or []
    have = {p.name for p, v in zip(call.node.inputs, call.inputs) if v is not ABSENT_VALUE}
    return [name for name in ([wanted] if isinstance(wanted, str) else wanted) if name not in have]


def validate(call):
    """None, or what is wrong."""
    function = call.node.cls.VALIDATE_INPUTS
    names, others = packs.takes_any(function)
    arguments, received = {}, {}
    for i, port in enumerate(call.node.inputs):
        if port.flags & packs.HIDDEN:
            continue
        body = Writer()
        body.pack("I", i)
        body.text("")
        if others or port.name in names or "input_types" in names:
            value = read_value(Reader(call.ask(Lane.VALIDATION_VALUE, body)), call.memory)
            parameter = names.get(port.name)
            if parameter is None and not others:
                fault = None if value is ABSENT_VALUE else packs.fault_of(port, value)
                if fault is not None:
                    return Refused(Code.INVALID_ARGUMENT, fault)
            elif value is not ABSENT_VALUE:
                value = call.argument(port, value)
                arguments[port.name] = [value] if call.node.takes_lists else value
            elif parameter is not None and parameter.default is parameter.empty:
                arguments[port.name] = [None] if call.node.takes_lists else None
        if "input_types" in names:
            reader = Reader(call.ask(Lane.VALIDATION_RECEIVED, body))
            if reader.unpack("B"):
                received[port.name] = reader.text()
    if "input_types" in names:
        arguments["input_types"] = received
    told = run(function, arguments)
    if told is True:
        return None
    return Refused(Code.INVALID_ARGUMENT, "" if told is False or told is None else str(told))


def failure_of(error, pack, call):
    """What a node has failed with, as the engine tells it."""
    if isinstance(error, Interrupted):
        return Refused(Code.CANCELLED, "cancelled")
    if isinstance(error, Refused):
        return Refused(error.code, f"the pack {pack.name!r}: {error}{pack.where(error)}", error.trail)
    call.log(Level.INFO, "".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip())
    code = Code.INTERNAL
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        code = Code.OUT_OF_MEMORY
    elif isinstance(error, OSError):
        code = Code.IO
    elif isinstance(error, (ValueError, TypeError, LookupError, AssertionError)):
        code = Code.INVALID_ARGUMENT
    name = type(error).__name__ if type(error).__module__ == "builtins" else f"{type(error).__module__}.{type(error).__name__}"
    return Refused(code, f"the pack {pack.name!r}: {name}: {error}{pack.where(error)}")


def answer(worker, channel, flags, reader):
    """Carries out a call and sends its result."""
    kind, type_number, instance_id = reader.unpack("BIQ")
    node = worker.pack.nodes[type_number]
    body, failure = Writer(), None
    asks = kind in (CallKind.INFER, CallKind.VALIDATE)
    call = Call(channel, flags, worker.memory, node)
    try:
        with worker.one_call:  # as ComfyUI has it: nodes may rely on being alone
            call = _thread.call = Call(channel, flags, worker.memory, node, None if asks else reader)
            perform(worker, call, kind, instance_id, body)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a node end nothing but the call
        failure, body = failure_of(error, worker.pack, call), Writer()
    finally:
        _thread.call = None
    content = body.bytes()
    if len(content) > MOST_MESSAGE_BYTES - MOST_RESULT_HEAD:
        failure, content = Refused(Code.UNSUPPORTED, f"the outputs have {len(content)} bytes of texts and lists; at most "
                                                     f"{MOST_MESSAGE_BYTES - MOST_RESULT_HEAD} cross from a worker"), b""
    del call, body
    result = Writer()
    result.status(failure)
    result.text(content)
    worker.memory.write_released(result)
    channel.send(Lane.RESULT, result.bytes())


def perform(worker, call, kind, instance_id, body):
    if kind == CallKind.VALIDATE:
        body.status(validate(call))
    elif kind == CallKind.FINGERPRINT:
        body.pack("Q", fingerprint(call))
    else:
        instance = worker.instance(instance_id, call.node)
        if kind == CallKind.NEED:
            names = wanted_inputs(call, instance)
            body.pack("I", len(names))
            for name in names:
                body.text(str(name))
        else:
            arguments = call.arguments()
            call.inputs, call.extras = [], {}  # what the node lets go is gone
            call.write_result(run(getattr(instance, call.node.function), arguments), body)
