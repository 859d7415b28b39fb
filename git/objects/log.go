package objects

import (
	"context"
	"fmt"
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
// at most limit of them.
func (db *Database) Trees(ctx context.Context, head git.OID, limit int) ([]git.OID, error) {
	out, err := git.Run(ctx, db.ObjectCommand(), "log", "--first-parent", "--no-show-signature", "--format=%T",
		"--max-count="+strconv.Itoa(limit), string(head), "--")
	if err != nil {
		return nil, err
	}
	var list []git.OID
	for line := range strings.Lines(string(out)) {
		tree, err := git.ParseOID(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("git log: %w", err)
		}
		list = append(list, tree)
	}
	return list, nil
}
