//go:build manifests || cluster

package k8s

import (
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
)

// fileSettings are the settings of services that name a file, or the folder of
// one, that a volume has to bring.
var fileSettings = []string{"FORGE_NKEY", "FORGE_TLS_CA", credentialsVariable, "FORGE_POD_TEMPLATE", "FORGE_GATEWAY"}

// settingsNameFiles asks that each file that a container is told of is one that a volume of its
// pod brings: all read the same ConfigMap, so a component that changes a path there has to change
// the volumes of everybody. A service whose file is not there ends at its start, again and again.
func settingsNameFiles(m *manifests) []string {
	return eachContainer(ownPods(m), func(w workload, c *core.Container) (found []string) {
		for _, name := range fileSettings {
			if file := setting(m, c, name); file != "" && !brings(m, w, c, file) {
				found = append(found, fmt.Sprintf("%s: no volume brings %s, which %s names", w.name, file, name))
			}
		}
		return found
	})
}

// brings reports whether a container has a volume that may have a file: one
// mounted at the file itself, or above it, of which some source has the file.
// What is in a Secret without a list of items is the guide's matter.
func brings(m *manifests, w workload, c *core.Container, file string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(mount core.VolumeMount) bool {
		if mount.MountPath == file {
			return true // a folder
		}
		below, inside := strings.CutPrefix(file, mount.MountPath+"/")
		i := slices.IndexFunc(w.pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == mount.Name })
		return inside && i >= 0 && slices.ContainsFunc(sourcesOf(&w.pod.Spec.Volumes[i]), func(s core.VolumeProjection) bool { return has(m, &s, below) })
	})
}

// sourcesOf returns the Secrets and ConfigMaps of a volume, as a projected one has them.
func sourcesOf(v *core.Volume) []core.VolumeProjection {
	switch {
	case v.Projected != nil:
		return v.Projected.Sources
	case v.Secret != nil:
		return []core.VolumeProjection{{Secret: &core.SecretProjection{
			LocalObjectReference: core.LocalObjectReference{Name: v.Secret.SecretName}, Items: v.Secret.Items,
		}}}
	case v.ConfigMap != nil:
		return []core.VolumeProjection{{ConfigMap: &core.ConfigMapProjection{LocalObjectReference: v.ConfigMap.LocalObjectReference, Items: v.ConfigMap.Items}}}
	}
	return nil
}

// has reports whether a source of a volume has a file, as far as the manifests say what is in it.
func has(m *manifests, s *core.VolumeProjection, file string) bool {
	listed := func(items []core.KeyToPath) bool {
		return slices.ContainsFunc(items, func(i core.KeyToPath) bool { return i.Path == file })
	}
	switch {
	case s.Secret != nil:
		return len(s.Secret.Items) == 0 || listed(s.Secret.Items)
	case s.ConfigMap != nil && len(s.ConfigMap.Items) > 0:
		return listed(s.ConfigMap.Items)
	case s.ConfigMap != nil:
		return slices.ContainsFunc(of[*core.ConfigMap](m), func(c *core.ConfigMap) bool { return c.Name == s.ConfigMap.Name && c.Data[file] != "" })
	}
	return false
}
