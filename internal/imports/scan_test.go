package imports

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// file has the facts about one .go file that the rules refer to.
type file struct {
	// path is relative to the repository's root, with slashes.
	path    string
	pkg     string
	imports []string
	lines   int
	test    bool
	// generated is true for files that a tool wrote.
	generated bool
}

// scan reads every .go file below a root, whatever its build tags, except in folders
// that do not belong to the workspace: hidden ones, testdata, bin and tools.
func scan(root fs.FS) ([]file, error) {
	var files []file
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if outside(name) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := read(root, name)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

func outside(dir string) bool {
	base := path.Base(dir)
	return base == "testdata" || dir == "bin" || dir == "tools" || base != "." && strings.HasPrefix(base, ".")
}

func read(root fs.FS, name string) (file, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return file{}, err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), name, source, parser.ImportsOnly)
	if err != nil {
		return file{}, fmt.Errorf("read the imports: %w", err)
	}
	f := file{
		path:      name,
		pkg:       path.Join(module, path.Dir(name)),
		lines:     bytes.Count(source, []byte("\n")),
		test:      strings.HasSuffix(name, "_test.go"),
		generated: strings.HasSuffix(name, ".pb.go"),
	}
	for _, spec := range parsed.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, imp)
	}
	return f, nil
}
