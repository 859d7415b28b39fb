//go:build manifests || cluster

package k8s

import (
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// credentialsVariable names the directory from which workers read their agents' keys.
const credentialsVariable = "FORGE_CREDENTIALS_DIR"

// secretsAreRenewed asks that a changed Secret reaches the pods that use it: as a variable, or
// mounted as a single file, it stays as it was when the pod began. Where services are told to
// look for keys, there has to be a Secret.
func secretsAreRenewed(m *manifests) []string {
	var found []string
	for _, w := range ownPods(m) {
		secret := map[string]bool{}
		for _, v := range w.pod.Spec.Volumes {
			secret[v.Name] = v.Secret != nil || v.Projected != nil
		}
		for _, c := range w.pod.Spec.Containers {
			for _, e := range c.EnvFrom {
				if e.SecretRef != nil {
					found = append(found, w.name+": Secret "+e.SecretRef.Name+" is in the environment, where it is not renewed")
				}
			}
			for _, e := range c.Env {
				if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
					found = append(found, w.name+": variable "+e.Name+" of a Secret is not renewed")
				}
				isMount := func(v core.VolumeMount) bool { return v.MountPath == e.Value && secret[v.Name] && v.ReadOnly }
				if e.Name == credentialsVariable && !slices.ContainsFunc(c.VolumeMounts, isMount) {
					found = append(found, w.name+": no Secret is mounted at "+e.Value)
				}
			}
			for _, v := range c.VolumeMounts {
				if secret[v.Name] && v.SubPath+v.SubPathExpr != "" {
					found = append(found, w.name+": volume "+v.Name+" is mounted as a single file, which is not renewed")
				}
			}
		}
	}
	return found
}

// certificatesAreAwaited asks that no pod starts without the certificate that
// the manifests have made for it: a program ends without the file that its
// settings name, and is started again until it is there.
func certificatesAreAwaited(m *manifests) []string {
	made := map[string]bool{}
	for _, u := range m.objects {
		if name, found, err := unstructured.NestedString(u.Object, "spec", "secretName"); u.GetKind() == "Certificate" && found && err == nil {
			made[name] = true
		}
	}
	var found []string
	for _, w := range ownPods(m) {
		for _, v := range w.pod.Spec.Volumes {
			if v.Secret != nil && made[v.Secret.SecretName] && v.Secret.Optional != nil && *v.Secret.Optional {
				found = append(found, w.name+" does not wait for the Secret "+v.Secret.SecretName)
			}
		}
	}
	return found
}

// mountOf returns the container's mount of a volume.
func mountOf(c *core.Container, volume string) *core.VolumeMount {
	return &c.VolumeMounts[slices.IndexFunc(c.VolumeMounts, func(v core.VolumeMount) bool { return v.Name == volume })]
}
