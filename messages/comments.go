package messages

import (
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
)

// Heard has the comments on an intent that were told. Runners keep it, and who tells them
// compares with it first: both find the same to be news.
type Heard struct {
	// Newest are the comments that were told last; zero before the first.
	Newest forge.Comments
	// Told has the names of all that were told, in their order.
	Told []string
}

// each is how many times comments are told one by one. After that they are told when their
// count has doubled, so that ten thousand are few events, and the last of them still leads to one.
const each = 20

// IsNews reports whether comments are to be told. What was told is never told again, whatever
// is lost, doubled or late. At most 20 are told one by one, and 13 more as their count doubles
// up to forge.MaxComments.
func (h *Heard) IsNews(c *forge.Comments) bool {
	if slices.Contains(h.Told, c.Ref) {
		return false
	}
	return len(h.Told) < each || c.Count >= 2*h.Newest.Count
}

// Hear takes comments that are news.
func (h *Heard) Hear(c *forge.Comments) {
	h.Newest = *c
	h.Told = append(slices.Clip(h.Told), c.Ref)
}
