"""What wheels and packages have of others: a bill of materials (SBOM) in CycloneDX's JSON.

  sbom.py --deb PACKAGE FOLDER    of a Debian package that lies in FOLDER (debian/rules)
  sbom.py --inside                the packages that a build with -Dprefer_static=true links, for meson.build
  sbom.py --stale                 says which of these apt has newer; exit code 1 then (tools/wheel)

What is dynamic is what readelf says that the files need, or that they load by name when they need it (zlib); in a wheel
the rest of the table is inside. Versions are those of this system: the library's own, and the package's,
which has the distribution's patches. Where no dpkg is, the library's own alone.

The same files on the same system give the same bytes: the serial number is made from what the bill says, and there is a time
only where SOURCE_DATE_EPOCH is one.
"""
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import urllib.parse
import uuid

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SPECIFICATION = "1.6"
# name: file of pkg-config, name when loaded, package with archive and header, vendor and product of the CPE, licence, site
LIBRARIES = {
    "sqlite": ("sqlite3", "libsqlite3.so.0", "libsqlite3-dev", "sqlite:sqlite", "blessing", "https://sqlite.org"),
    "zstd": ("libzstd", "libzstd.so.1", "libzstd-dev", "facebook:zstandard", "BSD-3-Clause OR GPL-2.0-only",
             "https://facebook.github.io/zstd"),
    "jansson": ("jansson", "libjansson.so.4", "libjansson-dev", "jansson_project:jansson", "MIT",
                "https://github.com/akheron/jansson"),
    "zlib": ("zlib", "libz.so.1", "zlib1g-dev", "zlib:zlib", "Zlib", "https://zlib.net"),
}
LIBC = re.compile(r"^(lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux.*)$")


def said(*command, whatever=False):
    """What a command prints, "" when it is not there, or fails and that is not fine."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True,
                              env=dict(os.environ, LC_ALL="C"))
    except OSError:
        return ""
    return done.stdout.strip() if whatever or done.returncode == 0 else ""


def package(name):
    """{"name", "version", "arch"} of an installed Debian package, None where there is none."""
    words = said("dpkg-query", "-W", "-f", "${binary:Package} ${Version} ${Architecture}\\n", name).split("\n")[0].split()
    return dict(zip(("name", "version", "arch"), [words[0].split(":")[0]] + words[1:])) if len(words) == 3 else None


def packages_of(paths):
    """{path: package} of those that belong to one; packages name them as they were before folders were merged (/lib, /usr/lib)."""
    names = {path: {path, os.path.realpath(path), os.path.realpath(path).replace("/usr/lib/", "/lib/", 1)} for path in paths}
    owners = dict(reversed(line.split(": ", 1)) for line in
                  said("dpkg-query", "-S", *set().union(*names.values()), whatever=True).split("\n") if ": " in line)
    found = {path: next((owners[name] for name in sorted(names[path]) if name in owners), None) for path in paths}
    return {path: package(owner.split(",")[0]) for path, owner in found.items() if owner}


def packages_of_sonames(sonames):
    """{name when loaded: package}, by what this system loads."""
    places = dict(re.findall(r"^\t(\S+) \(.*\) => (\S+)", said("/sbin/ldconfig", "-p"), re.M)[::-1])
    owners = packages_of([places[name] for name in sonames if name in places])
    return {name: owners.get(places.get(name)) for name in sonames}


def package_url(found):
    """purl: pkg:deb/debian/zlib1g@1%3A1.2.13.dfsg-1?arch=amd64&distro=debian-12"""
    try:
        with open("/etc/os-release", encoding="utf-8") as text:
            system = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text.read(), re.M))
    except OSError:
        system = {}
    name = system.get("ID", "debian")
    distro = "&distro=%s-%s" % (name, system["VERSION_ID"]) if system.get("VERSION_ID") else ""
    return "pkg:deb/%s/%s@%s?arch=%s%s" % (name, urllib.parse.quote(found["name"], safe=""),
                                           urllib.parse.quote(found["version"], safe=""), found["arch"], distro)


def component(name, version, linkage, licence, found, cpe=None, site=None):
    made = {"type": "library", "bom-ref": name, "name": name, "licenses": [{"expression": licence}],
            "purl": package_url(found) if found else "pkg:generic/" + name + ("@" + urllib.parse.quote(version, safe="") if version else "")}
    if version:
        made["version"] = version
    if cpe and version:
        made["cpe"] = "cpe:2.3:a:%s:%s:*:*:*:*:*:*:*" % (cpe, version)
    if site:
        made["externalReferences"] = [{"type": "website", "url": site}]
    made["properties"] = [{"name": "nrg:linkage", "value": linkage}]
    if found:
        made["properties"].append({"name": "nrg:package", "value": "%s %s" % (found["name"], found["version"])})
    return made


def needed_by(files):
    """Names of the libraries that programs and libraries ask for when they start."""
    return {name for path in files for name in re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-d", "-W", path))}


def loaded_by(files, soname):
    """Whether a file has the name in it, to load the library when it needs it."""
    def has(path):
        with open(path, "rb") as content:
            return b"\0" + soname.encode() + b"\0" in content.read()
    return any(has(path) for path in files)


def libraries(files, inside):
    """Components of LIBRARIES that are in the files, or that these ask for."""
    made, needed = [], needed_by(files)
    packages = {} if inside else packages_of_sonames([library[1] for library in LIBRARIES.values()])
    for name, (pkgconfig, soname, dev, cpe, licence, site) in LIBRARIES.items():
        linkage = ("dynamic" if soname in needed else "bundled" if inside
                   else "dynamic, loaded when needed" if loaded_by(files, soname) else "")
        if not linkage:
            continue
        found = package(dev) if linkage == "bundled" else packages.get(soname)
        made.append(component(name, said("pkg-config", "--modversion", pkgconfig), linkage, licence, found, cpe, site))
    return made


def runtime(archive):
    """gcc's own, of which a program has what it asks for (__cpu_model): [] where its package is not known."""
    found = packages_of([archive]).get(archive) if archive else None
    return [component("libgcc", found["version"].split("-")[0], "bundled", "GPL-3.0-or-later WITH GCC-exception-3.1", found,
                      site="https://gcc.gnu.org")] if found else []


