#!/usr/bin/env bash
# A Kubernetes on one machine.
#   usage: up.sh BIN STATE NODES IMAGE.tar...      (BIN: what build.sh made; as root)
# A node is a kubelet with a containerd of its own; all pods are on one bridge, so the pod network is flat. Control plane, DNS
# and one kube-proxy run as plain processes.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
bin=$(realpath "$1") state=$(realpath -m "$2") nodes=$3
shift 3
images=("$@")
. "$here/common.sh"
api=https://127.0.0.1:6443
mkdir -p "$state"/{pki,log,pid,cni}
echo "$run" >"$state/run"
cd "$state/pki"

# --- certificates

authority() {
  openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 365 -subj /CN=joinery-test-cluster 2>/dev/null
  openssl genrsa -out sa.key 2048 2>/dev/null
  openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
}
certificate() { # name subject [other names]
  openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out "$1.crt" -extfile <(
    echo "keyUsage=digitalSignature,keyEncipherment"
    echo "extendedKeyUsage=serverAuth,clientAuth"
    [ -z "${3:-}" ] || echo "subjectAltName=$3"
  ) 2>/dev/null
}
kubeconfig() { # name
  local b64="base64 -w0"
  (umask 077 && cat >"$state/$1.kubeconfig" <<C
apiVersion: v1
kind: Config
clusters: [{name: joinery, cluster: {server: "$api", certificate-authority-data: $($b64 ca.crt)}}]
users: [{name: $1, user: {client-certificate-data: $($b64 "$1.crt"), client-key-data: $($b64 "$1.key")}}]
contexts: [{name: joinery, context: {cluster: joinery, user: $1}}]
current-context: joinery
C
  )
}
identity() { certificate "$1" "$2" && kubeconfig "$1"; }

authority
inside=DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local
certificate apiserver /CN=kube-apiserver "$inside,DNS:localhost,IP:127.0.0.1,IP:10.96.0.1,IP:$gateway"
identity admin /O=system:masters/CN=admin
identity controllers /CN=system:kube-controller-manager
identity scheduler /CN=system:kube-scheduler
identity proxy /CN=system:kube-proxy
identity dns /O=system:masters/CN=dns

# --- network

# what we change of the machine, so that down.sh can change it back
sysctl net.ipv4.ip_forward net.ipv4.conf.all.route_localnet net.bridge.bridge-nf-call-iptables >"$state/sysctl" 2>/dev/null || true
modprobe br_netfilter 2>/dev/null || true
sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.route_localnet=1 net.bridge.bridge-nf-call-iptables=1
for range in $pods $services; do
  if [ -n "$(ip route show root "$range")" ]; then
    echo "found a route into $range, wanted this range free: $(ip route show root "$range" | head -1)" >&2
    exit 1
  fi
done
ip link add $bridge type bridge
ip addr add $gateway/16 dev $bridge
ip link set $bridge up
ip route replace $services dev $bridge # a service address without a rule stays here instead of leaving by the default route
cat >"$state/cni/10-bridge.conflist" <<C
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "$bridge", "isGateway": true, "hairpinMode": true, "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "$state/ipam", "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "$pods", "rangeEnd": "10.244.250.0"}]]}}]}
C

# --- control plane

store=http://127.0.0.1:2379
start etcd "$bin/etcd" --data-dir "$state/etcd" --unsafe-no-fsync --listen-peer-urls http://127.0.0.1:2380 \
  --listen-client-urls $store --advertise-client-urls $store
start apiserver "$bin/kube-apiserver" --etcd-servers $store --advertise-address $gateway --secure-port 6443 \
  --client-ca-file ca.crt --tls-cert-file apiserver.crt --tls-private-key-file apiserver.key \
  --kubelet-client-certificate admin.crt --kubelet-client-key admin.key --kubelet-preferred-address-types InternalIP \
  --service-account-key-file sa.pub --service-account-signing-key-file sa.key \
  --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range $services \
  --authorization-mode Node,RBAC --allow-privileged=true \
  --audit-policy-file "$here/audit-policy.yaml" --audit-log-path "$state/audit.log" --audit-log-maxsize 1000
