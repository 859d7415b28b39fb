package objects

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"

	"github.com/pfl-forge/pfl-forge/git"
)

// Squash returns one commit that makes the change of base..head on base. A single commit stays what it is, if its message
// is safe to show on a terminal; of several the last one's author and date are kept, and the messages follow each other.
// The same commits give the same result. The caller Keeps it.
//
// Errors: *WorkError (Rewritten when base is no ancestor of head, Merged, Oversized).
func (db *Database) Squash(ctx context.Context, base, head git.OID) (git.OID, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	chain, err := r.Chain(base, head)
	if err != nil {
		return "", err
	}
	if len(chain) == 0 {
		return head, nil
	}
	last := chain[len(chain)-1]
	if len(chain) == 1 && printable(last.Message) == last.Message && printable(last.Author) == last.Author {
		return head, nil
	}
	id := db.Identity()
	last.Parents = []git.OID{base}
	last.Committer = id.Name + " <" + id.Email + "> " + when(last.Committer)
	last.Author, last.Message = printable(last.Author), printable(joinMessages(chain))
	return WriteCommit(db.ObjectDir(), last, true)
}

// printable returns s without the characters that could control a terminal.
func printable(s string) string {
	if utf8.ValidString(s) {
		return term.Sanitize(s)
	}
	return string(slices.DeleteFunc([]byte(s), func(b byte) bool { // in another encoding, of which only this much is known
		return b < ' ' && b != '\n' && b != '\t' || b == 0x7f
	}))
}

// joinMessages puts the messages of commits one after the other, each once. What is in another encoding than the last
// one's is left out.
func joinMessages(chain []Commit) string {
	encoding := chain[len(chain)-1].encoding
	var messages []string
	for _, c := range chain {
		m := strings.TrimSpace(c.Message)
		if c.encoding == encoding && m != "" && !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	return strings.Join(messages, "\n\n") + "\n"
}
