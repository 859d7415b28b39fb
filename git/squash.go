package git

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Squash returns one commit that makes the change of base..head on base. A single commit stays what it is, if its message
// is safe to show on a terminal; of several the last one's author and date are kept, and the messages follow each other.
// The same commits give the same result. The caller Keeps it.
//
// Errors: *WorkError (Rewritten when base is no ancestor of head, Merged, Oversized).
func (db *Database) Squash(ctx context.Context, base, head OID) (OID, error) {
	r := db.readObjects(ctx)
	defer r.close()
	chain, err := r.chain(base, head)
	if err != nil {
		return "", err
	}
	if len(chain) == 0 {
		return head, nil
	}
	last := chain[len(chain)-1]
	if len(chain) == 1 && printable(last.message) == last.message && printable(last.author) == last.author {
		return head, nil
	}
	id := db.Identity()
	last.parents = []OID{base}
	last.committer = id.Name + " <" + id.Email + "> " + when(last.committer)
	last.author, last.message = printable(last.author), printable(joinMessages(chain))
	return writeCommit(db.ObjectDir(), last, true)
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
func joinMessages(chain []commitData) string {
	encoding := chain[len(chain)-1].encoding
	var messages []string
	for _, c := range chain {
		m := strings.TrimSpace(c.message)
		if c.encoding == encoding && m != "" && !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	return strings.Join(messages, "\n\n") + "\n"
}
