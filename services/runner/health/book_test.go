package health

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// What ran is counted once, with the trials; a look at a red base ran nothing.
func TestBook(t *testing.T) {
	at := time.Unix(1000, 0).UTC()
	run := func(command string, passed bool, took time.Duration) forge.CheckRun {
		return forge.CheckRun{Command: command, Passed: passed, Duration: took}
	}
	trial := func(of, command string) forge.CheckRun {
		return forge.CheckRun{Name: of, Tree: "t", Passed: command == "", Command: command}
	}
	passed := &forge.VerifyReport{Passed: true, Runs: []forge.CheckRun{run("vet", true, time.Second), run("test", true, 4*time.Second)}}
	flaky := &forge.VerifyReport{
		Passed: true, Runs: []forge.CheckRun{run("vet", true, time.Second), run("test", true, 2*time.Second)},
		Trials: []forge.CheckRun{trial("change", "test"), trial("change", ""), trial("base", ""), trial("base", "test")},
	}
	red := &forge.VerifyReport{
		Command: "vet", Runs: []forge.CheckRun{run("vet", false, time.Second)},
		Trials: []forge.CheckRun{trial("change", "vet"), trial("change", "vet"), trial("base", "vet"), trial("base", "vet")},
	}
	look := &forge.VerifyReport{Command: "vet", Trials: red.Trials}
	named := &forge.VerifyReport{Passed: true, Checks: []forge.CheckRun{{Name: "tests", Command: "test", Passed: false}}}
	rebased := func(v *forge.VerifyReport, at time.Time) forge.Event {
		return forge.Event{At: at, Message: &forge.Result{Output: &forge.Rebase{Head: "c1", Verify: v}}}
	}
	merged := forge.Event{At: at, Message: &forge.MergeEnded{Result: &forge.MergeResult{Commit: "c2", Verify: flaky}}}
	b := Book{Since: at}
	rec := forge.Record{Events: []forge.Event{
		rebased(passed, at), rebased(flaky, at), rebased(red, at), rebased(look, at), rebased(named, at), merged,
		rebased(red, at.Add(-time.Second)), rebased(nil, at),
	}}
	b.Add(forge.Key{Project: "p", Intent: "a"}, &rec)
	b.Add(forge.Key{Project: "p"}, &rec)
	rows := b.Rows()
	if len(rows) != 3 {
		t.Fatalf("%+v", rows)
	}
	test, vet, tests := rows[0], rows[1], rows[2]
	if test.Command != "test" || test.Runs != 1+4+4 || test.Failed != 2+2 || test.Flaky != 2 || test.Verified != 3 || test.Red != 0 ||
		test.MedianSeconds != 2 || test.FlakyCommit != "c2" || !test.FlakyAt.Equal(at) {
		t.Errorf("%+v", test)
	}
	if vet.Command != "vet" || vet.Runs != 1+2+2+4 || vet.Failed != 4 || vet.Flaky != 0 || vet.Red != 1 {
		t.Errorf("%+v", vet)
	}
	if tests.Name != "tests" || tests.Runs != 1 || tests.Failed != 1 || tests.MedianSeconds != 0 {
		t.Errorf("%+v", tests)
	}
}
