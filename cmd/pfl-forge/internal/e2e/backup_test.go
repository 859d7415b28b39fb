package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/testdir"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// TestBackupsWhileWorkGoesOn copies the server again and again while intents are merged, and kills the run. Each
// copy takes the place of the store: what was merged after it is not made again, all else is
// merged once, and every journal proves itself.
func TestBackupsWhileWorkGoesOn(t *testing.T) {
	r := newRepo(t, appending)
	lines := appendDrafts(r, testsize.Of(4, 12))
	copies := testsize.Of(2, 3)
	run := r.start("run")
	dir := testdir.New(t)
	for i := range copies {
		run.until(fmt.Sprintf("%d changes are merged", i+1), func() bool { return len(r.subjects()) > i+1 })
		r.must(0, "backup", filepath.Join(dir, fmt.Sprint(i)))
	}
	_ = run.cmd.Process.Kill()
	<-run.ended
	for i := copies - 1; i >= 0; i-- { // the oldest last: it knows the least of what is merged by then
		merged := r.subjects()
		if err := os.RemoveAll(filepath.Join(r.dir, ".forge", "nats")); err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Findings []any
			Ahead    []struct {
				Intent          string
				Unknown, Paused bool
			}
		}
		out := r.must(0, "restore", filepath.Join(dir, fmt.Sprint(i)), "-o", "json")
		if err := json.Unmarshal([]byte(out.stdout), &doc); err != nil {
			t.Fatalf("%v:\n%s", err, out.stdout)
		}
		if len(doc.Findings) > 0 {
			t.Errorf("copy %d: %v", i, doc.Findings)
		}
		for _, a := range doc.Ahead {
			if a.Unknown || !a.Paused {
				t.Errorf("copy %d: %+v", i, a)
				continue
			}
			r.must(0, "cancel", a.Intent)
		}
		r.must(0, "run")
		r.must(0, "audit-log", "verify")
		now := r.subjects()
		if !slices.Equal(now[:len(merged)], merged) {
			t.Errorf("copy %d: main lost commits:\n%s", i, strings.Join(now, "\n"))
		}
	}
	checkAppended(t, r, r.read("log.txt"), lines)
	checkProven(t, r.dir, machineKeys(), len(lines)-1)
	r.tidy()
}
