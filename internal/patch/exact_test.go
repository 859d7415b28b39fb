package patch_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
)

// TestNothingOfTheIDIsHidden forges texts that have the id of a change and
// would be shown as another one: a line that belongs to no hunk, and an added
// file that is said to be one that was only moved.
func TestNothingOfTheIDIsHidden(t *testing.T) {
	t.Parallel()
	text := diff(t, map[string]string{"f": "-1\n2\n3\n"}, map[string]string{"f": "-1\n2\n3\ngood\nevil\n"})
	for what, forged := range map[string][]byte{
		"a count too small": bytes.Replace(text, []byte("+1,5 @@"), []byte("+1,4 @@"), 1),
		"a count too large": bytes.Replace(text, []byte("+1,5 @@"), []byte("+1,6 @@"), 1),
	} {
		if bytes.Equal(text, forged) {
			t.Fatalf("%s: nothing is forged in\n%s", what, text)
		}
		if files, err := (&patch.Patch{Text: forged}).Files(nil); !errors.Is(err, patch.ErrDamaged) {
			t.Errorf("%s: %v, %v", what, files, err)
		}
	}

	before, after := map[string]string{"old": "-same\n"}, map[string]string{"new": "-evil\n"}
	moved := diff(t, before, after)
	was := object(t, diff(t, map[string]string{"old": "-same\n"}, nil), 0)
	forged := bytes.Replace(moved, object(t, diff(t, nil, after), 1), was, 1)
	if bytes.Equal(moved, forged) || patchid.Of(moved) != patchid.Of(forged) {
		t.Fatalf("nothing is forged, or the id is another:\n%s", forged)
	}
	files, err := (&patch.Patch{Text: forged}).Files(nil)
	if err != nil || len(files) != 2 {
		t.Errorf("%+v, %v", files, err)
	}
}

// object returns the name of an object on a side of the only file of a patch.
func object(t *testing.T, text []byte, side int) []byte {
	t.Helper()
	_, line, _ := bytes.Cut(text, []byte("\nindex "))
	line, _, ok := bytes.Cut(line, []byte{'\n'})
	if !ok {
		t.Fatalf("no object in\n%s", text)
	}
	return bytes.Split(line, []byte(".."))[side]
}

// TestManyLines: what is stored of a change with very many short lines can be read
// by a process with little memory, and a text with more of them is read by none.
func TestManyLines(t *testing.T) {
	t.Parallel()
	text := diff(t, nil, map[string]string{"a": "-a\n", "many": "-" + strings.Repeat("\n", patch.MaxLines), "z": "-z\n"})
	files, err := stored(text, 4096).Files(nil)
	if err != nil || len(files) != 3 || files[1].Cut == "" || files[1].Added != patch.MaxLines || files[2].Cut != "" {
		t.Errorf("%v, %v", files, err)
	}
	if _, err := (&patch.Patch{Text: text}).Files(nil); !errors.Is(err, patch.ErrDamaged) {
		t.Errorf("all of it: %v", err)
	}
}
