"""What pip calls to build the wheel: scikit-build-core, and behind it the wheel's platform tag.

A wheel that brings every library it needs but glibc and the C++ runtime runs on each system whose glibc is not older than the one
here: that is what manylinux_MAJOR_MINOR says (PEP 600). One that needs others, such as of a prefix of `cmake --install`, keeps the tag
"linux", which package indexes refuse."""

import base64
import hashlib
import os
import platform
import struct
import zipfile

from scikit_build_core import build as scikit
from scikit_build_core.build import *  # noqa: F401, F403

# Of every system with glibc; the C++ runtime is the process's own (bundle.cmake).
OF_THE_SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "ld-linux-x86-64.so.2",
                 "ld-linux-aarch64.so.1", "libstdc++.so.6", "libgcc_s.so.1"}


def names_in(elf):
    """(soname or None, names of the libraries that it needs) of a 64-bit little-endian file."""
    soname, needed = None, []
    sections_at, = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQII", elf, sections_at + i * size) for i in range(count)]
    for _, kind, _, _, at, length, link, _ in sections:
        if kind != 6:  # SHT_DYNAMIC
            continue
        texts = sections[link][4]
        for entry in range(at, at + length, 16):
            tag, value = struct.unpack_from("<qQ", elf, entry)
            text = bytes(elf[texts + value:elf.index(b"\0", texts + value)]).decode() if tag in (1, 14) else ""
            if tag == 1:  # DT_NEEDED
                needed.append(text)
            elif tag == 14:  # DT_SONAME
                soname = text
    return soname, needed


def needs_outside(wheel):
    """Names of libraries that files of the wheel need and neither it nor every system has."""
    has, needs = set(OF_THE_SYSTEM), set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                if file.read(6) != b"\x7fELF\x02\x01":
                    continue
            soname, needed = names_in(archive.read(name))
            has.add(soname or os.path.basename(name))
            needs.update(needed)
    return needs - has


def platform_tag():
    """None where there is no glibc."""
    try:
        name, version = os.confstr("CS_GNU_LIBC_VERSION").split()
    except (AttributeError, OSError, ValueError):
        return None
    major, minor = version.split(".")[:2]
    return f"manylinux_{major}_{minor}_{platform.machine()}" if name == "glibc" else None


def tagged(folder, name):
    """Gives the wheel the tag that is true of it; its new name."""
    path, tag = os.path.join(folder, name), platform_tag()
    interpreter, old = name[:-len(".whl")].rsplit("-", 1)
    outside = needs_outside(path)
    if tag is None or not old.startswith("linux_") or outside:
        print(f"heddle: the wheel is for this system ({old}): it needs {', '.join(sorted(outside)) or 'no glibc'}")
        return name
    replace_tag(path, old, tag)
    made = f"{interpreter}-{tag}.whl"
    os.replace(path, os.path.join(folder, made))
    return made


def replace_tag(path, old, tag):
    """In WHEEL, and WHEEL's checksum in RECORD. A new archive: indexes refuse one with entries that its list does not name."""
    made = path + ".new"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        wheel, record = (next(n for n in archive.namelist() if n.endswith(f".dist-info/{file}")) for file in ("WHEEL", "RECORD"))
        told = archive.read(wheel).decode().replace(f"-{old}\n", f"-{tag}\n").encode()
        digest = base64.urlsafe_b64encode(hashlib.sha256(told).digest()).rstrip(b"=").decode()
        lines = [f"{wheel},sha256={digest},{len(told)}" if line.startswith(wheel + ",") else line
                 for line in archive.read(record).decode().splitlines()]
        anew = {wheel: told, record: ("\n".join(lines) + "\n").encode()}
        for info in archive.infolist():
            content = anew.get(info.filename)
            copy = zipfile.ZipInfo(info.filename, info.date_time)
            copy.compress_type, copy.external_attr = info.compress_type, info.external_attr
            out.writestr(copy, archive.read(info) if content is None else content)
    os.replace(made, path)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return tagged(wheel_directory, scikit.build_wheel(wheel_directory, config_settings, metadata_directory))
