#!/usr/bin/env bash
# The two images that everything else stands on, without a registry: localhost/pause:1 (what holds a pod's namespaces) and
# localhost/base:1 (Debian with Python 3.11 and tini, in the place of python:3.11-slim).
#   usage: base.sh PAUSE OUT      (PAUSE: the program; OUT: folder of pause.tar, the base is only built on; buildah, debootstrap, as root)
set -euo pipefail
pause=$(realpath "$1")
out=$(realpath -m "$2")
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$out"

c=$(buildah from scratch)
buildah copy -q "$c" "$pause" /pause >/dev/null
buildah config --entrypoint '["/pause"]' "$c"
buildah commit -q --rm "$c" localhost/pause:1 >/dev/null
buildah push -q localhost/pause:1 "docker-archive:$out/pause.tar:localhost/pause:1"

debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates,tini bookworm "$root" >/dev/null
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
c=$(buildah from scratch)
buildah add -q "$c" "$root" / >/dev/null
buildah config --env PYTHONUNBUFFERED=1 "$c"
buildah commit -q --rm "$c" localhost/base:1 >/dev/null
