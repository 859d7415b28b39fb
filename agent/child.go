package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Bounds of the children of one request.
const (
	minChildren  = 2 // one part alone is the request again
	maxChildren  = 30
	maxChildName = 40 // bytes; it becomes a part of an id
)

// Child is a part of a request that becomes an intent of its own. Names are unique
// within an Analysis.
type Child struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Type      string   `json:"type,omitempty"`
	Risk      string   `json:"risk,omitempty"`       // low, med or high
	DependsOn []string `json:"depends_on,omitempty"` // names
}

// childPlans checks and converts the children that a request is to be divided into.
func childPlans(parts []Child) ([]forge.ChildPlan, error) {
	switch {
	case len(parts) == 0:
		return nil, nil
	case len(parts) < minChildren:
		return nil, invalid("children has one element, which is the request again; plan its tasks")
	case len(parts) > maxChildren:
		return nil, invalid("has %d children; at most %d are allowed: name larger parts, which are taken apart again", len(parts), maxChildren)
	}
	var out []forge.ChildPlan
	var nodes []node
	index := map[string]int{}
	for i, p := range parts {
		if _, err := forge.ParseIntentID(p.Name); err != nil || len(p.Name) > maxChildName {
			return nil, invalid("children[%d].name is %q; must be a-z, 0-9 and hyphens, beginning with none, at most %d", i, p.Name, maxChildName)
		}
		if _, twice := index[p.Name]; twice {
			return nil, invalid("two children are named %q", p.Name)
		}
		index[p.Name] = i
		in, err := parseIntent("children", i, p.Title, p.Body, p.Type, p.Risk)
		if err != nil {
			return nil, err
		}
		out = append(out, forge.ChildPlan{
			Name: p.Name, Title: in.Title, Body: in.Body, Type: in.Type, Risk: in.Risk, DependsOn: p.DependsOn,
		})
		nodes = append(nodes, node{p.Name, p.DependsOn})
	}
	return out, dependencies("child", nodes, index)
}

// typeShape matches the types that an analysis may give to intents.
var typeShape = pattern.New(`^[a-z][a-z0-9_-]{0,63}$`)

// parseIntent returns an intent without an id, within the bounds of forge.Intent. list
// and i locate it in the answer, for the error.
func parseIntent(list string, i int, title, body, kind, risk string) (forge.Intent, error) {
	in := forge.Intent{Settings: forge.Settings{Title: strings.TrimSpace(title), Body: strings.TrimSpace(body), Type: kind, Risk: forge.Risk(risk)}}
	switch {
	case strings.ContainsFunc(in.Title, unicode.IsControl):
		return in, invalid("%s[%d].title holds a control character; must be one line", list, i)
	case kind != "" && !typeShape.MatchString(kind):
		return in, invalid("%s[%d].type is %q; must be one lower-case word", list, i, kind)
	case risk != "" && in.Risk.Rank() == 0:
		return in, invalid("%s[%d].risk is %q; must be low, med or high", list, i, risk)
	}
	in.Title, in.Body = term.Sanitize(in.Title), term.Sanitize(in.Body)
	for _, text := range []struct {
		field, value, unit string
		length, most       int
	}{
		{"title", in.Title, "characters", utf8.RuneCountInString(in.Title), forge.MaxTitle},
		{"body", in.Body, "bytes", len(in.Body), forge.MaxBody},
	} {
		switch {
		case text.value == "":
			return in, invalid("%s[%d].%s is empty", list, i, text.field)
		case text.length > text.most:
			return in, invalid("%s[%d].%s is %d %s long; at most %d are allowed", list, i, text.field, text.length, text.unit, text.most)
		}
	}
	return in, nil
}
