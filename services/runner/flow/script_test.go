package flow_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/projects"
)

// TestScripts plays testdata/scripts: events in, effects out, one rule of the flow
// after the other. After a change of the rules, run with -rewrite and read the
// diff.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		t.Helper()
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			s.out.Reset()
			s.play(t, d)
			return s.out.String()
		})
	})
}

// script is a project whose workers, clocks and people are played by hand.
// Events between machines are delivered at once, in order.
type script struct {
	now      time.Time
	start    time.Time
	project  *projects.Project
	intents  map[forge.IntentID]*flow.Intent
	ids      []forge.IntentID
	open     []forge.Command
	timers   []forge.Timer
	out      strings.Builder
	events   int
	hold     bool // keep messages between machines back
	messages []forge.Event
	aliases  map[string]forge.IntentID
	after    func(to forge.Key)              // after each event
	noPolicy bool                            // the project has no policy yet; in other scripts it was told before they begin
	gates    bool                            // the project keeps accounts that refuse calls; in other scripts it does not
	by       rules.Version                   // that decides
	pulls    map[forge.TaskID]*forge.Command // the newest to open a pull request
	numbers  map[string]int                  // of pull requests, by their branches
	asks     bool                            // the policy decides whether a person lets an intent be analyzed; in other scripts all are
}

func newScript() *script {
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	return &script{
		now: start, start: start, project: projects.New(forge.Key{Project: "web"}),
		pulls: map[forge.TaskID]*forge.Command{}, numbers: map[string]int{},
		by: rules.Newest, intents: map[forge.IntentID]*flow.Intent{}, aliases: map[string]forge.IntentID{},
	}
}

