#!/usr/bin/env bash
# Let the pods that a node has now run on these CPUs of the machine only.     usage: cpus.sh STATE NODE CPUS
# Ends with 3 if the machine has no control groups for it.
set -euo pipefail
state=$(realpath "$1") node=$2 cpus=$3
. "$(dirname "$(realpath "$0")")/common.sh"
all=/sys/fs/cgroup
[ ! -d $all/cpuset ] || all=$all/cpuset
for container in "$run$node"/io.containerd.runtime.v2.task/k8s.io/*; do
  group=$all/k8s.io/$(basename "$container")
  [ -d "$group" ] || continue # it has ended
  if ! { echo "$cpus" >"$group/cpuset.cpus"; } 2>/dev/null && [ -d "$group" ]; then
    echo "found no $group/cpuset.cpus to write to, wanted control groups of CPUs" >&2
    exit 3
  fi
done
