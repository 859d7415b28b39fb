package imports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Each rule, on sources that break it next to sources that keep it.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		rule  string
		files map[string]string // by path; "package p" is put before the text
		want  []string          // problems without reason and places
	}{
		{
			rule: "fields",
			files: map[string]string{
				"few/few.go":       "type T struct {\n" + numbered(20, "F%d int\n") + "}",
				"many/many.go":     "type T struct {\n" + numbered(10, "F%d, G%[1]d int\n") + "E\n}\ntype E struct{}",
				"many.go":          "func f() { type local struct {\n" + numbered(21, "F%d int\n") + "} }",
				"many/many.pb.go":  "type Wire struct {\n" + numbered(21, "F%d int\n") + "}",
				"many/any_test.go": "type Fixture struct {\n" + numbered(21, "F%d int\n") + "}",
			},
			want: []string{"forge.local: fields is 21, the bound is 20", "many.T: fields is 21, the bound is 20"},
		},
		{
			rule: "methods",
			files: map[string]string{
				"few/few.go":         "type T struct{}\n" + numbered(40, "func (t *T) M%d() {}\n"),
				"few/few_linux.go":   "func (t T) M1() {}",
				"many/many.go":       "type T[K any] struct{}\n" + numbered(21, "func (t *T[K]) M%d() {}\n"),
				"many/more.go":       numbered(20, "func (T[K]) N%d() {}\n"),
				"contract/listed.go": "type I interface {\n" + numbered(41, "M%d()\n") + "}",
			},
			want: []string{"contract.I: methods is 41, the bound is 40", "many.T: methods is 41, the bound is 40"},
		},
		{
			rule: "lines of code",
			files: map[string]string{
				"short/short.go":      numbered(2399, "var v%d int\n") + numbered(3000, "// Line %d.\n\n"),
				"short/short_test.go": numbered(2999, "var v%d int\n"),
				"long/a.go":           numbered(1200, "var a%d int // its own\n"),
				"long/b.go":           numbered(1199, "var b%d int\n"),
			},
			want: []string{"long: lines of code is 2401, the bound is 2400"}, // with the lines of package
		},
		{
			rule: "lines of a command",
			files: map[string]string{
				commands + "few/few.go":           numbered(699, "// Line %d.\nvar a%[1]d int\n"),
				commands + "many/many.go":         numbered(700, "var a%d int\n"),
				commands + "few/many/few.go":      numbered(350, "var a%d int\n"),
				commands + "few/many/more.go":     numbered(349, "var b%d int\n"),
				"cmd/pfl-forge/internal/many.go":  numbered(999, "var a%d int\n"),
				commands + "few/many/any_test.go": numbered(999, "var c%d int\n"),
			},
			want: []string{
				commands + "few/many: lines of a command is 701, the bound is 700",
				commands + "many: lines of a command is 701, the bound is 700",
			},
		},
		{
			rule:  "files",
			files: maps.Collect(paths(25, "few/f%d.go", 26, "many/f%d.go", 9, "few/f%d_test.go")),
			want:  []string{"many: files is 26, the bound is 25"},
		},
		{
			rule: "riddles",
			files: map[string]string{
				"plain/plain.go": "// overlaps returns the tasks that change the same files.\nfunc overlaps() {\n// this is what git does\n}\n\n" +
					"// check says what is wrong with it, or with whatever was nobodys.\nfunc check() {}",
				"clause/clause.go": "// foreseen is\n// what a task has to know.\nvar foreseen int\n\n// lost returns what the stream has lost.\nfunc lost() {}",
				"asks/asks.go":     "// asker is who asked.\nvar asker int\n\n// key says whose it is, and which are known.\nvar key int",
				"people/people.go": "type t struct {\n// Set when somebody waits.\na int\nb int // of a former life\n}",
				"doc/doc.go":       "",
				"doc/doc_test.go":  "// lost is what the stream has lost.\nvar lost int",
			},
			want: []string{"asks: riddles is 1, the bound is 0", "clause: riddles is 2, the bound is 0", "people: riddles is 2, the bound is 0"},
		},
		{
			rule: "wide comments",
			files: map[string]string{
				"narrow/narrow.go": "// " + wide(97) + "\n\nfunc f() {\n\t// " + wide(93) + "\n\tvar v int // " + wide(120) + "\n}\n\n" +
					"//nolint:all // " + wide(120) + "\n// The columns are\n//\n//\t" + wide(120) + "\n//\n//   - " + wide(120) +
					"\n//\n// https://example.org/" + strings.Repeat("a", 90) + "\nvar v int",
				"wide/wide.go":      "// " + wide(98) + "\n\nfunc f() {\n\t// " + wide(94) + "\n}",
				"wide/wide_test.go": "// " + wide(98) + "\nvar v int",
			},
			want: []string{"wide: wide comments is 2, the bound is 0"},
		},
		{
			rule: "habits",
			files: map[string]string{
				"plain/plain.go":      "// It goes on, and is mended.\nconst a = `continues, amends`",
				"habit/habit.go":      "const a = `Mend it: a file\nof yours`\n\nvar b = \"it goes on\"",
				"habit/habit_test.go": "const c = `goes on`",
			},
			want: []string{"habit: habits is 3, the bound is 0"},
		},
		{
			rule: "docs",
			files: map[string]string{
				"good/good.go": "// A Lock holds the files of a task.\ntype Lock struct{ A int }\n\n// Free releases the lock's files.\nfunc (Lock) Free() {}\n" +
					"func (Lock) String() string\nfunc (Lock) free()\n\n// The kinds of locks.\nconst (\nShared = 1\nAlone = 2\n)\n" +
					"type inner struct{}\nfunc (inner) Close()\n\n// Holder holds some locks.\ntype Holder interface {\n// Held lists the locks.\nHeld()\nclose()\n}",
				"bad/none.go":  "func F() {}\ntype T struct{}\nfunc (*T) M() {}\nvar V int\nconst (\nC = 1\n)",
				"bad/wrong.go": "// It returns nothing at all.\nfunc G() {}\n// H h.\nfunc H() {}\n// I is small.\ntype I interface { M() }",
				"fields.go":    "// T is in the vocabulary.\ntype T struct {\nA int // counted from 1\n// B is the same.\nB int\nC, D int\ne int\n}",
			},
			want: []string{".: docs is 2, the bound is 0", "bad: docs is 8, the bound is 0"},
		},
		{
			rule: "comments",
			files: map[string]string{
				"bare/bare.go": "//go:build linux\n\nvar a = `\n// text\n`\n//nolint:foo // why\nvar b = 1 // beside code\n" + numbered(14, "var v%d int\n"),
				"rich/rich.go": "// One,\n// and two.\n" + "/* and\nthree */" + numbered(19, "\nvar v%d int"),
			},
			want: []string{"./...: comments is 10, the bound is 20"}, // 4 for 1+1+3+14 + 1+19 lines
		},
		{
			rule: "sparse",
			files: map[string]string{
				"bare/bare.go":      "// One.\n" + numbered(9, "var v%d int\n"),
				"rich/rich.go":      "// One,\n// and two.\n" + numbered(10, "var v%d int\n"),
				"rich/bare_test.go": numbered(100, "var v%d int\n"),
			},
			want: []string{"bare: sparse is 10, the bound is 13"},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			i := slices.IndexFunc(rules, func(r rule) bool { return r.name == test.rule })
			var got []string
			for _, problem := range rules[i].check(rules[i].measure(folders(t, test.files)), nil) {
				fact, reason, _ := strings.Cut(problem, ": ")
				value, reason, _ := strings.Cut(reason, ": ")
				if reason == "" {
					t.Errorf("%s: no reason is given", fact)
				}
				got = append(got, fact+": "+value)
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
	for _, r := range rules {
		if r.reason == "" {
			t.Errorf("rule %s has no reason", r.name)
		}
	}
}

// Every exception names a rule, and each of its ways to be wrong is found.
func TestExceptions(t *testing.T) {
	for _, e := range exceptions {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.name == e.rule }) {
			t.Errorf("exceptions names a rule %q", e.rule)
		}
	}
	most := rule{name: "files", bound: 25, reason: "small"}
	least := rule{name: "comments", bound: 20, least: true, reason: "readable"}
	for _, test := range []struct {
		name  string
		rule  rule
		value int
		table []exception
		want  []string
	}{
		{"at the bound", most, 25, nil, nil},
		{"above it", most, 26, nil, []string{"bus: files is 26, the bound is 25: small"}},
		{"excepted", most, 26, []exception{{"files", "bus", 30, "not yet"}}, nil},
		{"by another rule", most, 26, []exception{{"lines", "bus", 30, "not yet"}}, []string{"bus: files is 26, the bound is 25: small"}},
		{"grown", most, 31, []exception{{"files", "bus", 30, "not yet"}}, []string{"bus: files is 31, and has been 30; exceptions only shrink: small"}},
		{"mended", most, 25, []exception{{"files", "bus", 30, "not yet"}}, []string{"bus meets the bound of files, or is gone: delete its exception"}},
		{"gone", most, 25, []exception{{"files", "git", 30, "not yet"}}, []string{"git meets the bound of files, or is gone: delete its exception"}},
		{"no reason", most, 26, []exception{{"files", "bus", 30, ""}}, []string{"exceptions has files of bus twice or without a reason"}},
		{
			"twice", most, 26,
			[]exception{{"files", "bus", 30, "not yet"}, {"files", "bus", 40, "not yet"}},
			[]string{"exceptions has files of bus twice or without a reason"},
		},
		{"too few", least, 19, nil, []string{"bus: comments is 19, the bound is 20: readable"}},
		{"few, excepted", least, 9, []exception{{"comments", "bus", 9, "not yet"}}, nil},
		{"fewer", least, 8, []exception{{"comments", "bus", 9, "not yet"}}, []string{"bus: comments is 8, and has been 9; exceptions only shrink: readable"}},
		{"enough", least, 20, []exception{{"comments", "bus", 9, "not yet"}}, []string{"bus meets the bound of comments, or is gone: delete its exception"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.rule.check([]figure{{subject: "bus", value: test.value}}, test.table)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// folders parses made-up files.
func folders(t *testing.T, files map[string]string) []folder {
	t.Helper()
	root := fstest.MapFS{}
	for path, text := range files {
		root[path] = &fstest.MapFile{Data: []byte("package p\n\n" + text)}
	}
	scanned, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, root, scanned)
}

// wide returns a text of so many columns: ä is one of them.
func wide(n int) string { return strings.Repeat("ä b ", n/4) + strings.Repeat("c", n%4) }

// numbered returns a line for each number from 1.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i+1)
	}
	return b.String()
}

// paths yields as many empty files of each form as the number before it.
func paths(counts ...any) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i := 0; i < len(counts); i += 2 {
			for n := range counts[i].(int) {
				if !yield(fmt.Sprintf(counts[i+1].(string), n), "") {
					return
				}
			}
		}
	}
}
