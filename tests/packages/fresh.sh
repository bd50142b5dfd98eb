#!/bin/bash
# Runs a script in a fresh Debian: fresh.sh PACKAGES SCRIPT FOLDER. FOLDER is /given there, read-only.
#
# The system has what debootstrap's smallest variant has, and PACKAGES (commas between them); it is made once per list
# of packages, and copied for each run. Needs root and debootstrap, and this machine's own apt settings, which it uses
# inside, too. pivot_root instead of chroot: programs see a system, not a folder of another one.
set -euo pipefail
packages=$1 script=$(realpath "$2") given=$(realpath "$3")
[ "$(id -u)" = 0 ] || { echo "fresh.sh: needs root, to make a system in a folder" >&2; exit 77; }
place=${NRG_FRESH:-${TMPDIR:-/tmp}/nrg-fresh-packages}
base=$place/$(printf %s "$packages" | sha256sum | cut -c1-12)
root=$place/run.$$
mkdir -p "$place"

if [ ! -e "$base/.done" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | awk '$2 == "bookworm" {print $1; exit}')
    [ -n "$mirror" ] || { echo "fresh.sh: apt here knows no Debian 12" >&2; exit 77; }
    rm -rf "$base"
    debootstrap --variant=minbase --include="ca-certificates,$packages" bookworm "$base" "$mirror" >"$base.log" 2>&1 ||
        { tail -n 5 "$base.log" >&2; echo "fresh.sh: debootstrap failed" >&2; exit 77; }
    rm -f "$base/etc/apt/sources.list"
    for name in sources.list sources.list.d apt.conf.d auth.conf.d trusted.gpg.d keyrings preferences.d; do
        [ ! -e "/etc/apt/$name" ] || { rm -rf "${base:?}/etc/apt/$name"; cp -a "/etc/apt/$name" "$base/etc/apt/$name"; }
    done
    touch "$base/.done"
fi

trap 'rm -rf "$root"' EXIT
cp -a --reflink=auto "$base" "$root"
mkdir -p "$root/given"
cp /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null || :
cp "$script" "$root/root/script"
root=$root given=$given unshare --mount --pid --fork bash -c '
    set -e
    mount --make-rprivate /; mount --bind "$root" "$root"; cd "$root"
    mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev; mount -t tmpfs -o mode=1777 tmpfs tmp
    mount --bind "$given" given; mount -o remount,bind,ro given
    pivot_root . .; umount -l .; cd /root
    exec env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive bash /root/script </dev/null'
