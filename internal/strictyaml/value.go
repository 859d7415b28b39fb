package strictyaml

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// Value reads one YAML document of any shape as what JSON would hold: nil, bool, string,
// int64, float64, []any or map[string]any. What looks like a date is a string. It refuses
// what Decode refuses of every document, and takes numbers as yaml.v3 does. Every error is
// an [Errors].
func Value(data []byte, opts Options) (any, error) {
	pos := &Positions{opts: opts, at: map[string]position{}}
	root, err := parse(data, pos)
	if err != nil {
		return nil, Errors{err}
	}
	if root == nil {
		return nil, nil //nolint:nilnil // the document is null
	}
	d := decoder{pos: pos}
	v := d.plain(root, "", 0)
	if len(d.errs) > 0 {
		return nil, d.errs
	}
	return v, nil
}

// plain returns a node as what JSON would hold.
func (d *decoder) plain(n *yaml.Node, field string, depth int) any {
	if !d.allowed(n, field, depth) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		d.entries(n, field, func(key *yaml.Node, path string, val *yaml.Node) {
			out[key.Value] = d.plain(val, path, depth+1)
		})
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for i, el := range n.Content {
			out = append(out, d.plain(el, fmt.Sprintf("%s[%d]", field, i), depth+1))
		}
		return out
	default:
		return d.plainScalar(n, field)
	}
}

// plainScalar returns a single value as what JSON would hold. yaml.v3 has resolved its tag; a
// number that does not fit into 64 bits is an error.
func (d *decoder) plainScalar(n *yaml.Node, field string) any {
	var v any
	switch n.Tag {
	case nullTag:
		return nil
	case "!!bool":
		v = new(bool)
	case "!!int":
		v = new(int64)
	case "!!float":
		v = new(float64)
	default:
		return n.Value
	}
	if err := n.Decode(v); err != nil {
		d.fail(n, field, "%v", err)
	}
	switch v := v.(type) {
	case *bool:
		return *v
	case *int64:
		return *v
	default:
		return *v.(*float64)
	}
}
