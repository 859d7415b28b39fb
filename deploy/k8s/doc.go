// Package k8s has the manifests of an installation on Kubernetes, and their tests.
//
// The manifests are kustomizations: base has the five services, components what an
// installation may add, overlays what is applied. The tests render every overlay, compare
// it with a golden file and check rules that hold of all of them; with the build tag
// cluster they also apply them to a real cluster (make k8s-test).
package k8s
