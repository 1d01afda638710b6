"""What a worker has of the engine's, and the engine of its: engine/isolate/worker_memory.h in Python.

Memory that the engine has sent is mapped privately: a node that writes into a tensor that it was given changes its own
copy and nobody else's."""

import errno
import mmap
import os
import threading

from .wire import Code, Refused


def cannot_map(size, error):
    code = Code.IO if getattr(error, "errno", None) in (errno.EMFILE, errno.EBADF) else Code.OUT_OF_MEMORY
    return Refused(code, f"{size} bytes of memory that is shared with the engine cannot be mapped: {error}. Give its processes more memory "
                         f"(--isolate-memory) or more open files (ulimit -n)")


def populate(mapping):
    """All pages at once: one by one, as they are touched, takes several times as long. Older kernels do not know it."""
    try:
        mapping.madvise(23)  # MADV_POPULATE_WRITE
    except (OSError, ValueError):
        pass


class Mapping(mmap.mmap):
    """A tensor's memory. The engine is told when the last tensor over it has gone."""

    memory, id = None, 0

    def __del__(self):
        if self.memory is None:
            return  # it could not be mapped
        self.memory.let_go(self.memory.released_memory, self.id, 1)


class Lent:
    """A value that stays in the engine: a model, or another's object. It can be passed on."""

    def __init__(self, memory, id):
        self.memory, self.id = memory, id

    def __del__(self):
        self.memory.let_go(self.memory.released_handles, self.id, 1)

    def __repr__(self):
        return "<a value of heddle's engine>"


class LentTensor(Lent):
    """A tensor whose elements stay in the engine. `info`: its description, as bytes of a message."""

    def __init__(self, memory, id, info):
        super().__init__(memory, id)
        self.info = info

    def __repr__(self):
        return "<a tensor of heddle's engine>"


class Memory:
    def __init__(self):
        self.lock = threading.RLock()  # a tensor may go at any time, also within
        self.has_mapped = threading.Condition(self.lock)
        self.mapped = {}     # id -> [descriptor, bytes, mapping to write, None, or why there is none]
        self.written = set()  # ids of memory that has been written once, and has its pages
        self.released_memory, self.released_handles = {}, {}  # id -> count
        self.objects = {}    # id -> [object, count]
        self.ids = {}        # id() of an object -> its id
        self.last_object = 0

    # As the control channel tells.

    def map(self, id, descriptor, size, is_writable):
        # The system may have had no number for it: whoever asks for it is told.
        shared = OSError(errno.EMFILE, os.strerror(errno.EMFILE)) if descriptor < 0 else None
        with self.lock:
            self.mapped[id] = [descriptor, size, shared]
            self.has_mapped.notify_all()

    def forget(self, id):
        with self.lock:
            gone = self.mapped.pop(id, None)
            self.written.discard(id)
        if gone is not None and gone[0] >= 0:
            os.close(gone[0])

    def drop_object(self, id, count):
        with self.lock:
            kept = self.objects.get(id)
            if kept is None:
                return
            kept[1] -= count
            if kept[1] > 0:
                return
            del self.objects[id], self.ids[builtin_id(kept[0])]
        del kept  # its end may run code of the pack, after the lock

    def wait_for(self, id):
        with self.lock:
            self.has_mapped.wait_for(lambda: id in self.mapped)
            return self.mapped[id]

    def to_read(self, id):
        """A private mapping of memory that has been received once."""
        descriptor, size, shared = self.wait_for(id)
        if isinstance(shared, Exception):
            raise cannot_map(size, shared)
        try:
            mapping = Mapping(descriptor, size, access=mmap.ACCESS_COPY)
        except (OSError, ValueError, MemoryError) as error:
            raise cannot_map(size, error) from error
        mapping.memory, mapping.id = self, id
        return mapping

    def to_write(self, id):
        """The mapping of memory that this worker may write into."""
        entry = self.wait_for(id)
        descriptor, size, shared = entry
        if shared is None:
            try:
                shared = mmap.mmap(descriptor, size)
            except (OSError, ValueError, MemoryError) as error:
                shared = error
            else:
                populate(shared)
            entry[2] = shared
        if isinstance(shared, Exception):
            raise cannot_map(size, shared)
        self.written.add(id)
        return shared

    def write_first(self, id, data):
        """Writes these bytes into memory that nobody has written yet; False: somebody has. Its pages are made with the bytes in them,
        and neither cleared nor mapped before."""
        descriptor, size, shared = self.wait_for(id)
        if isinstance(shared, Exception):
            raise cannot_map(size, shared)
        if id in self.written:
            return False
        self.written.add(id)
        try:
            at, data = 0, memoryview(data).cast("B")
            while at < len(data):
                at += os.pwrite(descriptor, data[at:], at)
        except OSError as error:
            raise cannot_map(size, error) from error
        return True

    def let_go(self, counts, id, count):
        with self.lock:
            counts[id] = counts.get(id, 0) + count

    def keep(self, value):
        """The id of an object that the engine gets a handle of."""
        with self.lock:
            known = self.ids.get(builtin_id(value))
            if known is None:
                self.last_object += 1
                known = self.ids[builtin_id(value)] = self.last_object
                self.objects[known] = [value, 0]
            self.objects[known][1] += 1
            return known

    def object(self, id):
        with self.lock:
            return self.objects[id][0]

    def write_released(self, to):
        with self.lock:
            memory, self.released_memory = self.released_memory, {}
            handles, self.released_handles = self.released_handles, {}
        for counts in (memory, handles):
            to.pack("I", len(counts))
            for id, count in counts.items():
                to.pack("QQ", id, count)


builtin_id = id
