package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"

	"github.com/pfl-forge/pfl-forge/config"
)

// texts returns a list's elements as strings.
func texts[T ~string](list []T) []string {
	var all []string
	for _, v := range list {
		all = append(all, string(v))
	}
	return all
}

// A constant that is missing in its list would be counted as something else.
func TestValuesAreComplete(t *testing.T) {
	lists := map[string]struct {
		file string
		list []string
	}{
		"FailureReason": {"failure.go", texts(reasons)},
		"PodLoss":       {"internal/telemetry/pods.go", texts(losses)},
		"PodRefusal":    {"internal/telemetry/pods.go", texts(refusals)},
		"Status":        {"intent.go", texts(statuses)},
		"Waiting":       {"record.go", texts(waitings)},
	}
	for typ, l := range lists {
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+l.file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		var declared []string
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); ok && name.Name == typ && len(spec.Values) == 1 {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				declared = append(declared, value)
			}
			return true
		})
		if len(declared) == 0 || !slices.Equal(declared, l.list) {
			t.Errorf("%s declares %q, and lists %q", typ, declared, l.list)
		}
	}
}

// TestEveryBackEndIsCounted checks that no back end of a project is counted as other.
func TestEveryBackEndIsCounted(t *testing.T) {
	if want := config.Agents(); !slices.Equal(agents, want) {
		t.Errorf("the agents of metrics are %q, want %q", agents, want)
	}
	for _, a := range agents {
		if providers[a] == "" && a != config.AgentRecipe {
			t.Errorf("%s has no provider", a)
		}
	}
}
