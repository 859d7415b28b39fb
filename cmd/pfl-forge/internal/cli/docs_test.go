package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/config"
)

// top is the repository's root.
var top = filepath.Join("..", "..", "..", "..")

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The guide names every key of pfl-forge.yaml, and every command.
func TestGuideIsComplete(t *testing.T) {
	t.Parallel()
	guide := readDoc(t, "docs/guide-local.md")
	for _, key := range yamlKeys(reflect.TypeFor[config.Project]()) {
		last := key[strings.LastIndexByte(key, '.')+1:]
		if !strings.Contains(guide, "`"+key+"`") && !strings.Contains(guide, "`."+last+"`") && !strings.Contains(guide, "`"+last+"`") {
			t.Errorf("the guide does not name the key %s", key)
		}
	}
	a := &kit.App{Getenv: func(string) string { return "" }}
	for _, c := range newRoot(a).Commands() {
		if c.IsAvailableCommand() && !isBuiltIn(c) && !strings.Contains(guide, "`"+c.Name()) {
			t.Errorf("the guide does not name the command %s", c.Name())
		}
	}
}

func isBuiltIn(c *cobra.Command) bool { return c.Name() == "help" || c.Name() == "completion" }

// yamlKeys returns the keys of a struct, those of nested ones with a dot.
func yamlKeys(typ reflect.Type) []string {
	var keys []string
	for f := range typ.Fields() {
		key, inner := f.Tag.Get("yaml"), f.Type
		if inner.Kind() != reflect.Struct {
			keys = append(keys, key)
		}
		if k := inner.Kind(); k == reflect.Map || k == reflect.Slice {
			inner = inner.Elem()
		}
		if inner == reflect.TypeFor[config.ScheduledIntent]() {
			keys = append(keys, key) // those within are the keys of a draft, which have a table of their own
			continue
		}
		if inner.Kind() == reflect.Struct {
			for _, sub := range yamlKeys(inner) {
				keys = append(keys, strings.TrimPrefix(key+"."+sub, ",inline."))
			}
		}
	}
	return keys
}

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInURL = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// Links between the documents lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	docs, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil || len(docs) < 3 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	docs = append(docs, filepath.Join(top, "README.md"), filepath.Join(top, "CONTRIBUTING.md"))
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links.FindAllStringSubmatch(string(text), -1) {
			path, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := doc
			if path != "" {
				target = filepath.Join(filepath.Dir(doc), path)
			}
			content, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); err != nil && (statErr != nil || !info.IsDir()) {
				t.Errorf("%s: %v", doc, err)
			}
			if anchor != "" && !hasHeading(string(content), anchor) {
				t.Errorf("%s: no heading for %s", doc, link[1])
			}
		}
	}
}

// hasHeading reports whether a heading has an anchor, as GitHub makes them.
func hasHeading(text, anchor string) bool {
	for _, h := range headings.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(notInURL.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