def libc(files):
    found = package("libc6") if any(LIBC.match(name) for name in needed_by(files)) else None
    return [component("glibc", found["version"].split("-")[0], "dynamic", "LGPL-2.1-or-later", found, "gnu:glibc",
                      "https://www.gnu.org/software/libc")] if found else []


def bill(name, version, purl, components):
    """The bytes of a bill."""
    own = {"type": "application", "bom-ref": "nrg", "name": name, "version": version, "licenses": [{"expression": "MIT"}], "purl": purl}
    parts = sorted(components, key=lambda part: part["name"])
    made = {"$schema": "http://cyclonedx.org/schema/bom-%s.schema.json" % SPECIFICATION, "bomFormat": "CycloneDX",
            "specVersion": SPECIFICATION, "serialNumber": "", "version": 1, "metadata": {"component": own}, "components": parts,
            "dependencies": [{"ref": "nrg", "dependsOn": [part["bom-ref"] for part in parts]}]
            + [{"ref": part["bom-ref"]} for part in parts]}
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch:
        time = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc)
        made["metadata"] = {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ"), "component": own}
    made["serialNumber"] = "urn:uuid:%s" % uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(made, sort_keys=True))
    return (json.dumps(made, indent=1) + "\n").encode()


def of_wheel(version, files, inside, archive, more=()):
    """For build_backend.py: `archive` is the compiler's runtime, `more` are (name, version, licence) of its other parts."""
    parts = [component(name, number, "bundled", licence, None) for name, number, licence in more]
    return bill("nrg", version, "pkg:pypi/nrg@" + version, libraries(files, inside) + (runtime(archive) if inside else []) + parts)


def of_deb(name, folder):
    with open(os.path.join(SOURCE, "debian", "changelog"), encoding="utf-8") as text:
        version = re.search(r"\((.*?)\)", text.readline())[1]
    files = [os.path.join(below, file) for below, _, names in os.walk(folder) for file in names]
    files = [path for path in files if os.path.isfile(path) and not os.path.islink(path) and open(path, "rb").read(4) == b"\x7fELF"]
    arch = said("dpkg", "--print-architecture") or platform.machine()
    own = package_url({"name": name, "version": version, "arch": arch})
    return bill(name, version, own, libraries(files, False) + libc(files))


def stale():
    """Lines about packages that apt has in another version than is installed; none where there is no apt."""
    lines = []
    for _, _, dev, _, _, _ in LIBRARIES.values():
        known = dict(re.findall(r"^  (Installed|Candidate): (\S+)$", said("apt-cache", "policy", dev), re.M))
        if known.get("Candidate", "(none)") != "(none)" and known.get("Installed") != known["Candidate"]:
            lines.append("%s is %s here, apt has %s: upgrade it and build again" % (dev, known.get("Installed"), known["Candidate"]))
    return lines


def main(words):
    if len(words) == 3 and words[0] == "--deb":
        sys.stdout.buffer.write(of_deb(words[1], words[2]))
    elif words == ["--inside"]:
        for name, (_, _, dev, _, _, _) in LIBRARIES.items():
            found = package(dev)
            print("%s=%s" % (name, "%s %s" % (found["name"], found["version"]) if found else ""))
    elif words == ["--stale"]:
        sys.exit("\n".join(stale()) or 0)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
