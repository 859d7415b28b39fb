package outside

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// spaced is a change of a task: of one file two lines are indented and one is
// another one, of the other one all lines are indented.
func spaced(task forge.TaskID, attempt int) []byte {
	return fmt.Appendf(nil, "diff --git a/a.py b/a.py\nindex %s..%s 100644\n--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n-if admin:\n-  allow()\n-old\n"+
		"+    if admin:\n+allow()\n+attempt %d of %s\n"+
		"diff --git a/b.go b/b.go\nindex %s..%s 100644\n--- a/b.go\n+++ b/b.go\n@@ -1 +1 @@\n-return nothing\n+\treturn nothing\n",
		oid(1), oid(2), attempt, task, oid(3), oid(4))
}

// TestConsoleWhitespace: lines that a change alters in white space alone can be
// left out, by an address and without a script. The page says how many are not
// shown, of each file and altogether, and approves nothing while there are any.
func TestConsoleWhitespace(t *testing.T) {
	t.Parallel()
	w, path := waitsFor(t, false, spaced, "protected")
	bob := w.signIn("bob")
	p := bob.get(consolePath(path))
	const leads = "Leave out lines that alter white space alone"
	p.wants(t, "the page", http.StatusOK, leads, "&#43;allow()", "return nothing", "attempt 2 of")
	if !p.approves() {
		t.Errorf("it does not approve:\n%s", p.text)
	}
	address := ""
	for _, part := range strings.Split(p.text, `href="`)[1:] {
		if one, rest, _ := strings.Cut(part, `"`); strings.HasPrefix(rest, ">"+leads) {
			address = strings.ReplaceAll(one, "&amp;", "&")
		}
	}
	address, _, _ = strings.Cut(address, "#")
	off := bob.get(address)
	off.wants(t, "without white space", http.StatusOK, "6 lines of the change alter white space alone, and are not shown", "Python", "Show every line",
		"4 lines of this file", "2 lines of this file", "2 not shown</span>", "attempt 2 of",
		"It cannot be approved on this page.", "6 lines of the change are not shown below", "proven</b>", consolePath(path)+"?task=")
	if off.approves() || strings.Contains(off.text, "return nothing") || strings.Contains(off.text, "-  allow()") || strings.Contains(off.text, "&#43;allow()") {
		t.Errorf("it approves %t what it does not show:\n%s", off.approves(), off.text)
	}
	d := w.diff(path, "whitespace=off")
	if d.Hidden != 6 || d.Added != 4 || d.Deleted != 4 || !d.Proven || len(d.Files) != 2 ||
		d.Files[0].Hidden != 4 || d.Files[1].Hidden != 2 || len(d.Files[1].Hunks) > 0 {
		t.Errorf("by the API it is %+v", d)
	}
	if stat := w.diff(path, "whitespace=off&stat=true"); stat.Hidden != 6 || stat.Files[0].Hidden != 4 {
		t.Errorf("without lines it is %+v", stat)
	}
	if all := w.diff(path, ""); all.Hidden != 0 || len(all.Files[1].Hunks) != 1 {
		t.Errorf("with all lines it is %+v", all)
	}
	for query, about := range map[string]string{"whitespace=on": "it can be off", "whitespace=off&step=implement&attempt=2&since=1": "no since"} {
		w.request("viewer", http.MethodGet, path+"/diff?"+query, "").wants(t, query, http.StatusBadRequest, `"field":"whitespace"`, about)
		bob.get(consolePath(path)+"?"+query).wants(t, query, http.StatusBadRequest, about)
	}
	since := bob.get(consolePath(path) + "?step=implement&attempt=2&since=1")
	if since.wants(t, "a comparison", http.StatusOK, "Below is a comparison"); strings.Contains(since.text, "white space") {
		t.Error("a comparison leaves out white space")
	}
	// Of a change that alters no white space alone, everything is shown, and can be approved.
	other, plain := waits(t, false, "protected")
	p = other.signIn("bob").get(consolePath(plain) + "?whitespace=off")
	p.wants(t, "nothing to leave out", http.StatusOK, "No line of the change alters white space alone: every line is shown.")
	if !p.approves() {
		t.Errorf("what is shown as a whole cannot be approved:\n%s", p.text)
	}
}
