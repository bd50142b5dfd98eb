#!/bin/sh
# Debian packages by purpose. Installs what is missing, and only that.
#
#   tools/deps.sh build test demo     installs (as root), or says what to install
#   tools/deps.sh --check build       installs nothing; fails when something is missing
#
# A purpose may have packages that are good to have but not needed (`extra`): whatever uses them
# is skipped without them; failing to install them is a warning, not an error.
set -eu

needed() {
    case $1 in
    build) echo "gcc libc6-dev meson ninja-build pkg-config libsqlite3-dev libzstd-dev libjansson-dev zlib1g-dev" ;;
    test) echo "python3 libcmocka-dev" ;;
    demo) echo "python3" ;;
    firmware) echo "gcc-avr avr-libc" ;;
    wheel) echo "python3-dev python3-venv" ;;
    deb) echo "debhelper dh-python dpkg-dev python3-dev" ;;
    fresh) echo "debootstrap" ;;
    *)
        echo "deps.sh: build, test, demo, firmware, wheel, deb or fresh, not '$1'" >&2
        exit 2
        ;;
    esac
}

extra() {
    case $1 in
    build) echo "python3-dev" ;;
    test) echo "clang clang-format g++ groff chromium curl libcurl4 libmosquitto1 mosquitto openssl patch util-linux python3-torch python3-venv gcc-avr avr-libc libsimavr-dev zsh fish" ;;
    demo) echo "python3-torch" ;;
    firmware) echo "libsimavr-dev" ;;
    deb) echo "lintian" ;;
    esac
}

installed() {
    dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'
}

# Packages of the list that are not there. pkg-config is also what pkgconf provides.
missing() {
    for package; do
        installed "$package" && continue
        [ "$package" = pkg-config ] && installed pkgconf && continue
        printf '%s ' "$package"
    done
}

check_only=0
if [ "${1:-}" = --check ]; then
    check_only=1
    shift
fi
must= may=
for purpose; do
    must="$must $(needed "$purpose")"
    may="$may $(extra "$purpose")"
done

if ! command -v dpkg-query >/dev/null 2>&1; then
    # Not Debian: the build itself says what it does not find.
    [ "$check_only" = 1 ] || echo "deps: not a Debian system; these are needed by their Debian names:$must (and good to have:$may)" >&2
    exit 0
fi

# shellcheck disable=SC2086 # lists of words
must=$(missing $must)
# shellcheck disable=SC2086
may=$(missing $may)

# True when tools from elsewhere do as well: then the build may judge.
found_elsewhere() {
    modules="sqlite3 libzstd jansson zlib"
    case " $* " in *" test "*) modules="$modules cmocka" ;; esac
    # shellcheck disable=SC2086
    command -v meson >/dev/null && command -v ninja >/dev/null && command -v cc >/dev/null &&
        command -v python3 >/dev/null && pkg-config --exists $modules 2>/dev/null
}

if [ "$check_only" = 1 ]; then
    [ -n "$must" ] || exit 0
    found_elsewhere "$@" && exit 0
    echo "missing Debian packages: $must" >&2
    echo "as root, 'make deps' installs them; or: apt-get install $must" >&2
    exit 1
fi

# clang's own runtime (sanitizers, fuzzer) is a package by version that clang only recommends.
clang_runtime() {
    case " $* " in *" test "*) ;; *) return 0 ;; esac
    major=$(clang -dumpversion 2>/dev/null | cut -d. -f1)
    [ -z "$major" ] || missing "libclang-rt-$major-dev"
}

[ -n "$must$may" ] || may=$(clang_runtime "$@")
[ -n "$must$may" ] || exit 0
if [ "$(id -u)" != 0 ]; then
    if [ -n "$must" ] && ! found_elsewhere "$@"; then
        echo "missing Debian packages: $must" >&2
        echo "run 'make deps' as root, or: sudo apt-get install $must$may" >&2
        exit 1
    fi
    echo "deps: good to have, but not installed (not root): $must$may" >&2
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# $1: list. Quiet unless it fails.
install() {
    # shellcheck disable=SC2086
    apt-get install -y --no-install-recommends $1 >"$log" 2>&1
}

echo "deps: installing $must$may" >&2
apt-get update >"$log" 2>&1 || echo "deps: apt-get update failed: using the package lists that are here" >&2
if [ -n "$must" ] && ! install "$must"; then
    tail -n 20 "$log" >&2
    echo "deps: could not install $must" >&2
    exit 1
fi
[ -n "$may" ] || exit 0
if install "$may"; then
    may=
fi
for package in $may $(clang_runtime "$@"); do
    install "$package" || echo "deps: could not install $package: what needs it will be skipped" >&2
done
