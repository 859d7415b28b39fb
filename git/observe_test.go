package git_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
)

// What nobody looks at costs nothing: no allocation, and the same context.
func TestBeginWithoutAnObserver(t *testing.T) {
	for name, ctx := range map[string]context.Context{
		"none": t.Context(), "taken away": git.WithObserver(git.WithObserver(t.Context(), seen(&[]string{})), nil),
	} {
		if n := testing.AllocsPerRun(100, func() {
			got, end := git.Begin(ctx, git.OpFetch)
			end(nil)
			if got != ctx {
				t.Error("another context")
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// An operation that fails is told as such.
func TestObserver(t *testing.T) {
	t.Parallel()
	var told []string
	ctx := git.WithObserver(t.Context(), seen(&told))
	inner, end := git.Begin(ctx, git.OpPush)
	end(errors.New("no"))
	if inner == ctx || len(told) != 2 || told[0] != "push" || told[1] != "no" {
		t.Errorf("told %q", told)
	}
}

// seen returns an Observer that notes what it is told.
func seen(told *[]string) git.Observer {
	return func(ctx context.Context, op git.Operation) (context.Context, func(error)) {
		*told = append(*told, string(op))
		ctx, cancel := context.WithCancel(ctx)
		return ctx, func(err error) {
			cancel()
			*told = append(*told, err.Error())
		}
	}
}
