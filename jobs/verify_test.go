package jobs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

func verify(t *testing.T, settings string) (*forge.VerifyReport, *forge.Failure) {
	t.Helper()
	r := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "a.txt": "a\n"})
	var report *forge.VerifyReport
	got := do(t, repotest.Local(t, r.Dir), func(ctx context.Context, j *jobs.Job) (err error) {
		report, err = j.Verify(ctx, j.Tip)
		return err
	})
	return report, got.Failure()
}

func TestVerify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, settings string
		want           *forge.VerifyReport
	}{
		{"nothing is configured", "agent: recipe", nil},
		{"all pass", "verify: ['grep -q a a.txt', 'test -z \"$(git status --porcelain)\"']", &forge.VerifyReport{Passed: true}},
		{
			"the first that fails is reported",
			"verify: ['true', 'echo so; echo bad >&2; exit 3', 'exit 4']",
			&forge.VerifyReport{Command: "echo so; echo bad >&2; exit 3", Output: "so\nbad\nexit status 3"},
		},
		{
			"the checkout is set up",
			"worktree_setup: ['echo ready > x']\nverify: ['grep -q ready x', 'echo $FORGE_INTENT $FORGE_TASK; false']",
			&forge.VerifyReport{Command: "echo $FORGE_INTENT $FORGE_TASK; false", Output: "fix fix-001\nexit status 1"},
		},
		{
			"a change that breaks the set-up does not pass",
			"worktree_setup: ['exit 9']\nverify: ['true']",
			&forge.VerifyReport{Command: "exit 9", Output: "exit status 9"},
		},
		{
			"a command that hangs does not pass",
			"timeouts: {verify: 1s}\nverify: ['echo begun; sleep 600']",
			&forge.VerifyReport{Command: "echo begun; sleep 600", Output: "sh took longer than allowed (1s)\nbegun"},
		},
		{
			"what is reported can be shown",
			`verify: ["printf 'a\\033[31mb'; false"]`,
			&forge.VerifyReport{Command: `printf 'a\033[31mb'; false`, Output: "ab\nexit status 1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, failure := verify(t, tt.settings)
			if got != nil {
				got.Runs = nil // TestRunsOfVerify has them
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || failure != nil {
				t.Errorf("%+v\n%s", failure, diff)
			}
		})
	}
}

func TestVerifyReportsTheEndOfALongOutput(t *testing.T) {
	t.Parallel()
	got, failure := verify(t, "verify: ['seq 20000; echo the end; false']")
	if failure != nil || got == nil || len(got.Output) > 16<<10 || len(got.Output) < 15<<10 {
		t.Fatalf("%+v, %d bytes", failure, len(got.Output))
	}
	if !strings.HasPrefix(got.Output, "...\n") || !strings.HasSuffix(got.Output, "\n20000\nthe end\nexit status 1") {
		t.Errorf("%.20q ... %q", got.Output, got.Output[len(got.Output)-40:])
	}
}

func TestRunsOfVerify(t *testing.T) {
	t.Parallel()
	got, failure := verify(t, "worktree_setup: ['true']\nverify: ['echo fine', 'seq 9000', 'echo bad; exit 3', 'exit 4']")
	if failure != nil || got == nil || len(got.Runs) != 3 {
		t.Fatalf("%+v, %+v", failure, got)
	}
	for n := range got.Runs {
		r := &got.Runs[n]
		if len(r.Tree) != 40 || len(r.Output) > 4<<10 || r.ID != fmt.Sprintf("v%d", n+1) {
			t.Errorf("run %d: %s of tree %q with %d bytes", n, r.ID, r.Tree, len(r.Output))
		}
		r.Tree, r.Duration = "", 0
		if n == 1 && strings.HasPrefix(r.Output, "...\n") && strings.HasSuffix(r.Output, "\n9000") {
			r.Output = "clipped"
		}
	}
	want := []forge.CheckRun{
		{ID: "v1", Command: "echo fine", Passed: true, Output: "fine"},
		{ID: "v2", Command: "seq 9000", Passed: true, Output: "clipped"},
		{ID: "v3", Command: "echo bad; exit 3", ExitCode: 3, Output: "bad"},
	}
	if diff := cmp.Diff(want, got.Runs); diff != "" {
		t.Error(diff)
	}
}

func TestOutputOfManyRunsIsBounded(t *testing.T) {
	t.Parallel()
	settings := "verify:\n" + strings.Repeat("  - seq 9000\n", 20)
	got, failure := verify(t, settings)
	if failure != nil || got == nil || len(got.Runs) != 20 {
		t.Fatalf("%+v, %+v", failure, got)
	}
	all := 0
	for _, r := range got.Runs {
		all += len(r.Output)
	}
	if all > 32<<10 || got.Runs[19].Output == "" || got.Runs[0].Output != "" {
		t.Errorf("%d bytes in all, %d of the last", all, len(got.Runs[19].Output))
	}
}

func TestRunThatIsEndedHasNoExitCode(t *testing.T) {
	t.Parallel()
	got, failure := verify(t, "timeouts: {verify: 1s}\nverify: ['echo begun; sleep 600']")
	if failure != nil || got == nil || len(got.Runs) != 1 || got.Runs[0].ExitCode != -1 || got.Runs[0].Passed {
		t.Fatalf("%+v, %+v", failure, got)
	}
}
