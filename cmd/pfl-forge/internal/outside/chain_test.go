package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testbuild"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest/reviews"
	"github.com/pfl-forge/pfl-forge/services/gateway/hooks"
)

// chainSettings are those of the project: its agent is asked first, so that a
// person approves a plan and not a wish.
const chainSettings = `agent: claude
verify: [test -f note.txt]
merge: {how: pull_request, %s, checks: [ci/unit]}
policy: {analyze_before_approval: always}
`

// wish is what ada asks for in her review.
const wish = "Sign it."

// asker is an agent that asks which note is wanted before it plans one, writes
// it as it was answered, and signs it when a review asks for that.
type asker struct{}

// Name returns that of the agent in chainSettings.
func (asker) Name() string { return "claude" }

// Run plans, carries out or reviews.
func (asker) Run(ctx context.Context, c agent.Call, _ func(agent.Event)) (agent.Outcome, error) {
	var answer object
	switch c.Role {
	case agent.RoleAnalyze:
		answer = object{"type": "docs", "risk": "med", "tasks": []object{}, "clarifications": []object{{"question": "Which note?"}}}
		if strings.Contains(c.Prompt, "hello world") {
			answer = object{"type": "docs", "risk": "med", "tasks": []object{{
				"name": "note", "title": "Note it", "plan": "write hello world", "requirements": []string{"note.txt says hello world"},
				"relevant_files": []string{"note.txt"}, "complexity": "low",
			}}}
		}
	case agent.RoleImplement:
		script := "test ! -e note.txt; echo hello world > note.txt; git add -A; git commit -qm 'note it'"
		if strings.Contains(c.Prompt, wish) {
			script = "printf 'hello world\\nsigned\\n' > note.txt; git add -A; git commit -qm 'sign it'"
		}
		cmd := exec.CommandContext(ctx, "sh", "-ec", script)
		cmd.Dir, cmd.Env = c.Dir, append(cmd.Environ(), c.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return agent.Outcome{}, agent.Fail(forge.FailCrashed, "%v: %s", err, out)
		}
		answer = object{"summary": "it is noted"}
	case agent.RoleReview:
		answer = agenttest.Review(c.Prompt)
	default:
		return agent.Outcome{}, agent.Fail(forge.FailCrashed, "it is asked to %s", c.Role)
	}
	text, err := json.Marshal(answer)
	return agent.Outcome{Session: c.Session.ID, Answer: text, Duration: time.Second}, err
}

// chainWorlds runs a test in an installation of each forge: of the fake in some dialects,
// and of a real Gitea where PFL_FORGE_GITEA names the folder with its url and tokens.
func chainWorlds(t *testing.T, dialects []hooks.Kind, test func(t *testing.T, w *pullWorld)) {
	t.Helper()
	for _, dialect := range dialects {
		t.Run("fake "+string(dialect), func(t *testing.T) {
			t.Parallel()
			fake := forgetest.NewFake()
			t.Cleanup(fake.Close)
			w := &pullWorld{fake: fake, agents: []agent.Agent{asker{}}, project: chainSettings, forgeWorld: &forgeWorld{
				t: t, url: fake.URL(), repo: "root1/web", tokens: map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"},
			}}
			w.begin("by: forge, method: squash", func() string { return fake.Dir(w.repo) })
			w.dialect, w.bot = dialect, "bot"
			fake.Lab.Set(w.repo, forgetest.Project{Method: "merge", Pipelines: true, Resolved: true})
			test(t, w)
		})
	}
	dir := os.Getenv("PFL_FORGE_GITEA")
	if dir == "" {
		return
	}
	t.Run("gitea", func(t *testing.T) {
		t.Parallel()
		read := func(name string) string {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			return strings.TrimSpace(string(text))
		}
		w := &pullWorld{agents: []agent.Agent{asker{}}, project: chainSettings, forgeWorld: &forgeWorld{
			t: t, url: read("url"), repo: fmt.Sprintf("root1/c%d", time.Now().UnixNano()),
			tokens: map[string]string{"root1": read("admin.token"), "bot": read("bot.token"), "ada": read("ada.token"), "eve": read("eve.token")},
		}}
		w.begin("by: forge, method: squash", func() string {
			return strings.Replace(w.url, "://", "://bot:"+w.tokens["bot"]+"@", 1) + "/" + w.repo + ".git"
		})
		w.bot = "bot"
		test(t, w)
	})
}

