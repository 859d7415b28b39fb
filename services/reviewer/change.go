package reviewer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/checkout"
	"github.com/pfl-forge/pfl-forge/git/objects"
	"github.com/pfl-forge/pfl-forge/jobs"
)

const (
	// maxPatch bounds the part of a change that is shown at all, in bytes.
	maxPatch = 16 << 20
	// maxIndex bounds the index in the prompt, in bytes.
	maxIndex = 24 << 10
	// indexFile is the file with an index that is longer.
	indexFile = "change-index.txt"
)

// look reads the change of a task, and writes what is too large for a prompt into the
// checkout, for the agent to read there.
func look(ctx context.Context, j *jobs.Job, view *checkout.Checkout, base, head git.OID) (*reviewData, error) {
	patch, truncated, err := j.Store.Diff(ctx, base, head, maxPatch)
	if err != nil {
		return nil, err
	}
	changed, err := j.Store.Changes(ctx, base, head)
	if err != nil {
		return nil, err
	}
	files := split(string(patch))
	if truncated && len(files) > 0 {
		files = files[:len(files)-1] // the last one is cut
	}
	s := show(files)
	c := newReviewData(j.Command, j.Config.Verify)
	c.Rules = rules(jobs.Files(changed))
	c.Diff, c.Parts, c.Binary, c.Index = s.diff, s.parts, s.bare, index(s.parts)
	if truncated {
		c.Unshown = unshown(jobs.Files(changed), files)
	}
	if err := c.since(ctx, j, head, changed); err != nil {
		return nil, err
	}
	return c, c.write(view)
}

// unshown returns the changed files that have no patch.
func unshown(changed []string, files []filePatch) []string {
	known := map[string]bool{}
	for _, f := range files {
		known[f.path] = true
	}
	return slices.DeleteFunc(changed, func(name string) bool { return known[name] })
}

// since sets the files that differ from what the last review read.
func (c *reviewData) since(ctx context.Context, j *jobs.Job, head git.OID, changed []objects.FileChange) error {
	last, err := git.ParseOID(c.Last())
	if err != nil || !j.Store.Has(ctx, last) {
		return nil //nolint:nilerr // then nobody can say
	}
	differ, err := j.Store.Changes(ctx, last, head)
	if err != nil {
		return err
	}
	c.Compared = true
	files := jobs.Files(changed)
	for _, f := range differ {
		if _, ok := slices.BinarySearch(files, f.Path); ok {
			c.Since = append(c.Since, f.Path)
		}
	}
	return nil
}

// write writes the parts of a large change below .forge in the checkout, which git
// ignores.
func (c *reviewData) write(view *checkout.Checkout) error {
	for _, p := range c.Parts {
		if err := view.WriteFile(p.name, []byte(p.text)); err != nil {
			return fmt.Errorf("show a large change: %w", err)
		}
	}
	if len(c.Index) <= maxIndex {
		return nil
	}
	if err := view.WriteFile(indexFile, []byte(c.Index)); err != nil {
		return fmt.Errorf("show a large change: %w", err)
	}
	c.Index, c.LongList = c.Index[:strings.LastIndexByte(c.Index[:maxIndex], '\n')], ".forge/"+indexFile
	return nil
}
