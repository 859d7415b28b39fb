package reviewer

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/agent/prompt"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/jobs"
)

// Bounds of the files that a judge is shown beside the change, in bytes.
const (
	// maxFiles bounds the files that a judge is shown beside the change.
	maxFiles = 20
	// maxFile bounds each of them, in bytes.
	maxFile = 16 << 10
	// maxFilesRoom bounds all of them, in bytes.
	maxFilesRoom = 64 << 10
)

// file is a file as it is now.
type file struct {
	Name string // quoted
	Text string
	Cut  bool // it is longer
}

// read adds the files that the task or its execution names, except those that the
// diff has as new: a criterion may be met by something that was there before.
func (g *judgeData) read(ctx context.Context, j *jobs.Job, at git.OID, diff []filePatch) error {
	names := slices.Clone(j.Command.Task.RelevantFiles)
	if g.Claim != nil {
		names = append(names, g.Claim.Artifacts...)
	}
	room := maxFilesRoom
	seen := map[string]bool{}
	for _, f := range diff {
		seen[f.path] = strings.Contains(f.text[:min(len(f.text), maxFile)], "\nnew file mode ")
	}
	for _, name := range names {
		p, err := git.ParsePath(name)
		if err != nil || seen[name] {
			continue
		}
		seen[name] = true
		content, err := j.Store.ReadFile(ctx, at, p, maxFile)
		cut := errors.Is(err, git.ErrTooLarge)
		switch {
		case errors.Is(err, git.ErrNotFound) || bytes.IndexByte(content, 0) >= 0:
			continue
		case err != nil && !cut:
			return err
		}
		if i := bytes.LastIndexByte(content, '\n'); cut && i >= 0 {
			content = content[:i+1]
		}
		text := prompt.Visible(string(content))
		if room -= len(text); room < 0 || len(g.Files) == maxFiles {
			break
		}
		g.Files = append(g.Files, file{prompt.Path(name), text, cut})
	}
	return nil
}
