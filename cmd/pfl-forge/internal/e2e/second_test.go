package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// helloAgent returns a script for a shell that answers as an agent is asked: it
// plans a greeting, makes it, and approves it after a command.
func helloAgent(beforeReview string) string {
	return `answer() { printf '{"type": "result", "model": "m", "answer": %s}\n' "$1"; }
case $FORGE_ROLE in
analyze) answer '{"type": "feature", "risk": "low", "tasks": [{"name": "one", "title": "Say hello", '\
'"plan": "do it", "requirements": ["it says hello"], "relevant_files": [], "complexity": "low"}]}' ;;
implement)
	echo hello > hello.txt && git add -A && git commit -q -m hello || exit 1
	answer '{"summary": "said"}'
	;;
review)
	` + beforeReview + `
	answer '{"requirements": [{"number": 1, "met": true, "confidence": 1, '\
'"note": "it is there", "evidence": [{"kind": "diff", "ref": "hello.txt:1", "quote": "hello"}]}], "verdict": "approved", "issues": []}'
	;;
esac
`
}

// twoReviewers has agents that answer as asked. The second reviewer says in
// $TALLY that it was reached, and waits for a person.
var twoReviewers = `echo "$0 $FORGE_ROLE" >> "$TALLY/calls"
` + helloAgent(`[ "$0" = one ] || : > "$TALLY/reached"
	while [ "$0" = two ] && [ ! -e "$TALLY/go" ]; do sleep 0.05; done`)

// TestKilledBetweenTwoReviews kills run -9 when the first reviewer has approved and
// the second is at work: nothing is merged with one approval. The next run goes on
// with the second, asks the first nothing more, and merges the change once.
func TestKilledBetweenTwoReviews(t *testing.T) {
	t.Parallel()
	tally := testdir.New(t)
	agent := func(name string) string {
		return "  " + name + ": {read_only: true, command: [sh, -c, 'TALLY=" + tally + "; . ./agent.sh', " + name + "]}\n"
	}
	r := newUnconfined(t, map[string]string{
		"agent.sh":       twoReviewers,
		"pfl-forge.yaml": "agent: one\nreflection: {enabled: false}\nreview: {second: {agent: two, when: [low]}}\nagents:\n" + agent("one") + agent("two"),
	})
	r.must(0, "create", "hello", "--title", "Say hello")
	begin := r.git("rev-parse", "main")
	cmd := r.command(context.Background(), "run")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "the second reviewer to be reached", func() bool {
		_, err := os.Stat(filepath.Join(tally, "reached"))
		return err == nil
	})
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if got := r.git("rev-parse", "main"); got != begin {
		t.Errorf("main moved to %s with one approval", got)
	}
	if err := os.WriteFile(filepath.Join(tally, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.must(0, "run")
	if got := r.git("rev-list", "--count", begin+"..main"); got != "1" {
		t.Errorf("%s commits were merged", got)
	}
	calls, err := os.ReadFile(filepath.Join(tally, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	if first, second := strings.Count(string(calls), "one review"), strings.Count(string(calls), "two review"); first != 1 || second != 2 {
		t.Errorf("the first was asked %d times, the second %d:\n%s", first, second, calls)
	}
	if out := r.must(0, "verify-commit", "main").stdout; !strings.Contains(out, "approved by two m as the second reviewer") {
		t.Errorf("verify-commit: %s", out)
	}
	r.tidy()
}
