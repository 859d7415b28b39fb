package diff

import (
	"bytes"
	"testing"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/document"
)

// TestPrintedSafely: neither a name nor a line of a change writes more than a
// line to a terminal, moves its cursor or reorders its text.
func TestPrintedSafely(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printFile(&kit.App{Out: &out}, &document.DiffFile{
		Path: "a\n+++ b\x1b[2J\u202egnp", OldPath: "../../up\r", Status: "renamed", Added: 1, Planned: new(bool), Cut: "x\ny",
		Hunks: []document.DiffHunk{{
			OldStart: 1, OldLines: 1, NewStart: 2, NewLines: 3, Section: "f\x1b]0;t\x07()",
			Lines: []document.DiffLine{{Op: "+", Text: "one\rtwo\x1b[31m", NoEnd: true}},
		}},
	})
	want := "renamed a +++ b<U+202E>gnp +1 -0, from ../../up, not in the plan, x y\n@@ -1,1 +2,3 @@ f()\n+one two\n\\ no line end\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
}
