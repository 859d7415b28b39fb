package messages

import "testing"

// TestHashText: a title and a body have a name that another title or body has
// not, however the two are divided.
func TestHashText(t *testing.T) {
	if HashText("a", "bc") == HashText("ab", "c") || len(HashText("", "")) != 64 {
		t.Error("the hash does not tell title and body apart")
	}
}
