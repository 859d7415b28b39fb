package forgedir

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// fileFields are the fields of an intent that have another name in files.
var fileFields = map[string]string{
	"goal.history_context": "goal.history_context_size",
	"goal.tools":           "goal.allowed_tools",
	"goal.system_prompt":   "goal.append_system_prompt",
	"goal.judge_prompt":    "goal.judgment_prompt",
	"goal.history_file":    "goal.history",
	"goal.knowledge_file":  "goal.knowledge",
	"goal.log_dir":         "goal.raw_log_dir",
}

// fileField returns the name in files of an intent's field, or of an entry of one.
func fileField(field string) string {
	list, index, entry := strings.Cut(field, "[")
	name, ok := fileFields[list]
	switch {
	case !ok:
		return field
	case entry:
		return name + "[" + index
	}
	return name
}

// goal finds what is written and says nothing; bounds and paths are the intent's to
// check.
func (c *frontCheck) goal() {
	g := c.front.Goal
	if g == nil {
		return
	}
	for _, f := range []struct {
		field       string
		value, most int
	}{
		{"goal.max_iterations", g.MaxIterations, forge.MaxIterations},
		{"goal.history_context_size", g.HistoryContext, forge.MaxHistoryContext},
	} {
		if c.pos.Has(f.field) && f.value == 0 {
			c.refuse(f.field, fmt.Sprintf("is 0; it can be 1 to %d", f.most), "")
		}
	}
	for _, f := range []struct{ field, value string }{
		{"goal.model", g.Model},
		{"goal.history", g.History},
		{"goal.knowledge", g.Knowledge},
		{"goal.raw_log_dir", g.RawLogDir},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, document.CheckLine(f.value), "")
		}
	}
	for _, f := range []struct{ field, value string }{
		{"goal.append_system_prompt", g.SystemPrompt}, {"goal.judgment_prompt", g.JudgePrompt},
	} {
		if c.pos.Has(f.field) {
			c.refuse(f.field, document.CheckText(f.value), "")
		}
	}
}
