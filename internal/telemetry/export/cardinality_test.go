package export_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// hostile are names that somebody could choose to break what reads them.
var hostile = []string{"", "a\nb", `x"} 1`, "\x00\xff\xfe", "é", strings.Repeat("m", 1<<20), "{}", "other", "\u202e", `\`, "a b", "forge/../..", "NaN"}

// However many models, projects, agents, steps, outcomes and reasons are made up, and
// whatever they are called: the series are bounded, and can be read.
func TestCardinalityIsBounded(t *testing.T) {
	e := open(t)
	r := e.Recorder
	var served []forge.ProjectID
	for n := range 1000 {
		served = append(served, forge.ProjectID(fmt.Sprintf("served-%d", n)))
	}
	r.Serves(served...)
	for _, s := range hostile {
		r.Serves(forge.ProjectID(s))
	}
	var group sync.WaitGroup
	for part := range 4 {
		group.Go(func() {
			for n := part; n < 10_000; n += 4 {
				name := fmt.Sprintf("made-up-%d", n)
				if n < 20*len(hostile) {
					name = hostile[n%len(hostile)]
				}
				agent := []string{"claude", "codex", "exec", name}[n%4]
				res := &forge.Result{
					To: forge.Key{Project: forge.ProjectID(name), Intent: forge.IntentID(name)}, Attempt: forge.Attempt{Step: forge.Step(name), Task: forge.TaskID(name)},
					Agent: agent, Model: name, Duration: time.Second, Usage: forge.Usage{CostUSD: 1, InputTokens: 5},
					Output: &forge.Failure{Reason: forge.FailureReason(name)},
				}
				if n%2 == 0 {
					res.Output = &forge.MergeResult{Outcome: forge.MergeOutcome(name)}
				}
				r.Decided(&forge.Event{To: res.To, Message: res}, forge.Applied)
				r.Decided(&forge.Event{To: res.To, Message: &forge.TimerFired{}}, forge.Decision(name))
				r.AttemptEnded(res, n%3 == 0)
				r.AttemptBegan(&forge.Command{To: res.To, Attempt: res.Attempt}, time.Second)
				r.LeaseLost(forge.Step(name))
				r.Redelivered(telemetry.Kind(name))
				r.Answered(name, "POST "+name, n, time.Second)
				r.PodLost(telemetry.PodLoss(name))
				r.PodRefused(telemetry.PodRefusal(name))
				r.Verified(forge.ProjectID(name), time.Second, &forge.VerifyReport{}, nil)
			}
		})
	}
	group.Wait()
	snapshot := r.NewSnapshot()
	for n := range 10_000 {
		name := fmt.Sprintf("made-up-%d", n)
		snapshot.Intent(forge.ProjectID(name), forge.Status(name), forge.Waiting(name), time.Now())
		snapshot.Project(forge.ProjectID(name), &forge.ProjectSummary{Limits: forge.Budget{ProjectUSD: 1, DayUSD: 1}})
		snapshot.Queue(forge.Step(name), 1, 1)
	}
	r.Show(snapshot)
	word := regexp.MustCompile(`^[A-Za-z0-9._:/@()+ -]{0,64}$`)
	all := read(t, e)
	for _, i := range telemetry.Instruments() {
		family := all[i.Prometheus()]
		if n := len(family.GetMetric()); n > 500 {
			t.Errorf("%s has %d series", i.Name, n)
		}
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if !word.MatchString(l.GetValue()) && l.GetName() != "process_runtime_version" {
					t.Errorf("%s has %s=%q", i.Name, l.GetName(), l.GetValue())
				}
				if l.GetName() == "otel_metric_overflow" {
					t.Errorf("%s has more series than the SDK takes", i.Name)
				}
				if strings.HasPrefix(l.GetValue(), "made-up") && l.GetName() != "gen_ai_request_model" {
					t.Errorf("%s has %s=%s", i.Name, l.GetName(), l.GetValue())
				}
			}
		}
	}
	models := map[string]bool{}
	for _, m := range all["forge_agent_cost_total"].GetMetric() {
		models[labels(m)] = true
	}
	if n := len(models); n < 20 || n > 3*21 {
		t.Errorf("there are %d series of models", n)
	}
	total := 0.0
	for _, m := range all["forge_agent_cost_total"].GetMetric() {
		total += m.GetCounter().GetValue()
	}
	if total != 10_000 {
		t.Errorf("%v dollars were counted", total)
	}
}
