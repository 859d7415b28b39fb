//go:build cluster

package k8s

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// installation is pfl-forge in a namespace, with a git server and another system in
// namespaces of their own. One node has to be enough for all of it.
type installation struct {
	*cluster

	namespace, git, systems, agents string
	version                         string
	// token is that by which a system asks the gateway, visits how many pods
	// did so. With person, a person signs in at its console.
	token, person string
	visits        int
	// asked has the names of the changes that were asked for, and others counts
	// those of other projects than shop.
	asked  []string
	others int
	// key is the one key that the model accepts; empty: any.
	key string
}

// installationLabel is on the pods of an installation, with its namespace: also
// on those of commands. A drain of the one node has to leave others there.
const installationLabel = "pfl-forge.io/test"

// newInstallation makes the namespaces, the Secrets and the git server.
// Commands of its project check that they run in pods of their own.
func newInstallation(t *testing.T, c *cluster, name, version string) *installation {
	t.Helper()
	return makeInstallation(t, c, name, version, "")
}

// newSandboxedInstallation is newInstallation for commands in sandboxes in the
// workers' pods, whose host name they check.
func newSandboxedInstallation(t *testing.T, c *cluster, name, version string) *installation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "git", "pfl-forge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	settings := strings.ReplaceAll(string(text), "grep -q ^forge-implementer-", "grep -q ^implementer-")
	return makeInstallation(t, c, name, version,
		fmt.Sprintf("configMapGenerator:\n  - name: git\n    behavior: merge\n    literals: [%q]\n", "pfl-forge.yaml="+settings))
}

// makeInstallation makes an installation; more is the rest of its git server's kustomization.
func makeInstallation(t *testing.T, c *cluster, name, version, more string) *installation {
	t.Helper()
	in := &installation{cluster: c, namespace: name, git: name + "-git", systems: name + "-systems", version: version}
	c.namespace(t, in.namespace, nil)
	c.namespace(t, in.git, nil)
	c.namespace(t, in.systems, map[string]string{"pfl-forge.io/nats-clients": "true"})
	c.secrets(t, in.namespace, in.systems)
	in.agents = c.agents(t, in.namespace)
	in.doors(t)
	in.write(t, filepath.Join("testdata", "git"), "git", more)
	t.Cleanup(func() {
		if t.Failed() {
			in.report(t)
		}
	})
	return in
}

// write applies a kustomization that stands on another one, with versions and namespace of
// this installation; more is the rest of it.
func (in *installation) write(t *testing.T, base, what, more string) {
	t.Helper()
	in.applyAll(t, build(t, in.overlay(t, base, what, more)))
}

// overlay returns the folder of such a kustomization: what a person writes for an
// installation. Folders of more below ../pfl-forge are those of this repository, as in the guide.
func (in *installation) overlay(t *testing.T, base, what, more string) string {
	t.Helper()
	namespace := in.namespace
	if what == "git" {
		namespace = in.git
	}
	dir := t.TempDir()
	abs, err := filepath.Abs(base)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(dir, abs)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: %s\nresources: [%s]\n", namespace, rel)
	if what == "" {
		fmt.Fprintf(&b, "labels: [{pairs: {%s: %s}, includeTemplates: true}]\n", installationLabel, in.namespace)
	}
	b.WriteString("images:\n")
	for _, name := range []string{"runner", "analyzer", "implementer", "reviewer", "reflector", "gateway", "pfl-forge"} {
		fmt.Fprintf(&b, "  - {name: pfl-forge/%s, newTag: %q}\n", name, in.version)
	}
	here, err := filepath.Rel(dir, root(t))
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString(strings.ReplaceAll(more, "../pfl-forge/", here+"/"))
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shop is the part of the kustomization that gives the installation its one project. Agents and
// commands run in pods of their own.
func (in *installation) shop(t *testing.T) string {
	t.Helper()
	pods := "  - name: forge-pods\n    behavior: merge\n    literals: [%q]\n"
	return in.project(t, fmt.Sprintf(pods, templateKey+"="+commandTemplate(t, in.agents, in.namespace)))
}

// sandboxedShop is shop with agents and commands in sandboxes in the workers' pods.
func (in *installation) sandboxedShop(t *testing.T) string {
	t.Helper()
	return "components: [../pfl-forge/deploy/k8s/components/inner-sandbox]\n" + in.project(t, "")
}

// project is the part of the kustomization that gives the installation its one
// project, and lets it reach the git server inside of the cluster instead of
// public ones, and whoever answers names there. One node has to have room for
// three installations. Further generators of ConfigMaps are those of the caller.
func (in *installation) project(t *testing.T, generators string) string {
	t.Helper()
	return fmt.Sprintf(`configMapGenerator:
  - name: forge-projects
    behavior: merge
    literals: ["FORGE_PROJECTS=shop=http://git.%[1]s.svc:8080/shop.git"]
  - name: forge-settings
    behavior: merge
    literals: ["FORGE_POD_IMAGE=pfl-forge/implementer:%[3]s", "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.%[1]s.svc:4318"]
%[4]spatches:
  - target: {kind: StatefulSet, labelSelector: pfl-forge.io/service=true}
    patch: |-
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: any}
      spec:
        template:
          spec:
            containers:
              - name: service
                env:
                  - {name: PATH, value: "/usr/local/bin:/usr/bin:/bin:/opt/claude"}
                  - {name: ANTHROPIC_BASE_URL, value: "http://model.%[1]s.svc:8080"}
                  - {name: ANTHROPIC_API_KEY, value: no-key}
                volumeMounts: [{name: claude, mountPath: /opt/claude, readOnly: true}]
            volumes: [{name: claude, image: {reference: %[5]q, pullPolicy: Never}}]
  - target: {kind: StatefulSet|Deployment}
    patch: |-
      - {op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: 20m}
  - target: {kind: NetworkPolicy, name: git-and-models}
    patch: |-
      - op: replace
        path: /spec/egress
        value:
          - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}]
            ports: [{port: 8080, protocol: TCP}]
  - target: {kind: NetworkPolicy, name: dns}
    patch: |-
      - op: add
        path: /spec/egress/-
        value: {to: [%[2]s], ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]}
      - op: add
        path: /spec/egress/-
        value: {to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}}], ports: [{port: 4318, protocol: TCP}]}
`, in.git, strings.Join(in.dnsServers(t), ", "), in.version, generators, claudeImage)
}

// dnsServers returns the peers of a policy that answer names: on some clusters not pods of
// kube-system but addresses of nodes.
func (in *installation) dnsServers(t *testing.T) []string {
	t.Helper()
	ofDNS := metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kube-dns"}
	slices, err := in.client.DiscoveryV1().EndpointSlices("kube-system").List(wait.Context(t), ofDNS)
	if err != nil {
		t.Fatal(err)
	}
	var peers []string
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			for _, address := range e.Addresses {
				peers = append(peers, fmt.Sprintf("{ipBlock: {cidr: %s/32}}", address))
			}
		}
	}
	if len(peers) == 0 {
		t.Fatal("the Service kube-dns has no addresses")
	}
	return peers
}

