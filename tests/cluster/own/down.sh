#!/usr/bin/env bash
# Stop what up.sh started, also if it crashed half-way, and leave nothing: processes, mounts, bridge, rules, state.
#   usage: down.sh STATE
set -u
here=$(dirname "$(realpath "$0")")
state=$(realpath -m "$1")
. "$here/common.sh"

stop() { # names...: ask all, give them 3 s, insist (the API server would take a minute to drain)
  local name pid birth
  for name; do alive "$name" && read -r pid birth <"$state/pid/$name" && kill "$pid"; done
  for _ in $(seq 30); do
    for name; do alive "$name" && sleep 0.1 && continue 2; done
    break
  done
  for name; do alive "$name" && read -r pid birth <"$state/pid/$name" && kill -9 "$pid"; done
  return 0
}
named() { # prefix
  [ -d "$state/pid" ] && (cd "$state/pid" && ls | grep "^$1")
}
shims() { # the processes that hold containers of ours, known by the socket that they talk to
  grep -lszx "$run[0-9]*\.sock" /proc/[0-9]*/cmdline | xargs -r grep -lsz containerd-shim | cut -d/ -f3
}
descendants() { # pid
  local child
  for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    echo "$child"
    descendants "$child"
  done
}

stop $(named kubelet) # first: it would start again what ends
stop $(named containerd)
for shim in $(shims); do kill -9 $(descendants "$shim") "$shim" 2>/dev/null; done
stop proxy scheduler controllers dns apiserver etcd

for _ in 1 2 3; do # a mount may sit on another one
  awk -v s="$state/" -v r="$run" 'index($5, s) == 1 || index($5, r) == 1 {print $5}' /proc/self/mountinfo | sort -r | xargs -r -n1 umount -l 2>/dev/null
done
ip link delete $bridge 2>/dev/null # its route and the pods' ends of it go with it
for family in iptables ip6tables; do
  # the rules of kube-proxy and kubelet, and only those
  if $family-save 2>/dev/null | grep -q KUBE-; then $family-save | grep -v KUBE- | $family-restore; fi
done
if [ -f "$state/sysctl" ]; then sysctl -q -p "$state/sysctl" >/dev/null 2>&1; fi
for container in "$run"[0-9]*/io.containerd.runtime.v2.task/k8s.io/*; do # what lies elsewhere of containers that were killed
  [ -f "$container/address" ] && rm -f "$(sed 's,^unix://,,' "$container/address")"
  id=$(basename "$container")
  rmdir /sys/fs/cgroup{,/*}/k8s.io/"$id" 2>/dev/null
  rm -f /var/lib/cni/results/*-"$id"-*
done
rmdir /sys/fs/cgroup{,/*}/k8s.io 2>/dev/null # only if nobody else has one there
left=$(grep -c -e " $state/" -e " $run" /proc/self/mountinfo)
if [ "$left" != 0 ]; then
  echo "$left mounts under $state or $run* could not be taken away; nothing below them was deleted" >&2
  exit 1
fi
rm -rf "$state" "$run"[0-9]*
