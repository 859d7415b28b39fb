package imports

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// folder holds the parsed sources of one package: its files without tests and
// without generated ones.
type folder struct {
	// path is relative to the repository's root, with slashes; the root is ".".
	path  string
	files []source
}

// source is one parsed file.
type source struct {
	path string
	text []byte
	set  *token.FileSet
	tree *ast.File
}

// parse returns the folders that these files are in, ordered by path.
func parse(t *testing.T, root fs.FS, files []file) []folder {
	t.Helper()
	byPath := map[string]*folder{}
	for _, f := range files {
		if f.test || f.generated {
			continue
		}
		text, err := fs.ReadFile(root, f.path)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, f.path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(f.path)
		if byPath[dir] == nil {
			byPath[dir] = &folder{path: dir}
		}
		byPath[dir].files = append(byPath[dir].files, source{f.path, text, set, tree})
	}
	var folders []folder
	for _, f := range byPath {
		folders = append(folders, *f)
	}
	slices.SortFunc(folders, func(a, b folder) int { return strings.Compare(a.path, b.path) })
	return folders
}

// typeName returns how figures and exceptions name a type of the package.
func (f folder) typeName(name string) string {
	if f.path == "." {
		return "forge." + name
	}
	return f.path + "." + name
}

// at returns a node's file and line.
func (s source) at(n ast.Node) string {
	p := s.set.Position(n.Pos())
	p.Column = 0
	return p.String()
}

// lines returns how many lines of a file hold code, and how many nothing but
// comment. Directives such as //go:embed and //nolint are neither.
func (s source) lines() (code, comment int) {
	const isComment, isCode = 1, 2
	set := token.NewFileSet()
	file := set.AddFile(s.path, -1, len(s.text))
	kinds := make([]int, file.Size()+2) // by line; a file has at most a line for each byte, and one
	var sc scanner.Scanner
	sc.Init(file, s.text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := sc.Scan()
		if tok == token.EOF {
			break
		}
		kind := isCode
		switch {
		case tok == token.COMMENT && directive.MatchString(lit):
			continue
		case tok == token.COMMENT:
			kind = isComment
		case tok == token.SEMICOLON && lit == "\n":
			continue
		}
		first := file.Line(pos)
		for line := first; line <= first+strings.Count(lit, "\n"); line++ {
			kinds[line] = max(kinds[line], kind)
		}
	}
	for _, kind := range kinds {
		switch kind {
		case isComment:
			comment++
		case isCode:
			code++
		}
	}
	return code, comment
}

// code returns how many lines of a file hold code.
func (s source) code() int {
	code, _ := s.lines()
	return code
}

var directive = regexp.MustCompile(`^//(go:|nolint)`)
