package messages

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// HashText names a title and a body; a later edit has another one. It tells one text
// from another, for publishers and the rules alike, and approves nothing: what people
// approve is named by hashes of the rules, of a plan or of all that a request asks for.
func HashText(title, body string) string {
	h := sha256.New()
	for _, part := range []string{title, body} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
