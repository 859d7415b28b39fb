package forge_test

import (
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// Errors count and show characters.
func TestIDErrors(t *testing.T) {
	for _, tt := range []struct{ id, want string }{
		{"", `intent id "" is empty`},
		{"-a", `intent id "-a" must start with a letter or a digit`},
		{"変更", `intent id "変更" holds '変' at position 1; only a-z, 0-9 and - are allowed`},
		{"au-café", `intent id "au-café" holds 'é' at position 7; only a-z, 0-9 and - are allowed`},
		{"été-Å", `intent id "été-Å" holds 'é' at position 1; only a-z, 0-9 and - are allowed`},
		{strings.Repeat("語", 65), `intent id "` + strings.Repeat("語", 64) + `..." has 65 characters; at most 64 are allowed`},
		{strings.Repeat("語", 30), `intent id "` + strings.Repeat("語", 30) + `" holds '語' at position 1; only a-z, 0-9 and - are allowed`},
		{"a\xff", `intent id "a\xff" holds '�' at position 2; only a-z, 0-9 and - are allowed`},
	} {
		if _, err := forge.ParseIntentID(tt.id); err == nil || err.Error() != tt.want {
			t.Errorf("%q:\n got %v\nwant %s", tt.id, err, tt.want)
		}
	}
}
