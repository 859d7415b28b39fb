package document

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

// Child is an intent that was split off from another one, as that one's item has it.
type Child struct {
	ID     forge.IntentID `json:"id"     yaml:"id"`
	Title  string         `json:"title"  yaml:"title"`
	Status forge.Status   `json:"status" yaml:"status"` // empty: it has not begun

	// Body, Risk and DependsOn are from the parent's plan. PlanChildren sets
	// them; lists leave them empty.
	Body      string           `json:"body,omitempty"       yaml:"body,omitempty"`
	Risk      forge.Risk       `json:"risk,omitempty"       yaml:"risk,omitempty"`
	DependsOn []forge.IntentID `json:"depends_on,omitempty" yaml:"depends_on,omitempty"`
}

// PlanChildren adds to the children of an intent what its plan says of them.
func (i *Item) PlanChildren(v *forge.View) {
	for k := range i.Children {
		for n := range v.Children {
			if p := &v.Children[n]; p.ID == i.Children[k].ID {
				i.Children[k].Body, i.Children[k].Risk, i.Children[k].DependsOn = p.Body, p.Risk, p.DependsOn
			}
		}
	}
}

// JoinIDs returns ids with commas between them.
func JoinIDs(ids []forge.IntentID) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, ", ")
}

// PrintChild prints the status of a child intent, and the plan for it if it has not begun.
func PrintChild(a *kit.App, c *Child) {
	fmt.Fprintf(a.Out, "  %s  %s  %s\n", c.ID, cmp.Or(string(c.Status), "planned"), kit.Safe(c.Title))
	if c.Status != "" {
		return
	}
	PrintPlan(a, c.Body, "      ")
	if len(c.DependsOn) > 0 {
		fmt.Fprintf(a.Out, "      after %s\n", JoinIDs(c.DependsOn))
	}
	if c.Risk != "" {
		fmt.Fprintf(a.Out, "      risk %s\n", c.Risk)
	}
}

// PrintPlan prints the first lines of a plan, each after a prefix, and nothing if it is
// empty.
func PrintPlan(a *kit.App, plan, by string) {
	const most = 8
	plan = kit.Safe(plan)
	if plan == "" {
		return
	}
	lines := strings.Split(plan, "\n")
	if len(lines) > most {
		lines = append(lines[:most], "...")
	}
	fmt.Fprintln(a.Out, kit.Indent(strings.Join(lines, "\n"), by))
}
