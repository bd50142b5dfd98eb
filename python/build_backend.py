"""pip's way to a build (PEP 517): runs meson and ninja, and zips a wheel.

The wheel has the package, libnrg and its recorder beside it, the program in nrg/bin, man pages and
completion, so that an environment gets all of nrg with one command; `nrg` in its bin folder is `python -m nrg`.
Needs what `make` needs, and Python's headers. Nothing is downloaded. The extension uses the limited API, so the
wheel fits every CPython from 3.8 on. sqlite, zstd, jansson and zlib are linked from their archives, where
the system has them; then the wheel needs libc alone, and its name says how old that may be, from what
the files ask for. `make wheel` has a compiler that asks for an old one (tools/wheel).

The same commit gives the same bytes: archives are sorted, their times are SOURCE_DATE_EPOCH or fixed, and
-Dpackaged=wheel keeps the names of folders out.
"""
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import sbom  # noqa: E402
# What is linked into the wheel, and the Debian package whose licence says so.
INSIDE = {"sqlite3" if name == "sqlite" else name: library[2] for name, library in sbom.LIBRARIES.items()}
NEEDS = "(Debian packages: gcc meson ninja-build pkg-config %s python3-dev)" % " ".join(INSIDE.values())
# What every glibc system has. Anything else makes a wheel for this machine's like only.
EVERYWHERE = re.compile(r"^(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux.*)$")


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
    _run(_tool("meson"), "setup", "-Dtests=disabled", "-Dbuildtype=release", "-Dpackaged=wheel",
         "-Dprefer_static=true", "-Dc_link_args=-s",
         *os.environ.get("NRG_MESON_OPTIONS", "").split(), folder)
    _run(_tool("ninja"), "-C", folder, "python-package", "help-files")


def _metadata(licence="MIT", licence_files=("LICENSE",)):
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as text:
        about = text.read()
    lines = ["Metadata-Version: 2.4", "Name: nrg", "Version: " + _version(),
             "Summary: energy profiler for machine learning", "License-Expression: " + licence]
    lines += ["License-File: " + name for name in licence_files]
    lines += ["Requires-Python: >=3.8", "Classifier: Operating System :: POSIX :: Linux",
              "Keywords: energy,power,profiler,rapl,nvml,pytorch", "Description-Content-Type: text/markdown"]
    return ("\n".join(lines) + "\n\n" + about).encode()


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


def _help_files(build):
    """Man pages and completion go to share/ of the environment, where man and shells look."""
    share = "nrg-%s.data/data/share/" % _version()
    docs = os.path.join(build, "docs")
    for page in sorted(name for name in os.listdir(docs) if name.endswith(".1")):
        yield share + "man/man1/" + page, os.path.join(docs, page)
    yield share + "bash-completion/completions/nrg", os.path.join(docs, "nrg")
    yield share + "fish/vendor_completions.d/nrg.fish", os.path.join(docs, "nrg.fish")
    yield share + "zsh/site-functions/_nrg", os.path.join(docs, "_nrg")


def _needs(path):
    """The libraries that a file needs, and the newest glibc that it asks for, as a number below 2."""
    said = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", path], stdout=subprocess.PIPE, text=True,
                          check=True, env=dict(os.environ, LC_ALL="C")).stdout
    libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
    return libraries, max([int(minor) for minor in re.findall(r"\bGLIBC_2\.(\d+)", said)] or [17])


def _platform(files):
    """(platform tag, True when other libraries are inside), from what the files ask for."""
    newest, foreign = 17, set()
    for path in files:
        libraries, minor = _needs(path)
        newest = max(newest, minor)
        foreign.update(name for name in libraries if not EVERYWHERE.match(name) and name != "libnrg.so.0")
    machine = re.sub(r"[-.]", "_", sysconfig.get_platform())
    if foreign or not machine.startswith("linux_"):
        print("nrg: the wheel needs %s of this system: it is for machines like this one" % ", ".join(sorted(foreign)))
        return machine, False
    return "manylinux_2_%d_%s" % (newest, machine[len("linux_"):]), True


def _licences(inside):
    """{name: bytes}: ours, and those of what is linked in, as the packages that it came from state them."""
    with open(os.path.join(SOURCE, "LICENSE"), "rb") as text:
        found = {"LICENSE": text.read()}
    given = os.environ.get("NRG_WHEEL_LICENCE")  # the compiler's own parts: NAME=FILE
    sources = {name: "/usr/share/doc/%s/copyright" % package for name, package in INSIDE.items()} if inside else {}
    if given:
        name, _, path = given.partition("=")
        sources[name] = path
    for name, path in sources.items():
        try:
            with open(path, "rb") as text:
                found[name + ".txt"] = text.read()
        except OSError as error:
            raise RuntimeError("nrg: %s is linked into the wheel, whose licence is not here: %s" % (name, error)) from error
    return found


