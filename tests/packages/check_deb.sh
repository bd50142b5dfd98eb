#!/bin/bash
# `make test-deb`: the packages of dist/ are clean by lintian, and work in a fresh Debian: install, use, upgrade, purge.
# Minutes, and root; exit code 77 where that can't be had. NRG_DEB_TORCH=1 also installs PyTorch there, for the demo.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
dist=$(realpath "${1:-dist}")
given=$(mktemp -d)
trap 'rm -rf "$given"' EXIT
mkdir "$given/old" "$given/new"

lintian --fail-on error,warning,info --display-info "$dist"/nrg_*.changes
echo "ok - lintian"
"$here/../../tools/hardening" "$dist"/*.deb
echo "ok - hardened"

# The same packages, with a version that comes before theirs.
for deb in "$dist"/*.deb; do
    case $deb in *-dbgsym_*) continue ;; esac
    cp "$deb" "$given/new/"
    dpkg-deb -R "$deb" "$given/tree"
    version=$(sed -n 's/^Version: //p' "$given/tree/DEBIAN/control")
    sed -i -e "s/^Version: .*/&~before/" -e "s/(= $version)/(= $version~before)/g" "$given/tree/DEBIAN/control"
    dpkg-deb --root-owner-group -b "$given/tree" "$given/old/" >/dev/null
    rm -rf "$given/tree"
    echo "$version" >"$given/new/version"
    echo "$version~before" >"$given/old/version"
done
script=$given/script
{
    [ -z "${NRG_DEB_TORCH:-}" ] || echo "NRG_DEB_MORE=python3-torch"
    cat "$here/inside_deb.sh"
} >"$script"
"$here/fresh.sh" python3,python3-venv "$script" "$given"
