#!/usr/bin/env bash
# Compiles the kube-apiserver and kubelet that go.mod names, from the Go module proxy.
#
#   tests/kubernetes/build.sh DIRECTORY
#
# The programs end up in DIRECTORY/VERSION, which it prints; it does nothing when they are there.
# Debian has no packages of them, and later kubelets refuse a machine with cgroup v1.
set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# A Go before 1.21 cannot replace itself: then this one is downloaded, as a module, and used.
TOOLCHAIN=go1.24.13
directory=$(mkdir -p "$1" && cd "$1" && pwd)

say() { printf '%s\n' "$*" >&2; }

version=$(sed -n 's/^require k8s.io\/kubernetes //p' "$HERE/build/go.mod")
programs=$directory/$version

go_program() { PATH=$PATH:/usr/local/go/bin command -v go; }

new_enough() {  # new_enough GO: whether that Go can compile these programs
  local found
  found=$(GOTOOLCHAIN=local "$1" env GOVERSION)
  [[ $(printf '%s\n' go1.24 "$found" | sort -V | head -n 1) == go1.24 ]]
}

# Prints a Go that is new enough: the one of this machine, else one out of the module cache.
suitable_go() {
  local go module folder tool
  go=$(go_program) || { say "build.sh: no go"; return 1; }
  if new_enough "$go"; then
    printf '%s\n' "$go"
    return
  fi
  module=golang.org/toolchain@v0.0.1-$TOOLCHAIN.linux-$("$go" env GOARCH)
  say "$("$go" version) is too old; downloading $TOOLCHAIN"
  folder=$(cd "$directory" && GOFLAGS=-mod=mod "$go" mod download -json "$module" |
    sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
  # A module's files come without the right to be executed.
  chmod -R u+w "$folder"
  for tool in "$folder"/bin/* "$folder"/pkg/tool/*/*; do chmod +x "$tool"; done
  printf '%s\n' "$folder/bin/go"
}

compile() {  # compile GO PROGRAM
  local info=k8s.io/component-base/version
  local set_version="-X $info.gitVersion=$version -X $info.gitMajor=1 -X $info.gitMinor=34"
  say "compiling $2 $version"
  (cd "$HERE/build" && nice -n 19 "$1" build -mod=readonly -trimpath -buildvcs=false \
    -ldflags "-s -w $set_version" -o "$programs/$2.new" "k8s.io/kubernetes/cmd/$2")
  mv "$programs/$2.new" "$programs/$2"
}

mkdir -p "$programs"
for program in kube-apiserver kubelet; do
  [[ -x $programs/$program ]] && continue
  go=${go:-$(suitable_go)}
  export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=
  compile "$go" "$program"
done
printf '%s\n' "$programs"
