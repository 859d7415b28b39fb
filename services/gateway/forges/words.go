package forges

import (
	"fmt"
	"strings"
)

// MergeWords returns the title and the rest of the message for a commit that a forge makes of a
// pull request: those of the head, which end with the trailers of the change. A forge left to
// itself writes its own, often without them. number is the pull request's as the forge writes
// it, such as #12, and stands at the end of the title, where the forges have it themselves.
func MergeWords(message, number string) (title, body string) {
	title, body, _ = strings.Cut(strings.TrimSpace(message), "\n")
	return fmt.Sprintf("%s (%s)", strings.TrimSpace(title), number), strings.TrimSpace(body)
}
