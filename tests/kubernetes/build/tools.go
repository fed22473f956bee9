//go:build tools

// Package tools names the two programs that build.sh compiles, so that go.mod and go.sum hold
// exactly what they need.
package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
