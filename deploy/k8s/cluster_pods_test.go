//go:build cluster

package k8s

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pfl-forge/pfl-forge/agent/pods"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/process/executortest"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// commander runs commands in pods as an implementer would: with the token of its account.
type commander struct {
	*cluster

	agents, version string
	api             *pods.API
}

// newCommander makes the agents' namespace and an account that its RoleBinding names.
func newCommander(t *testing.T, c *cluster) *commander {
	t.Helper()
	const namespace = "pfl-forge-commander"
	h := &commander{cluster: c, version: c.images(t)}
	c.namespace(t, namespace, nil)
	h.agents = c.agents(t, namespace)
	ctx, accounts := wait.Context(t), c.client.CoreV1().ServiceAccounts(namespace)
	account := &core.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "implementer"}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(ctx, account.Name, &authentication.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := rest.TLSConfigFor(rest.AnonymousClientConfig(c.config))
	if err != nil {
		t.Fatal(err)
	}
	h.api = &pods.API{URL: c.config.Host, TLS: config, Token: func() (string, error) { return token.Status.Token, nil }}
	h.mayNothingElse(t)
	return h
}

// mayNothingElse asks for what the account must not get.
func (h *commander) mayNothingElse(t *testing.T) {
	t.Helper()
	token, err := h.api.Token()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(h.config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, all := wait.Context(t), metav1.ListOptions{}
	if _, err := client.CoreV1().Pods(h.agents).List(ctx, all); err != nil {
		t.Errorf("pods of its namespace: %v", err)
	}
	for what, ask := range map[string]func() error{
		"pods elsewhere": func() error { _, err := client.CoreV1().Pods("default").List(ctx, all); return err },
		"secrets":        func() error { _, err := client.CoreV1().Secrets(h.agents).List(ctx, all); return err },
		"quotas": func() error {
			return client.CoreV1().ResourceQuotas(h.agents).Delete(ctx, "commands", metav1.DeleteOptions{})
		},
		"logs": func() error {
			return client.CoreV1().Pods(h.agents).GetLogs("x", &core.PodLogOptions{}).Do(ctx).Error()
		},
		"exec": func() error {
			return client.CoreV1().RESTClient().Post().Namespace(h.agents).Resource("pods").Name("x").SubResource("exec").Do(ctx).Error()
		},
		"ephemeral containers": func() error {
			_, err := client.CoreV1().Pods(h.agents).UpdateEphemeralContainers(ctx, "x", new(core.Pod), metav1.UpdateOptions{})
			return err
		},
	} {
		if err := ask(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want that it is forbidden", what, err)
		}
	}
}

// executor returns one whose template has changes: pairs of a text and what it becomes.
func (h *commander) executor(t *testing.T, state string, changes ...string) *pods.Executor {
	t.Helper()
	text := commandTemplate(t, h.agents, h.agents)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			t.Fatalf("no %q in the template", changes[i])
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	path := filepath.Join(t.TempDir(), templateKey)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := pods.New(h.api, path, "pfl-forge/implementer:"+h.version, "implementer-0", state, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// none waits until no pod is left; those that end are let go.
func (h *commander) none(t *testing.T) {
	t.Helper()
	wait.Until(t, "no pod of a command is left", func() bool { return len(h.list(t)) == 0 })
}

func (h *commander) list(t *testing.T) []core.Pod {
	t.Helper()
	list, err := h.client.CoreV1().Pods(h.agents).List(wait.Context(t), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// shell returns a command that sees its directory.
func shell(t *testing.T, state, script string) process.Command {
	t.Helper()
	dir, err := os.MkdirTemp(state, "dir-") //nolint:usetesting // below the service's state
	if err != nil {
		t.Fatal(err)
	}
	return process.Command{
		Path: "/bin/bash", Args: []string{"-c", script}, Dir: dir, Env: process.Environment(dir), Limits: process.Limits{Wall: 5 * time.Minute},
		Sandbox: &sandbox.Spec{Network: sandbox.NetworkNone, Mounts: sandbox.Path(dir, sandbox.Writable)},
	}
}

// TestClusterPods runs the suite of executors in pods of a real cluster, and takes pods away
// in the ways in which a cluster does.
func TestClusterPods(t *testing.T) {
	c := findCluster(t)
	beside(t, 3)
	h := newCommander(t, c)
	state := t.TempDir()
	began := time.Now()
	if err := h.executor(t, state).Probe(t.Context(), sandbox.NetworkNone); err != nil {
		t.Fatal(err)
	}
	figure(t, "a command in a pod, from make to remove: %s", time.Since(began).Round(10*time.Millisecond))
	h.none(t)
	t.Run("suite", func(t *testing.T) { executortest.Run(t, h.executor(t, state), state) })
	h.none(t)
	t.Run("probes", func(t *testing.T) { h.probes(t, state) })
	h.none(t)
	t.Run("lost", func(t *testing.T) { h.lost(t, state) })
	t.Run("lost way", func(t *testing.T) { h.lostWay(t, state) })
	h.none(t)
	t.Run("refused", func(t *testing.T) { h.refused(t, state) })
	t.Run("runtime class", func(t *testing.T) { h.ofClass(t, state) })
	t.Run("earlier life", func(t *testing.T) { h.sweep(t, state) })
}

// ownInPod are the probes that reach something in a pod of a command which is
// the pod's own, with why that is no way out.
var ownInPod = map[string]string{
	"network: routes of the machine":             "they are those of the pod's own network, in which policies of the cluster hold",
	"privileges: a lower likelihood to be ended": "only when the node has no memory left: before that the pod's own limit ends it",
}

// probes makes those of the local sandbox from within the pod of a command.
// What they reach for belongs to a process on the machine of this test, which
// is the pod's node too where a cluster has one node.
func (h *commander) probes(t *testing.T, state string) {
	t.Helper()
	binary := suite(t, h.arch)
	outside := exec.CommandContext(wait.Context(t), suite(t, runtime.GOARCH), "-test.run=^TestProbes$")
	outside.Env, outside.Dir = append(os.Environ(), "TEST_OUTSIDE=true"), t.TempDir()
	until, err := outside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := outside.StdoutPipe()
	if err == nil {
		err = outside.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = until.Close()
		if err := outside.Wait(); err != nil {
			t.Errorf("what is outside ends with %v", err)
		}
	})
	orders, err := bufio.NewReader(said).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	c := shell(t, state, "TEST_PROBES=none ./suite < orders.json")
	if err := os.Rename(binary, filepath.Join(c.Dir, "suite")); err != nil { // below one temporary directory
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "orders.json"), orders, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := h.executor(t, state).Run(t.Context(), c)
	ran := regexp.MustCompile(`(?m)^ran (\d+)$`).FindSubmatch(r.Output)
	if err != nil || r.ExitCode != 0 || ran == nil {
		t.Fatalf("code %d, %v\n%s", r.ExitCode, err, r.Output)
	}
	if n, _ := strconv.Atoi(string(ran[1])); n < 200 {
		t.Errorf("%d probes ran", n)
	}
	for line := range strings.Lines(string(r.Output)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "reached "); ok && ownInPod[name] == "" {
			t.Errorf("a pod does not hold %s", name)
		}
	}
}

// lost has pods that end in the middle of a command: that is not the command's failure.
func (h *commander) lost(t *testing.T, state string) {
	t.Helper()
	name := func(t *testing.T) string {
		t.Helper()
		list := h.list(t)
		if len(list) != 1 {
			t.Errorf("there are %d pods", len(list))
			return "none"
		}
		return list[0].Name
	}
	for _, test := range []struct {
		name, script string
		changes      []string
		during       func(*testing.T)
		want         string
	}{
		{"out of memory", "echo started; head -c 300M /dev/zero | tail", []string{"memory: 4Gi", "memory: 96Mi"}, nil, "out of memory"},
		{"deleted", "echo started; sleep 600", nil, func(t *testing.T) {
			if err := h.client.CoreV1().Pods(h.agents).Delete(wait.Context(t), name(t), *metav1.NewDeleteOptions(0)); err != nil {
				t.Error(err)
			}
		}, "the pod was deleted"},
		{"drained", "echo started; sleep 600", nil, func(t *testing.T) {
			eviction := &policy.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name(t), Namespace: h.agents}}
			if err := h.client.PolicyV1().Evictions(h.agents).Evict(wait.Context(t), eviction); err != nil {
				t.Error(err)
			}
		}, "the pod"},
		{"too much on the disk", "echo started; head -c 32M /dev/zero > /tmp/large; sleep 600", []string{"sizeLimit: 2Gi", "sizeLimit: 4Mi"}, nil, "Evicted"},
		{"past its deadline", "echo started; sleep 600", nil, func(t *testing.T) {
			patch := []byte(`{"spec": {"activeDeadlineSeconds": 1}}`)
			if _, err := h.client.CoreV1().Pods(h.agents).Patch(wait.Context(t), name(t), "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		}, "DeadlineExceeded"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, started := shell(t, state, test.script), false
			c.Line = func(process.Stream, []byte) {
				if !started && test.during != nil {
					test.during(t)
				}
				started = true
			}
			began := time.Now()
			r, err := h.executor(t, state, test.changes...).Run(t.Context(), c)
			if !errors.Is(err, process.ErrLost) || !strings.Contains(err.Error(), test.want) || r.ExitCode != -1 || !started {
				t.Errorf("%v; status %d; want a loss with %q", err, r.ExitCode, test.want)
			}
			t.Logf("after %s: %v", time.Since(began).Round(time.Millisecond), err)
			h.none(t)
		})
	}
}

// refused asks for pods that cannot be had, now or ever.
func (h *commander) refused(t *testing.T, state string) {
	t.Helper()
	for _, test := range []struct {
		name    string
		changes []string
		want    error
		says    string
	}{
		{"no such image", []string{"imagePullPolicy: IfNotPresent", "imagePullPolicy: Never"}, process.ErrSandbox, "ErrImageNeverPull"},
		{"Pod Security", []string{"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true"}, process.ErrSandbox, `violates PodSecurity "restricted`},
		{"policy", []string{"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"}, process.ErrSandbox, "readOnlyRootFilesystem: true"},
		{"other namespace", []string{"namespace: " + h.agents, "namespace: default"}, process.ErrSandbox, `cannot create resource "pods"`},
		{"runtime class", []string{"spec:\n", "spec:\n  runtimeClassName: missing\n"}, process.ErrSandbox, `RuntimeClass "missing" not found`},
		{"quota", nil, process.ErrLost, "exceeded quota: full"},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := *h
			switch test.name {
			case "no such image":
				of.version = "missing"
			case "quota":
				quotas := h.client.CoreV1().ResourceQuotas(h.agents)
				full := &core.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "full"}}
				full.Spec.Hard = core.ResourceList{core.ResourcePods: resource.MustParse("0")}
				if _, err := quotas.Create(wait.Context(t), full, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := quotas.Delete(wait.Context(t), full.Name, metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				}()
				// The API server admits pods until a controller has counted them and its own
				// cache has that count.
				wait.Until(t, "the quota is in force", func() bool {
					_, err := h.client.CoreV1().Pods(h.agents).Create(wait.Context(t), agentPod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
					return err != nil && strings.Contains(err.Error(), test.says)
				})
			}
			_, err := of.executor(t, state, test.changes...).Run(t.Context(), shell(t, state, "exit 0"))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%v; want %v with %q", err, test.want, test.says)
			}
			h.none(t)
		})
	}
}

