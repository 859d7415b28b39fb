package schemas_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// schemaMaker makes schemas of types: descriptions come from the comments of
// their fields, and the words that a text may be from the constants of its type.
type schemaMaker struct {
	comments map[string]map[string]string // by type and field; "": of the type
	words    map[string][]any             // by type
	byHand   bool
}

func newSchemaMaker(t *testing.T) *schemaMaker {
	t.Helper()
	g := &schemaMaker{comments: map[string]map[string]string{}, words: map[string][]any{}}
	for _, dir := range []string{"../records", "../goals", "../person", "../../document", "../../config", "../.."} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range f.Decls {
				if d, ok := decl.(*ast.GenDecl); ok {
					g.read(d)
				}
			}
		}
	}
	return g
}

func (g *schemaMaker) read(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if str, ok := s.Type.(*ast.StructType); ok {
				fields := map[string]string{}
				for _, f := range str.Fields.List {
					for _, name := range f.Names {
						fields[name.Name] = description(f, name.Name)
					}
				}
				if g.comments[s.Name.Name] == nil { // those of files before others of the name
					g.comments[s.Name.Name] = fields
				}
			}
		case *ast.ValueSpec:
			of, typed := s.Type.(*ast.Ident)
			for _, v := range s.Values {
				if lit, ok := v.(*ast.BasicLit); ok && typed && d.Tok == token.CONST && lit.Kind == token.STRING {
					word, _ := strconv.Unquote(lit.Value)
					g.words[of.Name] = append(g.words[of.Name], word)
				}
			}
		}
	}
}

// description is the comment behind a field, or else the one above it, with the key in
// place of the field's name.
func description(f *ast.Field, name string) string {
	if text := strings.TrimSpace(f.Comment.Text()); text != "" || f.Tag == nil {
		return text
	}
	tag, _ := strconv.Unquote(f.Tag.Value)
	key, _, _ := strings.Cut(reflect.StructTag(tag).Get("yaml"), ",")
	text := strings.Join(strings.Fields(f.Doc.Text()), " ")
	if rest, ok := strings.CutPrefix(text, name+" "); ok && key != "" {
		return key + " " + rest
	}
	return text
}

// scalars is what people write where text is read, and YAML takes for something else.
var scalars = []any{"string", "number", "boolean"}

// special are texts that are no constants.
var special = map[string]map[string]any{
	"intent": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}$"},
	"task":   {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,63}-[0-9]{3,}$"},
	"commit": {"type": "string", "pattern": "^[0-9a-f]{4,64}$"},
	"type":   {"type": "string", "pattern": "^([a-z][a-z0-9_-]{0,63})?$"},
	"scalar": {"type": scalars},
}

// below is a path below the folder of goals.
var below = map[string]any{"type": "string", "pattern": `^\.e8/[A-Za-z0-9._/-]+$`}

// narrower are fields that take less than their types say.
var narrower = map[string]map[string]any{
	"Policy.AnalyzeBeforeApproval": {"type": "string", "enum": []any{"recipes", "always", "never"}},
	"Policy.Network":               {"type": "string", "enum": []any{"full", "model"}},
	"Policy.CommandNetwork":        {"type": "string", "enum": []any{"full", "none"}},
	"Param.Default":                {"type": scalars},
	"GoalOptions.MaxIterations":    {"type": "integer", "minimum": 1, "maximum": forge.MaxIterations},
	"GoalOptions.HistoryContext":   {"type": "integer", "minimum": 1, "maximum": forge.MaxHistoryContext},
	"GoalOptions.History":          below, "GoalOptions.Knowledge": below, "GoalOptions.RawLogDir": below,
	"HistoryLine.Type":      {"type": "string", "enum": []any{"summary"}},
	"HistoryLine.Iteration": {"type": "integer", "minimum": 1},
	"Param.Name":            {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
}

// needed are the keys that a person has to write where they write anything.
var needed = map[string][]string{"Param": {"name"}, "RecipeTask": {"name", "run"}}

func (g *schemaMaker) file(title string, of reflect.Type, byHand bool) map[string]any {
	g.byHand = byHand
	schema := g.schema(of, "")
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = title
	return schema
}

// schema returns that of a type; what says which kind of text its leaves are.
func (g *schemaMaker) schema(of reflect.Type, what string) map[string]any {
	switch of {
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string", "pattern": `^(([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0)$`}
	}
	switch of.Kind() {
	case reflect.Pointer:
		return g.nullable(g.schema(of.Elem(), what))
	case reflect.Slice:
		return g.optional(map[string]any{"type": "array", "items": g.schema(of.Elem(), what)})
	case reflect.Map:
		return g.optional(map[string]any{"type": "object", "additionalProperties": g.schema(of.Elem(), what)})
	case reflect.Struct:
		schema := g.structure(of)
		if _, short := reflect.TypeAssert[strictyaml.Short](reflect.New(of)); short { // also one text
			schema["type"] = []any{"string", "object"}
			if g.byHand {
				schema["type"] = append(slices.Clone(scalars), "object")
			}
		}
		return g.optional(schema)
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return g.text(of, what)
	default:
		panic("no schema for " + of.String())
	}
}

func (g *schemaMaker) text(of reflect.Type, what string) map[string]any {
	if what == "" && of.PkgPath() != "" {
		what = of.Name()
	}
	if s, ok := special[what]; ok {
		return maps.Clone(s)
	}
	if words := g.words[what]; len(words) > 0 {
		return map[string]any{"type": "string", "enum": slices.Clone(words)}
	}
	if what != "" {
		panic("nobody knows what a " + what + " is")
	}
	if g.byHand {
		return map[string]any{"type": scalars}
	}
	return map[string]any{"type": "string"}
}

// optional takes null for nothing, as the program does, where people write.
func (g *schemaMaker) optional(schema map[string]any) map[string]any {
	if g.byHand {
		return g.nullable(schema)
	}
	return schema
}

func (g *schemaMaker) nullable(schema map[string]any) map[string]any {
	switch t := schema["type"].(type) {
	case string:
		schema["type"] = []any{t, "null"}
	case []any:
		if !slices.Contains(t, any("null")) {
			schema["type"] = append(slices.Clone(t), "null")
		}
	}
	return schema
}

func (g *schemaMaker) structure(of reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	g.fields(of, props, &required)
	if g.byHand {
		required = needed[of.Name()]
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": props}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func (g *schemaMaker) fields(of reflect.Type, props map[string]any, required *[]string) {
	for f := range of.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" {
			continue
		}
		if strings.Contains(opts, "inline") {
			g.fields(f.Type, props, required)
			continue
		}
		schema := g.field(of, f, strings.Contains(opts, "omitempty"))
		if text := g.comments[of.Name()][f.Name]; text != "" {
			schema["description"] = text
		}
		props[name] = schema
		if !strings.Contains(opts, "omitempty") || name == "revision" {
			*required = append(*required, name)
		}
	}
}

func (g *schemaMaker) field(of reflect.Type, f reflect.StructField, omitted bool) map[string]any {
	if s, ok := narrower[of.Name()+"."+f.Name]; ok {
		return g.optional(maps.Clone(s))
	}
	schema := g.schema(f.Type, f.Tag.Get("schema"))
	if words, ok := schema["enum"].([]any); ok && !omitted && !g.byHand && slices.Contains([]string{"Risk", "Complexity"}, f.Tag.Get("schema")) {
		schema["enum"] = append(words, "") // not judged
	}
	return schema
}
