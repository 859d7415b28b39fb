package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/schedules"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/outbox"
)

var (
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	web   = forge.Key{Project: "web"}
)

// world is a project with schedules.
type world struct {
	state State
	now   time.Time
	open  []forge.IntentID
	known []forge.IntentID
	sent  []forge.IntentID
	// paused says whether the project is.
	paused bool
}

func (w *world) project() *Project {
	return &Project{
		ID: "web", Paused: w.paused, Now: w.now, Open: func(id forge.IntentID) bool { return slices.Contains(w.open, id) },
		Known: func(id forge.IntentID) bool { return slices.Contains(w.known, id) },
	}
}

func (w *world) set(list ...forge.Schedule) (forge.Decision, error) {
	ev := forge.Event{Actor: "ada", Message: &forge.SetSchedules{Schedules: list}}
	return w.state.Decide(rules.Newest, &ev, w.project())
}

// fire lets a timer fire so long after its time, and returns what was submitted.
func (w *world) fire(late time.Duration) []forge.IntentID {
	timer := w.state.Timer(web)
	if timer == nil {
		return nil
	}
	if at := timer.At.Add(late); at.After(w.now) {
		w.now = at
	}
	var out outbox.Messages
	_, _ = w.state.Fire(&out, &forge.TimerFired{Key: timer.Key, At: timer.At}, w.project())
	return w.take(out)
}

func (w *world) take(out outbox.Messages) (list []forge.IntentID) {
	for _, m := range out {
		list = append(list, m.Intent)
	}
	w.sent = append(w.sent, list...)
	return list
}

func every(name, cron, missed string) forge.Schedule {
	return forge.Schedule{Name: name, Cron: cron, Missed: missed, Intent: forge.Intent{Settings: forge.Settings{Title: "t", Body: "b"}}}
}

// TestMissed has times at which nothing was running lead to one intent together, or to none.
func TestMissed(t *testing.T) {
	w := world{now: start}
	if d, err := w.set(every("once", "@hourly", ""), every("skip", "@hourly", "skip")); d != forge.Applied {
		t.Fatal(d, err)
	}
	if got := w.fire(late); len(got) != 2 {
		t.Errorf("%v were submitted within %s, want both", got, late)
	}
	w.state.Entered(w.sent[0])
	w.state.Entered(w.sent[1])
	if got := w.fire(49 * time.Hour); len(got) != 1 || !strings.HasPrefix(string(got[0]), "once-2030-01-01") {
		t.Errorf("%v were submitted two days late, want one of once", got)
	}
	if sum := w.state.Summaries(); sum[1].Skipped == "" || sum[1].LastIntent != "" || !sum[1].NextAt.After(w.now) {
		t.Errorf("%+v", sum[1])
	}
}

// TestClockBehind has a timer that fires before the runner's clock says so count.
func TestClockBehind(t *testing.T) {
	w := world{now: start}
	_, _ = w.set(every("a", "@hourly", ""))
	w.now = start.Add(30 * time.Minute)
	timer := w.state.Timer(web)
	var out outbox.Messages
	p := w.project()
	p.Now = timer.At.Add(-3 * time.Second)
	if d, err := w.state.Fire(&out, &forge.TimerFired{Key: timer.Key, At: timer.At}, p); d != forge.Applied || len(out) != 1 {
		t.Errorf("%v %v, %d intents", d, err, len(out))
	}
	if next := w.state.Timer(web); !next.At.Equal(start.Add(2 * time.Hour)) {
		t.Errorf("it is due at %s next", next.At)
	}
	if d, _ := w.state.Fire(&out, &forge.TimerFired{Key: timer.Key, At: timer.At}, p); d != forge.Ignored || len(out) != 1 {
		t.Errorf("a second delivery of the timer is %v", d)
	}
}

