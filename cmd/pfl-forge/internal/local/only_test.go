package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/demand"
)

// A run for one intent ends when that one can go on no more. What agents do for others is not
// interrupted: nothing new begins, and what runs goes on to its end, unless the person hurries.
func TestOnly(t *testing.T) {
	t.Run("others end by themselves", func(t *testing.T) {
		two := besideAnother(t, func(gate string, _ func()) {
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Error(err)
			}
		})
		if task := two.Tasks[0]; task.Step == forge.StepImplement {
			t.Errorf("the attempt of the other one did not come to its end: %+v", two)
		}
	})
	t.Run("a person hurries", func(t *testing.T) {
		two := besideAnother(t, func(_ string, hurry func()) { hurry() })
		if task := two.Tasks[0]; task.Step != forge.StepImplement {
			t.Errorf("the attempt of the other one is over: %+v", two)
		}
	})
}

// besideAnother runs the intent "one" while an attempt of "two" goes on until there is a file
// gate, and returns "two". It calls do when the run waits for that attempt.
func besideAnother(t *testing.T, do func(gate string, hurry func())) forge.Summary {
	t.Helper()
	dir := t.TempDir()
	gate, begun := filepath.Join(dir, "gate"), filepath.Join(dir, "begun")
	repo := newRepository(t, map[string]string{"pfl-forge.yaml": `parallel_workers: 2
recipes:
  touch:
    run: while ! [ -e "` + begun + `" ]; do sleep 0.05; done; echo x > "$FORGE_INTENT"
  slow:
    run: echo > "` + begun + `"; while ! [ -e "` + gate + `" ]; do sleep 0.05; done; echo x > "$FORGE_INTENT"
`})
	s, err := Open(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	for id, recipe := range map[forge.IntentID]string{"one": "touch", "two": "slow"} {
		if r, err := s.Bus.Submissions.Ask(t.Context(), submission(repo, id, recipe)); err != nil || r.Decision != forge.Applied {
			t.Fatalf("ruling %+v, %v", r, err)
		}
	}
	s.Close(t.Context())
	base, err := repo.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, hurry := context.WithCancel(t.Context())
	defer hurry()
	waited := false
	seen := noticing{t: t, do: func() { waited = true; do(gate, hurry) }}
	o, err := Run(ctx, RunConfig{
		Repo: repo, Base: base, Observer: seen, Log: logger(t), Trust: trusting(t, repo, base), Only: "one",
		Sandbox: demand.Unconfined, // the recipes meet at files
	})
	if err != nil || o.Interrupted || len(o.Intents) != 2 || !waited {
		t.Fatalf("outcome %+v, %v, waited: %t", o, err, waited)
	}
	one, two := o.Intents[0], o.Intents[1]
	if one.Status != forge.StatusDone || two.Status.Ended() || len(two.Tasks) != 1 {
		t.Fatalf("one is %s, two is %+v", one.Status, two)
	}
	return two
}

// noticing does something once the run waits for others.
type noticing struct {
	quietly

	t  *testing.T
	do func()
}

func (n noticing) Notice(line string) {
	n.t.Log(line)
	if strings.Contains(line, "one has ended; waiting") {
		n.do()
	}
}
