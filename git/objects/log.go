package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// LogLine is a commit as git log --oneline shows it.
type LogLine struct {
	Commit git.OID
	// Subject is the first line of the message as its author wrote it: make it
	// safe before it is shown.
	Subject string
}

// Log lists the newest commits of a branch's own line of history, newest first, at
// most limit of them, without those that since has, too; since may be empty.
func (db *Database) Log(ctx context.Context, since, head git.OID, limit int) ([]LogLine, error) {
	args := []string{"log", "--first-parent", "--no-show-signature", "--format=%H %s", "--max-count=" + strconv.Itoa(limit), string(head)}
	if since != "" {
		args = append(args, "^"+string(since))
	}
	out, err := git.Run(ctx, db.ObjectCommand(), append(args, "--")...)
	if err != nil {
		return nil, err
	}
	var list []LogLine
	for line := range strings.Lines(string(out)) {
		name, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		commit, err := git.ParseOID(name)
		if err != nil {
			return nil, fmt.Errorf("git log: %w", err)
		}
		list = append(list, LogLine{commit, subject})
	}
	return list, nil
}

// Trees returns the trees of the newest commits of a branch's own line of history, newest first,
// at most limit of them. What the call before returned is not read again: a branch mostly grows.
func (db *Database) Trees(ctx context.Context, head git.OID, limit int) ([]git.OID, error) {
	before := db.line.Load()
	r := db.NewReader(ctx)
	defer r.Close()
	var list []git.OID
	for at := head; len(list) < limit; {
		if before != nil && at == before.head && before.limit >= limit {
			list = append(list, before.trees...)
			break
		}
		c, err := r.Commit(at)
		if len(list) > 0 && errors.Is(err, git.ErrNotFound) {
			break // the end of a shallow clone
		}
		if err != nil {
			return nil, fmt.Errorf("trees of %s: %w", head.Short(), err)
		}
		list = append(list, c.Tree)
		if len(c.Parents) == 0 {
			break
		}
		at = c.Parents[0]
	}
	list = list[:min(len(list), limit)]
	db.line.Store(&line{head, limit, list})
	return slices.Clone(list), nil
}

// line is the newest part of a branch's own line of history.
type line struct {
	head git.OID
	// limit is how many trees it has at most, with fewer at the root.
	limit int
	trees []git.OID
}