// TestClockBehindAfterwards has a time that has come not come again for a clock
// that is behind: its intent could never begin.
func TestClockBehindAfterwards(t *testing.T) {
	for name, change := range map[string]func(*world){
		"changed": func(w *world) { _, _ = w.set(every("a", "0 * * * 0-6", "")) },
		"resumed": func(w *world) {
			for _, paused := range []bool{true, false} {
				m := &forge.PauseSchedule{Name: "a", Paused: paused}
				_, _ = w.state.Decide(rules.Newest, &forge.Event{Actor: "bob", Message: m}, w.project())
			}
		},
	} {
		w := world{now: start}
		_, _ = w.set(every("a", "@hourly", ""))
		w.fire(0)
		w.state.Entered(w.sent[0])
		w.now = w.now.Add(-3 * time.Second)
		change(&w)
		if next := w.state.Timer(web); !next.At.Equal(start.Add(2 * time.Hour)) {
			t.Errorf("%s: it is due at %s next", name, next.At)
		}
	}
}

// TestTakenID has a schedule go on whose intent's id was taken beforehand, by
// an intent that has entered and does not enter again.
func TestTakenID(t *testing.T) {
	for _, open := range []bool{true, false} {
		w := world{now: start}
		_, _ = w.set(every("a", "@hourly", ""))
		n := every("a", "@hourly", "")
		taken := schedules.Intent(&n, "web", start.Add(time.Hour), forge.Identity{}).ID
		w.known = []forge.IntentID{taken}
		if open {
			w.open = w.known
		}
		if got := w.fire(0); len(got) != 0 {
			t.Errorf("%v were submitted", got)
		}
		if sum := w.state.Summaries()[0]; sum.LastIntent != "" || !strings.Contains(sum.Skipped, string(taken)) {
			t.Errorf("%+v", sum)
		}
		w.open = nil
		if got := w.fire(0); len(got) != 1 {
			t.Errorf("%v were submitted the next time", got)
		}
	}
}

// TestRefusesSchedules refuses a list as a whole, and keeps the one before.
func TestRefusesSchedules(t *testing.T) {
	change := func(f func(*forge.Schedule)) forge.Schedule {
		n := every("b", "@daily", "")
		f(&n)
		return n
	}
	for want, n := range map[string]forge.Schedule{
		"schedules[1].name":              change(func(n *forge.Schedule) { n.Name = "" }),
		"schedules[1].zone":              change(func(n *forge.Schedule) { n.Zone = "Nowhere" }),
		"schedules[1].cron: never comes": change(func(n *forge.Schedule) { n.Cron = "0 0 31 2 *" }),
		"schedules[1].intent.title":      change(func(n *forge.Schedule) { n.Intent.Title = "" }),
		"schedules[1].intent: has more":  change(func(n *forge.Schedule) { n.Intent.Source = forge.SourceHuman }),
		"schedules[1].intent: has more ": change(func(n *forge.Schedule) { n.Intent.Requesters = []forge.Identity{{Name: "bob", Proven: true}} }),
		"schedules[1].intent.depends_on": change(func(n *forge.Schedule) { n.Intent.DependsOn = []forge.IntentID{"x"} }),
		"schedules[1].intent.budget_usd": change(func(n *forge.Schedule) { n.Intent.BudgetUSD = -1 }),
		"schedules[1].intent.criteria": change(func(n *forge.Schedule) {
			n.Intent.Criteria, n.Intent.Checks = []string{"x"}, []forge.Check{{Criterion: 1, Command: "rm -rf ~"}}
		}),
	} {
		w := world{now: start}
		_, _ = w.set(every("a", "@daily", ""))
		if d, err := w.set(every("a", "@hourly", ""), n); d != forge.Refused || !strings.Contains(fmt.Sprint(err), strings.TrimSpace(want)) {
			t.Errorf("%v %v, want %s", d, err, want)
		}
		if len(w.state.List) != 1 || w.state.List[0].Cron != "@daily" {
			t.Errorf("%s: the schedules are %+v", want, w.state.List)
		}
	}
	var many []forge.Schedule
	for i := range 51 {
		many = append(many, every(fmt.Sprintf("a%d", i), "@daily", ""))
	}
	w := world{now: start}
	if d, err := w.set(many...); d != forge.Refused {
		t.Error(d, err)
	}
	many[0].Intent.Body, many[1].Intent.Body = strings.Repeat("x", 120_000), strings.Repeat("x", 120_000)
	if d, err := w.set(many[:2]...); d != forge.Refused {
		t.Error(d, err)
	}
}

