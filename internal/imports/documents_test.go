package imports

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	documentLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence        = regexp.MustCompile("(?ms)^```.*?^```$")
	namedTest    = regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z][A-Za-z0-9]+\b`)
	declaredTest = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	namedMake    = regexp.MustCompile("`make ([a-z0-9-]+)")
	namedFile    = regexp.MustCompile("`((?:\\.ci|agent|bus|cmd|config|deploy|docs|document|flow|git|internal|natsd|notify|proto|repository|" +
		"services?|tools|forgedir)/[A-Za-z0-9_./-]+)`")
	namedScript  = regexp.MustCompile("`([0-9]{2}-[a-z0-9-]+)(?:\\.txt)?`")
	namedSession = regexp.MustCompile("`([a-z-]+\\.txtar)`|TestScripts/([a-z-]+)")
	plantedBugs  = regexp.MustCompile("planted bugs? (`[a-z-]+`(?:(?:, | and )`[a-z-]+`)*)")
	quoted       = regexp.MustCompile("`([^`]+)`")
	namedCode    = regexp.MustCompile("`([a-z][A-Za-z0-9_./-]*\\.(?:go|md|proto))` \\(((?:`\\w+`(?:, | and )?)+)\\)")
	makeTarget   = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
)

// TestDocuments checks that what documents refer to exists: files, headings,
// tests with their scripts and planted bugs, and targets of make.
func TestDocuments(t *testing.T) {
	const root = "../.."
	documents, tests := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "bin" || name == "demo" || path != root && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case filepath.Ext(name) == ".md" && filepath.Base(filepath.Dir(path)) != "prompts":
			documents[path] = readDocument(t, path)
		case strings.HasSuffix(name, "_test.go"):
			for _, m := range declaredTest.FindAllStringSubmatch(readDocument(t, path), -1) {
				tests[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tests["TestX"] = true // stands for any
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(readDocument(t, filepath.Join(root, "Makefile")), -1) {
		targets[m[1]] = true
	}
	for path, text := range documents {
		for _, m := range namedTest.FindAllString(text, -1) {
			if !tests[m] {
				t.Errorf("%s names %s, which is no test", path, m)
			}
		}
		for _, m := range namedMake.FindAllStringSubmatch(text, -1) {
			if !targets[m[1]] {
				t.Errorf("%s names make %s, which is no target", path, m[1])
			}
		}
		for _, m := range namedFile.FindAllStringSubmatch(text, -1) {
			checkFile(t, root, path, m[1])
		}
		for _, m := range namedCode.FindAllStringSubmatch(text, -1) {
			checkCode(t, root, path, m[1], quoted.FindAllStringSubmatch(m[2], -1))
		}
		checkScripts(t, root, path, text)
		checkTitle(t, documents, path, text)
		for _, m := range documentLink.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			checkLink(t, documents, path, m[1])
		}
	}
}

// checkTitle checks that the index of the decisions has each of them by the title of its page.
func checkTitle(t *testing.T, documents map[string]string, path, text string) {
	t.Helper()
	name := filepath.Base(path)
	if filepath.Base(filepath.Dir(path)) != "adr" || name == "README.md" || name == "template.md" {
		return
	}
	first, _, _ := strings.Cut(text, "\n")
	number, title, _ := strings.Cut(strings.TrimPrefix(first, "# "), ". ")
	index := documents[filepath.Join(filepath.Dir(path), "README.md")]
	if row := "| [" + number + "](" + name + ") | " + title + " |"; !strings.Contains(index, row) {
		t.Errorf("the index of decisions has no row that begins %s", row)
	}
}

// checkScripts checks the names of scripts and planted bugs in a document: a promise that one
// of them asserts is none without it. Decisions name what there was when they were taken.
func checkScripts(t *testing.T, root, from, text string) {
	t.Helper()
	if filepath.Base(filepath.Dir(from)) == "adr" {
		return
	}
	var named []string
	for _, m := range namedScript.FindAllStringSubmatch(text, -1) {
		named = append(named, "services/runner/flow/testdata/scripts/"+m[1]+".txt")
	}
	for _, m := range namedSession.FindAllStringSubmatch(text, -1) {
		named = append(named, "cmd/pfl-forge/testdata/script/"+strings.TrimSuffix(m[1]+m[2], ".txtar")+".txtar")
	}
	for _, bugs := range plantedBugs.FindAllStringSubmatch(text, -1) {
		for _, m := range quoted.FindAllStringSubmatch(bugs[1], -1) {
			named = append(named, "services/runner/sim/testdata/planted/"+m[1]+".txtar")
		}
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("%s names what is not there: %v", from, err)
		}
	}
}

// checkFile checks one path from the root that a document names. flow stands for the
// package of the rules. Decisions name what there was when they were taken.
func checkFile(t *testing.T, root, from, name string) {
	t.Helper()
	if filepath.Base(filepath.Dir(from)) == "adr" {
		return
	}
	if rest, ok := strings.CutPrefix(name, "flow/"); ok {
		name = "services/runner/flow/" + rest
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		t.Errorf("%s names %s: %v", from, name, err)
	}
}

// checkLink checks one link of a document. Addresses on the net are left alone.
func checkLink(t *testing.T, documents map[string]string, from, link string) {
	t.Helper()
	if strings.Contains(link, "://") {
		return
	}
	name, anchor, _ := strings.Cut(link, "#")
	to := filepath.Join(filepath.Dir(from), name)
	if name == "" {
		to = from
	}
	if _, err := os.Stat(to); err != nil {
		t.Errorf("%s links to %s: %v", from, link, err)
		return
	}
	if anchor == "" {
		return
	}
	for _, h := range heading.FindAllStringSubmatch(documents[to], -1) {
		if anchorOf(h[1]) == anchor {
			return
		}
	}
	t.Errorf("%s links to %s, and there is no such heading", from, link)
}

// anchorOf returns the anchor of a heading, as GitHub makes it.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case strings.ContainsRune("`.,:;?!'’\"()/<>*&+@=", r):
			return -1
		}
		return r
	}, strings.ToLower(heading))
}

func readDocument(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// checkCode checks that a file has the names that stand in brackets behind it. flow stands
// for the package of the rules. Decisions name what there was when they were taken.
func checkCode(t *testing.T, root, document, file string, names [][]string) {
	t.Helper()
	if filepath.Base(filepath.Dir(document)) == "adr" {
		return
	}
	full := filepath.Join(root, file)
	if strings.HasPrefix(file, "flow/") {
		full = filepath.Join(root, "services/runner", file)
	}
	text, err := os.ReadFile(full)
	if err != nil {
		t.Errorf("%s names %s: %v", document, file, err)
		return
	}
	for _, m := range names {
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(m[1]) + `\b`).Match(text) {
			t.Errorf("%s names %s of %s, which does not have it", document, m[1], file)
		}
	}
}
