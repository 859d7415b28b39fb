package subjects

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	forge "github.com/pfl-forge/pfl-forge"
)

func TestCommandSubjects(t *testing.T) {
	to := forge.Key{Project: "shop", Intent: "fix-login"}
	for _, tt := range []struct {
		cmd   forge.Command
		group Group
		want  string
	}{
		{
			cmd:  forge.Command{To: to, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 2}},
			want: "forge.command.analyze.any.shop.fix-login.-.1.2",
		},
		{
			cmd:   forge.Command{To: to, Attempt: forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 2}},
			group: "large",
			want:  "forge.command.analyze.in.large.shop.fix-login.-.1.2",
		},
		{
			cmd:   forge.Command{To: to, Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepMerge, Number: 1, Claim: 1}},
			group: "large",
			want:  "forge.command.merge.in.large.shop._fix-login.fix-login-001.1.1",
		},
		{
			cmd:   forge.Command{To: to, Replica: "impl-0", Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepImplement, Number: 3, Claim: 1}},
			group: "large", // which does not count: it is for one replica
			want:  "forge.command.implement.on.impl-0.shop.fix-login.fix-login-001.3.1",
		},
		{
			cmd:  forge.Command{To: to, Attempt: forge.Attempt{Task: "fix-login-001", Step: forge.StepMerge, Number: 1, Claim: 1}},
			want: "forge.command.merge.any.shop._fix-login.fix-login-001.1.1",
		},
	} {
		groups := Groups{"other": "other"}
		if tt.group != "" {
			groups["shop"] = tt.group
		}
		got, err := groups.Command(&tt.cmd)
		if err != nil || got != tt.want {
			t.Errorf("got %q, %v, want %q", got, err, tt.want)
		}
		back, err := ParseCommand(got)
		if err != nil || back.To != tt.cmd.To || back.Attempt != tt.cmd.Attempt || back.Replica != tt.cmd.Replica {
			t.Errorf("%q parses as %+v, %v", got, back, err)
		}
		matched := 0
		for _, filter := range CommandsOf(to) {
			if server.SubjectsCollide(filter, got) {
				matched++
			}
		}
		want := 1
		if tt.cmd.Attempt.Step == forge.StepMerge {
			want = 0 // the end of an intent does not remove what is the project's
		}
		if matched != want {
			t.Errorf("%d filters of the intent match %q, want %d", matched, got, want)
		}
		filter, err := CommandsFor(tt.cmd.Attempt.Step, groups[tt.cmd.To.Project], tt.cmd.Replica)
		if err != nil || !server.SubjectsCollide(filter, got) {
			t.Errorf("%q, %v does not match %q", filter, err, got)
		}
	}
}

func TestJournalSubjects(t *testing.T) {
	for want, key := range map[string]forge.Key{
		"forge.journal.shop.fix-login": {Project: "shop", Intent: "fix-login"},
		"forge.project.shop":           {Project: "shop"},
	} {
		got, err := Journal(key)
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if back, err := ParseJournal(got); err != nil || back != key {
			t.Errorf("%q parses as %v, %v", got, back, err)
		}
	}
}

