package demo

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/services/runner"
)

// evidence are the traces of a run: the journals, the branch and the files.
// Scenes are judged by nothing else, so the demo believes no message that it
// printed itself.
type evidence struct {
	// root is the working tree.
	root  string
	views map[forge.IntentID]forge.View
	// log has the commits of the branch, the newest first.
	log []objects.LogLine
}

// collect reads the traces.
func collect(ctx context.Context, repo *local.Repository, log *slog.Logger) (*evidence, error) {
	s, err := local.OpenReader(ctx, repo, log)
	if err != nil {
		return nil, err
	}
	defer s.Close(ctx)
	all, err := s.Bus.Journal.Summaries(ctx, repo.Project)
	if err != nil {
		return nil, err
	}
	e := &evidence{root: repo.Root, views: map[forge.IntentID]forge.View{}}
	for i := range all {
		if e.views[all[i].Key.Intent], err = runner.View(ctx, s.Bus, all[i].Key); err != nil {
			return nil, err
		}
	}
	head, err := repo.Store.Head(ctx, branch)
	if err != nil {
		return nil, err
	}
	const most = 100
	e.log, err = repo.Store.Log(ctx, "", head, most)
	return e, err
}

// file returns a checked-out file, or why it cannot be read.
func (e *evidence) file(name string) string {
	text, err := os.ReadFile(filepath.Join(e.root, name))
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(text)
}

// exists reports whether there is a file in the working tree.
func (e *evidence) exists(name string) bool {
	_, err := os.Lstat(filepath.Join(e.root, name))
	return err == nil
}

// merged reports whether a commit is on the branch.
func (e *evidence) merged(commit string) bool {
	return slices.ContainsFunc(e.log, func(l objects.LogLine) bool { return string(l.Commit) == commit })
}

// before reports whether a commit is on the branch below another one.
func (e *evidence) before(a, b string) bool {
	at := func(commit string) int {
		return slices.IndexFunc(e.log, func(l objects.LogLine) bool { return string(l.Commit) == commit })
	}
	return at(b) >= 0 && at(b) < at(a)
}

// atOnce returns for how many intents there were implementations at the same time.
func (e *evidence) atOnce() int {
	type span struct {
		intent     forge.IntentID
		begin, end time.Time
	}
	var spans []span
	for id := range e.views {
		v := e.views[id]
		for i := range v.History {
			for _, r := range v.History[i].StepResults {
				if r.Step == forge.StepImplement {
					spans = append(spans, span{id, r.At.Add(-r.Duration), r.At})
				}
			}
		}
	}
	most := 0
	for _, a := range spans { // some implementation begins when most are under way
		going := map[forge.IntentID]bool{}
		for _, b := range spans {
			if !b.begin.After(a.begin) && b.end.After(a.begin) {
				going[b.intent] = true
			}
		}
		most = max(most, len(going))
	}
	return most
}
