//go:build manifests || cluster

package k8s

import (
	"path"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestGatewayHasItsKey: the settings of the gateway name the key of the
// console, which is a file of a Secret, beside them, that its replicas share,
// and that nobody reads but the service's own user and group.
func TestGatewayHasItsKey(t *testing.T) {
	m := build(t, everything)
	all := workloads(m)
	i := slices.IndexFunc(all, func(w workload) bool { return w.name == "Deployment gateway" })
	if i < 0 {
		t.Fatal("there is no gateway")
	}
	spec := &all[i].pod.Spec
	volume := spec.Volumes[slices.IndexFunc(spec.Volumes, func(v core.Volume) bool { return v.Name == "gateway" })].Projected
	var settings struct {
		Console struct {
			Key string `json:"key"`
		} `json:"console"`
	}
	key, secret := "", false
	for _, s := range volume.Sources {
		switch {
		case s.ConfigMap != nil:
			for _, c := range of[*core.ConfigMap](m) {
				if c.Name == s.ConfigMap.Name {
					if err := yaml.Unmarshal([]byte(c.Data["gateway.yaml"]), &settings); err != nil {
						t.Fatal(err)
					}
					key = settings.Console.Key
				}
			}
		case s.Secret != nil && s.Secret.Name == "forge-gateway-console":
			secret = s.Secret.Optional == nil && len(s.Secret.Items) == 0
		}
	}
	// auth init makes the entry console.key of this Secret (TestConsoleKey).
	if key != "console.key" || path.IsAbs(key) || !secret {
		t.Errorf("the settings name the key %q, and its Secret is mounted: %t", key, secret)
	}
	if volume.DefaultMode == nil {
		t.Fatal("its files have no mode")
	}
	if mode := *volume.DefaultMode; mode != 0o440 {
		t.Errorf("the mode of its files is %o", mode)
	}
	if c := spec.SecurityContext; c.FSGroup == nil || c.RunAsGroup == nil || *c.FSGroup != *c.RunAsGroup {
		t.Error("the service's group is not that of the files")
	}
	for _, e := range spec.Containers[0].Env {
		if e.Name == "FORGE_GATEWAY" && !strings.HasPrefix(e.Value, mountOf(&spec.Containers[0], "gateway").MountPath+"/") {
			t.Errorf("the settings are at %s", e.Value)
		}
	}
}
