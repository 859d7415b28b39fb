//go:build manifests || cluster

package k8s

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

const (
	// everything is production with all components that go together.
	everything = "testdata/everything"
	// inner is production whose workers make sandboxes in their own pods.
	inner = "testdata/inner-sandbox"
	// autoscaled is production with what takes the place of KEDA.
	autoscaled = "testdata/autoscaled"
	// grouped is a single node with a group of replicas.
	grouped = "testdata/group"
)

// overlays returns the folders that are applied, everything, inner, autoscaled and grouped.
func overlays(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("overlays/*/kustomization.yaml")
	if err != nil || len(found) < 4 {
		t.Fatalf("overlays: %v, %v", found, err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return append(found, everything, inner, autoscaled, grouped)
}

// manifests are rendered objects: as a text, as the API server gets them, and each as a
// value of its own type.
type manifests struct {
	yaml    []byte
	objects []*unstructured.Unstructured
	list    []any
}

// known has a new object of each kind that Kubernetes itself defines and that may occur
// in a manifest here; one that is missing is a reason to think about its rules.
var known = map[string]func() any{
	"v1 ConfigMap":                             func() any { return new(core.ConfigMap) },
	"v1 Namespace":                             func() any { return new(core.Namespace) },
	"v1 Service":                               func() any { return new(core.Service) },
	"v1 ServiceAccount":                        func() any { return new(core.ServiceAccount) },
	"v1 PersistentVolumeClaim":                 func() any { return new(core.PersistentVolumeClaim) },
	"batch/v1 CronJob":                         func() any { return new(batch.CronJob) },
	"apps/v1 Deployment":                       func() any { return new(apps.Deployment) },
	"apps/v1 StatefulSet":                      func() any { return new(apps.StatefulSet) },
	"networking.k8s.io/v1 NetworkPolicy":       func() any { return new(networking.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":            func() any { return new(policy.PodDisruptionBudget) },
	"v1 ResourceQuota":                         func() any { return new(core.ResourceQuota) },
	"rbac.authorization.k8s.io/v1 Role":        func() any { return new(rbac.Role) },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() any { return new(rbac.RoleBinding) },
	"autoscaling/v2 HorizontalPodAutoscaler":   func() any { return new(autoscaling.HorizontalPodAutoscaler) },
	"keda.sh/v1alpha1 ScaledObject":            func() any { return new(scaledObject) },
	"monitoring.coreos.com/v1 PodMonitor":      func() any { return new(unstructured.Unstructured) },
	"monitoring.coreos.com/v1 PrometheusRule":  func() any { return new(unstructured.Unstructured) },
	"cert-manager.io/v1 Issuer":                func() any { return new(unstructured.Unstructured) },
	"cert-manager.io/v1 Certificate":           func() any { return new(unstructured.Unstructured) },

	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy":        func() any { return new(admission.ValidatingAdmissionPolicy) },
	"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": func() any { return new(admission.ValidatingAdmissionPolicyBinding) },
}

// build renders a folder as kubectl apply -k does, and decodes what it gives. Fields that
// a type has not are errors: the API server would drop them with a warning at most.
func build(t *testing.T, dir string) *manifests {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	m := new(manifests)
	if m.yaml, err = resources.AsYaml(); err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		kind := r.GetApiVersion() + " " + r.GetKind()
		create, ok := known[kind]
		if !ok {
			t.Fatalf("%s: %s %s: add the kind to known, and rules for it", dir, kind, r.GetName())
		}
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			t.Fatal(err)
		}
		m.objects = append(m.objects, u)
		obj := create()
		if _, ok := obj.(*unstructured.Unstructured); ok {
			obj = u
		} else if err := yaml.UnmarshalStrict(text, obj); err != nil {
			t.Errorf("%s: %s %s: %v", dir, kind, r.GetName(), err)
		}
		m.list = append(m.list, obj)
	}
	return m
}

// of returns the objects of one type.
func of[T any](m *manifests) []T {
	var out []T
	for _, obj := range m.list {
		if o, ok := obj.(T); ok {
			out = append(out, o)
		}
	}
	return out
}

// TestGolden shows in a review what a change of the manifests does to what is applied.
func TestGolden(t *testing.T) {
	var names []string
	for _, dir := range overlays(t) {
		name := filepath.Base(dir) + ".yaml"
		names = append(names, name)
		golden := filepath.Join("testdata", "golden", name)
		got := build(t, dir).yaml
		if *rewrite {
			if err := os.WriteFile(golden, got, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s has changed; go test -tags manifests ./deploy/k8s -rewrite writes it anew (-want +got):\n%s", golden, cmp.Diff(string(want), string(got)))
		}
	}
	there, err := filepath.Glob("testdata/golden/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if !slices.Contains(names, filepath.Base(path)) {
			t.Errorf("%s is of no overlay", path)
		}
	}
}
