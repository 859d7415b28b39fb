//go:build cluster

package k8s

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// prompt has autoscalers do in seconds what they do in minutes.
const prompt = `  - target: {kind: HorizontalPodAutoscaler}
    patch: |-
      - op: replace
        path: /spec/behavior/scaleDown
        value: {stabilizationWindowSeconds: 5, policies: [{type: Pods, value: 1, periodSeconds: 5}]}
  - target: {kind: HorizontalPodAutoscaler, name: implementer}
    patch: |-
      - {op: replace, path: /spec/maxReplicas, value: 3}
      - {op: replace, path: /spec/metrics/0/external/target/averageValue, value: "1"}
`

// adapterImage has the program that answers autoscalers, deploy/monitoring/adapter.
const adapterImage = "pfl-forge/adapter:test"

// autoscaled adds components/hpa, and in the namespace of the other systems what answers its
// autoscalers. Implementers follow the commands that wait, from one to some, and go again.
func (in *installation) autoscaled(t *testing.T) {
	t.Helper()
	externalMetrics.Lock()
	defer externalMetrics.Unlock()
	in.withAdapter(t, func() {
		shop := strings.Replace(in.sandboxedShop(t), "components: [", "components: [../pfl-forge/deploy/k8s/components/hpa, ", 1)
		in.write(t, "overlays/production", "", shop+small+prompt)
		in.ready(t, "implementer", 1)
		sh, ask := newTerminal(t, in.kubectlScript(t)), newHandbook(t).block("kubectl get --raw")
		ask = strings.TrimSpace(strings.Replace(ask, "namespaces/pfl-forge/", "namespaces/"+in.namespace+"/", 1))
		wait.Until(t, "the adapter answers", func() bool {
			return strings.Contains(sh.do(sh.dir, ask+" || true"), `"value":"0"`)
		})

		began := time.Now()
		const count = 8
		in.asked = append(in.asked, in.submitTo(t, "shop", "autoscaled", count, "linger")...)
		wait.Until(t, "there are more implementers, and they are ready", func() bool {
			pods := in.pods(t, "implementer")
			return len(pods) > 1 && isReady(&pods[0]) && isReady(&pods[1])
		})
		figure(t, "autoscalers have brought a second implementer %s after changes were asked for", time.Since(began).Round(time.Second))
		in.merged(t)
		in.measured(t)
		began = time.Now()
		in.ready(t, "implementer", 1)
		figure(t, "autoscalers have left one implementer %s after the last change", time.Since(began).Round(time.Second))
	})
}

// withAdapter runs what asks for external metrics, and takes away what answers:
// a namespace cannot end while a group of the API does not.
func (in *installation) withAdapter(t *testing.T, ask func()) {
	t.Helper()
	in.loadAdapter(t)
	in.watchedByPrometheus(t)
	ctx, namespace := wait.Context(t), in.systems
	rule, err := os.ReadFile(adapterRules)
	if err != nil {
		t.Fatal(err)
	}
	const name, port = "adapter", 6443
	config := &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"adapter.yaml": string(rule)}}
	if _, err := in.client.CoreV1().ConfigMaps(namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app.kubernetes.io/name": "prometheus"} // which policies let read metrics
	pod := restrictedPod(name, labels, "/config/adapter.yaml", "/data", in.namespace, "runner."+in.namespace+".svc:8080")
	pod.Spec.Containers[0].Image = adapterImage
	pod.Spec.Containers[0].VolumeMounts = []core.VolumeMount{{Name: "config", MountPath: "/config"}, {Name: "data", MountPath: "/data"}}
	pod.Spec.Volumes = []core.Volume{
		{Name: "config", VolumeSource: core.VolumeSource{ConfigMap: &core.ConfigMapVolumeSource{LocalObjectReference: core.LocalObjectReference{Name: name}}}},
		{Name: "data", VolumeSource: core.VolumeSource{EmptyDir: new(core.EmptyDirVolumeSource)}},
	}
	if _, err := in.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	there := &core.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: core.ServiceSpec{
		Selector: labels, Ports: []core.ServicePort{{Port: port, TargetPort: intstr.FromInt32(port)}},
	}}
	if _, err := in.client.CoreV1().Services(namespace).Create(ctx, there, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	service := object("apiregistration.k8s.io/v1", "APIService", "v1beta1.external.metrics.k8s.io", map[string]any{"spec": map[string]any{
		"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"insecureSkipTLSVerify": true, "service": map[string]any{"name": name, "namespace": namespace, "port": int64(port)},
	}})
	defer in.remove(t, service) // also where the test ends: what answers is gone then
	if err := in.apply(ctx, service); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the adapter is available", func() bool { return in.condition(t, service, "Available") == "True" })
	ask()
}

// loadAdapter builds what answers autoscalers, and puts an image of it into the nodes.
func (c *cluster) loadAdapter(t *testing.T) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "adapter")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./adapter")
	cmd.Dir = filepath.Join(root(t), "deploy", "monitoring") // whose versions are not those of the workspace
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+c.arch)
	output(t, cmd)
	c.loadArchive(t, c.imageOf(t, adapterImage, "adapter", binary))
}

// object returns an object of a kind that is in no namespace.
func object(version, kind, name string, rest map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: rest}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetName(name)
	return u
}
