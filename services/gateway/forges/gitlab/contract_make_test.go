package gitlab_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// types are those of GitLab's official client for Go, by their name, and enums
// the words of those that have some.
type types struct {
	decl  map[string]ast.Expr
	enums map[string][]any
}

// readTypes reads the types of the client, whose source is in a folder.
func readTypes(t *testing.T, dir string) types {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no source, %v", dir, err)
	}
	all := types{map[string]ast.Expr{}, map[string][]any{}}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					all.decl[s.Name.Name] = s.Type
				case *ast.ValueSpec:
					name, ok := s.Type.(*ast.Ident)
					for _, v := range s.Values {
						if lit, is := v.(*ast.BasicLit); ok && is && lit.Kind == token.STRING {
							word, _ := strconv.Unquote(lit.Value)
							all.enums[name.Name] = append(all.enums[name.Name], word)
						}
					}
				}
			}
		}
	}
	return all
}

// fields calls each with the fields of a struct, those of embedded ones as
// well, by the name that a tag gives.
func (a *types) fields(e ast.Expr, tag string, each func(name string, e ast.Expr)) {
	s, ok := a.plain(e).(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 {
			a.fields(f.Type, tag, each)
			continue
		}
		if f.Tag == nil {
			continue
		}
		text, _ := strconv.Unquote(f.Tag.Value)
		if name, _, _ := strings.Cut(reflect.StructTag(text).Get(tag), ","); name != "" && name != "-" {
			each(name, f.Type)
		}
	}
}

// plain returns a type without pointers, and in place of a name what it stands for.
func (a *types) plain(e ast.Expr) ast.Expr {
	switch t := e.(type) {
	case *ast.StarExpr:
		return a.plain(t.X)
	case *ast.Ident:
		if d := a.decl[t.Name]; d != nil && t.Name != "ISOTime" {
			return a.plain(d)
		}
	}
	return e
}

// nameOf returns the name of a type without pointers; empty if it has none.
func nameOf(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return nameOf(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// schema returns a type as JSON Schema, with those fields that samples have. In
// its place, each may be null: the client does not tell.
func (a *types) schema(e ast.Expr, samples []any) map[string]any {
	kind := func(k string) map[string]any { return map[string]any{"type": []string{k, "null"}} }
	name := nameOf(e)
	switch name {
	case "LabelOptions": // in a body they are joined by commas
		return kind("string")
	case "ISOTime":
		return kind("string")
	}
	out := map[string]any{}
	switch p := a.plain(e).(type) {
	case *ast.Ident:
		out = kind(map[string]string{"string": "string", "bool": "boolean", "float64": "number", "int": "integer", "int64": "integer"}[p.Name])
		if words := a.enums[name]; len(words) > 0 && p.Name == "string" {
			out["enum"] = append(append([]any{}, words...), nil)
		}
	case *ast.SelectorExpr: // a time
		out = kind("string")
	case *ast.ArrayType:
		out = kind("array")
		var inner []any
		for _, s := range samples {
			list, _ := s.([]any)
			inner = append(inner, list...)
		}
		out["items"] = a.schema(p.Elt, inner)
	case *ast.StructType:
		out = kind("object")
		properties := map[string]any{}
		a.fields(e, "json", func(field string, of ast.Expr) {
			var inner []any
			for _, s := range samples {
				o, _ := s.(map[string]any)
				if v, there := o[field]; there {
					inner = append(inner, v)
				}
			}
			if len(inner) > 0 {
				properties[field] = a.schema(of, inner)
			}
		})
		out["properties"], out["additionalProperties"] = properties, false
	}
	return out
}

// makeContract writes the contract anew from the source of GitLab's client: PFL_FORGE_GITLAB_CLIENT
// names its folder. What the client does not have is not in it, so that TestContract fails for it.
func makeContract(t *testing.T, dir string, list []forgetest.Exchange, told map[string][]any) {
	t.Helper()
	all := readTypes(t, dir)
	out := contract{
		Source:  "types of gitlab.com/gitlab-org/api/client-go " + filepath.Base(dir) + ", licensed under Apache-2.0, in words of JSON Schema",
		Queries: map[string][]string{}, Schemas: map[string]any{},
	}
	samples := map[string][]any{}
	add := func(key string, text []byte) {
		var v any
		if json.Unmarshal(text, &v) == nil {
			samples[key] = append(samples[key], v)
		}
	}
	for i := range list {
		name, op := find(&list[i])
		if op == nil || list[i].Status >= 300 {
			continue
		}
		add(name+" in", list[i].In)
		add(name+" out", list[i].Out)
		out.Queries[name] = []string{"page", "per_page"}
		all.fields(ast.NewIdent(op.query), "url", func(field string, _ ast.Expr) { out.Queries[name] = append(out.Queries[name], field) })
	}
	for name, op := range operations {
		for key, of := range map[string]string{name + " in": op.in, name + " out": op.out} {
			var e ast.Expr = ast.NewIdent(strings.TrimPrefix(of, "[]"))
			if strings.HasPrefix(of, "[]") {
				e = &ast.ArrayType{Elt: e}
			}
			if s := samples[key]; len(s) > 0 && of != "" {
				out.Schemas[key] = all.schema(e, s)
			}
		}
	}
	for event, bodies := range told {
		out.Schemas[event] = all.schema(ast.NewIdent(events[event]), bodies)
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(contractFile, append(text, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}
