package reflection_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/reflection"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// surroundings are a project in which intent s came from another system.
func surroundings(at time.Time) *reflection.Context {
	return &reflection.Context{Project: "web", Now: at, Intent: func(id forge.IntentID) (reflection.Intent, bool) {
		switch id {
		case "a":
			return reflection.Intent{Run: 1, Status: forge.StatusDone, Source: forge.SourceHuman}, true
		case "s":
			return reflection.Intent{Run: 2, Status: forge.StatusDone, Source: forge.SourceSystem, Requesters: []forge.Identity{{Name: "bob"}}}, true
		}
		return reflection.Intent{}, false
	}}
}

// ended is a run that ended, of an intent so many reflections away from a person.
func ended(generation int, observed ...string) *forge.RunEnded {
	e := &forge.RunEnded{Reflect: &forge.ReflectOn{
		Intent:  forge.Intent{Generation: generation, Source: forge.SourceHuman},
		History: forge.History{Run: 1},
		Policy:  forge.ReflectionPolicy{MaxGeneration: 2, ProposalsATime: 2, ProposalsADay: 3},
	}}
	for _, id := range observed {
		owner, _, _ := strings.Cut(id, "/")
		e.Observed = append(e.Observed, forge.Observation{ID: id, IntentID: forge.IntentID(owner)})
	}
	return e
}

// reflect runs a reflection that proposes intents and reads observations. It returns
// what was submitted, and why the rest was not.
func reflect(t *testing.T, s *reflection.State, at time.Time, read []string, titles ...string) (submitted []*forge.Intent, dropped []string) {
	t.Helper()
	reload(t, s)
	if !s.IsDue(false) {
		t.Fatal("no reflection is due")
	}
	r := s.Start(0, surroundings(at))
	answer := &forge.Reflection{Read: read}
	for _, title := range titles {
		answer.Proposals = append(answer.Proposals, forge.Intent{Settings: forge.Settings{Title: title, Body: "body", Type: "fix", Risk: forge.RiskLow}})
	}
	var out outbox.Messages
	again, d, err := s.Result(&out, &forge.Result{Attempt: r.Attempt(), Output: answer}, surroundings(at))
	if again != nil || d != forge.Applied || err != nil {
		t.Fatalf("%v %s %v", again, d, err)
	}
	for _, m := range out {
		switch m := m.Message.(type) {
		case *forge.Submit:
			submitted = append(submitted, &m.Intent)
		case *forge.RunReflected:
			for _, a := range m.Dropped {
				dropped = append(dropped, a.Detail)
			}
		default:
			t.Errorf("%T", m)
		}
	}
	return submitted, dropped
}

// What a reflection proposes is bounded, and known by its words.
func TestProposals(t *testing.T) {
	s := &reflection.State{}
	s.Ended("a", ended(0))
	in, dropped := reflect(t, s, now, nil, "speed up tests", "Tests: speed up!", "mend the build", "write a manual")
	if len(in) != 2 || in[0].Generation != 1 || in[0].Risk != forge.RiskLow || len(dropped) != 2 {
		t.Errorf("%d submitted, dropped %q", len(in), dropped)
	}
	s.Ended("a", ended(0))
	in, dropped = reflect(t, s, now, nil, "draw pictures", "sing songs")
	if len(in) != 1 || len(dropped) != 1 || !strings.Contains(dropped[0], "proposals_a_day is 3") {
		t.Errorf("%d submitted, dropped %q", len(in), dropped)
	}
	s.Ended("a", ended(2))
	in, dropped = reflect(t, s, now.Add(24*time.Hour), nil, "dance")
	if len(in) != 0 || len(dropped) != 1 || !strings.Contains(dropped[0], "max_generation is 2") {
		t.Errorf("%d submitted, dropped %q", len(in), dropped)
	}
}

// What was read is not read again, and what comes from another system needs approval.
func TestForeignObservations(t *testing.T) {
	s := &reflection.State{}
	s.Ended("s", &forge.RunEnded{Observed: ended(0, "s/1", "s/2").Observed})
	s.Ended("a", ended(0, "a/1"))
	in, _ := reflect(t, s, now, []string{"s/2", "unknown/1"}, "mend the shop")
	if len(in) != 1 || in[0].Source != forge.SourceSystemReflection {
		t.Errorf("submitted %+v", in)
	}
	if got := fmt.Sprintf("%s %s %d", s.NextUnread()[0].ID, s.NextUnread()[1].ID, len(s.NextUnread())); got != "s/1 a/1 2" {
		t.Errorf("unread: %s", got)
	}
}

