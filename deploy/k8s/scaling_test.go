//go:build manifests || cluster

package k8s

import (
	"fmt"
	"slices"
	"strings"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	forge "github.com/pfl-forge/pfl-forge"
)

// scaledObject is as much of KEDA's type as the manifests use: the module of KEDA brings
// some hundreds of others. Upper and lower case count alike when it is read.
type scaledObject struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		ScaleTargetRef  struct{ Kind, Name string }
		MinReplicaCount int
		MaxReplicaCount int
		PollingInterval int
		CooldownPeriod  int
		Advanced        map[string]any
		Triggers        []trigger
	}
}

// trigger is one source of a ScaledObject's metrics.
type trigger struct {
	Type     string
	Metadata struct{ NATSServerMonitoringEndpoint, Account, Stream, Consumer, LagThreshold string }
}

// unscaled is the service whose replicas do not follow its commands: the
// gateway's serve requests, and its steps are a few calls each.
const unscaled = "gateway"

// scalersCountSteps compares the consumers whose commands are counted with the steps of each
// service, for those at the workers and for those that wait for their turn: that the runner makes
// these consumers in FORGE_COMMANDS is TestEnsureMakesConsumers of the bus, and TestCounters.
func scalersCountSteps(m *manifests) []string {
	objects := of[*scaledObject](m)
	if len(objects) == 0 {
		return nil
	}
	want := map[string][]string{}
	for _, step := range forge.Steps() {
		if step.Service() != unscaled {
			want[step.Service()] = append(want[step.Service()], string(step))
			if !step.OfProject() {
				want[step.Service()] = append(want[step.Service()], string(step)+"-held")
			}
		}
	}
	var found []string
	for _, o := range objects {
		target, consumers := o.Spec.ScaleTargetRef.Name, []string(nil)
		for _, tr := range o.Spec.Triggers {
			consumers = append(consumers, tr.Metadata.Consumer)
			read := tr.Metadata.Account == "$G" && tr.Metadata.Stream == "FORGE_COMMANDS" && monitored(m, tr.Metadata.NATSServerMonitoringEndpoint)
			if tr.Type != "nats-jetstream" || !read {
				found = append(found, fmt.Sprintf("ScaledObject %s: trigger %+v", o.Name, tr))
			}
		}
		slices.Sort(consumers)
		slices.Sort(want[target])
		if !slices.Equal(consumers, want[target]) {
			found = append(found, fmt.Sprintf("ScaledObject %s of %s counts %v, and its steps are %v", o.Name, target, consumers, want[target]))
		}
		if target == "analyzer" && o.Spec.MinReplicaCount < 1 {
			found = append(found, fmt.Sprintf("ScaledObject %s: no analyzer may be left, and then every project is refused", o.Name))
		}
		delete(want, target)
		sets := of[*apps.StatefulSet](m)
		i := slices.IndexFunc(sets, func(s *apps.StatefulSet) bool { return s.Name == target })
		if i < 0 || sets[i].Spec.Replicas != nil || o.Spec.MinReplicaCount > o.Spec.MaxReplicaCount {
			found = append(found, fmt.Sprintf("ScaledObject %s: its StatefulSet %s is not there, or has replicas of its own", o.Name, target))
		}
	}
	for service := range want {
		found = append(found, "nothing scales "+service)
	}
	return found
}

// monitored reports whether an endpoint is the monitoring port of each NATS server.
func monitored(m *manifests, endpoint string) bool {
	return slices.ContainsFunc(of[*core.Service](m), func(s *core.Service) bool {
		return s.Spec.ClusterIP == core.ClusterIPNone && strings.HasPrefix(endpoint, s.Name+"."+s.Namespace+".svc") &&
			slices.ContainsFunc(s.Spec.Ports, func(p core.ServicePort) bool {
				return p.Name == "monitor" && strings.HasSuffix(endpoint, fmt.Sprintf(":%d", p.Port))
			})
	})
}
