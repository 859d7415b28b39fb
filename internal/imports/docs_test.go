package imports

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// The vocabulary: fields of its structs need a comment each.
const vocabulary = "."

// undocumented counts the exported names of each folder that have no sentence of
// their own, and in the vocabulary the exported fields without a comment.
func undocumented(folders []folder) []figure {
	var out []figure
	for _, folder := range folders {
		f := figure{subject: folder.path}
		for _, s := range folder.files {
			miss := func(n ast.Node, name string) {
				f.value++
				f.places = append(f.places, s.at(n)+": "+name)
			}
			for _, decl := range s.tree.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					undocumentedFunc(d, miss)
				case *ast.GenDecl:
					for _, spec := range d.Specs {
						switch spec := spec.(type) {
						case *ast.TypeSpec:
							undocumentedType(d, spec, folder.path == vocabulary, miss)
						case *ast.ValueSpec:
							undocumentedValue(d, spec, miss)
						}
					}
				}
			}
		}
		out = append(out, f)
	}
	return out
}

// known lists methods whose contract everybody who reads Go has read elsewhere.
var known = []string{
	"Error", "Unwrap", "String", "Read", "Write", "ServeHTTP", "Len", "Less", "Swap",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML",
}

func undocumentedFunc(d *ast.FuncDecl, miss func(ast.Node, string)) {
	name := d.Name.Name
	if d.Recv != nil {
		typ := receiver(d)
		if !token.IsExported(typ) || slices.Contains(known, name) {
			return
		}
	}
	if token.IsExported(name) && !sentence(d.Doc, name) {
		miss(d, name)
	}
}

func undocumentedType(d *ast.GenDecl, spec *ast.TypeSpec, vocabulary bool, miss func(ast.Node, string)) {
	name := spec.Name.Name
	if !token.IsExported(name) {
		return
	}
	if !sentence(spec.Doc, name) && (d.Lparen.IsValid() || !sentence(d.Doc, name)) {
		miss(spec, name)
	}
	switch typ := spec.Type.(type) {
	case *ast.InterfaceType:
		for _, m := range typ.Methods.List {
			for _, n := range m.Names {
				if token.IsExported(n.Name) && !sentence(m.Doc, n.Name) {
					miss(n, name+"."+n.Name)
				}
			}
		}
	case *ast.StructType:
		for _, field := range typ.Fields.List {
			for _, n := range field.Names {
				if vocabulary && token.IsExported(n.Name) && field.Doc == nil && field.Comment == nil {
					miss(n, name+"."+n.Name)
				}
			}
		}
	}
}

// undocumentedValue looks at constants and variables. Those in brackets may share
// the comment of the whole.
func undocumentedValue(d *ast.GenDecl, spec *ast.ValueSpec, miss func(ast.Node, string)) {
	for _, n := range spec.Names {
		switch {
		case !token.IsExported(n.Name):
		case d.Lparen.IsValid() && (d.Doc != nil || spec.Doc != nil || spec.Comment != nil):
		case !d.Lparen.IsValid() && sentence(d.Doc, n.Name):
		default:
			miss(n, n.Name)
		}
	}
}

// sentence reports whether a comment begins with the name, article apart, and goes
// on for at least two words.
func sentence(doc *ast.CommentGroup, name string) bool {
	const least = 3
	words := strings.Fields(doc.Text())
	if len(words) > 0 && (words[0] == "A" || words[0] == "An" || words[0] == "The") {
		words = words[1:]
	}
	return len(words) >= least && strings.TrimSuffix(strings.TrimRight(words[0], ",:"), "'s") == name
}