func (s *script) print(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// play runs one command of a script.
func (s *script) play(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	arg := func(name string) string {
		if !d.HasArg(name) {
			return ""
		}
		for _, a := range d.CmdArgs {
			if a.Key == name {
				return strings.Join(a.Vals, ",")
			}
		}
		return ""
	}
	list := func(name string) []string {
		if v := arg(name); v != "" {
			return strings.Split(v, ",")
		}
		return nil
	}
	first := func() string {
		if len(d.CmdArgs) == 0 {
			t.Fatalf("%s: %s names nothing", d.Pos, d.Cmd)
		}
		return d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "hold":
		s.hold = true
		return
	case "release":
		s.hold = false
		s.deliver()
		return
	case "kill": // the runner: what it was about to send, it takes from the outboxes
		s.killed()
		return
	case "pass":
		d, err := time.ParseDuration(first())
		if err != nil {
			t.Fatal(err)
		}
		s.now = s.now.Add(d)
		return
	case "new-project":
		s.noPolicy = true
		return
	case "accounts":
		s.gates = true
		return
	case "rules":
		n, err := strconv.Atoi(first())
		if err != nil {
			t.Fatal(err)
		}
		s.by = rules.Version(n)
		return
	case "asks-first":
		s.asks = true
		return
	case "fire":
		s.fire()
		return
	case "show":
		s.show(s.id(first()))
		return
	case "pause-project":
		s.send(forge.Event{To: forge.Key{Project: "web"}, Message: &forge.Pause{}})
		return
	case "resume-project":
		s.send(forge.Event{To: forge.Key{Project: "web"}, Message: &forge.Resume{}})
		return
	case "cancel-project":
		s.send(forge.Event{To: forge.Key{Project: "web"}, Message: &forge.Cancel{Reason: arg("reason")}})
		return
	case "reflect-now":
		s.send(forge.Event{To: forge.Key{Project: "web"}, Message: &forge.Reflect{}})
		return
	case "set-schedules":
		s.send(forge.Event{Actor: "ada", To: forge.Key{Project: "web"}, Message: setSchedules(d)})
		return
	case "pause-schedule", "resume-schedule":
		m := &forge.PauseSchedule{Name: first(), Paused: d.Cmd == "pause-schedule", Reason: arg("reason")}
		s.send(forge.Event{Actor: "ada", To: forge.Key{Project: "web"}, Message: m})
		return
	case "schedules":
		for _, e := range s.project.Summary().Project.Schedules {
			s.print("%s: next %s, last %s %s, skipped %q, paused %v %s", e.Name, s.since(e.NextAt), s.since(e.LastAt), e.LastIntent, e.Skipped, e.Paused, e.Reason)
		}
		return
	case "alias": // a name for an id that was made
		s.aliases[first()] = s.find(t, arg("of"))
		return
	}
	id := s.id(first())
	if person := s.person(d.Cmd, id, arg, list); person != nil {
		person.To = forge.Key{Project: "web", Intent: id}
		s.send(*person)
		return
	}
	if d.Cmd == "look" {
		s.looked(t, d, forge.TaskID(s.id(first())), arg, list)
		return
	}
	s.work(t, d, string(s.id(first())), arg, list)
}

// setSchedules reads schedules: name=cron with _ for spaces, or name=(cron,missed).
func setSchedules(d *datadriven.TestData) *forge.SetSchedules {
	m := &forge.SetSchedules{}
	for _, a := range d.CmdArgs {
		n := forge.Schedule{Name: a.Key, Cron: strings.ReplaceAll(a.Vals[0], "_", " ")}
		n.Intent.Title, n.Intent.Body = "title of "+a.Key, "body"
		if len(a.Vals) > 1 {
			n.Missed = a.Vals[1]
		}
		m.Schedules = append(m.Schedules, n)
	}
	return m
}

// since is a time counted from the start of the script.
func (s *script) since(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return "+" + at.Sub(s.start).String()
}

// id is an intent's id, or a task's, where a script's short name stands for its head.
func (s *script) id(name string) forge.IntentID {
	head, tail, isTask := strings.Cut(name, "/")
	if id, ok := s.aliases[head]; ok {
		if isTask {
			return id + "-" + forge.IntentID(tail)
		}
		return id
	}
	return forge.IntentID(name)
}

// find is the intent whose title is this one.
func (s *script) find(t *testing.T, title string) forge.IntentID {
	t.Helper()
	for _, id := range s.ids {
		if strings.Contains(s.intents[id].Summary().Title, title) {
			return id
		}
	}
	t.Fatalf("no intent has the title %q", title)
	return ""
}

// person is what somebody asks of an intent, or nil.
func (s *script) person(cmd string, id forge.IntentID, arg func(string) string, list func(string) []string) *forge.Event {
	switch cmd {
	case "submit":
		in := forge.Intent{
			ID: id, Project: "web", Settings: forge.Settings{
				Title:     "title of " + string(id),
				Body:      cmp.Or(spaced(arg("body")), "body"),
				Recipe:    arg("recipe"),
				Risk:      forge.Risk(arg("risk")),
				BudgetUSD: usd(arg("budget")),
				Type:      arg("type"),
				Criteria:  words(list("criteria")),
			}, Source: forge.SourceHuman,
			Origin: forge.Origin{System: "draft", EventID: arg("event")},
		}
		in.Checks = checksOf(in.Criteria, list("checks"))
		if by := arg("by"); by != "" {
			in.Requesters = []forge.Identity{{Name: by, Proven: true}}
		}
		if by := arg("claims"); by != "" {
			in.Requesters = append(in.Requesters, forge.Identity{Name: by})
		}
		if v := arg("most"); v != "" {
			most, _ := strconv.Atoi(v)
			context, _ := strconv.Atoi(arg("context"))
			in.Goal = &forge.GoalOptions{MaxIterations: most, HistoryContext: context}
		}
		if v := arg("title"); v != "" {
			in.Title = strings.ReplaceAll(v, "-", " ")
		}
		if src := arg("source"); src != "" {
			in.Source, in.Origin.System = forge.SourceSystem, src
		}
		for _, d := range list("after") {
			in.DependsOn = append(in.DependsOn, forge.IntentID(d))
		}
		return &forge.Event{Actor: cmp.Or(arg("from"), arg("source")), Message: &forge.Submit{Intent: in}}
	case "comment":
		at, _ := time.Parse(time.RFC3339, arg("at"))
		count, _ := strconv.Atoi(cmp.Or(arg("count"), "1"))
		c := &forge.Comments{Count: count, Account: spaced(arg("account")), Ref: spaced(arg("ref")), At: at}
		return &forge.Event{Actor: arg("from"), Message: &forge.Submit{Comments: c}}
	case "approve":
		plan := arg("plan")
		if m := s.intents[id]; plan == "" && m != nil {
			plan = m.Summary().Plan // the person looked at it
		}
		if plan == "unsaid" {
			plan = ""
		}
		return &forge.Event{Actor: arg("by"), Message: &forge.Approve{Plan: plan}}
	case "request-changes":
		hash := arg("hash")
		if m := s.intents[id]; hash == "" && m != nil {
			hash = m.Summary().Plan // the person looked at it
		}
		if hash == "unsaid" {
			hash = ""
		}
		return &forge.Event{Actor: arg("by"), Message: &forge.RequestChanges{Hash: hash, Words: spaced(arg("words")), Task: forge.TaskID(arg("task"))}}
	case "reject":
		return &forge.Event{Actor: arg("by"), Message: &forge.Reject{Reason: arg("reason")}}
	case "cancel":
		return &forge.Event{Message: &forge.Cancel{Reason: arg("reason"), Task: forge.TaskID(arg("task"))}}
	case "pause":
		return &forge.Event{Message: &forge.Pause{Reason: arg("reason"), Task: forge.TaskID(arg("task"))}}
	case "resume":
		return &forge.Event{Message: &forge.Resume{Task: forge.TaskID(arg("task"))}}
	case "retry":
		return &forge.Event{Actor: arg("by"), Message: &forge.Retry{Instructions: arg("with"), BudgetUSD: usd(arg("budget")), Adopt: arg("adopt")}}
	case "answer":
		n, _ := strconv.Atoi(arg("question"))
		a := &forge.Answer{Index: n, Question: arg("says"), Answer: arg("answer")}
		// The person looked at it; says=nothing leaves it out.
		if m := s.intents[id]; a.Question == "" && m != nil {
			if list := m.View().Intent.Clarifications; n >= 0 && n < len(list) {
				a.Question = list[n].Question
			}
		}
		if a.Question == "nothing" {
			a.Question = ""
		}
		return &forge.Event{Actor: arg("by"), Message: a}
	case "edit":
		e := &forge.Edit{}
		if v := arg("title"); v != "" {
			e.Title = &v
		}
		if v := arg("body"); v != "" {
			e.Body = &v
		}
		if v := forge.Risk(arg("risk")); v != "" {
			e.Risk = &v
		}
		return &forge.Event{Actor: arg("by"), Message: e}
	}
	return nil
}

// send has the machine that an event is for decide on it.
func (s *script) send(ev forge.Event) forge.Decision {
	s.events++
	if ev.ID == "" {
		ev.ID = fmt.Sprintf("event-%d", s.events)
	}
	ev.At = s.now
	if m := forge.As[*forge.RunAdmitted](ev.Message); m != nil {
		m.ReadPolicy, m.AskFirst = m.ReadPolicy && s.noPolicy, m.AskFirst && s.asks
		if !s.gates {
			m.Obstacles = nil
		}
	}
	var eff forge.Effects
	var ruling forge.Ruling
	if ev.To.IsProject() {
		eff, ruling = s.project.Step(s.by, ev)
	} else {
		m := s.intents[ev.To.Intent]
		if m == nil {
			m = flow.NewIntent(ev.To)
			s.intents[ev.To.Intent] = m
			s.ids = append(s.ids, ev.To.Intent)
		}
		eff, ruling = m.Step(s.by, ev)
	}
	if s.after != nil {
		s.after(ev.To)
	}
	if ruling.Decision != forge.Applied {
		s.print("%s: %s", ruling.Decision, ruling.Reason)
	}
	s.perform(eff)
	s.deliver()
	return ruling.Decision
}

// perform shows effects and keeps what a script can answer.
func (s *script) perform(eff forge.Effects) {
	for _, c := range eff.Commands {
		s.open = append(s.open, c)
		if c.Attempt.Step == forge.StepOpenPull {
			s.pulls[c.Attempt.Task] = &c
		}
		s.print("> %s", describeCommand(c))
	}
	for _, tm := range eff.Timers {
		s.timers = slices.DeleteFunc(s.timers, func(o forge.Timer) bool { return o.To == tm.To && o.Key == tm.Key })
		s.timers = append(s.timers, tm)
		s.print("> timer %s at +%s", tm.Key, tm.At.Sub(s.start))
	}
	for _, a := range eff.Cancels {
		s.print("> stop %s", a)
	}
	if len(eff.ReleasedTasks) > 0 {
		s.print("> release %v", eff.ReleasedTasks)
	}
	s.enqueue(eff.Outbox)
}
