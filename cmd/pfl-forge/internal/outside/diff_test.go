package outside

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/objects"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/patch"
	"github.com/pfl-forge/pfl-forge/internal/patchid"
	"github.com/pfl-forge/pfl-forge/services/gateway"
)

// oid is the name of a content.
func oid(n int) string { return strings.Repeat(fmt.Sprintf("%x", n%16), 40) }

// changed returns the change of an attempt: a file of 10,000 new lines, one
// whose name would write to a terminal, and one that leads elsewhere.
func changed(attempt int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "diff --git a/a.go b/a.go\nindex %s..%s 100644\n--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,10001 @@ func main\n-old\n", oid(1), oid(2))
	for i := range 10_000 {
		fmt.Fprintf(&b, "+line %d of attempt %d\n", i+1, attempt)
	}
	b.WriteString(" end\n")
	for n, name := range []string{`\033[2Jclear\n`, "../../up"} {
		fmt.Fprintf(&b, "diff --git \"a/%s\" \"b/%s\"\nnew file mode 100644\nindex %040d..%s\n--- /dev/null\n+++ \"b/%s\"\n@@ -0,0 +1 @@\n+<script>\n",
			name, name, 0, oid(3+n), name)
	}
	return b.Bytes()
}

// stores has a worker store the change of an attempt, and name it in the result.
func (w *world) stores(ctx context.Context, r *forge.Result, text []byte) error {
	if text == nil {
		return nil
	}
	pw := &patch.Writer{}
	_, _ = pw.Write(text)
	p := pw.Patch()
	p.PatchID = patchid.Of(text)
	if out := forge.As[*forge.Implementation](r.Output); out != nil {
		out.PatchID, p.Base, p.Head = p.PatchID, out.Base, out.Head
	}
	if out := forge.As[*forge.Rebase](r.Output); out != nil {
		out.PatchID, p.Base, p.Head = p.PatchID, out.Base, out.Head
	}
	return patch.Store(ctx, w.bus.Objects, r.To, r.Attempt, p)
}

// diff reads a page of a change.
func (w *world) diff(path, query string) (d document.Diff) {
	w.t.Helper()
	got := w.request("viewer", http.MethodGet, path+"/diff?"+query, "")
	got.wants(w.t, query, http.StatusOK)
	if err := json.Unmarshal([]byte(got.text), &d); err != nil {
		w.t.Fatal(err)
	}
	if len(got.text) > 512<<10 {
		w.t.Errorf("%s: a page has %d bytes", query, len(got.text))
	}
	return d
}

// TestDiff reads the change of every attempt with a token that may only look,
// page by page, while no worker runs; another project's reader gets nothing.
// What another worker puts in its place is not shown.
func TestDiff(t *testing.T) {
	t.Parallel()
	w := start(t, gateway.Settings{})
	path, _ := w.done("changes")
	stat := w.diff(path, "stat=true&step=implement")
	if stat.Attempt != 3 || !stat.Proven || stat.FileCount != 3 || stat.Added != 10_002 || stat.Deleted != 1 || stat.Next != "" || len(stat.Files) != 3 ||
		stat.Base != commit(1) || stat.Head != commit(13) || stat.PatchID != patchid.Of(changed(3)) {
		t.Fatalf("%+v", stat)
	}
	for i, want := range []document.DiffFile{
		{Path: "a.go", Status: "modified", OldMode: "100644", Added: 10_000, Deleted: 1},
		{Path: "\x1b[2Jclear\n", Status: "added", NewMode: "100644", Added: 1},
		{Path: "../../up", Status: "added", NewMode: "100644", Added: 1},
	} {
		if fmt.Sprint(stat.Files[i]) != fmt.Sprint(want) {
			t.Errorf("file %d is %+v", i, stat.Files[i])
		}
	}
	lines, pages := 0, 0
	for query := "step=implement&attempt=1"; ; pages++ {
		d := w.diff(path, query)
		for _, f := range d.Files {
			if f.Path == "a.go" && f.From != lines {
				t.Fatalf("page %d begins after %d lines of %d", pages, f.From, lines)
			}
			for _, h := range f.Hunks {
				for _, l := range h.Lines {
					if lines++; lines == 5000 && (l.New != 4999 || l.Text != "line 4999 of attempt 1" || l.Op != "+") {
						t.Errorf("a line is %+v", l)
					}
				}
			}
		}
		if d.Next == "" {
			break
		}
		query = "step=implement&attempt=1&after=" + d.Next
	}
	if lines != 10_004 || pages < 2 {
		t.Errorf("%d lines on %d pages", lines, pages)
	}
	for query, want := range map[string]string{
		"step=review": `"field":"step"`, "attempt=0": `"field":"attempt"`, "attempt=x": `"field":"attempt"`, "after=1": `"field":"after"`,
		"after=-1.0": `"field":"after"`, "stat=yes": `"field":"stat"`, "task=..": `"field":"task"`, "tusk=1": `"field":"tusk"`,
	} {
		w.request("viewer", http.MethodGet, path+"/diff?"+query, "").wants(t, query, http.StatusBadRequest, want)
	}
	w.request("viewer", http.MethodGet, path+"/diff?attempt=7", "").wants(t, "no attempt", http.StatusNotFound, `"field":"attempt"`)
	w.request("viewer", http.MethodGet, path+"/diff?task=other-001", "").wants(t, "another intent's task", http.StatusNotFound, `"field":"task"`)
	w.request("viewer", http.MethodGet, path+"/diff?step=rebase", "").wants(t, "not stored", http.StatusNotFound, "its change is not stored")
	w.request("banker", http.MethodGet, path+"/diff", "").wants(t, "of another project", http.StatusForbidden)
	other := strings.Replace(path, "/shop/", "/bank/", 1)
	w.request("banker", http.MethodGet, other+"/diff", "").wants(t, "its name elsewhere", http.StatusNotFound)
	w.compared(path)
	w.replaced(path, stat)
}

