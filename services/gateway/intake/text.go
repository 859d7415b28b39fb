package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash names a title and a body; a later edit has another one. It tells one
// text from another. What people approve is named by the runner's own hash,
// which is that of the plan, or of the intent's text.
func Hash(title, body string) string {
	h := sha256.New()
	for _, part := range []string{title, body} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
