package imports

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A way is what docs/newcomer.md has a newcomer read to answer a question.
type way struct {
	question string
	parts    []passage
}

// passage is a part of a file, from the first place of one text up to the next
// place of another; to the end without one.
type passage struct{ file, from, to string }

const (
	architecture = "docs/ARCHITECTURE.md"
	contributing = "CONTRIBUTING.md"
	making       = "services/implementer/prompts/making.md"
)

var (
	recipes   = passage{contributing, "## Recipes", "### A new rule"}
	following = passage{architecture, "### From `create` to the merge", "## Layout"}
)

// ways has a row for each row of docs/newcomer.md.
var ways = []way{
	{"Where does a rejected review go?", []passage{
		{architecture, "### The intent's machine", "reviewing --> locking"},
		{"services/runner/flow/task/table.go", "// Changes is the table", "{From: Reviewing, On: Combination"},
		{architecture, "#### Bounds of a run", "A **goal** is"},
	}},
	{"What is the agent told then?", []passage{
		{architecture, "| each task:", "| approved:"}, {making, `{{define "resume"`, `{{define "known"`}, {making, `{{define "before"`, ""},
	}},
	{"What happens to an intent between `create` and the merge?", []passage{
		{architecture, "## In one page", "### From"}, following, {"services/runner/flow/testdata/scripts/01-straight.txt", "", ""},
	}},
	{"What do I touch for a new rule?", []passage{recipes, {contributing, "### A new rule", "### A new agent"}}},
	{"For a new back end of agents?", []passage{recipes, {contributing, "### A new agent", "### A new field"}}},
	{"For a new field of an intent?", []passage{recipes, {contributing, "### A new field", "### A new event"}}},
	{"For a new event?", []passage{recipes, {contributing, "### A new event", "### A new service"}}},
	{"For a new service?", []passage{recipes, {contributing, "### A new service", "### A new setting"}}},
}

// Reading that is slower than prose, because half of it is names of files; and
// the limit of docs/newcomer.md.
const wordsInAMinute, mostMinutes = 120, 10

// TestNewcomer counts the words on each way of docs/newcomer.md, compares them
// with its table, and holds them to ten minutes.
func TestNewcomer(t *testing.T) {
	root := repository(t)
	text := func(file string) string {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	page := text("docs/newcomer.md")
	for _, w := range ways {
		words := 0
		for _, p := range w.parts {
			part, err := p.in(text(p.file))
			if err != nil {
				t.Errorf("%s %s: %v", w.question, p.file, err)
			}
			words += countWords(part)
		}
		minutes := (words + wordsInAMinute - 1) / wordsInAMinute
		if minutes > mostMinutes {
			t.Errorf("%s It takes %d words to find out, %d minutes: shorten the way", w.question, words, minutes)
		}
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %s \|.*\| %d \|`, regexp.QuoteMeta(w.question), minutes))
		if !row.MatchString(page) {
			t.Errorf("docs/newcomer.md has no row %q with %d minutes", w.question, minutes)
		}
	}
	if rows := strings.Count(page, "? |"); rows != len(ways) {
		t.Errorf("docs/newcomer.md has %d questions, ways %d", rows, len(ways))
	}
}

// in returns the passage of a file's text.
func (p passage) in(text string) (string, error) {
	begin := strings.Index(text, p.from)
	if begin < 0 {
		return "", fmt.Errorf("%q is not there", p.from)
	}
	text = text[begin:]
	if p.to == "" {
		return text, nil
	}
	end := strings.Index(text[len(p.from):], p.to)
	if end < 0 {
		return "", fmt.Errorf("%q is not behind %q", p.to, p.from)
	}
	return text[:len(p.from)+end], nil
}

var (
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	word       = regexp.MustCompile(`[\pL\pN_]{2,}`)
)

// countWords counts words and the parts of names, without the targets of links.
func countWords(text string) int {
	return len(word.FindAllString(linkTarget.ReplaceAllString(text, "]"), -1))
}

func TestPassages(t *testing.T) {
	const text = "# A\none two\n# B\nthree [four](five.md#six) a 7_8\n# C\n"
	for _, test := range []struct {
		from, to string
		words    int
		fails    bool
	}{
		{"# A", "# B", 2, false}, {"# B", "# C", 3, false}, {"# B", "", 3, false}, {"", "", 5, false}, {"# D", "", 0, true}, {"# B", "# A", 0, true},
	} {
		part, err := passage{from: test.from, to: test.to}.in(text)
		if got := countWords(part); got != test.words || (err != nil) != test.fails {
			t.Errorf("from %q to %q are %d words, %v; want %d", test.from, test.to, got, err, test.words)
		}
	}
}
