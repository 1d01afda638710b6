"""Tensors on their way: PyTorch's where it is installed, else NumPy's."""

import ctypes
import importlib.util
import math
import sys

from . import memory
from .wire import Code, LEAST_SHARED, Lane, Reader, Refused, Writer

# heddle_dtype -> name in both libraries, bytes
TYPES = {1: ("float32", 4), 2: ("float16", 2), 3: ("bfloat16", 2), 4: ("int32", 4), 5: ("int64", 8), 6: ("uint8", 1),
         7: ("int8", 1), 8: ("float8_e4m3fn", 1), 9: ("float8_e5m2", 1), 10: ("float64", 8), 11: ("bool", 1), 12: ("int16", 2),
         13: ("uint16", 2), 14: ("uint32", 4), 15: ("uint64", 8)}
CODES = {name: code for code, (name, _) in TYPES.items()}
MESSAGE, SHARED, ENGINE = range(3)  # TensorPlace

_library = None


def library():
    """torch or numpy; whichever it is, it is imported when the first tensor is there."""
    global _library
    if _library is None:
        for name in ("torch", "numpy"):
            if importlib.util.find_spec(name) is not None:
                _library = importlib.import_module(name)
                break
        else:
            raise Refused(Code.UNSUPPORTED, "a node in Python is given a tensor, and its Python has neither torch nor numpy. "
                                            "Install one there, or choose another Python by --python")
    return _library


def tensor_type():
    lib = library()
    return lib.Tensor if lib.__name__ == "torch" else lib.ndarray


def is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_tensor(value):
    numpy = sys.modules.get("numpy")
    return is_torch(value) or (numpy is not None and isinstance(value, numpy.ndarray))


def as_float(value):
    return value if "float32" in str(value.dtype) else value.float() if is_torch(value) else value.astype("float32")


def joined(parts, axis):
    return library().cat(parts, axis) if is_torch(parts[0]) else library().concatenate(parts, axis)


def read_info(reader):
    code, rank, layout = reader.unpack("iII")
    dims = [reader.unpack("qq") for _ in range(rank)]
    return code, layout, [d[0] for d in dims], [d[1] for d in dims]


def write_info(to, code, shape):
    to.pack("iII", code, len(shape), 0)
    stride = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        stride[i] = stride[i + 1] * shape[i + 1]
    for size, step in zip(shape, stride):
        to.pack("qq", size, step)


def _over(buffer, offset, code, shape, stride):
    """The tensor over writable bytes. NumPy has no bfloat16 nor 8-bit floats: they come as float32."""
    if code not in TYPES:
        raise Refused(Code.UNSUPPORTED, f"a tensor of the type {code} (quantised) cannot be given to a node in Python")
    name, size = TYPES[code]
    lib = library()
    if lib.__name__ != "torch" or min(stride, default=0) < 0:  # torch has no negative strides
        array = _over_numpy(buffer, offset, name, size, shape, stride)
        return array if lib.__name__ != "torch" else lib.from_numpy(array.copy())
    dtype = getattr(lib, name)
    if 0 in shape:
        return lib.empty(shape, dtype=dtype)
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride))
    return lib.frombuffer(buffer, dtype=dtype, count=reach, offset=offset).as_strided(shape, stride)


def _over_numpy(buffer, offset, name, size, shape, stride):
    import numpy as np
    if name == "bfloat16":
        bits = np.ndarray(shape, np.uint16, buffer, offset, [s * 2 for s in stride])
        return (bits.astype(np.uint32) << 16).view(np.float32)
    if name.startswith("float8"):
        raise Refused(Code.UNSUPPORTED, f"NumPy has no {name}: install torch in the Python of the nodes")
    return np.ndarray(shape, np.dtype(name), buffer, offset, [s * size for s in stride])


def read_tensor(reader, of):
    place = reader.unpack("B")
    begin = reader.at
    code, _, shape, stride = read_info(reader)
    info = bytes(reader.data[begin:reader.at])
    if place == ENGINE:
        return memory.LentTensor(of, reader.unpack("Q"), info)
    if place == SHARED:
        id, offset = reader.unpack("QQ")
        return _over(of.to_read(id), offset, code, shape, stride)
    return _over(bytearray(reader.take(reader.unpack("Q"))), 0, code, shape, stride)


def write_tensor(to, value, call):
    """Into the message, or into memory that the engine makes and counts."""
    if is_torch(value):
        value = value.detach()
        if value.layout is not library().strided:
            value = value.to_dense()
        value = value.cpu()
        name = str(value.dtype)[len("torch."):]
    else:
        name = str(value.dtype)
    if name not in CODES:
        raise Refused(Code.UNSUPPORTED, f"a tensor of the type {name} cannot leave a node in Python; convert it to float32")
    code, shape = CODES[name], list(value.shape)
    if len(shape) > 8:
        raise Refused(Code.UNSUPPORTED, f"a tensor of {len(shape)} axes cannot leave a node in Python; at most 8 can")
    size = math.prod(shape) * TYPES[code][1]
    if size < LEAST_SHARED or call is None:
        to.pack("B", MESSAGE)
        write_info(to, code, shape)
        return to.text(_bytes_of(value))
    ask = Writer()
    ask.pack("Q", size)
    ask.text(f"{name} [{', '.join(map(str, shape))}] of a node in Python")
    id = Reader(call.ask(Lane.MAKE_HOST, ask)).unpack("Q")
    data = _elements_of(value, size)
    if data is None or not call.memory.write_first(id, data):
        _copy_to(call.memory.to_write(id), value, shape)
    call.memory.let_go(call.memory.released_memory, id, 1)
    to.pack("B", SHARED)
    write_info(to, code, shape)
    to.pack("QQ", id, 0)


def _elements_of(value, size):
    """The tensor's memory, where its elements lie in it row by row; None: they do not."""
    if not is_torch(value):
        return value.reshape(-1).view("uint8") if value.flags.c_contiguous else None
    if not value.is_contiguous() or value.is_neg():
        return None
    return (ctypes.c_char * size).from_address(value.data_ptr())


def _copy_to(shared, value, shape):
    if is_torch(value):
        library().frombuffer(shared, dtype=value.dtype, count=math.prod(shape)).view(shape).copy_(value)
    else:
        import numpy as np
        np.copyto(np.ndarray(shape, value.dtype, shared), value)


def _bytes_of(value):
    if not is_torch(value):
        return value.tobytes()
    if value.numel() == 0:
        return b""
    value = value.contiguous().reshape(-1).view(library().uint8)
    return value.numpy().tobytes() if importlib.util.find_spec("numpy") is not None else bytes(value.tolist())
