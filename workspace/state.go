package workspace

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// stateDoc is an entry of state.yaml.
type stateDoc struct {
	ID        string    `yaml:"id"`
	Title     string    `yaml:"title"`
	Type      string    `yaml:"type,omitempty"`
	Source    string    `yaml:"source"`
	Risk      string    `yaml:"risk,omitempty"`
	Status    string    `yaml:"status"`
	Waiting   string    `yaml:"waiting,omitempty"`
	Reason    string    `yaml:"reason,omitempty"`
	Activity  string    `yaml:"activity,omitempty"`
	Priority  int       `yaml:"priority,omitempty"`
	Run       int       `yaml:"run,omitempty"`
	Tasks     []taskRow `yaml:"tasks"`
	Usage     usageDoc  `yaml:",inline"`
	CreatedAt time.Time `yaml:"created_at"`
	UpdatedAt time.Time `yaml:"updated_at"`
}

type taskRow struct {
	ID      string `yaml:"id"`
	Title   string `yaml:"title"`
	Status  string `yaml:"status"`
	Step    string `yaml:"step,omitempty"`
	Attempt int    `yaml:"attempt,omitempty"`
	Detail  string `yaml:"detail,omitempty"`
}

func stateDocOf(s *forge.Summary) stateDoc {
	d := stateDoc{
		ID: string(s.Key.Intent), Title: s.Title, Type: s.Type, Source: string(s.Source), Risk: string(s.Risk),
		Status: string(s.Status), Waiting: string(s.Waiting), Reason: s.Reason, Activity: s.Activity,
		Priority: s.Priority, Run: s.Run, Tasks: []taskRow{}, Usage: usageDocOf(s.Usage),
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		d.Tasks = append(d.Tasks, taskRow{string(t.ID), t.Title, string(t.Status), string(t.Step), t.Attempt, t.Detail})
	}
	return d
}

// overview remembers each entry of state.yaml with its encoding, because few
// of many change at a time.
type overview map[forge.IntentID]overviewEntry

type overviewEntry struct {
	summary forge.Summary
	text    []byte
}

// StateWritten reports whether state.yaml is as WriteState left it, as far as
// Edits saw.
func (w *Workspace) StateWritten() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled[stateFile] != (digest{})
}

// WriteState writes state.yaml: every intent and its tasks, sorted by id. A
// lane's summary is left out.
func (w *Workspace) WriteState(summaries []forge.Summary) ([]Problem, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	content, err := w.state(summaries)
	if err != nil {
		return nil, err
	}
	return w.write([]target{{rel: stateFile, content: content}})
}

func (w *Workspace) state(summaries []forge.Summary) ([]byte, error) {
	sorted := slices.DeleteFunc(slices.Clone(summaries), func(s forge.Summary) bool { return s.Key.IsLane() })
	slices.SortFunc(sorted, func(a, b forge.Summary) int { return cmp.Compare(a.Key.Intent, b.Key.Intent) })
	next := make(overview, len(sorted))
	var b bytes.Buffer
	b.WriteString("intents:")
	if len(sorted) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, s := range sorted {
		e, ok := w.overview[s.Key.Intent]
		if !ok || !reflect.DeepEqual(e.summary, s) {
			text, err := strictyaml.Encode([]stateDoc{stateDocOf(&s)})
			if err != nil {
				return nil, err
			}
			e = overviewEntry{s, indent(text)}
		}
		next[s.Key.Intent] = e
		b.Write(e.text)
	}
	w.overview = next
	return b.Bytes(), nil
}

// indent moves a block of YAML to the right. Blank lines of texts stay blank.
func indent(block []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(block) {
		if len(line) > 1 {
			b.WriteString("  ")
		}
		b.Write(line)
	}
	return b.Bytes()
}
