"""Devices and memory, as nodes in Python have them here: the host's alone. Models are the engine's affair."""

import enum

from heddle_nodes import calls

InterruptProcessingException = calls.Interrupted
OOM_EXCEPTION = MemoryError


class VRAMState(enum.Enum):
    DISABLED, NO_VRAM, LOW_VRAM, NORMAL_VRAM, HIGH_VRAM, SHARED = range(6)


class CPUState(enum.Enum):
    GPU, CPU, MPS = range(3)


vram_state, cpu_state = VRAMState.DISABLED, CPUState.CPU


def throw_exception_if_processing_interrupted():
    call = calls.current()
    if call is not None:
        call.stop_if_cancelled()


def processing_interrupted():
    call = calls.current()
    return call is not None and call.is_cancelled()


def interrupt_current_processing(value=True):
    """A run is cancelled by whoever has started it: a node can only stop itself."""
    if value and calls.current() is not None:
        raise InterruptProcessingException()


def _host():
    import torch
    return torch.device("cpu")


def get_torch_device():
    return _host()


get_torch_device.__doc__ = "The host: a node in Python has no other device."
intermediate_device = unet_offload_device = text_encoder_device = text_encoder_offload_device = get_torch_device
vae_device = vae_offload_device = get_torch_device


def unet_dtype(*_, **__):
    import torch
    return torch.float32


vae_dtype = text_encoder_dtype = unet_dtype


def is_device_cpu(device):
    return getattr(device, "type", str(device)) == "cpu"


def is_device_cuda(device):
    return getattr(device, "type", str(device)).startswith("cuda")


def is_device_mps(device):
    return getattr(device, "type", str(device)) == "mps"


def cpu_mode():
    return True


def mps_mode():
    return False


def is_nvidia():
    return False


def is_intel_xpu():
    return False


def should_use_fp16(*_, **__):
    return False


should_use_bf16 = should_use_fp16


def _available():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))


def get_free_memory(dev=None, torch_free_too=False):
    free = _available()
    return (free, free) if torch_free_too else free


def get_total_memory(dev=None, torch_total_too=False):
    import os
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (total, total) if torch_total_too else total


def soft_empty_cache(force=False):
    import gc
    gc.collect()


def unload_all_models():
    """Nothing: nodes in Python hold no models of the engine's."""


cleanup_models = free_memory = load_models_gpu = lambda *_, **__: None
