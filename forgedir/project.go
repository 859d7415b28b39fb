package forgedir

import (
	"fmt"
	"path"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// target is a file as it should be.
type target struct {
	rel      string
	content  []byte
	revision int64 // of an intent's file, to be added to its content
	edits    bool  // a person's edit of it is read
}

// targets returns every file that an intent has.
func targets(v *forge.View) ([]target, error) {
	var list []target
	add := func(rel string, doc any) error {
		content, err := strictyaml.Encode(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", shown(rel), err)
		}
		list = append(list, target{rel: rel, content: content})
		return nil
	}
	if err := add(intentFile(v.Intent.ID), document.IntentOf(v)); err != nil {
		return nil, err
	}
	list[0].revision, list[0].edits = int64(v.Seq), true
	for i := range v.Tasks {
		if err := add(path.Join(workDir, string(v.Tasks[i].ID)+".yaml"), taskDocOf(&v.Tasks[i])); err != nil {
			return nil, err
		}
	}
	seen := map[string]int{}
	for i := range v.Reviews {
		r := &v.Reviews[i]
		name := fmt.Sprintf("%s-%d", r.TaskID, r.Attempt)
		if seen[name]++; seen[name] > 1 { // the same head again, on a base that moved
			name = fmt.Sprintf("%s.%d", name, seen[name])
		}
		if err := add(path.Join(reviewsDir, name+".yaml"), reviewDocOf(r)); err != nil {
			return nil, err
		}
	}
	if v.Audit != nil {
		list = append(list, target{rel: reportFile(v.Intent.ID), content: Report(&v.Intent, v.Audit)})
	}
	for i := range v.History {
		h := &v.History[i]
		name := fmt.Sprintf("%s-%d.yaml", v.Intent.ID, h.Run)
		if err := add(path.Join(historyDir, name), historyDocOf(h)); err != nil {
			return nil, err
		}
	}
	return list, nil
}
