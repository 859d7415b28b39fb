package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/agenttest"
	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// twoChanges has an agent that makes two changes of a task. While it makes the
// second it says so in $TALLY, and waits for a person. One that is killed may
// have come as far as its commit: whoever goes on finds nothing to add to that.
const twoChanges = `echo "$FORGE_ROLE" >> "$TALLY/calls"
answer() { printf '{"type": "result", "model": "m", "answer": %s}\n' "$1"; }
case $FORGE_ROLE in
analyze) answer '{"type": "feature", "risk": "low", "tasks": [{"name": "one", "title": "Say hello", '\
'"plan": "do it", "requirements": ["it says hello"], "relevant_files": [], "complexity": "high"}]}' ;;
implement)
	if grep -q '^# Start again'; then
		: > "$TALLY/reached"
		while [ ! -e "$TALLY/go" ]; do sleep 0.05; done
	else
		echo more > more.txt
	fi
	echo hello > hello.txt && git add -A || exit 1
	git diff --cached --quiet || git commit -q -m hello || exit 1
	answer '{"summary": "said"}'
	;;
review)
	answer '{"requirements": [{"number": 1, "met": true, "confidence": 1, '\
'"note": "it is there", "evidence": [{"kind": "diff", "ref": "hello.txt:1", "quote": "hello"}]}], "verdict": "approved", "issues": []}'
	;;
esac
`

// TestKilledBetweenTwoChanges kills run -9 when the first of two changes is
// approved and set aside, and the second is being made: nothing is merged. The next
// run finishes the second, and merges the better one, once, with its own proofs.
func TestKilledBetweenTwoChanges(t *testing.T) {
	t.Parallel()
	tally := testdir.New(t)
	r := newUnconfined(t, map[string]string{
		"agent.sh": twoChanges,
		"pfl-forge.yaml": "agent: own\nreflection: {enabled: false}\ncalls: {best_of_two: {when: [complex]}}\n" +
			"agents:\n  own: {read_only: true, command: [sh, -c, 'TALLY=" + tally + "; . ./agent.sh']}\n",
	})
	r.must(0, "create", "hello", "--title", "Say hello")
	begin := r.git("rev-parse", "main")
	cmd := r.command(context.Background(), "run")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the second change to be begun", func() bool {
		_, err := os.Stat(filepath.Join(tally, "reached"))
		return err == nil
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := r.git("rev-parse", "main"); got != begin {
		t.Errorf("main moved to %s before one was chosen", got)
	}
	if err := os.WriteFile(filepath.Join(tally, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.must(0, "run")
	if got := r.git("diff", "--name-only", begin, "main"); got != "hello.txt" || r.git("rev-list", "--count", begin+"..main") != "1" {
		t.Errorf("merged is %q", got)
	}
	calls, err := os.ReadFile(filepath.Join(tally, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	if made, reviewed := strings.Count(string(calls), "implement"), strings.Count(string(calls), "review"); made != 3 || reviewed != 2 {
		t.Errorf("made %d times, one of them killed, and reviewed %d times:\n%s", made, reviewed, calls)
	}
	if out := r.must(0, "history", "hello").stdout; !strings.Contains(out, "the first changes 2 files, the second 1 file") {
		t.Errorf("the history does not say why:\n%s", out)
	}
	r.must(0, "verify-commit", "main")
	r.tidy()
}

// TestClaudeBestOfTwo has the real CLI make two changes of a task: the second in a session of its
// own, by the model that is named for it. The review rejects the first, and the second is merged.
func TestClaudeBestOfTwo(t *testing.T) {
	t.Parallel()
	testsize.OnlyFull(t)
	cli := agenttest.ClaudeCLI(t)
	model := agenttest.NewServer(t)
	env := onPath(cli)
	env.set("ANTHROPIC_API_KEY", "no-key")
	made := func(r agenttest.Request, text string) agenttest.Reply {
		if !bytes.Contains(r.Body, []byte("commit -q -m 'Greet'")) {
			return agenttest.Use("Bash", object{"command": "echo " + text + " >greet.txt && git add -A && git commit -q -m 'Greet'"})(r)
		}
		return agenttest.Answer(object{"summary": "greets"})(r)
	}
	env.set("ANTHROPIC_BASE_URL", model.Script("claude", func(r agenttest.Request) agenttest.Reply {
		switch {
		case strings.Contains(r.System, "You plan changes"):
			return agenttest.Answer(object{"type": "feature", "risk": "low", "tasks": []object{
				{"name": "greet", "title": "Greet", "plan": "Write greet.txt.", "relevant_files": []string{"greet.txt"}, "complexity": "high"},
			}})(r)
		case strings.Contains(r.System, "You carry out one task") && bytes.Contains(r.Body, []byte("# Start again")):
			return made(r, "good day")
		case strings.Contains(r.System, "You carry out one task"):
			return made(r, "ahoy")
		case strings.Contains(r.System, lookingBack):
			return nothingToPropose(r)
		case bytes.Contains(r.Body, []byte("ahoy")):
			return agenttest.Reviews("greet.txt:1 is rude")(r)
		}
		return agenttest.Reviews()(r)
	}))
	r := newRepo(t, map[string]string{
		"pfl-forge.yaml": "agent: claude\nmodels: {complex: sonnet}\ncalls: {best_of_two: {when: [complex], model: opus}}\n",
	}, env...)
	r.draft("greet", "type: feature")
	r.must(0, "run")
	if got := r.git("show", "main:greet.txt"); got != "good day" || len(r.subjects()) != 2 {
		t.Errorf("main has %q after %q", got, r.subjects())
	}
	makers := map[string]string{} // models of the sessions that made the two
	for _, q := range model.Requests("claude") {
		if !strings.Contains(q.System, "You carry out one task") {
			continue
		}
		by := "sonnet"
		if strings.Contains(q.Model, "opus") {
			by = "opus"
		}
		makers[by] = q.Header.Get("X-Claude-Code-Session-Id")
		if by == "opus" && bytes.Contains(q.Body, []byte("is rude")) {
			t.Error("who makes the second is told what was said of the first")
		}
	}
	if len(makers) != 2 || makers["sonnet"] == makers["opus"] {
		t.Errorf("made by %v", makers)
	}
	checkCosts(t, r, model.Served("claude"))
	r.tidy()
}
