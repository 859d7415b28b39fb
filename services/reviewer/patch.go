package reviewer

import (
	"path"
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// filePatch is a patch of one file.
type filePatch struct {
	path           string
	text           string
	added, deleted int // lines
	binary         bool
	// generated is decided by the name, or by the first lines.
	generated bool
}

// split returns the files of a patch, in its order.
func split(patch string) []filePatch {
	const begin = "diff --git "
	var list []filePatch
	for len(patch) > 0 {
		end := len(patch)
		if i := strings.Index(patch[1:], "\n"+begin); i >= 0 {
			end = i + 2
		}
		if strings.HasPrefix(patch, begin) {
			list = append(list, parse(patch[:end]))
		}
		patch = patch[end:]
	}
	return list
}

// parse parses the patch of one file. Lines of the file begin with a space, + or -,
// so none of them looks like a header.
func parse(text string) filePatch {
	f := filePatch{text: text}
	inside := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "@@"):
			inside = true
		case !inside:
			f.header(strings.TrimSuffix(line, "\n"))
		case line[0] == '+':
			f.added++
		case line[0] == '-':
			f.deleted++
		}
	}
	f.generated = isGenerated(f.path) || marked(text)
	return f
}

// header reads a line of the header.
func (f *filePatch) header(line string) {
	kind, rest, _ := strings.Cut(line, " ")
	switch kind {
	case "diff":
		f.path = samePath(strings.TrimPrefix(rest, "--git "))
	case "---", "+++":
		if p := unquote(strings.TrimSuffix(rest, "\t")); p != "/dev/null" {
			f.path = p[min(len("a/"), len(p)):]
		}
	case "rename", "copy":
		if to, ok := strings.CutPrefix(rest, "to "); ok {
			f.path = unquote(to)
		}
	case "Binary", "GIT":
		f.binary = true
	}
}

// samePath returns P of "a/P b/P", quoted or not. Where the two differ, other lines
// of the header have the path.
func samePath(s string) string {
	half := len(s) / 2
	if len(s)%2 == 0 || s[half] != ' ' {
		return ""
	}
	b := unquote(s[half+1:])
	return b[min(len("b/"), len(b)):]
}

// unquote returns a path without git's quotes.
func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil && s[0] == '"' {
		return u
	}
	return s
}

// generatedNames are files that tools write, as path.Match knows them.
var generatedNames = []string{
	"*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.sum", "go.work.sum", "Package.resolved", "*.pb.go", "*.pb.cc", "*.pb.h",
	"*_pb2.py", "*_pb2_grpc.py", "*.g.dart", "*.designer.cs", "*_generated.*", "*.generated.*", "*.gen.*", "zz_generated*", "*.min.js", "*.min.css", "*.map",
	"*.snap", "*.svg",
}

// isGenerated reports whether a file's name says that a tool wrote it.
func isGenerated(name string) bool {
	for dir := range strings.SplitSeq(path.Dir(name), "/") {
		if dir == "vendor" || dir == "node_modules" || dir == "third_party" {
			return true
		}
	}
	for _, p := range generatedNames {
		if ok, _ := path.Match(p, path.Base(name)); ok {
			return true
		}
	}
	return false
}

// mark matches the usual marks of generated files in the first lines of a patch.
var mark = pattern.New(`(?m)^[ +].{0,20}(Code generated .{0,200}DO NOT EDIT|@generated)`)

// marked reports whether the first lines of a patch say that the file is generated.
func marked(text string) bool { return mark.MatchString(text[:min(len(text), 3000)]) }
