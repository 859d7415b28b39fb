package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/target"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// Table prints intents, a row for each: which it is, and what it does or waits
// for. Depths, if there are any, say how far each is below the intent that it was
// split off from, which a terminal shows by an indent. Of an intent with children
// their count stands for that of tasks. Piped ids have no indent, so that they
// can be given to other commands. run prints the intents that wait with it.
func Table(a *kit.App, all []forge.Summary, depths []int, wide bool) error {
	columns := render.Columns{Header: []string{"ID", "STATUS", "TASKS", "AGE", "TITLE", "NOW"}, Shrink: 5, Also: 4}
	if wide {
		columns.Header = append(columns.Header, "RISK", "TYPE", "SOURCE", "PARENT", "RUN", "TOKENS", "CACHED", "COST")
	}
	now := time.Now()
	for i := range all {
		s := &all[i]
		tasks := ""
		if s.TaskCount > 0 {
			tasks = fmt.Sprintf("%d/%d", s.TasksDone, s.TaskCount)
		}
		if len(s.Children) > 0 {
			tasks = childrenDone(s)
		}
		id := string(s.Key.Intent)
		if i < len(depths) && kit.Width(a.Out) > 0 {
			id = strings.Repeat("- ", depths[i]) + id
		}
		row := []string{id, string(s.Status), tasks, render.Age(now.Sub(s.CreatedAt)), s.Title, render.Doing(s)}
		if wide {
			row = append(row, string(s.Risk), s.Type, string(s.Source), string(s.Parent), fmt.Sprint(s.Run),
				render.Tokens(render.Fresh(&s.Usage)), render.Tokens(render.Cached(&s.Usage)), render.Cost(s.Usage.CostUSD))
		}
		columns.Add(row...)
	}
	return a.Table(&columns)
}

// withoutRun says of the intents that would go on with a run that they wait for
// it, if nothing runs here. This process owns the store only while no run does.
func withoutRun(t *target.Target, list []forge.Summary) {
	if !t.Owner {
		return
	}
	for i := range list {
		render.WithoutRun(&list[i])
	}
}

// childrenDone returns how many of an intent's children are done, such as "2/3".
func childrenDone(s *forge.Summary) string {
	done := 0
	for _, c := range s.Children {
		if c.Status == forge.StatusDone {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(s.Children))
}