// ofClass has the template name a runtime class. Its handler is the usual one,
// which every node has; one with a kernel of its own is named in the same way.
func (h *commander) ofClass(t *testing.T, state string) {
	t.Helper()
	classes := h.client.NodeV1().RuntimeClasses()
	class := &node.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: h.agents}, Handler: "runc"}
	if _, err := classes.Create(wait.Context(t), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := classes.Delete(wait.Context(t), class.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	c, of := shell(t, state, "echo started"), ""
	c.Line = func(process.Stream, []byte) {
		if list := h.list(t); len(list) == 1 && list[0].Spec.RuntimeClassName != nil {
			of = *list[0].Spec.RuntimeClassName
		}
	}
	r, err := h.executor(t, state, "spec:\n", "spec:\n  runtimeClassName: "+class.Name+"\n").Run(t.Context(), c)
	if err != nil || r.ExitCode != 0 || of != class.Name {
		t.Errorf("code %d in a pod of class %q, %v", r.ExitCode, of, err)
	}
	h.none(t)
}

// sweep has a replica die with a command in a pod. Its next life removes the pod, and none
// of another replica.
func (h *commander) sweep(t *testing.T, state string) {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	labels := map[string]string{pods.LabelReplica: "implementer-0"}
	for _, name := range []string{"left", "of-another"} {
		pod := agentPod()
		pod.Name, pod.Labels = name, labels
		if _, err := h.client.CoreV1().Pods(h.agents).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		labels = map[string]string{pods.LabelReplica: "implementer-1"}
	}
	if err := h.executor(t, state).Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the pod is gone", func() bool { list := h.list(t); return len(list) == 1 && list[0].Name == "of-another" })
	if err := h.client.CoreV1().Pods(h.agents).Delete(ctx, "of-another", *metav1.NewDeleteOptions(0)); err != nil {
		t.Error(err)
	}
	h.none(t)
}