def _bill(files, inside):
    """The bill of materials. The compiler puts in its own runtime, and zig's, which tools/wheel names: NAME=VERSION=LICENCE."""
    archive = sbom.said("gcc", "-print-libgcc-file-name")
    parts = [tuple(part.split("=")) for part in os.environ.get("NRG_WHEEL_PARTS", "").split()]
    return sbom.of_wheel(_version(), files, inside, archive, parts)


def _epoch(otherwise):
    return int(os.environ.get("SOURCE_DATE_EPOCH") or otherwise)


class _Wheel:
    """A zip file whose bytes depend on nothing but what is added."""

    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info, self.record = info, []
        # Zip files know no time before 1980.
        self.time = time.gmtime(max(_epoch(0), 315532800))[:6]

    def _write(self, name, content, executable=False):
        entry = zipfile.ZipInfo(name, self.time)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(entry, content)

    def add(self, name, content, executable=False):
        self._write(name, content, executable)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))

    def close(self):
        self.record.append("%s/RECORD,,\n" % self.info)
        self._write(self.info + "/RECORD", "".join(self.record).encode())
        self.zip.close()


def _zip_wheel(build, wheel_directory):
    info = "nrg-%s.dist-info" % _version()
    files = list(_package_files(build))
    programs = [path for name, path in files if not name.endswith(".py")]
    platform, inside = _platform(programs)
    tag = "cp38-abi3-" + platform
    licences = _licences(inside)
    name = "nrg-%s-%s.whl" % (_version(), tag)
    wheel = _Wheel(os.path.join(wheel_directory, name), info)
    for inside_name, path in files + list(_help_files(build)):
        with open(path, "rb") as content:
            wheel.add(inside_name, content.read(), inside_name.startswith("nrg/") and not inside_name.endswith(".py"))
    licence = "MIT AND blessing AND BSD-3-Clause AND Zlib" if inside else "MIT"
    wheel.add(info + "/METADATA", _metadata(licence, sorted(licences)))
    wheel.add(info + "/WHEEL", ("Wheel-Version: 1.0\nGenerator: nrg\nRoot-Is-Purelib: false\nTag: %s\n" % tag).encode())
    wheel.add(info + "/entry_points.txt", b"[console_scripts]\nnrg = nrg.__main__:main\n\n[pytest11]\nnrg = nrg.pytest_plugin\n")
    for licence_name, text in sorted(licences.items()):
        wheel.add(info + "/licenses/" + licence_name, text)
    wheel.add(info + "/sboms/nrg.cdx.json", _bill(programs, inside))
    wheel.close()
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory(prefix="nrg-wheel-") as build:
        _build(build)
        return _zip_wheel(build, wheel_directory)


def _source_files():
    """Those that git knows; in an unpacked source archive, all that are there."""
    def git(*command):
        done = subprocess.run(["git", *command], cwd=SOURCE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return "" if done.returncode else done.stdout
    if os.path.exists(os.path.join(SOURCE, "PKG-INFO")):
        names = [os.path.relpath(os.path.join(folder, name), SOURCE) for folder, folders, files in os.walk(SOURCE)
                 for name in files if "__pycache__" not in folder and name != "PKG-INFO"]
        return sorted(names), int(os.path.getmtime(os.path.join(SOURCE, "PKG-INFO")))
    names = [name for name in git("ls-files").split("\n") if name and os.path.exists(os.path.join(SOURCE, name))]
    if not names:
        raise RuntimeError("nrg: a source archive is made from git's list of files, or from a source archive")
    return sorted(names), int(git("log", "-1", "--format=%ct") or 0)


def build_sdist(sdist_directory, config_settings=None):
    base = "nrg-" + _version()
    names, made = _source_files()

    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = _epoch(made)
        member.mode = 0o755 if member.mode & 0o100 else 0o644
        return member

    with open(os.path.join(sdist_directory, base + ".tar.gz"), "wb") as out, \
            gzip.GzipFile("", "wb", 9, out, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            archive.add(os.path.join(SOURCE, name), base + "/" + name, recursive=False, filter=plain)
        info = tarfile.TarInfo(base + "/PKG-INFO")
        metadata = _metadata()
        info.size, info.mode = len(metadata), 0o644
        archive.addfile(plain(info), io.BytesIO(metadata))
    return base + ".tar.gz"


if __name__ == "__main__":  # python3 python/build_backend.py FOLDER [sdist]: without pip
    print((build_sdist if sys.argv[2:] == ["sdist"] else build_wheel)(sys.argv[1] if len(sys.argv) > 1 else "."))
