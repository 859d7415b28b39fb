package worktree

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/git"
)

// maxHeadLog bounds the log of HEAD that is read, in bytes.
const maxHeadLog = 16 << 20

// Move is one entry of the log of HEAD: git's note in this very repository of how HEAD came
// to a commit. No clone, fetch or pull brings entries along.
type Move struct {
	// Old is the commit before; empty for the first one.
	Old git.OID
	New git.OID
	// Reason is git's, such as "commit: Fix the login" or "pull: Fast-forward".
	Reason string
}

// HeadLog returns how HEAD of the main working tree moved, the oldest first. It is empty where
// git keeps no log, or keeps it elsewhere than in a file.
func (repo *Repository) HeadLog() ([]Move, error) {
	path := filepath.Join(repo.common, "logs", "HEAD")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxHeadLog {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseHeadLog(data), nil
}

// parseHeadLog reads lines of the form "<old> <new> <name> <mail> <time> <zone>\t<reason>". What
// is none, such as the end of a file that is being written, is left out.
func parseHeadLog(data []byte) []Move {
	var moves []Move
	for line := range bytes.Lines(data) {
		who, reason, _ := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		fields := strings.SplitN(who, " ", 3)
		if len(fields) < 3 {
			continue
		}
		next, err := git.ParseOID(fields[1])
		if err != nil {
			continue
		}
		m := Move{New: next, Reason: reason}
		if strings.Trim(fields[0], "0") != "" {
			if m.Old, err = git.ParseOID(fields[0]); err != nil {
				continue
			}
		}
		moves = append(moves, m)
	}
	return moves
}
