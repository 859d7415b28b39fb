package implementer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/bustest"
	"github.com/pfl-forge/pfl-forge/bus/live"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/jobs/repotest"
)

// network are the operations that talk to the origin.
var network = []git.Operation{git.OpFetch, git.OpPush, git.OpList}

// questions counts what do asks of the origin, such as "1 fetch, 2 push".
func questions(t *testing.T, do func(ctx context.Context)) string {
	t.Helper()
	var mu sync.Mutex
	count := map[git.Operation]int{}
	do(git.WithObserver(t.Context(), func(ctx context.Context, op git.Operation) (context.Context, func(error)) {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(network, op) {
			count[op]++
		}
		return ctx, func(error) {}
	}))
	var list []string
	for _, op := range slices.Sorted(maps.Keys(count)) {
		list = append(list, fmt.Sprint(count[op], " ", op))
	}
	return strings.Join(list, ", ")
}

// Each question costs an origin, and a clone, the time of all their refs. So a change asks for no more than is written here, from its
// beginning to the end of its task.
func TestWhatALandingAsksOfTheOrigin(t *testing.T) {
	const task = "fix-001"
	ok := func(t *testing.T, r forge.Result) forge.Result {
		t.Helper()
		if r.Failure() != nil {
			t.Fatalf("%s: %s", r.Failure().Reason, r.Failure().Message)
		}
		return r
	}
	for name, c := range map[string]struct {
		// meanwhile has another one push before the merge.
		meanwhile                           bool
		implement, rebase, merge, over string
	}{
		"on the tip": {
			implement: "1 fetch, 1 ls-remote, 1 push", rebase: "1 fetch, 1 push",
			merge: "2 fetch, 1 ls-remote, 2 push", over: "1 ls-remote, 1 push",
		},
		"after another's push": {
			meanwhile: true, implement: "1 fetch, 1 ls-remote, 1 push", rebase: "1 fetch, 1 push",
			merge: "2 fetch, 1 ls-remote, 3 push", over: "1 ls-remote, 1 push",
		},
	} {
		t.Run(name, func(t *testing.T) {
			person := gittest.New(t, map[string]string{"pfl-forge.yaml": settings, "b.txt": "b\n"})
			origin := gittest.At(t, person.Origin())
			w := worldOn(t, origin, repotest.Clone(t, origin.Dir), bustest.Start(t))
			want := func(step, want string, do func(ctx context.Context)) {
				t.Helper()
				if got := questions(t, do); got != want {
					t.Errorf("%s: %s, want %s", step, got, want)
				}
			}
			var r forge.Result
			want("implement", c.implement, func(ctx context.Context) {
				r = ok(t, w.imp.implement(ctx, recipe(1, "write", "FILE", "new.txt", "TEXT", "x"), silent))
			})
			im := forge.As[*forge.Implementation](r.Output)
			re := command(forge.StepRebase, 1)
			re.Task.Base, re.Task.Head = im.Base, im.Head
			want("rebase", c.rebase, func(ctx context.Context) { r = ok(t, w.imp.rebase(ctx, re, silent)) })
			if c.meanwhile {
				person.Commit("somebody else", map[string]string{"b.txt": "c\n"})
				person.Git("push", "-q", origin.Dir, "main")
			}
			m := merge(1, forge.As[*forge.Rebase](r.Output))
			w.want(m)
			want("merge", c.merge, func(ctx context.Context) { r = ok(t, w.imp.merge(ctx, m, silent)) })
			if out := forge.As[*forge.MergeResult](r.Output); out.Outcome != forge.MergeDone || origin.Head("main") != git.OID(out.Commit) {
				t.Fatalf("got %+v", out)
			}
			w.intent(forge.StatusDone)
			want("end of the task", c.over, func(ctx context.Context) {
				w.imp.release(ctx, live.Control{To: m.To, Released: []forge.TaskID{task}})
			})
			if left := origin.Git("for-each-ref", "refs/forge/_heads", "refs/forge/fix/fix-001/merge"); left != "" {
				t.Errorf("the origin keeps %q", left)
			}
		})
	}
}