// TestHostileIDs checks that no text becomes a wildcard or several tokens.
func TestHostileIDs(t *testing.T) {
	for _, bad := range []string{"", "*", ">", "a.b", "a b", "A", "-a", "ä", "a\x00", strings.Repeat("a", 65)} {
		project := forge.Key{Project: forge.ProjectID(bad), Intent: "i"}
		intent := forge.Key{Project: "p", Intent: forge.IntentID(bad)}
		at := forge.Attempt{Step: forge.StepReview, Number: 1, Claim: 1}
		for name, build := range map[string]func(forge.Key) (string, error){
			"intent":   func(k forge.Key) (string, error) { return Personal(k, "ada", "submit") },
			"result":   func(k forge.Key) (string, error) { return Result(&forge.Result{To: k, Attempt: at}) },
			"command":  func(k forge.Key) (string, error) { return Groups{}.Command(&forge.Command{To: k, Attempt: at}) },
			"progress": Progress,
			"journal":  Journal,
			"wake":     Wake,
			"control":  Control,
			"timer":    func(k forge.Key) (string, error) { return Timer(&forge.Timer{To: k, Key: "t"}) },
		} {
			if s, err := build(project); err == nil {
				t.Errorf("%s: project %q became %q", name, bad, s)
			}
			if s, err := build(intent); err == nil && bad != "" {
				t.Errorf("%s: intent %q became %q", name, bad, s)
			}
		}
		if bad == "" {
			continue
		}
		if s, err := CommandsFor(forge.StepReview, "", forge.ReplicaID(bad)); err == nil {
			t.Errorf("replica %q became %q", bad, s)
		}
		if s, err := CommandsFor(forge.StepReview, Group(bad), ""); err == nil && bad != "" {
			t.Errorf("group %q became %q", bad, s)
		}
		if g, err := ParseGroup(bad); err == nil {
			t.Errorf("%q is the group %q", bad, g)
		}
		if s, err := CommandsFor(forge.Step(bad), "", "r"); err == nil {
			t.Errorf("step %q became %q", bad, s)
		}
		if s, err := IntentJournals(forge.ProjectID(bad)); err == nil {
			t.Errorf("project %q became %q", bad, s)
		}
	}
}

func FuzzParseSubjects(f *testing.F) {
	f.Add("forge.command.review.on.r.p.i.i-001.1.1")
	f.Add("forge.command.review.in.g.p.i.i-001.1.1")
	f.Add("forge.project.p")
	f.Add("forge.command.review.held.any.p.i.i-001.1.1")
	f.Add("forge.command.review.held.in-g.p.i.i-001.1.1.r")
	f.Fuzz(func(t *testing.T, s string) {
		if l, c, err := ParseHeld(s); err == nil {
			groups := Groups{c.To.Project: l.Group}
			if again, err := groups.Hold(&c); err != nil || again != s || groups.LineOf(&c) != l {
				t.Errorf("%q became %q in %+v, %v", s, again, l, err)
			}
			if _, err := ParseCommand(s); err == nil {
				t.Errorf("%q is held and at the workers", s)
			}
			for filter, want := range map[string]bool{
				l.Held(): true, l.HeldOf(c.To.Project): true, EveryHeld: true, HeldOfIntent(c.To): true,
				l.HeldOn(c.To.Project):          c.Replica != "",
				HeldAttempt(c.To, c.Attempt)[0]: c.Replica == "", HeldAttempt(c.To, c.Attempt)[1]: c.Replica != "",
				CommandsOf(c.To)[0]: false, CommandsOf(c.To)[1]: false, CommandsOf(c.To)[2]: false,
				EveryAtWorkers()[0]: false, EveryAtWorkers()[1]: false, EveryAtWorkers()[2]: false,
			} {
				if server.SubjectsCollide(filter, s) != want {
					t.Errorf("%q matches %q: %v", filter, s, !want)
				}
			}
		}
		if c, err := ParseCommand(s); err == nil {
			var groups Groups
			if t := strings.Split(s, "."); t[3] == "in" {
				groups = Groups{c.To.Project: Group(t[4])}
			}
			if again, err := groups.Command(&c); err != nil || again != s {
				t.Errorf("%q became %q, %v", s, again, err)
			}
		}
		if k, err := ParseJournal(s); err == nil {
			if again, err := Journal(k); err != nil || again != s {
				t.Errorf("%q became %q, %v", s, again, err)
			}
		}
	})
}

func FuzzTimerSubjects(f *testing.F) {
	f.Add("claim/fix-login-001/1", "a.b")
	f.Fuzz(func(t *testing.T, a, b string) {
		subjects := map[string]string{}
		for _, key := range []string{a, b} {
			s, err := Timer(&forge.Timer{To: forge.Key{Project: "p"}, Key: key})
			if err != nil {
				t.Fatal(err)
			}
			if !server.IsValidLiteralSubject(s) || strings.Count(s, ".") != 4 {
				t.Errorf("timer %q became %q", key, s)
			}
			subjects[s] = key
		}
		if a != b && len(subjects) != 2 {
			t.Errorf("timers %q and %q share a subject", a, b)
		}
	})
}
