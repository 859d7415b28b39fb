package analyzer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPathsAreThoseOfTheRepository(t *testing.T) {
	in := []string{
		"a.go", "./a.go", " b/c.go ", "/work/x/d.go", "/work/xy/e.go", "/etc/passwd", "../f.go", "b/../../g.go", "", ".", "..", "/work/x", "h/",
	}
	want := []string{"a.go", "b/c.go", "d.go", "h"}
	if diff := cmp.Diff(want, inRepository("/work/x", in)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a.go"}, inRepository("", []string{"a.go", "/a.go"})); diff != "" {
		t.Error(diff)
	}
}
