//go:build manifests || cluster

package k8s

import (
	"fmt"
	"slices"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
)

// jobs returns what runs to its end from time to time: it has no probes, no
// replicas and nothing to drain.
func jobs(m *manifests) []workload {
	var out []workload
	for _, c := range of[*batch.CronJob](m) {
		out = append(out, workload{"CronJob " + c.Name, &c.Spec.JobTemplate.Spec.Template})
	}
	return out
}

// ownPods returns services, NATS and jobs: all pods that manifests make themselves.
func ownPods(m *manifests) []workload { return slices.Concat(workloads(m), jobs(m)) }

// jobsEnd asks that a job ends, that there is one of it at a time, that what it
// left goes, that it can reach NATS, and that its volumes are there.
func jobsEnd(m *manifests) []string {
	var found []string
	for _, c := range of[*batch.CronJob](m) {
		add := func(format string, args ...any) {
			found = append(found, "CronJob "+c.Name+": "+fmt.Sprintf(format, args...))
		}
		spec, job := &c.Spec, &c.Spec.JobTemplate.Spec
		pod := &job.Template
		if spec.ConcurrencyPolicy != batch.ForbidConcurrent || spec.StartingDeadlineSeconds == nil {
			add("two may run at once, or one that could not begin is tried for ever")
		}
		if spec.TimeZone == nil || *spec.TimeZone != "Etc/UTC" {
			add("its time is that of whatever runs the control plane")
		}
		if spec.SuccessfulJobsHistoryLimit == nil || spec.FailedJobsHistoryLimit == nil || *spec.FailedJobsHistoryLimit == 0 {
			add("jobs that have ended stay, or none that failed does")
		}
		if job.ActiveDeadlineSeconds == nil || job.BackoffLimit == nil || pod.Spec.RestartPolicy != core.RestartPolicyNever {
			add("it may never end")
		}
		if pod.Labels["pfl-forge.io/nats-client"] != "true" {
			add("no policy lets it reach NATS")
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && !slices.ContainsFunc(of[*core.PersistentVolumeClaim](m), func(p *core.PersistentVolumeClaim) bool {
				return p.Name == v.PersistentVolumeClaim.ClaimName && p.Namespace == c.Namespace
			}) {
				add("there is no claim %s", v.PersistentVolumeClaim.ClaimName)
			}
		}
	}
	return found
}