// pods returns the pods of a service, all of the namespace with an empty name; those that
// are going included.
func (in *installation) pods(t *testing.T, service string) []core.Pod {
	t.Helper()
	options := metav1.ListOptions{LabelSelector: "app.kubernetes.io/name"}
	if service != "" {
		options.LabelSelector = "app.kubernetes.io/name=" + service
	}
	list, err := in.client.CoreV1().Pods(in.namespace).List(wait.Context(t), options)
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// ready waits until a service has as many pods, and all of them are ready.
func (in *installation) ready(t *testing.T, service string, count int) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("%d of %q are ready", count, service), func() bool {
		pods := in.pods(t, service)
		for i := range pods {
			if !isReady(&pods[i]) {
				return false
			}
		}
		return len(pods) == count
	})
}

func isReady(p *core.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == core.PodReady {
			return c.Status == core.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// scale asks for a number of implementers.
func (in *installation) scale(t *testing.T, replicas int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
	sets := in.client.AppsV1().StatefulSets(in.namespace)
	if _, err := sets.Patch(wait.Context(t), "implementer", types.MergePatchType, patch, metav1.PatchOptions{}, "scale"); err != nil {
		t.Fatal(err)
	}
}

// kill deletes one pod of a service at once, as the loss of its node would.
func (in *installation) kill(t *testing.T, service string) {
	t.Helper()
	pods := in.pods(t, service)
	if len(pods) == 0 {
		t.Fatalf("no pod of %s", service)
	}
	in.killPod(t, pods[len(pods)-1].Name)
}

func (in *installation) killPod(t *testing.T, pod string) {
	t.Helper()
	now := int64(0)
	err := in.client.CoreV1().Pods(in.namespace).Delete(wait.Context(t), pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	t.Logf("killed %s", pod)
}

// exec runs a command in a container, and returns what it prints.
func (c *cluster) exec(ctx context.Context, namespace, pod, container string, args ...string) (string, error) {
	request := c.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
		VersionedParams(&core.PodExecOptions{Container: container, Command: args, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(c.config, "POST", request.URL())
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errs}); err != nil {
		return "", fmt.Errorf("%w: %s", err, errs.String())
	}
	return out.String(), nil
}

// logs returns the end of what a pod has written.
func (c *cluster) logs(ctx context.Context, namespace, pod string, previous bool) string {
	lines := int64(25)
	text, err := c.client.CoreV1().Pods(namespace).GetLogs(pod, &core.PodLogOptions{TailLines: &lines, Previous: previous}).DoRaw(ctx)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// report logs what a person would look at who asks why it does not work.
func (in *installation) report(t *testing.T) {
	t.Helper()
	ctx := wait.Context(t)
	for _, namespace := range []string{in.namespace, in.git, in.systems, in.agents} {
		pods, err := in.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Log(err)
			continue
		}
		for _, p := range pods.Items {
			t.Logf("%s/%s: %s\n%+v\n%s", namespace, p.Name, p.Status.Phase, p.Status.ContainerStatuses, in.logs(ctx, namespace, p.Name, false))
			for _, s := range p.Status.ContainerStatuses {
				if s.RestartCount > 0 {
					t.Logf("before its restart:\n%s", in.logs(ctx, namespace, p.Name, true))
				}
			}
		}
		events, err := in.client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
		if err != nil {
			t.Log(err)
			continue
		}
		for _, e := range events.Items {
			t.Logf("%s: %s: %s", e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}
