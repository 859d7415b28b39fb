//go:build manifests || cluster

package k8s

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	"sigs.k8s.io/yaml"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// adapterRules is where the metric of the autoscalers is defined.
const adapterRules = "components/hpa/adapter.yaml"

// stepLabel is the label of the metric that names a step.
const stepLabel = "forge_step"

// adapterRule is as much of a rule of prometheus-adapter as is compared.
type adapterRule struct {
	SeriesQuery  string
	MetricsQuery string
	Resources    map[string]any
	Name         struct {
		Matches string
		As      string
	}
}

// readRule returns the adapter's one rule.
func readRule(text []byte) (adapterRule, error) {
	var config struct {
		ExternalRules []adapterRule
	}
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return adapterRule{}, err
	}
	if len(config.ExternalRules) != 1 {
		return adapterRule{}, fmt.Errorf("%d rules", len(config.ExternalRules))
	}
	return config.ExternalRules[0], nil
}

// metricName matches the names of metrics in a query.
var metricName = regexp.MustCompile(`\b(forge_\w+)(?:\{|")`)

// ruleIsMeasured compares the metrics and the label that a rule asks for with the table of
// instruments.
func ruleIsMeasured(rule adapterRule) []string {
	steps := map[string]bool{}
	for _, i := range telemetry.Instruments() {
		steps[i.Prometheus()] = slices.ContainsFunc(i.Attributes, func(a *telemetry.Attribute) bool {
			return strings.ReplaceAll(a.Key, ".", "_") == stepLabel
		})
	}
	var found []string
	used := metricName.FindAllStringSubmatch(rule.SeriesQuery+rule.MetricsQuery, -1)
	if len(used) < 2 {
		found = append(found, adapterRules+" asks for no metric of ours")
	}
	for _, m := range used {
		if !steps[m[1]] {
			found = append(found, fmt.Sprintf("%s: no instrument is %s with the label %s", adapterRules, m[1], stepLabel))
		}
	}
	return found
}

// autoscalersCountSteps compares the metrics of autoscalers with the rule that serves them, and
// the steps that they count with those of each service.
func autoscalersCountSteps(m *manifests) []string {
	objects := of[*autoscaling.HorizontalPodAutoscaler](m)
	if len(objects) == 0 {
		return nil
	}
	text, err := os.ReadFile(adapterRules)
	if err != nil {
		return []string{err.Error()}
	}
	rule, err := readRule(text)
	if err != nil {
		return []string{adapterRules + ": " + err.Error()}
	}
	found := ruleIsMeasured(rule)
	if len(of[*scaledObject](m)) > 0 {
		found = append(found, "KEDA and autoscalers set the same replicas: take one of them")
	}
	want := map[string][]string{}
	for _, step := range forge.Steps() {
		if step.Service() != unscaled {
			want[step.Service()] = append(want[step.Service()], string(step))
		}
	}
	for _, o := range objects {
		target, steps := o.Spec.ScaleTargetRef.Name, []string(nil)
		for _, s := range o.Spec.Metrics {
			if s.External == nil || s.External.Metric.Name != rule.Name.As || s.External.Metric.Selector == nil || s.External.Target.AverageValue == nil {
				found = append(found, fmt.Sprintf("HorizontalPodAutoscaler %s: a metric is not %s of a step, for each replica", o.Name, rule.Name.As))
				continue
			}
			steps = append(steps, s.External.Metric.Selector.MatchLabels[stepLabel])
		}
		slices.Sort(steps)
		slices.Sort(want[target])
		if !slices.Equal(steps, want[target]) {
			found = append(found, fmt.Sprintf("HorizontalPodAutoscaler %s of %s counts %v, and its steps are %v", o.Name, target, steps, want[target]))
		}
		delete(want, target)
		found = append(found, scalesSlowly(m, o)...)
	}
	for service := range want {
		found = append(found, "no autoscaler is of "+service)
	}
	return found
}

// scalesSlowly asks that an autoscaler has a StatefulSet that leaves its replicas to it, and takes
// it down by one replica at a time, after a while, and not to none, which Kubernetes refuses
// without a feature gate.
func scalesSlowly(m *manifests, o *autoscaling.HorizontalPodAutoscaler) []string {
	target := o.Spec.ScaleTargetRef
	sets := of[*apps.StatefulSet](m)
	i := slices.IndexFunc(sets, func(s *apps.StatefulSet) bool { return s.Name == target.Name && target.Kind == "StatefulSet" })
	if i < 0 || sets[i].Spec.Replicas != nil {
		return []string{fmt.Sprintf("HorizontalPodAutoscaler %s: its StatefulSet %s is not there, or has replicas of its own", o.Name, target.Name)}
	}
	if o.Spec.MinReplicas == nil || *o.Spec.MinReplicas != 1 || o.Spec.MaxReplicas < 2 {
		return []string{"HorizontalPodAutoscaler " + o.Name + " does not scale from one up"}
	}
	if o.Spec.Behavior == nil || o.Spec.Behavior.ScaleDown == nil || o.Spec.Behavior.ScaleDown.StabilizationWindowSeconds == nil {
		return []string{"HorizontalPodAutoscaler " + o.Name + " scales down at once"}
	}
	down := o.Spec.Behavior.ScaleDown
	const after, every = 300, 60 // seconds, as the guide says
	onePod := len(down.Policies) == 1 && down.Policies[0].Type == autoscaling.PodsScalingPolicy && down.Policies[0].Value == 1
	if *down.StabilizationWindowSeconds < after || !onePod || down.Policies[0].PeriodSeconds < every {
		return []string{"HorizontalPodAutoscaler " + o.Name + " scales down by several replicas, or too soon"}
	}
	return nil
}

// TestAdapterRule: a rule for what nobody measures, or in another form than prometheus-adapter's,
// is noticed: no metric would be served, and nothing be scaled.
func TestAdapterRule(t *testing.T) {
	text, err := os.ReadFile(adapterRules)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := readRule(text)
	if err != nil || len(ruleIsMeasured(rule)) > 0 {
		t.Errorf("%v, %q", err, ruleIsMeasured(rule))
	}
	for _, bad := range []adapterRule{
		{}, {MetricsQuery: "forge_step_depth{}", SeriesQuery: rule.SeriesQuery}, {SeriesQuery: `"forge_intents"`, MetricsQuery: rule.MetricsQuery},
	} {
		if len(ruleIsMeasured(bad)) == 0 {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if _, err := readRule([]byte(strings.Replace(string(text), "metricsQuery", "metricQuery", 1))); err == nil {
		t.Error("a misspelt field is accepted")
	}
}
