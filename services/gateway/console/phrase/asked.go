package phrase

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// The names by which the program itself publishes what a person asks for on their own machine.
const (
	ofCommands = "cli"
	ofDrafts   = "draft"
)

// Way says in words by what way a person asked for an intent, to stand after
// their name; empty where a system asked, or pfl-forge itself.
func Way(d document.Detail) string {
	switch o := &d.Origin; {
	case d.Parent != "" || d.Source != forge.SourceHuman || o.System == "":
		return ""
	case o.System == ofCommands:
		return "at the command line"
	case o.System == ofDrafts:
		file := o.EventID[:max(strings.LastIndexByte(o.EventID, '@'), 0)] // what follows names its content
		return strings.TrimSuffix("with the file "+file, " ")
	default:
		return "through " + o.System
	}
}

// Asked says in a sentence who asked for an intent, and by what way. Names and
// ids in it are texts of others.
func Asked(d document.Detail) string {
	by := cmp.Or(d.Requester, "a person")
	var added []string
	for _, r := range d.Requesters {
		if r.Proven && r.Name != d.Requester {
			added = append(added, r.Name)
		}
	}
	since := ""
	if len(added) > 0 {
		since = " Words of " + strings.Join(added, ", ") + " were added since."
	}
	switch o := &d.Origin; {
	case d.Parent != "":
		return "Asked for by " + by + ", as a part of " + string(d.Parent) + ": the plan of that split it off."
	case d.Source == forge.SourceReflection || d.Source == forge.SourceSystemReflection:
		return "No person asked for exactly this: pfl-forge proposed it, from what it saw in work that was done here."
	case d.Source == forge.SourceSystem:
		text := "Asked for by the system " + o.System
		if o.Actor != "" {
			text += fmt.Sprintf(", for %q as it says", o.Actor)
		}
		if o.EventID != "" {
			text += fmt.Sprintf("; it calls this request %q", o.EventID)
		}
		return text + "." + since
	}
	return strings.TrimSuffix("Asked for by "+by+", "+Way(d), ", ") + "." + since
}

// Besides returns the parts of a request that its hash is of, without the text
// that a page shows by itself.
func Besides(d document.Detail) []document.Asked {
	return slices.DeleteFunc(slices.Clone(d.Work.Asked), func(a document.Asked) bool { return a.Name == "body" })
}
