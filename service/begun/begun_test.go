package begun_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/service/begun"
)

var shop = forge.Key{Project: "shop", Intent: "fix"}

func open(dir string) *begun.Log { return begun.New(dir, slog.New(slog.DiscardHandler)) }

func attempt(n int) forge.Attempt {
	return forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: n, Claim: 2}
}

// TestLeft: the next process is told what the former one had begun and not ended, and during
// which processes before it were killed; not what has ended, nor what it began to stop.
func TestLeft(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "begun")
	l := open(dir)
	l.Begin(shop, attempt(1), "w1 a", []string{"w2 z"})
	ended := l.Begin(shop, attempt(2), "w1 a", nil)
	ended()
	ended() // as a caller may
	l.Begin(forge.Key{Project: "shop"}, forge.Attempt{Step: forge.StepReflect, Number: 3, Claim: 1}, "w1 a", nil)
	next := open(dir)
	left := next.Left()
	want := []begun.Attempt{
		{To: shop, Attempt: attempt(1), Killed: []string{"w2 z", "w1 a"}},
		{To: forge.Key{Project: "shop"}, Attempt: forge.Attempt{Step: forge.StepReflect, Number: 3, Claim: 1}, Killed: []string{"w1 a"}},
	}
	bySteps := cmpopts.SortSlices(func(a, b begun.Attempt) bool { return a.Attempt.Number < b.Attempt.Number })
	if diff := cmp.Diff(want, left, cmpopts.IgnoreUnexported(begun.Attempt{}), bySteps); diff != "" {
		t.Error(diff)
	}
	if got := next.Killed(shop, forge.Attempt{Task: "fix-001", Step: forge.StepImplement, Number: 1, Claim: 3}, []string{"w3 a", "w2 z"}); len(got) != 3 {
		t.Errorf("during another claim were killed %q", got)
	}
	for i := range left {
		next.Forget(&left[i])
	}
	if got := next.Killed(shop, attempt(1), []string{"w3 a"}); len(got) != 1 {
		t.Errorf("after others were told were killed %q", got)
	}
	if again := open(dir).Left(); len(again) > 0 {
		t.Errorf("what others know of is told again: %v", again)
	}

	end := next.Begin(shop, attempt(4), "w1 b", nil)
	next.Excuse()
	next.Begin(shop, attempt(5), "w1 b", nil)
	end()
	if stopped := open(dir).Left(); len(stopped) > 0 {
		t.Errorf("a process that was asked to stop counts as killed: %v", stopped)
	}
}

// TestFailure: the third process that was killed is one too many, and is named by its replica alone.
func TestFailure(t *testing.T) {
	t.Parallel()
	cmd := forge.Command{To: shop, Attempt: attempt(1), Patience: time.Second}
	if f := begun.Failure(&cmd, []string{"w1 a", "w1 b"}); f != nil {
		t.Errorf("after two kills: %+v", f)
	}
	killed := []string{"w1 a", "w2 a", "no\x1b[2J replica"}
	f := begun.Failure(&cmd, killed)
	if f == nil || f.Reason != forge.FailKilledReplica || !strings.HasSuffix(f.Message, ": w1, w2, another one") {
		t.Errorf("after three kills: %+v", f)
	}
	cmd.Patience = 0
	if f := begun.Failure(&cmd, killed); f == nil || f.Reason != forge.FailCrashed {
		t.Errorf("by rules that do not know the reason: %+v", f)
	}
}

// TestLeftUnreadable: what was cut off, or is something else, names no attempt, and is removed.
func TestLeftUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"empty": "", "cut off": `{"project":"shop","st`, "nothing": "{}", "long": string(make([]byte, 1<<20)),
		"nobody":  `{"project":"shop","step":"analyze","number":1,"claim":1,"killed":[]}`,
		"project": `{"project":"a.b","step":"analyze","number":1,"claim":1,"killed":["w1 a"]}`,
		"intent":  `{"project":"shop","intent":"..","step":"analyze","number":1,"claim":1,"killed":["w1 a"]}`,
		"task":    `{"project":"shop","intent":"one","task":"*","step":"implement","number":1,"claim":1,"killed":["w1 a"]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if left := open(dir).Left(); len(left) > 0 {
		t.Errorf("got %v", left)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
}

// TestNoLog: without a log nothing is noted, and nothing fails; nor does an attempt where the
// disk takes no record. A replica that has begun nothing yet has no directory.
func TestNoLog(t *testing.T) {
	t.Parallel()
	var none *begun.Log
	none.Begin(shop, attempt(1), "w1 a", nil)()
	none.Excuse()
	if left := append(none.Left(), open(filepath.Join(t.TempDir(), "not yet")).Left()...); len(left) > 0 {
		t.Errorf("got %v", left)
	}
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(dir)
	l.Begin(shop, attempt(1), "w1 a", nil)()
	if left := l.Left(); len(left) > 0 {
		t.Errorf("got %v", left)
	}
}
