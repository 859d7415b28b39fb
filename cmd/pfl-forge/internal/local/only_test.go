package local

import (
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// A run for one intent ends when that one can go on no more, however long others take.
func TestOnly(t *testing.T) {
	repo := newRepository(t, map[string]string{"pfl-forge.yaml": `recipes:
  touch:
    run: echo x > "$FORGE_INTENT"
  forever:
    run: exec sleep 600
`})
	s, err := Open(t.Context(), repo, logger(t))
	if err != nil {
		t.Fatal(err)
	}
	for id, recipe := range map[forge.IntentID]string{"one": "touch", "two": "forever"} {
		if r, err := s.Bus.Submissions.Ask(t.Context(), submission(repo, id, recipe)); err != nil || r.Decision != forge.Applied {
			t.Fatalf("ruling %+v, %v", r, err)
		}
	}
	s.Close(t.Context())
	base, err := repo.Base(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := Run(t.Context(), RunConfig{Repo: repo, Base: base, Observer: quietly{}, Log: logger(t), Trust: trusting(t, repo, base), Only: "one"})
	if err != nil || o.Interrupted || len(o.Intents) != 2 {
		t.Fatalf("outcome %+v, %v", o, err)
	}
	if one, two := o.Intents[0], o.Intents[1]; one.Status != forge.StatusDone || two.Status.Ended() {
		t.Errorf("one is %s, two is %s", one.Status, two.Status)
	}
}
