package document_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/document"
)

// TestDiffPages: read page by page, a change of many files and long lines comes
// as a whole, once, and no page is larger than a message may be.
func TestDiffPages(t *testing.T) {
	t.Parallel()
	whole := document.Diff{}
	for i := range 200 { // some 30 MB
		f := document.DiffFile{Path: strings.Repeat("p", i) + fmt.Sprint(i)}
		for h := range i % 3 {
			hunk := document.DiffHunk{OldStart: h}
			for l := range i {
				hunk.Lines = append(hunk.Lines, document.DiffLine{Op: "+", New: l + 1, Text: fmt.Sprint(i, h, l) + strings.Repeat("\x00", i*i%3000)})
			}
			f.Hunks = append(f.Hunks, hunk)
		}
		whole.Files = append(whole.Files, f)
	}
	seen, pages := map[string]int{}, 0
	for r := (document.DiffRequest{Intent: "fix"}); ; pages++ {
		d := whole
		d.Page(r)
		data, err := json.Marshal(d)
		if err != nil || len(data) > 1<<20 {
			t.Fatalf("page %d has %d bytes: %v", pages, len(data), err)
		}
		for _, f := range d.Files {
			if f.From == 0 {
				seen[f.Path]++
			}
			for _, h := range f.Hunks {
				for _, l := range h.Lines {
					seen[fmt.Sprint(f.Path, h.OldStart, l.New)]++
					if long := l.Size > 0; long != strings.HasSuffix(l.Text, "\x00") && long || len(l.Text) > 2000 {
						t.Fatalf("a line has %d bytes, of %d", len(l.Text), l.Size)
					}
				}
			}
		}
		if d.Next == "" {
			break
		}
		if r.After = d.Next; len(r.Check()) > 0 {
			t.Fatalf("%q is refused: %v", d.Next, r.Check())
		}
	}
	want := 0
	for _, f := range whole.Files {
		want++
		for _, h := range f.Hunks {
			want += len(h.Lines)
		}
	}
	for what, n := range seen {
		if n != 1 {
			t.Errorf("%.40s comes %d times", what, n)
		}
	}
	if len(seen) != want || pages < 10 {
		t.Errorf("%d of %d, on %d pages", len(seen), want, pages)
	}
	past := whole
	if past.Page(document.DiffRequest{After: "9000.7"}); len(past.Files) != 0 || past.Next != "" {
		t.Errorf("after the end there is %+v", past.Files)
	}
	for _, after := range []string{"1", "1.", ".1", "-1.0", "1.-1", "01.0", "1.0x", "1.0\n", "99999999999999999999.0"} {
		if r := (document.DiffRequest{Intent: "fix", After: after}); len(r.Check()) != 1 {
			t.Errorf("%q is accepted", after)
		}
	}
}
