package conformance

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// approval is a valid answer of a review call.
var approval = object{"requirements": list{met()}, "verdict": "approved", "issues": []string{}}

// met returns a claim that a requirement or criterion is met.
func met() object {
	return object{"number": 1.0, "met": true, "confidence": 0.9, "note": "it is there", "evidence": list{
		object{"kind": "file", "ref": "greeting.txt:2", "quote": "hello world"},
	}}
}

// mustAddUp compares a usage with the tokens that the model's replies reported.
func (x *fixture) mustAddUp(u forge.Usage) {
	x.Helper()
	s := x.model.Served("main")
	got := agenttest.Usage{
		Input: int(u.InputTokens), Output: int(u.OutputTokens), CacheRead: int(u.CacheReadTokens), CacheWrite: int(u.CacheWriteTokens),
	}
	if diff := cmp.Diff(s, got); diff != "" {
		x.Errorf("usage (-served +reported):\n%s", diff)
	}
	if u.CostUSD <= 0 || u.Turns <= 0 || u.Calls <= 0 {
		x.Errorf("usage %+v", u)
	}
}

// mustReportEvents checks the kinds and texts of the events.
func (x *fixture) mustReportEvents() {
	x.Helper()
	var kinds []agent.EventKind
	for _, e := range x.seen {
		kinds = append(kinds, e.Kind)
		for _, s := range []string{e.Text, e.Tool, e.Model, e.Session} {
			// Events are shown on terminals, so they have no control characters and are
			// one line.
			if s != term.Line(s) {
				x.Errorf("%s event holds %q", e.Kind, s)
			}
		}
		if e.Kind == agent.EventStarted && (e.Session != x.call.Session.ID || e.Model == "") {
			x.Errorf("started %q with model %q", e.Session, e.Model)
		}
	}
	for _, k := range []agent.EventKind{agent.EventStarted, agent.EventText, agent.EventTool, agent.EventUsage} {
		if !slices.Contains(kinds, k) {
			x.Errorf("no event of kind %s in %v", k, kinds)
		}
	}
	if len(kinds) > 0 && kinds[0] != agent.EventStarted {
		x.Errorf("the first event is %s", kinds[0])
	}
}

// repairsAnswer has answers that are wrong once, and always.
func repairsAnswer(t *testing.T, b *Backend) {
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		x := newFixture(t, b, agent.RoleReview, agenttest.Say("It looks fine."), agenttest.Say("It looks fine, as I said."), b.Answer(approval))
		if len(b.Answer(approval)(agenttest.Request{}).Tool) == 0 { // without such a tool only pfl-forge asks again
			x = newFixture(t, b, agent.RoleReview, agenttest.Say("It looks fine."), b.Answer(approval))
		}
		out := x.mustRun()
		if r, _, err := agent.ParseReview(out.Answer); err != nil || r.Verdict != forge.VerdictApproved {
			t.Errorf("%+v, %v", r, err)
		}
		// Both calls count.
		x.mustAddUp(out.Usage)
		if !strings.Contains(string(x.last().Body), "FIRST-PROMPT") {
			t.Error("it was asked to correct its answer in another session")
		}
	})
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		// In words: a CLI that gives up on a structured answer may do so before it has
		// reported how many tokens the last one took.
		x := newFixture(t, b, agent.RoleReview, agenttest.Say("It looks fine."))
		out, _ := x.mustFail(forge.FailInvalidOutput)
		if out.Answer != nil {
			t.Errorf("it answered %s", out.Answer)
		}
		x.mustAddUp(out.Usage)
	})
}

