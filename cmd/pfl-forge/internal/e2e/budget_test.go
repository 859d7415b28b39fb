package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/agent/price"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// racers plans twenty tasks that need nothing of each other. Each reply of the
// model costs some cents.
func racers(r agenttest.Request) agenttest.Reply {
	reply := racersReply(r)
	reply.Usage = agenttest.Usage{Input: 10_000, Output: 1_000}
	return reply
}

func racersReply(r agenttest.Request) agenttest.Reply {
	switch {
	case strings.Contains(r.System, "You plan changes"):
		var tasks []object
		for i := range 20 {
			tasks = append(tasks, object{
				"name": fmt.Sprintf("t%d", i), "title": fmt.Sprintf("Write file %d", i), "plan": fmt.Sprintf("Write the file number-%d.", i),
				"relevant_files": []string{}, "complexity": "low",
			})
		}
		return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": tasks})(r)
	case strings.Contains(r.System, "You carry out one task"):
		return agenttest.Steps(
			agenttest.UseIn("Write", func(dir string) any {
				return object{"file_path": filepath.Join(dir, filepath.Base(filepath.Dir(dir))+filepath.Base(dir)), "content": "written by one of the racers\n"}
			}),
			agenttest.Use("Bash", object{"command": "git add -A && git commit -q -m 'Write it'"}),
			agenttest.Answer(object{"summary": "wrote it"}),
		)(r)
	case strings.Contains(r.System, lookingBack):
		return nothingToPropose(r)
	}
	return agenttest.Reviews()(r)
}

// TestBudgetRace: twenty tasks draw on one pool that is enough for a few of them.
// It is never overdrawn, the rest waits for a person, and goes on when the pool is larger.
func TestBudgetRace(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", racers))
	env.set("ANTHROPIC_API_KEY", "no-key")
	settings := func(usd float64) string {
		return fmt.Sprintf("agent: claude\nparallel_workers: 8\nbudget: {project_usd: %.2f, call_usd: 0.3}\n", usd)
	}
	r := newRepo(t, map[string]string{"pfl-forge.yaml": settings(0.6)}, env...)
	r.draft("race", "type: feature")

	r.must(3, "run")

	if spent := r.spent("race"); spent < 0.3 || spent > 0.6 {
		t.Errorf("$%.3f were spent of a pool of $0.60", spent)
	}
	inbox := r.must(0, "inbox").stdout
	why := strings.Contains(inbox, "the project's budget of $0.60 is used up") || strings.Contains(inbox, "does not fit in what is left")
	if !why || !strings.Contains(inbox, "pfl-forge retry race") {
		t.Errorf("the inbox says\n%s", inbox)
	}
	checkCosts(t, r, model.Served("claude"))

	before := len(r.subjects())
	r.write("pfl-forge.yaml", settings(9))
	r.git("commit", "-q", "-a", "-m", "More money")
	r.must(0, "retry", "race")
	r.must(0, "run") // all twenty are merged
	if after := len(r.subjects()); after <= before+1 {
		t.Errorf("main had %d commits and has %d: nothing merged for more money\n%s", before, after, r.must(0, "show", "race").stdout)
	}
	if spent := r.spent("race"); spent > 9 {
		t.Errorf("$%.3f were spent of a pool of $9.00", spent)
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}

// spent is what an intent cost so far, in US dollars.
func (r *repo) spent(id string) float64 {
	r.t.Helper()
	var doc struct {
		CostUSD float64 `json:"cost_usd"`
	}
	out := r.must(0, "show", id, "--output", "json").stdout
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		r.t.Fatalf("%v:\n%s", err, out)
	}
	return doc.CostUSD
}

// splitters divides every request that no other one brought into three, each of
// which is one task; what it is asked to do else is as with racers.
func splitters(r agenttest.Request) agenttest.Reply {
	reply := func() agenttest.Reply {
		switch {
		case !strings.Contains(r.System, "You plan changes"):
			return racersReply(r)
		case !strings.Contains(string(r.Body), "Divide this"):
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{
				{"name": "one", "title": "Write a file", "plan": "Write it.", "relevant_files": []string{}, "complexity": "low"},
			}})(r)
		}
		var children []object
		for i := range 3 {
			children = append(children, object{"name": fmt.Sprintf("part%d", i), "title": fmt.Sprintf("Write part %d", i), "body": "It is a file."})
		}
		return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{}, "children": children})(r)
	}()
	n := len(r.Body) // no token is shorter than a byte
	reply.Usage = agenttest.Usage{Input: n / 3, Output: 903, CacheWrite: n / 7, CacheRead: n / 5}
	return reply
}

// TestBudgetsHold has four agents at once, intents that split, and a budget of
// each kind, far too small for all: by the ledger of the model's server it is
// never exceeded, and that ledger is ours to the token.
func TestBudgetsHold(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	env := onPath(cli)
	env.set("ANTHROPIC_API_KEY", "no-key")
	model := agenttest.NewServer(t)
	const name = "claude-sonnet-4-5" // its price is known
	for _, c := range []struct {
		budget string
		most   float64
		// each says that the budget is of each intent with its parts, and not of all together.
		each bool
	}{
		{"intent_usd: 0.30", 0.30, true},
		{"project_usd: 1.00", 1.00, false},
		{"day_usd: 0.60", 0.60, false},
	} {
		t.Run(c.budget, func(t *testing.T) {
			env.set("ANTHROPIC_BASE_URL", model.Script(c.budget, splitters))
			const models = "models: {triage_deep: " + name + ", default: " + name + ", complex: " + name + "}\n"
			r := newRepo(t, map[string]string{"pfl-forge.yaml": "agent: claude\nparallel_workers: 4\n" + models + "budget: {" + c.budget + "}\n"}, env...)
			ids := []string{"north", "east", "south", "west"}
			for _, id := range ids {
				r.write(".forge/intent-drafts/"+id+".md", "---\ntype: feature\n---\nDivide this: write the files of the "+id+".\n")
			}
			if code := r.forge("run").code; code != 2 && code != 3 {
				t.Errorf("exit code %d: the money was enough", code)
			}
			served := model.Served(c.budget)
			checkCosts(t, r, served)
			cost := price.Cost(name, forge.Usage{
				InputTokens: int64(served.Input), OutputTokens: int64(served.Output),
				CacheReadTokens: int64(served.CacheRead), CacheWriteTokens: int64(served.CacheWrite),
			})
			if c.each {
				for _, id := range ids {
					if spent := r.spentByTree(id); spent > c.most {
						t.Errorf("%s and its parts cost $%.6f of $%.2f", id, spent, c.most)
					}
				}
			} else if cost > c.most {
				t.Errorf("$%.6f were served for $%.2f\n%s", cost, c.most, r.must(0, "costs").stdout)
			}
			if cost < c.most/2 {
				t.Errorf("$%.6f were served: of $%.2f hardly anything could be used", cost, c.most)
			}
			r.tidy()
		})
	}
}

// spentByTree is what an intent and all below it cost so far, in US dollars.
func (r *repo) spentByTree(id string) float64 {
	r.t.Helper()
	var list struct {
		Intents []struct {
			ID      string  `json:"id"`
			Parent  string  `json:"parent"`
			CostUSD float64 `json:"cost_usd"`
		} `json:"intents"`
	}
	r.decode(&list, "status", "--output", "json")
	sum := 0.0
	for _, in := range list.Intents {
		if in.ID == id || in.Parent == id {
			sum += in.CostUSD
		}
	}
	return sum
}
