package imports

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// size sums a number of each file.
func size(of func(source) int) func([]folder) []figure {
	return func(folders []folder) []figure {
		var out []figure
		for _, folder := range folders {
			sum := 0
			for _, s := range folder.files {
				sum += of(s)
			}
			out = append(out, figure{subject: folder.path, value: sum})
		}
		return out
	}
}

// commands is the folder whose folders are the nouns of the command line.
const commands = "cmd/pfl-forge/internal/cli/"

// commandLines counts the lines of code of each package below commands.
func commandLines(folders []folder) []figure {
	figures := size(source.code)(folders)
	return slices.DeleteFunc(figures, func(f figure) bool { return !strings.HasPrefix(f.subject, commands) })
}

// fields counts the fields of each struct type. An embedded one counts as one.
func fields(folders []folder) []figure {
	var out []figure
	for _, folder := range folders {
		for _, s := range folder.files {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					if st, ok := spec.Type.(*ast.StructType); ok {
						out = append(out, figure{subject: folder.typeName(spec.Name.Name), value: st.Fields.NumFields()})
					}
				}
				return true
			})
		}
	}
	return out
}

// methods counts the methods of each type, and those that an interface lists.
// One that stands in files for several systems counts once.
func methods(folders []folder) []figure {
	var out []figure
	for _, folder := range folders {
		byType := map[string]map[string]bool{}
		add := func(typ, method string) {
			if byType[typ] == nil {
				byType[typ] = map[string]bool{}
			}
			byType[typ][method] = true
		}
		for _, s := range folder.files {
			ast.Inspect(s.tree, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Recv != nil {
						add(receiver(n), n.Name.Name)
					}
				case *ast.TypeSpec:
					if it, ok := n.Type.(*ast.InterfaceType); ok {
						for _, m := range it.Methods.List {
							for _, name := range m.Names {
								add(n.Name.Name, name.Name)
							}
						}
					}
				}
				return true
			})
		}
		for _, typ := range slices.Sorted(maps.Keys(byType)) {
			out = append(out, figure{subject: folder.typeName(typ), value: len(byType[typ])})
		}
	}
	return out
}

// receiver returns the name of the type that a method is of.
func receiver(f *ast.FuncDecl) string {
	expr := f.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
