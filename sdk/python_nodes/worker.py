"""Runs the nodes of one pack of Python nodes for heddle, which starts it. It says what heddle_worker says
(engine/isolate), needs Python 3.9 or later and nothing that is not in its standard library."""

import json
import mmap
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[0] = os.path.join(HERE, "modules")
sys.path.append(HERE)
sys.dont_write_bytecode = True  # of our own: an installed heddle stays as it is

from heddle_nodes import calls, limits  # noqa: E402
from heddle_nodes.memory import Memory  # noqa: E402
from heddle_nodes.pack import Pack  # noqa: E402
from heddle_nodes.wire import Channel, Code, Control, Reader, Refused, Writer  # noqa: E402

import comfy.comfy_types  # noqa: E402, F401
import comfy.model_management  # noqa: E402, F401
import comfy.utils  # noqa: E402, F401
import comfy_api.latest  # noqa: E402, F401
import comfy_execution.graph  # noqa: E402, F401
import comfy_execution.graph_utils  # noqa: E402, F401
import folder_paths  # noqa: E402
import node_helpers  # noqa: E402, F401
import nodes  # noqa: E402, F401
import server  # noqa: E402, F401

sys.dont_write_bytecode = False
CONTROL_DESCRIPTOR = 3


class Worker:
    def __init__(self, file, memory_bytes, sandbox):
        self.limits = memory_bytes, sandbox
        self.control = Channel(CONTROL_DESCRIPTOR)
        self.memory = Memory()
        self.pack = Pack(file)
        self.one_call = threading.RLock()
        self.instances = {}
        self.waiting_socket = -1

    def instance(self, id, node):
        found = self.instances.get(id)
        if found is None:
            found = self.instances[id] = node.cls()
        return found

    def describe(self):
        body, failure = Writer(), None
        try:
            try:
                limits.limit(*self.limits)
            except (OSError, ValueError) as error:
                raise Refused(Code.IO, f"{self.pack.file}: the limits of a worker: {error}") from error
            self.pack.load()
            description = Writer()
            version = int.from_bytes(self.pack.digest[:4], "little")
            description.text("python." + self.pack.name)
            description.text(self.pack.digest.hex()[:12])
            description.pack("I", len(self.pack.nodes))
            for node in self.pack.nodes:
                node.write(description, version)
        except Refused as error:
            failure = error
        except Exception as error:
            failure = Refused(Code.UNSUPPORTED, self.pack.why_not_loaded(error))
        body.status(failure)
        if failure is None:
            body.parts += description.parts
        for warning in self.pack.warnings:
            print("heddle: warning:", warning, file=sys.stderr, flush=True)
        self.control.send(Control.DESCRIBED, body.bytes())

    def serve(self, socket, flags):
        channel = Channel(socket)
        while True:
            message = channel.receive()
            if message is None:
                return
            calls.answer(self, channel, flags, Reader(message[1]))
            del message

    def run(self):
        self.describe()
        while True:
            message = self.control.receive()
            if message is None:
                os._exit(0)
            kind, body, descriptor = message
            reader = Reader(body)
            if kind == Control.LANE:
                self.waiting_socket = descriptor
            elif kind == Control.FLAGS:
                flags = memoryview(mmap.mmap(descriptor, 4, access=mmap.ACCESS_READ)).cast("I")
                os.close(descriptor)
                threading.Thread(target=self.serve, args=(self.waiting_socket, flags), daemon=True).start()
            elif kind == Control.MAP:
                id, size, is_writable = reader.unpack("QQB")
                self.memory.map(id, descriptor, size, bool(is_writable))
            elif kind == Control.FORGET:
                self.memory.forget(reader.unpack("Q"))
            elif kind == Control.DROP:
                self.drop(*reader.unpack("BQQ"))

    def drop(self, kind, id, count):
        if kind == 0:
            self.memory.drop_object(id, count)
        else:
            self.instances.pop(id, None)


def main():
    if sys.version_info < (3, 9):
        sys.exit(f"heddle: nodes in Python need Python 3.9 or later; {sys.executable} is {sys.version.split()[0]}")
    if len(sys.argv) != 7:
        sys.exit("worker.py is started by heddle itself, to run a pack of nodes in Python")
    file, _, memory_bytes, sandbox, engine, folders = sys.argv[1:]
    limits.enter(int(engine))
    folder_paths._set_places(json.loads(folders))
    sys.argv = [file]
    Worker(file, int(memory_bytes), sandbox == "1").run()


if __name__ == "__main__":
    main()
