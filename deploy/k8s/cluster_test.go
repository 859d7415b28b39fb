//go:build cluster

package k8s

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// cluster is the Kubernetes that the tests run on.
type cluster struct {
	config  *rest.Config
	client  kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
	// warned has what the API server warned of, by itself or for others that judge objects.
	warned *warnings
	// load is the command that puts an image archive into the nodes; the archive's path is
	// its last argument.
	load []string
	// kubectl is the command of that name, and kubeconfig the file that it is given.
	kubectl    []string
	kubeconfig string
	arch       string
	// profiles is the kubelet's folder of seccomp profiles, on the nodes.
	profiles string
}

const howto = `a cluster is needed:
  KUBECONFIG=... K8S_LOAD="kind load image-archive" make k8s-test    any cluster, and the command that loads an image archive into its nodes
  FORGE_CLUSTER=path/to/script make k8s-test                         a script with the commands up, kubeconfig, kubectl ARG..., load FILE and down`

// findCluster returns the cluster that the environment names. One that a script has to
// bring up ends with the last test.
func findCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{warned: new(warnings), load: strings.Fields(os.Getenv("K8S_LOAD")), profiles: "/var/lib/kubelet/seccomp", kubectl: []string{"kubectl"}}
	c.join(t)
	kubeconfig, script := os.Getenv("KUBECONFIG"), os.Getenv("FORGE_CLUSTER")
	switch {
	case kubeconfig != "" && len(c.load) > 0:
	case kubeconfig != "" || len(c.load) > 0:
		t.Fatalf("KUBECONFIG and K8S_LOAD go together; %s", howto)
	case script != "":
		if !filepath.IsAbs(script) {
			script = filepath.Join(root(t), script)
		}
		kubeconfig, c.load, c.kubectl = bringUp(t, script), []string{script, "load"}, []string{script, "kubectl"}
		c.profiles = filepath.Join(filepath.Dir(kubeconfig), "kubelet", "seccomp") // as such a script runs it
	default:
		t.Fatal(howto)
	}
	c.kubeconfig = kubeconfig
	if words := strings.Fields(os.Getenv("K8S_KUBECTL")); len(words) > 0 {
		c.kubectl = words
	}
	c.profiles = cmp.Or(os.Getenv("K8S_SECCOMP_DIR"), c.profiles)
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		t.Fatal(err)
	}
	// Waits ask again and again: oftener than so they would take from the
	// cluster what it needs for its work.
	c.config.QPS, c.config.Burst, c.config.WarningHandler = 10, 200, c.warned
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	if c.dynamic, err = dynamic.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	nodes, err := c.client.CoreV1().Nodes().List(wait.Context(t), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatalf("nodes: %v", err)
	}
	c.arch = nodes.Items[0].Status.NodeInfo.Architecture
	c.look(t)
	return c
}

// warnings are texts, each of them once.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader takes a warning of the API server.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// bringUp has a script bring a cluster up, unless it is, and returns its kubeconfig.
func bringUp(t *testing.T, script string) string {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), script, "kubeconfig").Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	command(t, "", script, "up")
	together.down = func(t *testing.T) {
		t.Helper()
		loaded = "" // images go with the cluster
		if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), script, "down").CombinedOutput(); err != nil {
			t.Errorf("%s down: %v\n%s", script, err, out)
		}
	}
	return strings.TrimSpace(command(t, "", script, "kubeconfig"))
}

// figure logs a measured figure, and adds it to the file K8S_FIGURES if there is one: those of
// docs/performance.md come from there.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	t.Log(line)
	path := os.Getenv("K8S_FIGURES")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, "k8s:", line); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// command runs a program in a folder and returns its standard output.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	return output(t, cmd)
}

// output runs a program to its end and returns its standard output.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			out = append(out, exit.Stderr...)
		}
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// resource returns the client for objects of the kind of u.
func (c *cluster) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := u.GroupVersionKind()
	mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()), nil
	}
	return c.dynamic.Resource(mapping.Resource), nil
}

// apply does what kubectl apply --server-side does with one object, by the name
// that it does it by: tests use both on the same objects.
func (c *cluster) apply(ctx context.Context, u *unstructured.Unstructured, dryRun ...string) error {
	r, err := c.resource(u)
	if err != nil {
		return err
	}
	_, err = r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "kubectl", Force: true, DryRun: dryRun})
	return err
}

// applyAll applies rendered manifests, namespaces first.
func (c *cluster) applyAll(t *testing.T, m *manifests) {
	t.Helper()
	for _, u := range m.objects {
		if err := c.apply(wait.Context(t), u); err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
}

// namespace makes a namespace in which the Pod Security Standard holds that the manifests
// ask for. It goes, with everything in it, when the test ends.
func (c *cluster) namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	c.makeNamespace(t, name, labels)
	t.Cleanup(func() { c.removeNamespace(t, name) })
}

// makeNamespace makes a namespace that stays.
func (c *cluster) makeNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	ns := &core.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	maps.Copy(ns.Labels, labels)
	if _, err := c.client.CoreV1().Namespaces().Create(wait.Context(t), ns, metav1.CreateOptions{}); err != nil {
		t.Fatalf("%v: end what an earlier test has left, kubectl delete namespace %s", err, name)
	}
}

func (c *cluster) removeNamespace(t *testing.T, name string) {
	t.Helper()
	ctx := wait.Context(t)
	err := c.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
		return
	}
	// After a test that failed, a worker would drain for half an hour.
	now := int64(0)
	if err := c.client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	wait.Until(t, "namespace "+name+" is gone", func() bool {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// global lists what is not in a namespace, leases of namespaces apart.
func (c *cluster) global(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, kind := range []string{
		"v1/Namespace", "v1/PersistentVolume", "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy",
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding", "rbac.authorization.k8s.io/v1/ClusterRole",
		"rbac.authorization.k8s.io/v1/ClusterRoleBinding", "scheduling.k8s.io/v1/PriorityClass",
		"apiextensions.k8s.io/v1/CustomResourceDefinition", "apiregistration.k8s.io/v1/APIService",
		"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration", "node.k8s.io/v1/RuntimeClass",
	} {
		i := strings.LastIndex(kind, "/")
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(kind[:i])
		u.SetKind(kind[i+1:])
		r, err := c.resource(u)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.List(wait.Context(t), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, kind+" "+item.GetName())
		}
	}
	return names
}
