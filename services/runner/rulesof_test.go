package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/presence"
	"github.com/pfl-forge/pfl-forge/internal/rules"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// versionsOf returns by which versions of the rules the records of an intent
// were decided, in order.
func versionsOf(t *testing.T, b *bus.Bus, id forge.IntentID) (list []rules.Version) {
	t.Helper()
	records, _, err := b.Journal.Load(t.Context(), forge.Key{Project: project, Intent: id})
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		list = append(list, rules.Of(&records[i]))
	}
	return list
}

// ask submits an intent and returns by which version of the rules it was decided on first.
func ask(t *testing.T, b *bus.Bus, id forge.IntentID) rules.Version {
	t.Helper()
	if ruling, err := b.Submissions.Ask(wait.Context(t), submission(id)); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	return versionsOf(t, b, id)[0]
}

// TestRulesOfAll has a runner decide by the first version as long as an older
// runner is there, by the newest when there is none, and by the first again
// when one comes back. What newer rules have decided on stays with those.
func TestRulesOfAll(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	announce := func(r presence.Replica) (stop func()) {
		stop, err := s.Connect(t).Presence.Announce(wait.Context(t), r)
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	old := presence.Replica{Service: "runner", ID: "old", Started: time.Unix(1, 0), Rules: rules.First}
	gone := announce(old)
	t.Cleanup(announce(presence.Replica{Service: "runner", ID: "new", Started: time.Unix(1, 0)}))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler), Rules: runner.RulesConfig{Settle: time.Millisecond}})
	}()
	t.Cleanup(func() { cancel(); <-ended })

	if got := ask(t, b, "with-an-older-one"); got != rules.First {
		t.Errorf("beside an older runner it is decided by version %d", got)
	}
	gone()
	n := 0
	next := func() rules.Version { n++; return ask(t, b, forge.IntentID(fmt.Sprint("later-", n))) }
	wait.Until(t, "the newest rules are in force", func() bool { return next() == rules.Newest })
	newest := forge.IntentID(fmt.Sprint("later-", n))
	t.Cleanup(announce(old))
	wait.Until(t, "the first rules are in force again", func() bool { return next() == rules.First })

	// A machine goes on by the newest version that decided on it.
	pause := forge.Event{To: forge.Key{Project: project, Intent: newest}, ID: "pause", Actor: "ada", Message: &forge.Pause{}}
	if ruling, err := b.Submissions.Ask(wait.Context(t), pause); err != nil || ruling.Decision != forge.Applied {
		t.Fatal(ruling, err)
	}
	list := versionsOf(t, b, newest)
	if last := list[len(list)-1]; last != rules.Newest {
		t.Errorf("%s was decided on by versions %v", newest, list)
	}
}

// TestRulesOfANewInstallation: where nothing was decided yet, what all runners know is decided by as
// soon as they were seen, also with the wait of ten minutes that there is otherwise.
func TestRulesOfANewInstallation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others []presence.Replica
		want   rules.Version
	}{
		"alone":                     {nil, rules.Newest},
		"beside a runner of before": {[]presence.Replica{{Service: "runner", ID: "old", Started: time.Unix(1, 0), Rules: 2}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := bustest.StartServer(t)
			b := s.Connect(t)
			for _, r := range append(c.others, presence.Replica{Service: "runner", ID: "me", Started: time.Unix(1, 0), Rules: rules.Newest}) {
				stop, err := s.Connect(t).Presence.Announce(wait.Context(t), r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(stop)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = runner.Run(ctx, runner.Config{Bus: b, Log: slog.New(slog.DiscardHandler)})
			}()
			t.Cleanup(func() { cancel(); <-ended })
			n := 0
			wait.Until(t, "new intents are decided by what all know", func() bool {
				n++
				return ask(t, b, forge.IntentID(fmt.Sprint("one-", n))) == c.want
			})
		})
	}
}

// TestRecordOfNewerRules leaves a machine alone that rules decided on which
// this program does not have.
func TestRecordOfNewerRules(t *testing.T) {
	t.Parallel()
	s := bustest.StartServer(t)
	b := s.Connect(t)
	leaveOpen(t, b, "one")
	key := forge.Key{Project: project, Intent: "one"}
	before, head, err := b.Journal.Load(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	rec := before[len(before)-1]
	rec.Effects, rec.Events = forge.Effects{}, []forge.Event{{ID: "later", To: key, Actor: "ada", At: time.Now().UTC(), Message: &forge.Pause{}}}
	(rules.Newest + 1).Stamp(&rec)
	if _, err := b.Journal.Append(t.Context(), key, head, rec); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Journal.Load(t.Context(), key); err == nil || !strings.Contains(err.Error(), "rules: version") {
		t.Errorf("it is read as if nothing were new: %v", err)
	}
	if list, err := b.Journal.Troubles(t.Context(), key); err != nil || len(list) != 1 || !list[0].Loose {
		t.Errorf("doctor says of it: %+v, %v", list, err)
	}
	if _, err := runner.View(t.Context(), b, key); err == nil {
		t.Error("a view shows a state that was decided on by newer rules")
	}
}
