#!/usr/bin/env bash
# The programs of a real Kubernetes, from Go modules, for machines that have neither a cluster nor a registry.
#   usage: build.sh BIN      (ends with 3 if the modules cannot be had)
# Versions and checksums are pinned in kubernetes/ and dns/. 1.33.13 is a release of which every staging module can be had as a
# module; the public checksum database does not answer for all of them, so the checked-in go.sum stands for it.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath -m "$1")
version=1.33.13
mkdir -p "$bin"
export GONOSUMDB='*' GOFLAGS='-buildvcs=false -mod=readonly -trimpath' CGO_ENABLED=0
programs=(k8s.io/kubernetes/cmd/{kube-apiserver,kube-controller-manager,kube-scheduler,kubelet,kube-proxy,kubectl})
store=go.etcd.io/etcd/server/v3

(cd "$here/kubernetes" && go list -deps "${programs[@]}" $store >/dev/null) || exit 3
(cd "$here/dns" && go list -deps . >/dev/null) || exit 3

cd "$here/kubernetes"
stamp=k8s.io/component-base/version
# without a version the API server calls itself v0.0.0, and charts that ask for a Kubernetes version refuse it
go build -o "$bin/" \
  -ldflags "-s -w -X $stamp.gitVersion=v$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=33 -X $stamp.gitTreeState=clean" \
  "${programs[@]}"
go build -o "$bin/etcd" -ldflags "-s -w" $store
cd "$here/dns"
go build -o "$bin/coredns" -ldflags "-s -w" .
cc -Os -static -o "$bin/pause" "$here/pause.c"
