package objects

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge/internal/term"

	"github.com/pfl-forge/pfl-forge/git"
)

// Squash returns one commit that makes the change of base..head on base, with the date
// of the last commit. Author and committer are pfl-forge's: whoever made the commits
// could have written any name into them. An author, as Take returns it, is the author
// instead. The function message returns the message,
// given those of the commits, oldest first: they are printable UTF-8, and those in an
// encoding that is not known are left out. Without a function they follow each other. A
// single commit that is like that already stays what it is. The same commits and
// messages give the same result. The caller Keeps it.
//
// Errors: *WorkError (Rewritten when base is no ancestor of head, Merged, Oversized).
func (db *Database) Squash(ctx context.Context, base, head git.OID, author string, message func(own []string) string) (git.OID, error) {
	r := db.NewReader(ctx)
	defer r.Close()
	chain, err := r.Chain(base, head)
	if err != nil {
		return "", err
	}
	if len(chain) == 0 {
		return head, nil
	}
	if message == nil {
		message = joinMessages
	}
	last, id := chain[len(chain)-1], db.Identity()
	text, by := CleanMessage(message(messages(chain))), id.Name+" <"+id.Email+">"
	if author = cmp.Or(author, by); author != by {
		author = CleanAuthor(author)
	}
	author, committer := author+" "+when(last.Author), by+" "+when(last.Committer)
	if len(chain) == 1 && text == last.Message && author == last.Author && committer == last.Committer && last.encoding == "" {
		return head, nil
	}
	last.Parents = []git.OID{base}
	last.Author, last.Committer, last.Message, last.encoding = author, committer, text, ""
	return WriteCommit(db.ObjectDir(), last, true)
}

// messages returns the messages of commits that can be read, as printable UTF-8.
func messages(chain []Commit) []string {
	var own []string
	room := maxMessages
	for _, c := range chain {
		if !utf8.ValidString(c.Message) && !isLatin(c.encoding) {
			continue
		}
		cut := c.Message[:min(len(c.Message), maxMessage, room)]
		if utf8.ValidString(c.Message) {
			cut = strings.ToValidUTF8(cut, "")
		}
		message := printable(cut)
		own = append(own, message)
		if room -= len(message); room <= 0 {
			break
		}
	}
	return own
}

// maxMessage bounds the part that is read of one message, in bytes, and maxMessages of all. A text
// that was made to be costly stays cheap.
const (
	maxMessage  = 64 << 10
	maxMessages = 256 << 10
)

// isLatin reports whether an encoding is the one whose bytes are code points.
func isLatin(encoding string) bool {
	switch strings.ToLower(encoding) {
	case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "latin-1":
		return true
	}
	return false
}

// printable returns s as UTF-8 without the characters that could control a terminal.
// What is not UTF-8 is read as Latin-1, in which every byte is a character.
func printable(s string) string {
	if !utf8.ValidString(s) {
		r := make([]rune, len(s))
		for i := range len(s) {
			r[i] = rune(s[i])
		}
		s = string(r)
	}
	return term.Sanitize(s)
}

// joinMessages puts messages one after the other, each once.
func joinMessages(own []string) string {
	var list []string
	for _, m := range own {
		if m = strings.TrimSpace(m); m != "" && !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return strings.Join(list, "\n\n")
}
