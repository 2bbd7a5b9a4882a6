#!/usr/bin/env bash
# Give a node's containerd some images (layers that it has are not unpacked again).     usage: load.sh STATE NODE IMAGE.tar...
set -euo pipefail
state=$(realpath "$1") node=$2
shift 2
. "$(dirname "$(realpath "$0")")/common.sh"
for image in "$@"; do
  ctr -a "$run$node.sock" -n k8s.io images import "$image" >/dev/null
done
