//go:build manifests || cluster

package k8s

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"
)

// definitions has the modules whose files define the kinds that are not Kubernetes' own: what an
// API server with these programs installed judges objects by. Go verifies their checksums. A module
// without a version has that of deploy/keda.
var definitions = []struct{ module, files string }{
	{kedaPath, "config/crd/bases/keda.sh_scaledobjects.yaml"},
	{"github.com/cert-manager/cert-manager@v1.20.0", "deploy/crds/cert-manager.io_*.yaml"},
}

// definition is as much of a CustomResourceDefinition as says what an object has to look like.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Served bool
			Schema struct{ OpenAPIV3Schema spec.Schema }
		}
	}
}

// schemas returns the schema of every served version of the kinds of others, by
// apiVersion and kind.
func schemas(t *testing.T) map[string]*spec.Schema {
	t.Helper()
	found := map[string]*spec.Schema{}
	for _, d := range definitions {
		module := d.module
		if module == kedaPath {
			module += "@" + kedaVersion(t)
		}
		files, err := filepath.Glob(filepath.Join(download(t, module), filepath.FromSlash(d.files)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no %s: %v", d.module, d.files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var crd definition
			if err := yaml.Unmarshal(text, &crd); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for i := range crd.Spec.Versions {
				if v := &crd.Spec.Versions[i]; v.Served {
					found[crd.Spec.Group+"/"+v.Name+" "+crd.Spec.Names.Kind] = &v.Schema.OpenAPIV3Schema
				}
			}
		}
	}
	return found
}

// kedaPath is the module of KEDA.
const kedaPath = "github.com/kedacore/keda/v2"

// kedaVersion returns the version of KEDA that deploy/keda requires: the one
// whose definitions are read is the one that runs in TestClusterKEDA.
func kedaVersion(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", filepath.Join("..", "keda", "go.mod"))
	said, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(said, &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Require {
		if r.Path == kedaPath {
			return r.Version
		}
	}
	t.Fatalf("deploy/keda does not require %s", kedaPath)
	return ""
}

// download returns the folder with the source of a module, path@version,
// whatever others require of it.
func download(t *testing.T, module string) (dir string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	said, err := cmd.Output()
	var got struct{ Dir, Error string }
	if unreadable := json.Unmarshal(said, &got); unreadable != nil || err != nil || got.Dir == "" {
		t.Fatalf("%s: %v, %v: %s", module, err, unreadable, got.Error)
	}
	return got.Dir
}

// TestKindsOfOthers judges the objects of KEDA and cert-manager by their own definitions, as an API
// server does that has them: a cluster of the tests has not, and would judge none.
func TestKindsOfOthers(t *testing.T) {
	all, judged := schemas(t), map[string]int{}
	m := build(t, everything)
	for _, u := range m.objects {
		kind := u.GetAPIVersion() + " " + u.GetKind()
		schema, ok := all[kind]
		if !ok {
			if judgedElsewhere[kind] == "" && !typed(kind) {
				t.Errorf("%s %s: nothing says what such an object looks like", kind, u.GetName())
			}
			continue
		}
		judged[kind]++
		for _, wrong := range judge(schema, u.Object) {
			t.Errorf("%s %s: %s", kind, u.GetName(), wrong)
		}
	}
	want := []string{"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer", "keda.sh/v1alpha1 ScaledObject"}
	for _, kind := range want {
		if judged[kind] == 0 {
			t.Errorf("no object of kind %s was judged", kind)
		}
	}

	// What an API server would refuse, or drop, is noticed.
	for what, spoil := range map[string]func(*unstructured.Unstructured) error{
		"a misspelt field": func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, int64(3), "spec", "maxReplicas")
		},
		"a number as a text": func(u *unstructured.Unstructured) error {
			return unstructured.SetNestedField(u.Object, "3", "spec", "maxReplicaCount")
		},
		"a field that is missing": func(u *unstructured.Unstructured) error {
			unstructured.RemoveNestedField(u.Object, "spec", "triggers")
			return nil
		},
	} {
		i := slices.IndexFunc(m.objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ScaledObject" })
		bad := m.objects[i].DeepCopy()
		if err := spoil(bad); err != nil {
			t.Fatal(err)
		}
		if len(judge(all["keda.sh/v1alpha1 ScaledObject"], bad.Object)) == 0 {
			t.Errorf("%s is not noticed", what)
		}
	}
}

// judgedElsewhere has the kinds whose definitions cannot be had as a module,
// and what looks at them.
var judgedElsewhere = map[string]string{
	"monitoring.coreos.com/v1 PrometheusRule": "TestAlerts, with Prometheus' own engine",
	"monitoring.coreos.com/v1 PodMonitor":     "TestGolden, by whoever reviews it",
}

// typed reports whether a kind is Kubernetes' own: build decodes it strictly.
func typed(kind string) bool {
	create, ok := known[kind]
	if !ok {
		return false
	}
	_, untyped := create().(*unstructured.Unstructured)
	return !untyped
}

// judge returns what is wrong with an object: values that the schema refuses,
// and fields that it has not.
func judge(schema *spec.Schema, object map[string]any) []string {
	var wrong []string
	for _, err := range validate.NewSchemaValidator(schema, nil, "", strfmt.Default).Validate(object).Errors {
		wrong = append(wrong, err.Error())
	}
	return append(wrong, unknownFields(schema, object, "")...)
}

// unknownFields lists the fields of a value that its schema has not: an API server drops them.
func unknownFields(schema *spec.Schema, value any, path string) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			at := path + "." + name
			property, ok := schema.Properties[name]
			open := schema.AdditionalProperties
			switch {
			case ok:
				found = append(found, unknownFields(&property, inner, at)...)
			case open != nil && open.Schema != nil:
				found = append(found, unknownFields(open.Schema, inner, at)...)
			case path == "" && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name), path == ".metadata":
			case schema.Extensions["x-kubernetes-preserve-unknown-fields"] == true, strings.HasPrefix(at, ".metadata."):
			default:
				found = append(found, fmt.Sprintf("%s is no field of it", at))
			}
		}
	case []any:
		if schema.Items == nil || schema.Items.Schema == nil {
			break
		}
		for i, inner := range value {
			found = append(found, unknownFields(schema.Items.Schema, inner, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return found
}