// compared reads what two attempts do not have in common, page by page, and
// asks for comparisons that cannot be.
func (w *world) compared(path string) {
	w.t.Helper()
	lines, pages := map[string]int{}, 0
	for query := "step=implement&attempt=2&since=1"; ; pages++ {
		d := w.diff(path, query)
		if s := d.Since; s == nil || s.Attempt != 1 || s.Head != commit(11) || s.PatchID != patchid.Of(changed(1)) || s.Rebased || s.Same != 2 ||
			!d.Proven || d.PatchID != patchid.Of(changed(2)) || d.FileCount != 1 || d.Added != 10_000 || d.Deleted != 10_000 {
			w.t.Fatalf("page %d is %+v of %+v", pages, d.Since, d.PatchID)
		}
		for _, f := range d.Files {
			for _, h := range f.Hunks {
				for _, l := range h.Lines {
					lines[l.Since+l.Op+strings.TrimLeft(l.Text, "line 0123456789")]++
				}
			}
		}
		if d.Next == "" {
			break
		}
		query = "step=implement&attempt=2&since=1&after=" + d.Next
	}
	if lines["added+of attempt 2"] != 10_000 || lines["dropped+of attempt 1"] != 10_000 || len(lines) > 4 || pages < 2 {
		w.t.Errorf("%d pages have %v", pages, lines)
	}
	for query, want := range map[string]int{
		"step=implement&attempt=2&since=2": http.StatusBadRequest, "attempt=2&since=0": http.StatusBadRequest, "since=-1": http.StatusBadRequest,
		"since=x": http.StatusBadRequest, "step=implement&attempt=1&since=7": http.StatusBadRequest,
	} {
		w.request("viewer", http.MethodGet, path+"/diff?"+query, "").wants(w.t, query, want, `"field":"since"`)
	}
	w.request("banker", http.MethodGet, path+"/diff?since=1", "").wants(w.t, "of another project", http.StatusForbidden)
}

// replaced has another worker put something in the place of a change, and
// checks that none of it is shown.
func (w *world) replaced(path string, d document.Diff) {
	w.t.Helper()
	to := forge.Key{Project: "shop", Intent: d.Intent}
	a := forge.Attempt{Task: d.Task, Step: d.Step, Number: d.Attempt}
	for what, text := range map[string][]byte{
		"another attempt's": changed(2), "with a line less": bytes.Replace(changed(3), []byte("+line 77 of attempt 3\n"), nil, 1), "nothing": nil,
	} {
		lie := &patch.Patch{Text: text, About: patch.About{Base: d.Base, Head: d.Head, PatchID: d.PatchID}}
		if err := patch.Store(w.t.Context(), w.bus.Objects, to, a, lie); err != nil {
			w.t.Fatal(err)
		}
		got := w.request("viewer", http.MethodGet, path+"/diff?step=implement", "")
		got.wants(w.t, what, http.StatusConflict, "is not the change that the journal names")
		if strings.Contains(got.text, "line 1 of") {
			w.t.Errorf("%s is shown: %s", what, got.text)
		}
	}
	if err := w.bus.Objects.Delete(w.t.Context(), objects.PatchName(to, a, d.PatchID)); err != nil {
		w.t.Fatal(err)
	}
	w.request("viewer", http.MethodGet, path+"/diff?step=implement", "").wants(w.t, "gone", http.StatusNotFound, "its change is not stored")
	former := a
	former.Number = 1
	id := patchid.Of(changed(1))
	query := path + "/diff?step=implement&attempt=2&since=1"
	about := patch.About{Base: d.Base, Head: commit(11), PatchID: id}
	if err := patch.Store(w.t.Context(), w.bus.Objects, to, former, &patch.Patch{Text: changed(2), About: about}); err != nil {
		w.t.Fatal(err)
	}
	w.request("viewer", http.MethodGet, query, "").wants(w.t, "another former one", http.StatusConflict, `"field":"since"`, "is not the change that")
	if err := w.bus.Objects.Delete(w.t.Context(), objects.PatchName(to, former, id)); err != nil {
		w.t.Fatal(err)
	}
	w.request("viewer", http.MethodGet, query, "").wants(w.t, "the former one is gone", http.StatusNotFound, `"field":"since"`, "is not stored")
}
