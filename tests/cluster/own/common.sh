# What up.sh and down.sh must agree about. Sourced, with $state set.
bridge=joinery0
gateway=10.244.0.1 # the bridge's own address; API server, DNS and kubelets are reached by pods here
pods=10.244.0.0/16
services=10.96.0.0/16
# + the node's number: containerd's socket and mounts. Of this cluster only, and short: a socket's path has 107 characters.
run=$(cat "$state/run" 2>/dev/null || echo "/run/joinery-$(echo "$state" | cksum | cut -d' ' -f1)-node")

born() { # pid -> when it was started; a recycled pid has another birth
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}

start() { # name command...: in a session of its own, so that Ctrl-C of the caller does not reach it
  local name=$1
  shift
  setsid "$@" >"$state/log/$name.log" 2>&1 </dev/null &
  echo "$! $(born $!)" >"$state/pid/$name"
}

alive() { # name
  local pid birth
  [ -f "$state/pid/$1" ] && read -r pid birth <"$state/pid/$1" && [ "$(born "$pid")" = "$birth" ]
}

await() { # name seconds command...: until the command succeeds; the process must live so long
  local name=$1 until=$((SECONDS + $2))
  shift 2
  while ! "$@" >/dev/null 2>&1; do
    if ! alive "$name" || ((SECONDS > until)); then
      echo "$name did not become ready; the end of $state/log/$name.log:" >&2
      tail -n 15 "$state/log/$name.log" >&2
      return 1
    fi
    sleep 0.2
  done
}
