package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// Parts come after what they are parts of, and nothing is left out or listed twice.
func TestTree(t *testing.T) {
	for _, c := range []struct{ parents, want string }{
		{"a b c", "a b c"},
		{"a:c b c", "b c -a"},
		{"a b:a c:b d:a e", "a -b --c -d e"},
		{"a:gone b", "a b"},
		{"a:a b", "b a"},
		{"a:b b:a c", "c a -b"},
	} {
		var all []forge.Summary
		for f := range strings.FieldsSeq(c.parents) {
			id, parent, _ := strings.Cut(f, ":")
			all = append(all, forge.Summary{Key: forge.Key{Intent: forge.IntentID(id)}, Parent: forge.IntentID(parent)})
		}
		list, depths := Tree(all)
		var got []string
		for i := range list {
			got = append(got, fmt.Sprintf("%s%s", strings.Repeat("-", depths[i]), list[i].Key.Intent))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.parents, text, c.want)
		}
	}
}
