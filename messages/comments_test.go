package messages_test

import (
	"fmt"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// Each comment is told once, however often and late it comes; and whoever comments for ever, by
// whatever count, is told a few times, the last of them far behind the first.
func TestHeard(t *testing.T) {
	var h messages.Heard
	tell := func(count, n int) bool {
		c := forge.Comments{Count: count, Ref: fmt.Sprintf("acme/shop#3 comment %d", n)}
		news := h.IsNews(&c)
		if news {
			h.Hear(&c)
		}
		return news
	}
	if !tell(1, 7) || tell(1, 7) || !tell(3, 9) || tell(2, 7) || !tell(2, 8) {
		t.Errorf("heard is %+v", h)
	}
	told := len(h.Told)
	for n := 4; n <= forge.MaxComments; n++ {
		if tell(n, 100+n) {
			told++
		}
	}
	if told != len(h.Told) || told < 25 || told > 33 || h.Newest.Count < forge.MaxComments/2 {
		t.Errorf("of %d comments %d are told, the last with %d", forge.MaxComments, told, h.Newest.Count)
	}
	h = messages.Heard{}
	for n := range 1000 { // a publisher may say any count: the least, and then the least that is told
		count := 1
		if n > 100 {
			count = 2 * h.Newest.Count
		}
		if count <= forge.MaxComments {
			tell(count, n)
		}
	}
	if len(h.Told) != 33 {
		t.Errorf("%d are told", len(h.Told))
	}
}