// reportsCommands has commands that succeed, with and without output, and one that fails.
// The last line that a command printed is reported, since a person looks for it in the
// transcript. A CLI that does not tell whether a command failed still tells what it printed.
func reportsCommands(t *testing.T, b *Backend) {
	x := newFixture(t, b, agent.RoleImplement,
		b.Shell("echo FIRST; echo LAST-LINE; echo"), b.Shell("true"), b.Shell("echo BROKEN >&2; exit 3"), b.Answer(object{"summary": "nothing"}))
	x.mustRun()
	var ends []string
	for _, e := range x.seen {
		if e.Kind == agent.EventCommandEnded || e.Kind == agent.EventToolFailed {
			ends = append(ends, string(e.Kind)+" "+e.Text)
		}
	}
	if len(ends) != 3 || ends[0] != "command_ended LAST-LINE" || !strings.HasPrefix(ends[1], "command_ended ") || !strings.Contains(ends[2], "BROKEN") {
		t.Errorf("%q", ends)
	}
}

// implements has a hostile repository, as runsRoles has.
func implements(t *testing.T, b *Backend) {
	x := newFixture(t, b, agent.RoleImplement,
		b.Shell("echo world >> greeting.txt && git commit -q -a -m 'greet the world' && env > env.txt; "+daemon),
		b.Answer(object{"summary": "greets the world"}),
		b.Shell("git commit -q --allow-empty -m more"),
		b.Answer(object{"summary": "says more"}))
	look := x.plantTraps()
	out := x.mustRun()
	if summary, _, err := agent.ParseImplementation(out.Answer); summary != "greets the world" || err != nil {
		t.Errorf("summary %q, %v", summary, err)
	}
	if got := git(t, x.call.Dir, "log", "-1", "--format=%an %cn %s%n%b"); got != "a a greet the world" {
		t.Errorf("commit is %q", got)
	}
	x.mustLeaveNoProcess()
	env, err := os.ReadFile(filepath.Join(x.call.Dir, "env.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(env), "HOME="+x.call.ScratchDir) || strings.Contains(string(env), canary) {
		t.Errorf("HOME is not private, or the service's environment is there:\n%s", env)
	}

	// A reviewer's rejection is answered in the same session. The prompt looks like a
	// command.
	x.call.Session.Resume = true
	x.call.Prompt = "/the reviewer wants more"
	again := x.mustRun()
	if summary, _, err := agent.ParseImplementation(again.Answer); summary != "says more" || err != nil {
		t.Errorf("summary %q, %v", summary, err)
	}
	if again.Session != out.Session || git(t, x.call.Dir, "rev-list", "--count", "HEAD") != "4" {
		t.Errorf("session %s went on as %s", out.Session, again.Session)
	}
	for _, s := range []string{"FIRST-PROMPT", "/the reviewer wants more", "SYSTEM-PROMPT"} {
		if !strings.Contains(string(x.last().Body), s) {
			t.Errorf("the resumed session lacks %s", s)
		}
	}
	// The second call reports its own tokens only, not the session's total.
	x.mustAddUp(out.Usage.Add(again.Usage))
	look()
}

// daemon starts a process that leaves the session and stays.
const daemon = "setsid sh -c 'touch daemon; exec sleep 600' >/dev/null 2>&1 & while [ ! -e daemon ]; do sleep 0.01; done"

// gitDirEntries lists the entries of a repository's .git.
func gitDirEntries(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// plantTraps turns the checkout into a hostile one, and returns a function that checks
// that no trap worked.
func (x *fixture) plantTraps() (look func()) {
	x.Helper()
	evil := x.model.Script("evil", agenttest.InOrder(x.Answer(approval)))
	planted := filepath.Join(x.TempDir(), "planted")
	x.Trap(x, x.call.Dir, evil, "touch "+planted)
	// Committed, as in a repository that an attacker prepared.
	git(x, x.call.Dir, "add", "-A", "-f")
	git(x, x.call.Dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "traps")
	return func() {
		x.Helper()
		if n := len(x.model.Requests("evil")); n != 0 {
			x.Errorf("the repository redirected %d requests", n)
		}
		if _, err := os.Stat(planted); err == nil {
			x.Error("the repository ran a command")
		}
	}
}
