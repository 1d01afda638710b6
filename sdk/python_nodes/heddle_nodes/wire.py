"""Messages between the engine and a worker: engine/isolate/{bytes,channel,protocol}.h in Python."""

import enum
import os
import socket
import struct
import threading

MOST_MESSAGE_BYTES = 256 << 20  # kMostMessageBytes
MOST_RESULT_HEAD = 16 << 20     # of a result, what is not its outputs
LEAST_SHARED = 16 << 10         # kLeastShared: less goes in the message


class Control(enum.IntEnum):
    DESCRIBED, LANE, FLAGS, MAP, FORGET, DROP, MAP_DEVICE = range(7)


class Lane(enum.IntEnum):
    (CALL, ANSWER, RESULT, DEFERRED, PROGRESS, WARN, WROTE, PREVIEW, PICTURE, HEARD_CANCELLED, DO_NOT_CACHE, LOG, ADD_COST,
     HOST_SCRATCH, MAKE_HOST, MAKE_DEVICE, FIND_FILE, FOLDER_PLACES, OUTPUT_FOLDER, IDENTIFY_FILE, SAVED_STATE, AT_BOUNDARY, SAVE_STATE,
     LOOK_UP, RUN_OP, INFER_PART, INFER_IN, INFER_OUT, INFER_KNOWN, INFER_SHARES, VALIDATION_VALUE, VALIDATION_RECEIVED,
     VALIDATION_HAS_FILE) = range(33)


class CallKind(enum.IntEnum):
    EXECUTE, NEED, FINGERPRINT, INFER, VALIDATE = range(5)


class Code(enum.IntEnum):
    """heddle_code"""
    INVALID_ARGUMENT, NOT_FOUND, UNSUPPORTED, OUT_OF_MEMORY, CANCELLED, IO, INTERNAL = range(1, 8)


class Level(enum.IntEnum):
    DEBUG, INFO, WARN, ERROR = range(4)


class Refused(Exception):
    """A failure with the engine's code; `trail`: where, the outermost first."""

    def __init__(self, code, text, trail=()):
        super().__init__(text)
        self.code, self.trail = Code(code), list(trail)


class Writer:
    def __init__(self):
        self.parts = []

    def pack(self, form, *values):
        self.parts.append(struct.pack("=" + form, *values))

    def text(self, value):
        data = value
        if isinstance(value, str):
            try:
                data = value.encode("utf-8", "surrogateescape")
            except UnicodeEncodeError:  # half of a pair of surrogates
                data = value.encode("utf-8", "backslashreplace")
        self.parts.append(struct.pack("=Q", len(data)))
        self.parts.append(data)

    def maybe_text(self, value):
        self.pack("B", value is not None)
        if value is not None:
            self.text(value)

    def status(self, failure):
        self.pack("B", failure is not None)
        if failure is None:
            return
        self.pack("i", failure.code)
        self.text(str(failure))
        self.pack("I", len(failure.trail))
        for frame in failure.trail:
            self.text(frame)

    def bytes(self):
        return b"".join(self.parts)


class Reader:
    def __init__(self, data):
        self.data, self.at = memoryview(data), 0

    def unpack(self, form):
        values = struct.unpack_from("=" + form, self.data, self.at)
        self.at += struct.calcsize("=" + form)
        return values[0] if len(values) == 1 else values

    def take(self, count):
        taken = self.data[self.at:self.at + count]
        self.at += count
        return taken

    def text(self):
        return str(self.take(self.unpack("Q")), "utf-8", "surrogateescape")

    def failure(self):
        """Raises what an answer failed with."""
        if not self.unpack("B"):
            return
        code, text = self.unpack("i"), self.text()
        raise Refused(code, text, [self.text() for _ in range(self.unpack("I"))])


def end_without_engine():
    os._exit(0)


class Channel:
    """One end of a stream socket. Any thread sends; one at a time receives."""
    HEADER = struct.Struct("=IIQ")

    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)
        self.sending = threading.Lock()

    def send(self, kind, body=b""):
        if len(body) > MOST_MESSAGE_BYTES:
            raise Refused(Code.UNSUPPORTED, f"a message of {len(body)} bytes is too large for the engine; at most "
                                            f"{MOST_MESSAGE_BYTES} bytes of texts and numbers cross at once")
        try:
            with self.sending:
                self.socket.sendall(self.HEADER.pack(kind, 0, len(body)) + body)
        except (BrokenPipeError, ConnectionResetError):
            end_without_engine()

    def receive(self):
        """(kind, body, descriptor or -1); None when the other end has gone."""
        try:
            head, extra, _, _ = self.socket.recvmsg(self.HEADER.size, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            if not head:
                return None
            descriptor = -1
            for level, kind, data in extra:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptor, = struct.unpack("=i", data[:4])
            while len(head) < self.HEADER.size:
                head += self.more(self.HEADER.size - len(head))
            kind, _, count = self.HEADER.unpack(head)
            body = bytearray(count)
            view = memoryview(body)
            while view:
                got = self.socket.recv_into(view)
                if got == 0:
                    return None
                view = view[got:]
            return kind, body, descriptor
        except (ConnectionResetError, EOFError):
            return None

    def more(self, count):
        data = self.socket.recv(count)
        if not data:
            raise EOFError
        return data
