package outside

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// divider is an agent that divides every request into two tasks, also where it
// is told to plan one, and does what a plan says with its sections.
type divider struct{}

// Name returns that of the agent in pullSettings.
func (divider) Name() string { return "claude" }

// Run plans, carries out or reviews.
func (divider) Run(ctx context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	var answer object
	switch c.Role {
	case agent.RoleAnalyze:
		task := func(name string, after ...string) object {
			return object{
				"name": name, "title": "Note " + name, "plan": "write " + name, "requirements": []string{"note.txt says " + name}, "depends_on": after,
				"relevant_files": []string{"note.txt"},
			}
		}
		answer = object{"type": "docs", "risk": "low", "tasks": []object{task("second", "first"), task("first")}}
	case agent.RoleImplement:
		first, second := strings.Index(c.Prompt, "write first"), strings.Index(c.Prompt, "write second")
		if first < 0 || second < first {
			return agent.Outcome{}, agent.Fail(forge.FailCrashed, "the plan does not have both tasks in their order: %s", c.Prompt)
		}
		cmd := exec.CommandContext(ctx, "sh", "-ec", "printf 'first\\nsecond\\n' > note.txt; git add -A; git commit -qm 'note both'")
		cmd.Dir, cmd.Env = c.Dir, append(cmd.Environ(), c.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return agent.Outcome{}, agent.Fail(forge.FailCrashed, "%v: %s", err, out)
		}
		answer = object{"summary": "both are noted"}
	case agent.RoleReview:
		answer = object{"verdict": "approved", "issues": []string{}, "requirements": []object{
			agenttest.Claim(1, agenttest.Cite(c.Prompt, "first")), agenttest.Claim(2, agenttest.Cite(c.Prompt, "second")),
		}}
	default:
		return agent.Outcome{}, agent.Fail(forge.FailCrashed, "it is asked to %s", c.Role)
	}
	text, err := json.Marshal(answer)
	return agent.Outcome{Session: c.Session.ID, Answer: text, Duration: time.Second}, err
}

// TestIntentMergedAsOne: a project has merge.unit intent, and its agent plans
// two tasks of an intent nevertheless. They are carried out, verified and
// reviewed as one, whose pull request has the intent's title and both
// requirements. It is the only one that there ever is, and its merge one commit.
func TestIntentMergedAsOne(t *testing.T) {
	t.Parallel()
	w := newPullWorld(t, "by: forge, method: squash, unit: intent", divider{})
	key := forge.Key{Project: "shop", Intent: "notes"}
	submit := forge.Event{ID: "notes", To: key, Actor: "ada", Message: &forge.Submit{Intent: forge.Intent{
		ID: key.Intent, Project: key.Project, Source: forge.SourceHuman,
		Settings: forge.Settings{Title: "Take notes", Body: "Two of them.", Risk: forge.RiskLow},
	}}}
	if r, err := w.nats.Connect(t).Submissions.Ask(wait.Context(t), submit); err != nil || r.Decision != forge.Applied {
		t.Fatalf("submit: %+v, %v", r, err)
	}
	stop := w.gateway()
	p := w.pull("is opened", func(p *pull) bool { return p.State == "open" })
	if p.Title != "Take notes" || !strings.Contains(p.Body, "note.txt says first") || !strings.Contains(p.Body, "note.txt says second") {
		t.Errorf("it is %+v", p)
	}
	if s := w.intent(); len(s.Tasks) != 1 || s.Tasks[0].ID != "notes-001" {
		t.Errorf("its tasks are %+v", s.Tasks)
	}
	w.check(p.Head.SHA, "success")
	w.review(&p, "APPROVED", "Good.")
	stop()
	w.gateway() // whose first sweep sees that
	w.pull("is merged", func(p *pull) bool { return p.Merged })
	wait.Until(t, "the intent is done", func() bool { return w.intent().Status == forge.StatusDone })
	dir := w.fake.Dir(w.repo)
	if got := w.git(dir, "show", "main:note.txt"); got != "first\nsecond" {
		t.Errorf("main says %q", got)
	}
	if log := strings.Split(w.git(dir, "log", "--format=%s", "main"), "\n"); !strings.Contains(log[0], "Take notes") || log[1] != "settings" {
		t.Errorf("main has %q", log)
	}
}
