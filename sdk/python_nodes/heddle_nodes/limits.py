"""What a worker may do: engine/isolate/worker_limits.cpp in Python."""

import ctypes
import os
import platform
import resource
import signal
import struct

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
# audit architecture; numbers of execve, execveat, ptrace, io_uring_setup; of socket
MACHINES = {"x86_64": (0xC000003E, (59, 322, 101, 425), 41), "aarch64": (0xC00000B7, (221, 281, 117, 425), 198)}


def _call(libc, *arguments):
    if libc.prctl(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the sandbox of a worker: {os.strerror(number)}")


def forbid_network_and_programs(libc):
    """No other program, and no socket but those between processes of this machine."""
    if platform.machine() not in MACHINES:
        raise OSError("the sandbox of workers knows x86-64 and ARM64 only")
    arch, calls, socket_call = MACHINES[platform.machine()]
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    refused, allowed = 0x00050000 | 1, 0x7FFF0000
    # (code, jump if true, jump if false, constant)
    rules = [(load, 0, 0, 4), (equal, 1, 0, arch), (give, 0, 0, refused), (load, 0, 0, 0)]
    if platform.machine() == "x86_64":  # numbers of the x32 interface mean other calls
        rules += [(at_least, 0, 1, 0x40000000), (give, 0, 0, refused)]
    for number in calls:
        rules += [(equal, 0, 1, number), (give, 0, 0, refused)]
    rules += [(equal, 0, 4, socket_call), (load, 0, 0, 16), (equal, 0, 1, 1), (give, 0, 0, allowed), (give, 0, 0, refused),
              (give, 0, 0, allowed)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(text)))
    _call(libc, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call(libc, PR_SET_SECCOMP, 2, program, 0, 0)


def enter(engine):
    """Ends with the engine's thread that started it, keeps no descriptor but the control channel's and the standard ones."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != engine:
        os._exit(0)  # it has gone meanwhile
    os.closerange(4, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # a list of pictures takes two for each
    # Less than any dump; for 0 the kernel still starts a program that core_pattern names (core(5)).
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
        resource.setrlimit(resource.RLIMIT_CORE, (1, 1))
    try:
        os.dup2(2, 1)  # what a pack prints is no output of the engine's
    except OSError:  # the engine has closed it
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)


def limit(memory_bytes, sandbox):
    """Raises OSError for what the system refuses: nothing runs without them."""
    if sandbox:
        forbid_network_and_programs(ctypes.CDLL(None, use_errno=True))
    if memory_bytes > 0:
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        most = pages * resource.getpagesize() + memory_bytes
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        if most < 2**63 - 1:  # beyond there is no limit that a system has
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