await apiserver 120 curl -fsk $api/readyz
start controllers "$bin/kube-controller-manager" --kubeconfig "$state/controllers.kubeconfig" --leader-elect=false \
  --service-account-private-key-file sa.key --root-ca-file ca.crt --use-service-account-credentials \
  --cluster-signing-cert-file ca.crt --cluster-signing-key-file ca.key
start scheduler "$bin/kube-scheduler" --kubeconfig "$state/scheduler.kubeconfig" --leader-elect=false
cat >"$state/Corefile" <<C
.:53 {
  bind $gateway
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $state/dns.kubeconfig joinery
    pods verified
  }
  cache 5
}
C
start dns "$bin/coredns" -conf "$state/Corefile" # at the bridge's address: no image needed, and no upstream
start proxy "$bin/kube-proxy" --kubeconfig "$state/proxy.kubeconfig" --proxy-mode iptables --cluster-cidr $pods \
  --hostname-override node1 --conntrack-max-per-core 0

# --- nodes

weigh() { # else all pods together get as much of a busy machine as one process that is no pod
  local all=/sys/fs/cgroup
  [ ! -d $all/cpu ] || all=$all/cpu
  mkdir "$all/k8s.io" && { echo 10240 >"$all/k8s.io/cpu.shares" || echo 1000 >"$all/k8s.io/cpu.weight"; }
} 2>/dev/null
weigh || true # somebody else has containers there

containerd_config() { # number folder
  cat >"$2/containerd.toml" <<C
version = 2
root = "$2/containerd"
state = "$run$1"
[grpc]
  address = "$run$1.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$2/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  netns_mounts_under_state_dir = true # so that down.sh finds all of them
  restrict_oom_score_adj = true # without CAP_SYS_RESOURCE runc fails with "can't get final child's PID from pipe"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$state/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = "$run$1/runc"
C
}
kubelet_config() { # number folder
  # logs apart: a kubelet deletes those of pods that it does not know
  # resize in place: without cgroups per class a kubelet of 1.33 dies of it when a container is restarted
  # cgroups: also a machine with the first version of them, shared with what it runs in, will do
  cat >"$2/kubelet.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
port: $((10250 + 10 * $1))
healthzPort: $((10251 + 10 * $1))
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $state/pki/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://$run$1.sock
clusterDNS: [$gateway]
clusterDomain: cluster.local
podLogsDir: $2/logs
featureGates: {InPlacePodVerticalScaling: false}
cgroupDriver: cgroupfs
cgroupRoot: /
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 100Mi}
nodeStatusUpdateFrequency: 4s
C
}
node() { # number
  local folder=$state/node$1
  mkdir -p "$folder"
  containerd_config "$1" "$folder"
  kubelet_config "$1" "$folder"
  start "containerd$1" containerd -c "$folder/containerd.toml"
  await "containerd$1" 30 ctr -a "$run$1.sock" version
  "$here/load.sh" "$state" "$1" "${images[@]}"
  start "kubelet$1" "$bin/kubelet" --config "$folder/kubelet.yaml" --kubeconfig "$state/node$1.kubeconfig" \
    --hostname-override "node$1" --root-dir "$folder/kubelet" --cert-dir "$folder/pki" --node-ip $gateway
}
for n in $(seq "$nodes"); do
  identity "node$n" "/O=system:nodes/CN=system:node:node$n"
  node "$n"
done
for n in $(seq "$nodes"); do
  await "kubelet$n" 60 "$bin/kubectl" --kubeconfig "$state/admin.kubeconfig" wait --for=condition=Ready "node/node$n" --timeout=2s
done
await controllers 60 "$bin/kubectl" --kubeconfig "$state/admin.kubeconfig" get serviceaccount default # pods need it
