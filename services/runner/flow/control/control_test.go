package control

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/table.txt")

func verbs() []Verb {
	var list []Verb
	for _, r := range Table {
		if !slices.Contains(list, r.Verb) {
			list = append(list, r.Verb)
		}
	}
	return list
}

// grid shows the answers as a table, and what is said.
func grid() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	line := "place"
	for _, v := range verbs() {
		line += "\t" + string(v)
	}
	fmt.Fprintln(w, line)
	var words []string
	for _, p := range Places() {
		line := string(p)
		for _, v := range verbs() {
			r := Find(v, p)
			cell := "yes"
			if r.Decision != forge.Applied {
				i := slices.Index(words, r.Words)
				if i < 0 {
					i = len(words)
					words = append(words, r.Words)
				}
				cell = fmt.Sprintf("%s %d", r.Decision, i+1)
			}
			line += "\t" + cell
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
	b.WriteByte('\n')
	for i, text := range words {
		fmt.Fprintf(&b, "%d: %s\n", i+1, text)
	}
	return b.String()
}

func TestTable(t *testing.T) {
	const name = "testdata/table.txt"
	if *rewrite {
		if err := os.WriteFile(name, []byte(grid()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), grid()); diff != "" {
		t.Errorf("the table is another one than %s (-rewrite, and read the diff):\n%s", name, diff)
	}
}

// Every verb has an answer everywhere, and every row is an answer somewhere.
func TestTableIsComplete(t *testing.T) {
	used := map[int]bool{}
	for _, v := range verbs() {
		for _, p := range Places() {
			i := slices.IndexFunc(Table, func(r Row) bool { return r.Verb == v && slices.Contains(r.In, p) })
			if i < 0 {
				t.Errorf("%s has no answer in place %s", v, p)
			}
			used[i] = true
		}
	}
	for i, r := range Table {
		if !used[i] {
			t.Errorf("row %d, %s %q, is never the answer", i, r.Verb, r.Words)
		}
		if (r.Decision == forge.Applied) != (r.Words == "") {
			t.Errorf("row %d, %s: words are for what is not allowed", i, r.Verb)
		}
	}
}
