"""pip's way to a build (PEP 517): runs meson and ninja, and zips a wheel.

The wheel has the package, libnrg and its recorder beside it, and the program in nrg/bin, so that an
environment gets all of nrg with one command; `nrg` in its bin folder is `python -m nrg`. Needs what
`make` needs, and Python's headers. Nothing is downloaded. The extension uses the limited API, so the wheel fits every
CPython from 3.8 on, on machines like the one where it was made.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NEEDS = "(Debian packages: gcc meson ninja-build pkg-config libsqlite3-dev libzstd-dev libjansson-dev zlib1g-dev python3-dev)"


def _tool(name):
    """Debian's own first: one from elsewhere may be of another age."""
    system = "/usr/bin/" + name
    found = os.environ.get(name.upper()) or (system if os.path.exists(system) else shutil.which(name))
    if not found:
        raise RuntimeError("nrg: %s is not installed %s" % (name, NEEDS))
    return found


def _version():
    with open(os.path.join(SOURCE, "meson.build"), encoding="utf-8") as text:
        return re.search(r"version: '([^']+)'", text.read())[1]


def _run(*command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env["NINJA"] = _tool("ninja")
    if subprocess.call(command, env=env, cwd=SOURCE):
        raise RuntimeError("nrg: %s failed; what it needs: %s" % (os.path.basename(command[0]), NEEDS))


def _build(folder):
    _run(_tool("meson"), "setup", "-Dtests=disabled", "-Dbuildtype=release",
         *os.environ.get("NRG_MESON_OPTIONS", "").split(), folder)
    _run(_tool("ninja"), "-C", folder, "python-package")


def _metadata():
    return ("Metadata-Version: 2.1\nName: nrg\nVersion: %s\nSummary: energy profiler for machine learning\n"
            "License: MIT\nRequires-Python: >=3.8\n" % _version())


def _package_files(build):
    """(name in the wheel, file) of all that is installed."""
    package = os.path.join(build, "python", "nrg")
    if not os.path.exists(os.path.join(package, "_nrg.abi3.so")):
        raise RuntimeError("nrg: the extension was not built: Python's headers are missing %s" % NEEDS)
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(f for f in folders if not f.endswith(".p") and f != "__pycache__")
        for name in sorted(files):
            if name.endswith((".py", ".so")):
                path = os.path.join(folder, name)
                yield os.path.join("nrg", os.path.relpath(path, package)), path
    yield "nrg/libnrg.so.0", os.path.realpath(os.path.join(build, "src", "libnrg.so.0"))
    yield "nrg/libnrg-recorder.so", os.path.join(build, "src", "libnrg-recorder.so")
    yield "nrg/libnrg-inject.so", os.path.join(build, "src", "libnrg-inject.so")
    yield "nrg/bin/nrg", os.path.join(build, "nrg")


class _Wheel:
    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.info, self.record = info, []

    def add(self, name, content, executable=False):
        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))

    def close(self):
        self.record.append("%s/RECORD,,\n" % self.info)
        self.zip.writestr(self.info + "/RECORD", "".join(self.record))
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag = "cp38-abi3-" + re.sub(r"[-.]", "_", sysconfig.get_platform())
    name = "nrg-%s-%s.whl" % (_version(), tag)
    info = "nrg-%s.dist-info" % _version()
    with tempfile.TemporaryDirectory(prefix="nrg-wheel-") as build:
        _build(build)
        wheel = _Wheel(os.path.join(wheel_directory, name), info)
        for inside, path in _package_files(build):
            with open(path, "rb") as content:
                wheel.add(inside, content.read(), not inside.endswith(".py"))
    wheel.add(info + "/METADATA", _metadata().encode())
    wheel.add(info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: nrg\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode())
    wheel.add(info + "/entry_points.txt", b"[console_scripts]\nnrg = nrg.__main__:main\n\n[pytest11]\nnrg = nrg.pytest_plugin\n")
    wheel.close()
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = "nrg-" + _version()
    listed = subprocess.run(["git", "ls-files"], cwd=SOURCE, stdout=subprocess.PIPE, text=True)
    if listed.returncode:
        raise RuntimeError("nrg: a source archive is made from git's list of files")
    with tempfile.TemporaryDirectory() as folder, \
            tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for name in listed.stdout.split("\n"):
            if name and os.path.exists(os.path.join(SOURCE, name)):
                archive.add(os.path.join(SOURCE, name), base + "/" + name, recursive=False)
        info = os.path.join(folder, "PKG-INFO")
        with open(info, "w", encoding="utf-8") as out:
            out.write(_metadata())
        archive.add(info, base + "/PKG-INFO")
    return base + ".tar.gz"


if __name__ == "__main__":  # python3 python/build_backend.py FOLDER: a wheel without pip
    print(build_wheel(sys.argv[1] if len(sys.argv) > 1 else "."))
