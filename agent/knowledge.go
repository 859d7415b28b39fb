package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// KnowledgeLines returns one line for each piece of knowledge, for prompts.
func KnowledgeLines(list []forge.Knowledge) string {
	var b strings.Builder
	for _, k := range list {
		kind := strings.Join(slices.DeleteFunc([]string{string(k.Type), k.Category}, func(s string) bool { return s == "" }), ", ")
		line := fmt.Sprintf("%s (%s; confidence %s): %s", k.ID, kind, k.Confidence, k.Content)
		if k.ExampleFile != "" {
			line += " See " + k.ExampleFile
		}
		fmt.Fprintf(&b, "- %s\n", term.Line(line))
	}
	return b.String()
}