// TestNoTimeTwice plays schedules with late timers, repeated deliveries, intents
// that end or do not, pauses and other schedules: no time leads to two intents,
// of no schedule two are open, and a timer is set as long as one is due.
func TestNoTimeTwice(t *testing.T) {
	crons := []string{"@hourly", "*/7 * * * *", "30 2 * * *", "0 0 1 * *"}
	rapid.Check(t, func(t *rapid.T) {
		w := world{now: start}
		open := map[string]forge.IntentID{} // by schedule
		for range 40 {
			before := w.state.Timer(web)
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0:
				_, _ = w.set(every("a", rapid.SampledFrom(crons).Draw(t, "cron"), rapid.SampledFrom([]string{"", "once", "skip"}).Draw(t, "missed")),
					every("b", rapid.SampledFrom(crons).Draw(t, "cron"), ""))
			case 1:
				m := &forge.PauseSchedule{Name: "a", Paused: rapid.Bool().Draw(t, "paused")}
				_, _ = w.state.Decide(rules.Newest, &forge.Event{Actor: "bob", Message: m}, w.project())
			case 2:
				w.paused = !w.paused
			case 3: // those that are open end
				w.open, open = nil, map[string]forge.IntentID{}
			case 4: // the timer before comes once more
				if before != nil && !before.At.After(w.now) {
					var out outbox.Messages
					_, _ = w.state.Fire(&out, &forge.TimerFired{Key: before.Key, At: before.At}, w.project())
					w.take(out)
				}
			default:
				late := time.Duration(rapid.SampledFrom([]int{0, 1, 60, 900, 90_000}).Draw(t, "late")) * time.Second
				for _, id := range w.fire(late) {
					name, _, _ := strings.Cut(string(id), "-")
					if other := open[name]; other != "" {
						t.Fatalf("%s is submitted while %s is open", id, other)
					}
					open[name] = id
					w.open = append(w.open, id)
					if rapid.Bool().Draw(t, "heard") {
						w.state.Entered(id)
					}
				}
			}
			for _, e := range w.state.List {
				if !e.Paused && !e.Next.After(w.now) && w.state.Timer(web) == nil {
					t.Fatalf("%s is not due again: %+v", e.Name, e)
				}
			}
		}
		if sorted := slices.Sorted(slices.Values(w.sent)); len(slices.Compact(sorted)) != len(w.sent) {
			t.Fatalf("an intent was submitted twice: %v", w.sent)
		}
	})
}

// TestWordsStay has whoever put a schedule into words stay among the requesters
// of its intents, whoever changes it after that.
func TestWordsStay(t *testing.T) {
	w := world{now: start}
	_, _ = w.set(every("a", "@hourly", "")) // ada's words
	for _, cron := range []string{"@daily", "@hourly"} {
		ev := forge.Event{Actor: "bob", Message: &forge.SetSchedules{Schedules: []forge.Schedule{every("a", cron, "")}}}
		if d, err := w.state.Decide(rules.Newest, &ev, w.project()); d != forge.Applied {
			t.Fatal(d, err)
		}
	}
	w.fire(0)
	want := []forge.Identity{{Name: "bob", Proven: true}, {Name: "ada", Proven: true}}
	if in := w.state.List[0].Submitting; !slices.Equal(in.Requesters, want) || in.Origin.Actor != "bob" {
		t.Errorf("%v ask for it, named by %s; want %v", in.Requesters, in.Origin.Actor, want)
	}
	if by := w.state.Summaries()[0].SetBy; by != "bob" {
		t.Errorf("it was set by %s", by)
	}
}

// TestStatesShareNothing has a copy of a state, as a snapshot keeps it, stay as it is.
func TestStatesShareNothing(t *testing.T) {
	w := world{now: start}
	_, _ = w.set(every("a", "@hourly", ""))
	kept := w.state
	w.fire(0)
	w.state.Entered(w.sent[0])
	_, _ = w.state.Decide(rules.Newest, &forge.Event{Message: &forge.PauseSchedule{Name: "a", Paused: true}}, w.project())
	if e := kept.List[0]; e.Submitted != "" || e.Paused || !e.Last.IsZero() {
		t.Errorf("the copy became %+v", e)
	}
}
