// Package k8s has the manifests of an installation on Kubernetes, and their tests.
//
// The manifests are kustomizations: base has the five services, components what an
// installation may add, overlays what is applied. With the build tag manifests (make
// test-manifests) the tests render every overlay, compare it with a golden file and check
// rules that hold of all of them; with the tag cluster they also apply them to a real
// cluster (make k8s-test). Without a tag nothing of Kubernetes is compiled.
package k8s