// The words of another system stay its own, however many reflections they pass.
func TestForeignOriginIsHereditary(t *testing.T) {
	for source, want := range map[forge.Source]forge.Source{
		forge.SourceHuman: forge.SourceReflection, forge.SourceReflection: forge.SourceReflection,
		forge.SourceSystem: forge.SourceSystemReflection, forge.SourceSystemReflection: forge.SourceSystemReflection,
	} {
		s := &reflection.State{}
		e := ended(1)
		e.Reflect.Intent.Source = source
		s.Ended("a", e)
		in, _ := reflect(t, s, now, nil, "mend the shop")
		if len(in) != 1 || in[0].Source != want || in[0].Validate() != nil {
			t.Errorf("a reflection on %s: %+v, want %s", source, in, want)
		}
	}
}

// A proposal is submitted again after a crash until its intent has entered.
func TestProposalsAreRepeated(t *testing.T) {
	s := &reflection.State{}
	s.Ended("a", ended(0))
	in, _ := reflect(t, s, now, nil, "mend the build")
	submissions := func() int {
		var out outbox.Messages
		n := 0
		for s.Repeat(&out); len(out) > 0; out = out[1:] {
			if forge.As[*forge.Submit](out[0].Message) != nil {
				n++
			}
		}
		return n
	}
	if n := submissions(); n != 1 || s.IsIdle(false) {
		t.Errorf("%d submissions, idle: %t", n, s.IsIdle(false))
	}
	s.Entered(in[0].ID)
	if n := submissions(); n != 0 || !s.IsIdle(false) {
		t.Errorf("%d submissions, idle: %t", n, s.IsIdle(false))
	}
}

// What follows an attempt that failed: another one, with another agent after a limit,
// unless that would not help.
func TestFailures(t *testing.T) {
	for reason, want := range map[forge.FailureReason]string{
		forge.FailCrashed:     "again []",
		forge.FailQuota:       "again [claude]",
		forge.FailLostSession: "again []",
		forge.FailBudget:      "given up",
		forge.FailAuth:        "given up",
	} {
		s := &reflection.State{}
		s.Ended("a", ended(0))
		r := s.Start(1, surroundings(now))
		var out outbox.Messages
		fail := func() string {
			again, _, err := s.Result(&out, &forge.Result{Attempt: r.Attempt(), Agent: "claude", Output: &forge.Failure{Reason: reason}}, surroundings(now))
			switch {
			case err != nil:
				return err.Error()
			case again == nil:
				return "given up"
			}
			return fmt.Sprintf("again %v", again.Avoid)
		}
		if got := fail(); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
		if want != "given up" {
			if got := fail(); got != "given up" {
				t.Errorf("%s twice: %s", reason, got)
			}
		}
		if f := forge.As[*forge.RunReflected](out[0].Message); f.Step.Outcome != string(reason) {
			t.Errorf("%s: the intent is told %q", reason, f.Step.Outcome)
		}
	}
}

// A person's request needs a run to reflect upon, and counts once.
func TestRequest(t *testing.T) {
	s := &reflection.State{}
	if d, _ := s.Request(); d != forge.Refused {
		t.Errorf("without a run: %s", d)
	}
	s.Ended("a", ended(0))
	reflect(t, s, now, nil)
	if s.IsDue(false) {
		t.Error("a reflection is due although no run waits")
	}
	for _, want := range []forge.Decision{forge.Applied, forge.Ignored} {
		if d, _ := s.Request(); d != want {
			t.Errorf("%s, want %s", d, want)
		}
	}
	if !s.IsDue(false) || s.IsDue(true) {
		t.Error("a reflection is due unless the project is paused")
	}
	reflect(t, s, now, nil)
}

// reload replaces a state by what it is after it was written out and read back.
func reload(t *testing.T, s *reflection.State) {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var again reflection.State
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, &again); diff != "" {
		t.Errorf("the state that was read back (-written +read):\n%s", diff)
	}
	*s = again
}

// What a reflection proposes is as much the wish of everyone whose words it read: of runs and of
// observations, proven and claimed. Otherwise a person would approve their own wish by way of it.
func TestRequestersAreInherited(t *testing.T) {
	ann := forge.Identity{Name: "ann", Proven: true}
	var s reflection.State
	e := ended(0, "s/1")
	e.Reflect.Intent.Requesters = []forge.Identity{ann}
	s.Ended("a", e)
	submitted, _ := reflect(t, &s, now, []string{"s/1"}, "Do it again")
	want := []forge.Identity{ann, {Name: "bob"}}
	if len(submitted) != 1 || cmp.Diff(want, submitted[0].Requesters) != "" {
		t.Errorf("got %+v, want %v", submitted, want)
	}
}
