package git_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/git/store"
)

// TestCloneStaysTidy: a clone of which many fetches were made has few packs and few files of refs,
// and everything that was kept, also what no ref leads to, and also for who had it open before.
func TestCloneStaysTidy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	bare, person := newOrigin(t, map[string]string{"a": "a\n"})
	s := openOrigin(t, bare.dir, filepath.Join(t.TempDir(), "clone.git"))
	tidied := 0
	watched := git.WithObserver(ctx, func(ctx context.Context, op git.Operation) (context.Context, func(error)) {
		return ctx, func(err error) {
			if op == git.OpTidy {
				tidied++
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	stray, err := s.WriteBlob([]byte("of nobody\n"))
	if err != nil {
		t.Fatal(err)
	}
	reader := s.NewReader(ctx)
	defer reader.Close()
	var commits []git.OID
	var heads []objects.TaskHead
	const fetches, refs = 40, 400
	for i := range fetches {
		at := person.commit("more", map[string]string{"a": fmt.Sprint(i)})
		person.git("push", "-q", "origin", "main")
		if err := s.Fetch(watched); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			var kept []store.Kept
			for n := range refs {
				task := fmt.Sprintf("t-%03d", n)
				kept = append(kept, store.Kept{Ref: attempt(task).KeptRef(at), OID: at})
			}
			if err := s.KeepAll(ctx, kept...); err != nil {
				t.Fatal(err)
			}
		}
		if i < 3 {
			a := attempt(fmt.Sprintf("t-%03d", i))
			a.Newest = true
			if _, err := s.Keep(ctx, a, at); err != nil {
				t.Fatal(err)
			}
			heads = append(heads, objects.TaskHead{Task: a.Task, Commit: at})
		}
		commits = append(commits, at)
		if i == 0 {
			if _, err := reader.Commit(at); err != nil { // which has its object store open from now on
				t.Fatal(err)
			}
		}
	}
	packs, err := filepath.Glob(filepath.Join(s.ObjectDir(), "pack", "*.pack"))
	if err != nil || tidied == 0 || len(packs) > fetches/2 {
		t.Errorf("%d packs after being made tidy %d times, %v", len(packs), tidied, err)
	}
	files := 0
	if err := filepath.WalkDir(filepath.Join(s.Dir(), "refs"), func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			files++
		}
		return err
	}); err != nil || files > refs/2 {
		t.Errorf("%d files of refs, %v", files, err)
	}
	for _, c := range commits {
		if _, err := reader.Commit(c); err != nil {
			t.Errorf("who had it open before: %v", err)
		}
		if !s.Has(ctx, c) {
			t.Errorf("%s is gone", c)
		}
	}
	if text, err := reader.Blob(stray, 100); err != nil || !strings.HasPrefix(string(text), "of nobody") {
		t.Errorf("what no ref leads to: %q, %v", text, err)
	}
	if err := s.Fetch(ctx); err != nil {
		t.Fatal(err)
	}
	wantHeads(t, s, heads...)
	if err := s.Forget(ctx, nil, heads[0].Task); err != nil {
		t.Fatal(err)
	}
	wantHeads(t, s, heads[1:]...)
	if kept, err := s.List(ctx, attempt("t").Intent); err != nil || len(kept) != refs+len(heads)-1 {
		t.Errorf("%d refs of attempts, want %d, %v", len(kept), refs+len(heads)-1, err)
	}
	if _, err := store.OpenOrigin(ctx, store.OriginConfig{URL: bare.dir, Dir: s.Dir()}); err != nil {
		t.Errorf("it does not open again: %v", err)
	}
}
