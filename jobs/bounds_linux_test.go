package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/demand"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// TestVerifyThatFillsTheDisk: a verify command that writes more than it may has not
// passed, and the report says why. That is said of the change, as of a command that
// takes too long: trials tell whose fault it is. The attempt itself has not failed.
func TestVerifyThatFillsTheDisk(t *testing.T) {
	t.Parallel()
	if err := process.Probe(t.Context(), sandbox.NetworkFull); err != nil {
		t.Skipf("no sandbox can be made here: %v", err)
	}
	const fill = "echo begun; head -c 50331648 /dev/zero >big; exec sleep 20"
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": "verify: ['true', '" + fill + "', 'true']\n"})
	// The checkouts are on a disk of their own, where nothing else takes or makes room.
	folder := filepath.Join(r.Dir, layout.Dir)
	if err := errors.Join(os.Mkdir(folder, 0o755), unix.Mount("disk", folder, "tmpfs", 0, "size=160m,mode=0755")); err != nil {
		t.Skipf("mounting takes a right that this user has not: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	state := t.TempDir()
	set, err := jobs.OpenSet(t.Context(), jobs.Host{
		StateDir: state, Owner: process.NewOwner(state).Within(demand.Bounds{Disk: 16 << 20}), Log: slog.New(slog.DiscardHandler),
	}, []jobs.Source{{Project: repotest.Project, Path: r.Dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}()
	var report *forge.VerifyReport
	cmd := forge.Command{BudgetUSD: 5, To: forge.Key{Project: repotest.Project, Intent: "fix"}, Intent: scripted}
	res := set.Do(t.Context(), &cmd, func(forge.Progress) {}, func(ctx context.Context, j *jobs.Job) (err error) {
		report, err = j.Verify(ctx, j.Tip)
		return err
	})
	if f := res.Failure(); f != nil || report == nil || report.Passed || report.Command != fill || len(report.Runs) != 2 || report.Runs[1].ExitCode != -1 {
		t.Fatalf("%+v, %+v", f, report)
	}
	if out := report.Output; !strings.Contains(out, "wrote more than allowed") || !strings.HasSuffix(out, "\nbegun") {
		t.Errorf("it says %q", out)
	}
}
