package forge

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Comments tells what others said about an intent after it was submitted: where it came from, at
// its pull request, or wherever else it is talked about. It has none of their words. Whoever wants
// to read those follows Ref, with rights of their own.
type Comments struct {
	Count   int       // how many there are by now in the place of Ref; MaxComments stands for all that are more
	Account string    // who wrote the newest one, as whoever tells names accounts
	Ref     string    // names the newest one, such as acme/shop#3 comment 17; the same one always has the same name
	At      time.Time // when it was written
}

const (
	// MaxComments bounds the count of comments.
	MaxComments = 10_000
	// MaxCommentName bounds the names of an account and of a comment, in bytes.
	MaxCommentName = 500
)

// Validate returns the first mistake; nil if there is none. Its names are shown to people as they
// are.
func (c *Comments) Validate() *FieldError {
	switch {
	case c.Count < 1 || c.Count > MaxComments:
		return &FieldError{Field: "comments.count", Reason: fmt.Sprintf("is %d; it can be 1 to %d", c.Count, MaxComments)}
	case c.At.IsZero():
		return &FieldError{Field: "comments.at", Reason: "is missing; say when it was written"}
	case c.At.UTC().Year() < 1 || c.At.UTC().Year() > 9999: // it could be told, but not written down
		return &FieldError{Field: "comments.at", Reason: "is not in the years 1 to 9999 of UTC"}
	}
	if why := badCommentName(c.Account); why != "" {
		return &FieldError{Field: "comments.account", Reason: why}
	}
	if why := badCommentName(c.Ref); why != "" {
		return &FieldError{Field: "comments.ref", Reason: why}
	}
	return nil
}

// badCommentName returns why a text names no account or comment; empty if it does.
func badCommentName(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case len(s) > MaxCommentName:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), MaxCommentName)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "holds a character that is not seen"
	}
	return ""
}
