package records

import (
	"fmt"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Targets returns every file that an intent has of its own. The first one is the one
// that people edit.
func Targets(v *forge.View) ([]projection.Target, error) {
	var list []projection.Target
	add := func(rel string, doc any) error {
		content, err := strictyaml.Encode(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", layout.Shown(rel), err)
		}
		list = append(list, projection.Target{Path: rel, Content: content})
		return nil
	}
	if err := add(layout.IntentFile(v.Intent.ID), document.IntentOf(v)); err != nil {
		return nil, err
	}
	list[0].Revision, list[0].Edits = int64(v.Seq), true
	for i := range v.Tasks {
		if err := add(layout.TaskFile(v.Tasks[i].ID), taskDocOf(&v.Tasks[i])); err != nil {
			return nil, err
		}
	}
	type head struct {
		task    forge.TaskID
		attempt int
	}
	seen := map[head]int{}
	for i := range v.Reviews {
		r := &v.Reviews[i]
		of := head{r.TaskID, r.Attempt}
		seen[of]++ // the same head again, on a base that moved
		if err := add(layout.ReviewFile(r.TaskID, r.Attempt, seen[of]), reviewDocOf(r)); err != nil {
			return nil, err
		}
	}
	if v.Audit != nil {
		list = append(list, projection.Target{Path: layout.ReportFile(v.Intent.ID), Content: Report(&v.Intent, v.Audit)})
	}
	for i := range v.History {
		h := &v.History[i]
		if err := add(layout.HistoryFile(v.Intent.ID, h.Run), historyDocOf(h)); err != nil {
			return nil, err
		}
	}
	return list, nil
}
