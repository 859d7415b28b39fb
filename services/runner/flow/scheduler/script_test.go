package scheduler_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/scheduler"
)

// TestScripts plays testdata: what intents say in, what others are told out. Before
// every step the state is written out and read back.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		s := &scheduler.State{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s = reload(t, s)
			return play(t, s, d)
		})
	})
}

// play runs one command. Its first argument is an intent; run and end are 1 if they
// are not given.
func play(t *testing.T, s *scheduler.State, d *datadriven.TestData) string {
	t.Helper()
	value := func(name string) string {
		for _, a := range d.CmdArgs {
			if a.Key == name {
				return strings.Join(a.Vals, ",")
			}
		}
		return ""
	}
	number := func(name string) int {
		if n, err := strconv.Atoi(value(name)); err == nil {
			return n
		}
		return 1
	}
	ids := func(name string) []forge.IntentID {
		var list []forge.IntentID
		for _, id := range strings.FieldsFunc(value(name), func(r rune) bool { return r == ',' }) {
			list = append(list, forge.IntentID(id))
		}
		return list
	}
	var id forge.IntentID
	if len(d.CmdArgs) > 0 {
		id = forge.IntentID(d.CmdArgs[0].Key)
	}
	fillIn := func(in *scheduler.Intent, a *forge.RunAdmitted) { a.Past = []forge.PastRun{{Title: in.Title}} }
	var out outbox.Messages
	var decision forge.Decision
	var err error
	switch d.Cmd {
	case "admit":
		e := &forge.AdmitRun{Run: number("run"), Title: "title of " + string(id), Parent: forge.IntentID(value("parent"))}
		decision, err = s.AdmitRun(id, e)
		if s.IsActive(id, e.Run) {
			s.Admit(&out, id, fillIn)
		}
	case "plan":
		p := &forge.RunPlanned{Run: number("run"), DependsOn: ids("after"), Children: ids("children")}
		decision, err = s.RunPlanned(id, p)
		if s.IsActive(id, p.Run) {
			s.Connect(&out, id, p, fillIn)
		}
	case "end":
		decision, err = s.RunEnded(&out, id, &forge.RunEnded{
			Run: number("run"), Number: number("end"), Status: forge.Status(value("status")), Parent: forge.IntentID(value("parent")),
		})
		if decision == forge.Applied {
			s.SendToFamily(&out, id, fillIn)
			s.Wake(&out, id)
		}
	case "pause":
		decision, err = s.PauseAll(&out)
	case "resume":
		decision, err = s.ResumeAll(&out)
	case "cancel":
		decision, err = s.CancelAll(&out, value("reason"))
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	var b strings.Builder
	if err != nil {
		fmt.Fprintf(&b, "%s: %v\n", decision, err)
	}
	for _, m := range out {
		fmt.Fprintf(&b, "to %s: %s\n", m.Intent, describe(m.Message))
	}
	return b.String()
}

func describe(m forge.Message) string {
	switch m := m.(type) {
	case *forge.RunAdmitted:
		text := fmt.Sprintf("run %d is admitted", m.Run)
		if m.Paused > 0 {
			text += ", paused"
		}
		return text
	case *forge.DependencyEnded:
		if m.Cycle != nil {
			return fmt.Sprintf("%s waits for you: %v", m.Intent, m.Cycle)
		}
		return fmt.Sprintf("%s ended %q", m.Intent, m.Status)
	case *forge.ChildChanged:
		return fmt.Sprintf("child %s, run %d, end %d: %s", m.Intent, m.Run, m.Number, m.Status)
	case *forge.Cancel:
		return "cancel: " + m.Reason
	case *forge.Pause:
		return fmt.Sprintf("pause %d", m.Number)
	case *forge.Resume:
		return fmt.Sprintf("resume %d", m.Number)
	default:
		return fmt.Sprintf("%T", m)
	}
}

func reload(t *testing.T, s *scheduler.State) *scheduler.State {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again := &scheduler.State{}
	if err := json.Unmarshal(data, again); err != nil {
		t.Fatal(err)
	}
	return again
}