// TestWholeChain: an issue gets a label and becomes an intent, whose question is answered in a
// comment and whose plan is approved by its hash in another one, by ruth, since it was ada who
// asked for it. The change is proposed as a pull request into a protected branch, with statuses
// that say what was found; ada asks for a change there, which is made, and answered; she approves,
// the forge merges, and the issue is closed with a summary. The gateway is the program itself,
// which is killed at every step, and before and after each kind of write to the forge that it makes
// in it, so that a write is done and never answered. So it is in full size also by hooks, where a
// sweep comes too late for anything, and by sweeps alone, and in the dialect of each forge.
func TestWholeChain(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if out, err := testbuild.Programs(bin, "github.com/pfl-forge/pfl-forge/services/gateway/cmd/gateway"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, variant := range testsize.Part(t, testsize.First(1, []chainVariant{
		{name: "killed", every: 10 * time.Second, killed: true}, {name: "hooks", hooks: true, every: time.Hour}, {name: "sweep", every: 10 * time.Second},
	})) {
		t.Run(variant.name, func(t *testing.T) {
			t.Parallel()
			chainWorlds(t, testsize.First(1, []hooks.Kind{hooks.Gitea, hooks.GitHub, hooks.GitLab}), func(_ *testing.T, w *pullWorld) {
				w.chain(w.program(filepath.Join(bin, "gateway"), variant))
			})
		})
	}
}

// chain is TestWholeChain for a world and a gateway.
func (w *pullWorld) chain(p *program) {
	t := w.t
	t.Helper()
	issue := w.open()
	p.next("the label")
	w.until(issue, "/forge answer 1")
	p.next("the question")
	w.say("ada", issue, "/forge answer 1 hello world")
	p.next("the answer")
	hash := w.hash(issue, "")
	p.next("the plan")
	w.say("ada", issue, "/forge approve "+hash)
	p.next("the approval that is refused")
	w.until(issue, "may not approve")
	p.next("the refusal")
	w.say("root1", issue, "/forge approve "+hash)
	p.next("the approval of the plan")
	first := w.pull("is opened", func(p *pull) bool { return p.State == "open" })
	w.stated(first.Head.SHA)
	p.next("the pull request")
	w.check(first.Head.SHA, "success")
	w.review(&first, "REQUEST_CHANGES", wish)
	p.next("the wish")
	second := w.pull("is made again for ada", func(p *pull) bool { return p.Head.SHA != first.Head.SHA })
	p.next("the rework")
	w.stated(second.Head.SHA)
	w.check(second.Head.SHA, "success")
	p.next("the check")
	w.waits("ada asked for changes")
	wait.Until(t, "ada is answered", func() bool {
		said := w.replies(&second)
		return len(said) > 0 && strings.Contains(said[len(said)-1], "Reworked in `"+second.Head.SHA[:12]+"`")
	})
	if w.fake != nil {
		w.fake.Reviews(w.repo, second.Number, func(l reviews.List) { l.Resolve("note.txt", "ada") })
	}
	w.review(&second, "APPROVED", "Good.")
	p.next("the approval")
	merged := w.pull("is merged", func(p *pull) bool { return p.Merged })
	p.next("the merge")
	w.landed(issue, &second, merged.MergeCommit, "hello world\nsigned")
	p.next("the end")
	w.until(issue, "**done**")
	p.stop()
	w.once(issue, hash, &second)
	p.unharmed()
}

// stated waits until a commit has our statuses, none of which says that anything is wrong.
func (w *pullWorld) stated(head string) {
	w.t.Helper()
	wait.Until(w.t, "the commit has our statuses", func() bool {
		var got struct {
			Statuses []struct {
				Context, Status, State string
			}
		}
		w.as("root1", http.MethodGet, "/repos/"+w.repo+"/commits/"+head+"/status?limit=50", nil, &got)
		passed := map[string]bool{}
		for _, s := range got.Statuses {
			passed[s.Context] = s.Status == "success" || s.State == "success"
		}
		return passed["pfl-forge/verify"] && passed["pfl-forge/review"]
	})
}

// replies returns what we say to the remarks of people on a pull request, in
// their threads and below it, as Gitea shows it.
func (w *pullWorld) replies(p *pull) (list []string) {
	type said struct {
		ID   int64
		Body string
		User struct{ Login string }
	}
	path := fmt.Sprintf("/repos/%s/pulls/%d/reviews", w.repo, p.Number)
	var all []said
	w.as("root1", http.MethodGet, path+"?limit=50", nil, &all)
	for _, r := range all {
		var remarks []said
		w.as("root1", http.MethodGet, fmt.Sprintf("%s/%d/comments", path, r.ID), nil, &remarks)
		for _, m := range remarks {
			if m.User.Login == w.bot {
				list = append(list, m.Body)
			}
		}
	}
	return append(list, w.ours(fmt.Sprintf("/repos/%s/issues/%d", w.repo, p.Number))...)
}

// once checks that nothing happened twice: there is one intent, answered once and approved
// once by its hash, through the gateway; one comment of ours on the issue, with its summary;
// one answer on the one pull request; and one commit on main beside those that it had.
func (w *pullWorld) once(issue, hash string, p *pull) {
	t := w.t
	t.Helper()
	b := w.nats.Connect(t)
	records, _, err := b.Journal.Load(wait.Context(t), w.intent().Key)
	if err != nil {
		t.Fatal(err)
	}
	var done []string
	for _, r := range records {
		for _, ev := range r.Events {
			switch m := ev.Message.(type) { //nolint:gochecksumtype // what people asked for
			case *forge.Submit:
				if m.Comments != nil {
					continue // it asks for nothing, and how often it is told depends on when the gateway looks
				}
				done = append(done, "submitted by "+ev.Actor+" via "+ev.Via)
			case *forge.Answer:
				done = append(done, fmt.Sprintf("answered by %s via %s", ev.Actor, ev.Via))
			case *forge.Approve:
				done = append(done, fmt.Sprintf("approved %t by %s via %s", m.Plan == hash, ev.Actor, ev.Via))
			}
		}
	}
	if want := []string{"submitted by work via gateway", "answered by ada via gateway", "approved true by ruth via gateway"}; !slices.Equal(done, want) {
		t.Errorf("it was %q", done)
	}
	comments := w.ours(issue)
	if len(comments) != 1 || !strings.Contains(comments[0], "**done**") || !strings.Contains(comments[0], "Note it") {
		t.Errorf("our comments on the issue are %q", comments)
	}
	if said := w.replies(p); len(said) != 1 {
		t.Errorf("our answers on the pull request are %q", said)
	}
	dir := filepath.Join(t.TempDir(), "main")
	w.git("", "clone", "-q", w.origin, dir)
	if log := strings.Split(w.git(dir, "log", "--first-parent", "--format=%s", "main"), "\n"); len(log) != 3 || log[1] != "settings" {
		t.Errorf("main has %q", log)
	}
}
