#!/usr/bin/env python3
"""What an engine takes of a GPU: when it is opened, when it has worked, when it has drained it.

    tests/bench/idle_card.py LIBHEDDLE PLUGINS GRAPH MODELS

Memory is what NVML says of the whole card, in bytes, so nothing else may use it meanwhile. Opened and planned for, a card holds less
than 1 MiB of ours. From the first work on the process has initialised the driver, which by itself takes some of every card until the
process ends: what a program takes that calls cuInit and nothing else is measured first. Beyond that, a drained card and one that gets
no work hold less than 1 MiB, too. Each check says PASS or FAIL in a line of its own; the exit status is the number of those that failed.
"""
import ctypes
import json
import subprocess
import sys
import time

MIB = 1 << 20
failed = 0


def check(name, holds, text):
    global failed
    failed += not holds
    print(f"{'PASS' if holds else 'FAIL'} {name}: {text}", flush=True)


class Option(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class EngineOptions(ctypes.Structure):  # the beginning of heddle_engine_options; the rest is zero
    _fields_ = [("size", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("default_plugin_dir", ctypes.c_char_p),
                ("input_dir", ctypes.c_char_p), ("output_dir", ctypes.c_char_p), ("costs", ctypes.c_char_p),
                ("plugin_dirs", ctypes.POINTER(ctypes.c_char_p)), ("plugin_dir_count", ctypes.c_size_t),
                ("model_dirs", ctypes.POINTER(ctypes.c_char_p)), ("model_dir_count", ctypes.c_size_t),
                ("devices", ctypes.POINTER(ctypes.c_char_p)), ("device_count", ctypes.c_size_t)]


def texts(*values):
    return (ctypes.c_char_p * len(values))(*[v.encode() for v in values]), len(values)


class Nvml:
    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlInit_v2()

    def used_by_uuid(self):
        count, used = ctypes.c_uint(), {}
        assert self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
        for i in range(count.value):
            handle, uuid = ctypes.c_void_p(), ctypes.create_string_buffer(96)
            assert self.library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) == 0
            assert self.library.nvmlDeviceGetUUID(handle, uuid, 96) == 0
            used[uuid.value.decode()] = self.used(uuid.value.decode())
        return used

    def used(self, uuid):
        handle, memory = ctypes.c_void_p(), self.Memory()
        assert self.library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0, uuid
        assert self.library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == 0, uuid
        return memory.used


def driver_bytes(nvml, before):
    """By UUID: what a program takes of each card that initialises the driver."""
    program = "import ctypes, sys; assert ctypes.CDLL('libcuda.so.1').cuInit(0) == 0; print('done', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "done\n"
    time.sleep(0.5)
    taken = {uuid: nvml.used(uuid) - used for uuid, used in before.items()}
    child.communicate()
    time.sleep(0.5)
    return taken


class Engine:
    def __init__(self, library, plugins, models, devices):
        self.library = ctypes.CDLL(library)
        self.library.heddle_text_free.argtypes = [ctypes.c_void_p]
        self.keep = [texts(models), texts(*devices)]
        options = EngineOptions(size=ctypes.sizeof(EngineOptions), default_plugin_dir=plugins.encode(), output_dir=b"/tmp/idle_card")
        options.model_dirs, options.model_dir_count = self.keep[0]
        options.devices, options.device_count = self.keep[1]
        self.handle = ctypes.c_void_p()
        self.call("heddle_engine_make", ctypes.byref(options), ctypes.byref(self.handle))

    def call(self, name, *arguments):
        error = ctypes.c_void_p()
        code = getattr(self.library, name)(*arguments, ctypes.byref(error))
        if code not in (0, 100):
            raise RuntimeError(f"{name}: {ctypes.string_at(error.value).decode() if error.value else code}")
        return code

    def text(self, name, *arguments):
        out = ctypes.c_void_p()
        self.call(name, self.handle, *arguments, ctypes.byref(out))
        value = ctypes.string_at(out.value).decode()
        self.library.heddle_text_free(out)
        return value

    def devices(self):
        return json.loads(self.text("heddle_engine_devices"))

    def load(self, path):
        flow = ctypes.c_void_p()
        self.call("heddle_engine_load", self.handle, path.encode(), ctypes.byref(flow))
        return flow

    def set(self, flow, name, value):
        self.call("heddle_workflow_set", flow, name.encode(), value.encode())

    def place(self, flow, node, device):
        self.call("heddle_workflow_place", flow, node.encode(), device.encode())

    def plan(self, flow):
        return self.text("heddle_engine_plan", flow, None, 0)

    def run(self, flow):
        run = ctypes.c_void_p()
        self.call("heddle_engine_start", self.handle, flow, None, ctypes.byref(run))
        self.call("heddle_run_wait", run, ctypes.c_int64(-1), None)
        self.library.heddle_run_free(run)


def main():
    library, plugins, graph, models = sys.argv[1:5]
    nvml = Nvml()
    before = nvml.used_by_uuid()
    of_driver = driver_bytes(nvml, before)
    print("a program that calls cuInit alone takes", *of_driver.values(), "bytes of the cards")
    engine = Engine(library, plugins, models, ["cuda"])
    cards = engine.devices()
    for card in cards:
        print(card["id"], card["name"], card["uuid"], card["pci_address"], card["architecture"], *card["fallbacks"], sep=" | ")

    def growth(card):
        return nvml.used(card["uuid"]) - before[card["uuid"]]

    def check_beyond_driver(name, card, when):
        beyond = growth(card) - of_driver[card["uuid"]]
        check(f"{name}_{card['id']}", beyond < MIB, f"{growth(card)} bytes more on {card['id']} {when}, {beyond} beyond the driver's own")

    time.sleep(0.5)
    for card in cards:
        check(f"opened_{card['id']}", growth(card) < MIB, f"{growth(card)} bytes more on the card than without an engine")
    flow = engine.load(graph)
    engine.plan(flow)
    time.sleep(0.5)
    for card in cards:
        check(f"planned_{card['id']}", growth(card) < MIB, f"{growth(card)} bytes more on the card when a run was planned")
    check("no_context", not any(card["has_context"] for card in engine.devices()), "the engine says that no card has a context")
    first = cards[0]
    for node in ("prompt", "negative prompt", "sampler", "decode"):
        engine.place(flow, node, first["id"])
    engine.run(flow)
    worked = growth(first)
    check("worked", worked > 50 * MIB, f"{worked / MIB:.1f} MiB more on {first['id']} after a run there: its context")
    for card in cards[1:]:
        check_beyond_driver("beside", card, "while the other one has worked")
    code = engine.call("heddle_engine_drain", engine.handle, first["uuid"].encode(), ctypes.c_int64(60000))
    time.sleep(0.5)
    state = [card["service"] for card in engine.devices() if card["id"] == first["id"]][0]
    check("drained", code == 0 and state == "drained", f"{first['uuid']} is {state}")
    check_beyond_driver("given_back", first, "after it was drained")
    engine.call("heddle_engine_enable", engine.handle, first["pci_address"].encode())
    engine.set(flow, "sampler.seed", "7")
    engine.run(flow)
    check("used_again", growth(first) > 50 * MIB, f"{growth(first) / MIB:.1f} MiB more after a run on {first['pci_address']} again")
    sys.exit(failed)


main()
