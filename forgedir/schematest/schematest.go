// Package schematest checks the files of real runs by their schemas. It is for tests.
//
// The program itself never reads a schema: it goes by its types, of which the schemas
// are made. So a test that ran the program calls [Check] in the end, and a type that
// writes something else than its schema says is found.
package schematest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pfl-forge/pfl-forge/config"
	"github.com/pfl-forge/pfl-forge/forgedir/person"
	"github.com/pfl-forge/pfl-forge/forgedir/schemas"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// patterns say where the files of each kind are, from the repository's root. Kinds are the
// names of schemas.
var patterns = map[string][]string{
	"intent":       {".forge/intents/*.yaml"},
	"task":         {".forge/work/*.yaml"},
	"review":       {".forge/reviews/*.yaml"},
	"observations": {".forge/observations.yaml"},
	"history":      {".forge/knowledge/history/*.yaml"},
	"state":        {".forge/state.yaml"},
	"problems":     {".forge/problems.json"},
	"draft":        {".forge/intent-drafts/imported/*.md"},
	"pfl-forge":    {"pfl-forge.yaml"},

	"goal-history":   {".e8/history.jsonl"},
	"goal-knowledge": {".e8/knowledge.jsonl"},
}

// maxBytes bounds the files that are read, in bytes; those of tests are smaller. The
// program has bounds of its own, which are not checked here.
const maxBytes = 64 << 20

// Check fails the test for every file of a repository's .forge and .e8 folders, and
// its pfl-forge.yaml, that the program takes and that does not fit its schema. It returns
// how many files there were of each kind, so that a test can tell that it checked
// something: a kind without files is missing.
func Check(t testing.TB, root string) map[string]int {
	t.Helper()
	kinds := Compile(t)
	counts := map[string]int{}
	wrong := refused(t, root)
	for kind, globs := range patterns {
		for _, glob := range globs {
			names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(glob)))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				rel, err := filepath.Rel(root, name)
				if err != nil || wrong[filepath.ToSlash(rel)] {
					continue
				}
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := config.Parse(data); kind == "pfl-forge" && err != nil {
					continue
				}
				counts[kind]++
				if err := validateParts(kinds[kind], name, data); err != nil {
					t.Errorf("%s is no %s: %v", name, kind, err)
				}
			}
		}
	}
	return counts
}

// refused returns the files that a person wrote and that are not taken, by their paths
// from the repository's root: those of problems.json, if there is one. Files that the
// program refuses need not fit their schemas.
func refused(t testing.TB, root string) map[string]bool {
	t.Helper()
	paths := map[string]bool{}
	text, err := os.ReadFile(filepath.Join(root, ".forge", "problems.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return paths
	}
	var list []person.Problem
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		paths[p.Path] = true
	}
	return paths
}

// Compile returns the schemas by the kind of file, such as intent. Formats, such as that
// of a time, are checked, too, which JSON Schema leaves open.
func Compile(t testing.TB) map[string]*jsonschema.Schema {
	t.Helper()
	names, err := fs.Glob(schemas.Files, "*.json")
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	out := map[string]*jsonschema.Schema{}
	for _, name := range names {
		data, err := fs.ReadFile(schemas.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.AddResource(name, doc); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if out[strings.TrimSuffix(name, ".schema.json")], err = c.Compile(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

// CompileIn returns the schemas in a document of another kind, such as a description of an
// API, by their paths in it: each is a JSON pointer.
func CompileIn(t testing.TB, document []byte, paths ...string) map[string]*jsonschema.Schema {
	t.Helper()
	const name = "document.json"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]*jsonschema.Schema{}
	for _, path := range paths {
		if out[path], err = c.Compile(name + "#" + path); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return out
}

// Validate checks a file of YAML or JSON by a schema. The error names the places in the
// file that do not fit, as the library words it.
func Validate(schema *jsonschema.Schema, data []byte) error {
	v, err := strictyaml.Value(data, strictyaml.Options{MaxBytes: maxBytes})
	if err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		return err
	}
	return schema.Validate(v)
}

// validateParts checks each part of a file that has a schema, and shows the first bad one.
func validateParts(schema *jsonschema.Schema, name string, data []byte) error {
	for _, part := range parts(name, data) {
		if err := Validate(schema, part); err != nil {
			return fmt.Errorf("%w\n%s", err, part)
		}
	}
	return nil
}

// parts returns the parts of a file that have a schema: the front matter of a draft,
// each line of lines, and the whole of others. Drafts without front matter have an empty
// one.
func parts(name string, data []byte) [][]byte {
	switch filepath.Ext(name) {
	case ".md":
		return [][]byte{frontMatter(data)}
	case ".jsonl":
		return slices.Collect(bytes.Lines(data))
	}
	return [][]byte{data}
}

// frontMatter returns the YAML of a draft, an empty mapping if it has none. It knows less
// than package drafts, on purpose: it is given drafts that were imported.
func frontMatter(data []byte) []byte {
	text := strings.NewReplacer("\ufeff", "", "\r\n", "\n", "\r", "\n").Replace(string(data))
	first, rest, _ := strings.Cut(text, "\n")
	front := ""
	if strings.TrimRight(first, " \t") == "---" {
		front, _, _ = strings.Cut("\n"+rest, "\n---")
	}
	if strings.TrimSpace(front) == "" {
		front = "{}"
	}
	return []byte(front + "\n")
}
