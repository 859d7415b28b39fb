package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// What is noticed is noticed by a step of an intent, at places that have the same name
// wherever the agent worked.
func TestObserve(t *testing.T) {
	t.Parallel()
	s := &scribe{}
	set := repotest.Local(t, gittest.New(t, map[string]string{"a.txt": "a\n"}).Dir, s)
	cmd := forge.Command{
		BudgetUSD: 5,
		To:        forge.Key{Project: repotest.Project, Intent: "fix"},
		Attempt:   forge.Attempt{Step: forge.StepArchitect, Number: 1, Claim: 1},
	}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	given := func(dir string) []forge.Evidence {
		return []forge.Evidence{
			{Type: forge.EvidenceFile, Ref: " " + dir + "/a.txt:1 "},
			{Type: forge.EvidenceFile, Ref: "./a.txt"},
			{Type: forge.EvidenceFile, Ref: "a.txt"},
			{Type: forge.EvidenceDecision, Ref: dir + "/a.txt"},
		}
	}
	res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) error {
		j.Observe([]forge.Observation{{Content: "before", Evidence: given("/x")}}, at)
		if _, err := j.Run(ctx, agent.Call{Role: agent.RoleArchitect, Dir: t.TempDir()}); err != nil {
			return err
		}
		j.Observe([]forge.Observation{{Content: "odd", Evidence: given(s.call.Dir), Source: forge.StepAnalyze}}, at)
		return nil
	})
	file := func(ref string) forge.Evidence { return forge.Evidence{Type: forge.EvidenceFile, Ref: ref} }
	want := []forge.Observation{
		{
			Content: "before", Source: forge.StepArchitect, IntentID: "fix", CreatedAt: at.UTC(),
			Evidence: []forge.Evidence{file("/x/a.txt:1"), file("a.txt"), file("a.txt"), {Type: forge.EvidenceDecision, Ref: "/x/a.txt"}},
		},
		{
			Content: "odd", Source: forge.StepArchitect, IntentID: "fix", CreatedAt: at.UTC(),
			Evidence: []forge.Evidence{file("a.txt:1"), file("a.txt"), file("a.txt"), {Type: forge.EvidenceDecision, Ref: s.call.Dir + "/a.txt"}},
		},
	}
	if diff := cmp.Diff(want, res.Observations); diff != "" || res.Failure() != nil {
		t.Errorf("%+v\n%s", res.Failure(), diff)
	}
}
