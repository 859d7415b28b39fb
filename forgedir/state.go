package forgedir

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// stateFormat is the version of the format of state.yaml.
const stateFormat = 2

// stateHead is what state.yaml begins with.
func stateHead(paused bool) string {
	if paused {
		return fmt.Sprintf("format: %d\npaused: true\nintents:", stateFormat)
	}
	return fmt.Sprintf("format: %d\nintents:", stateFormat)
}

// stateDoc is state.yaml: every intent and its tasks at a glance.
type stateDoc struct {
	Format  int         `yaml:"format"`           // of this file
	Paused  bool        `yaml:"paused,omitempty"` // all of it, by a person
	Intents []intentRow `yaml:"intents"`          // sorted by id
}

// intentRow is an intent as lists show it.
type intentRow struct {
	ID                  string `schema:"intent"            yaml:"id"`
	Title               string `yaml:"title"`
	Type                string `schema:"type"              yaml:"type,omitempty"`
	Source              string `schema:"Source"            yaml:"source"`
	Risk                string `schema:"Risk"              yaml:"risk,omitempty"`
	Status              string `schema:"Status"            yaml:"status"`
	Waiting             string `schema:"Waiting"           yaml:"waiting,omitempty"` // what it waits for a person to do
	Reason              string `yaml:"reason,omitempty"`                             // why it waits or failed
	Activity            string `yaml:"activity,omitempty"`                           // what goes on
	document.Attributes `yaml:",inline"`
	Run                 int       `yaml:"run,omitempty"`                                 // from 1
	Parent              string    `schema:"intent"            yaml:"parent,omitempty"`   // the intent that it is a part of
	Children            []string  `schema:"intent"            yaml:"children,omitempty"` // its parts
	Requester           string    `yaml:"requester,omitempty"`                           // who wanted it
	Approver            string    `yaml:"approver,omitempty"`                            // who approved it
	Goal                *goalRow  `yaml:"goal,omitempty"`                                // how far it is, if it is one
	Tasks               []taskRow `yaml:"tasks"`                                         // all of them
	Usage               usageDoc  `yaml:",inline"`
	CreatedAt           time.Time `yaml:"created_at"`
	UpdatedAt           time.Time `yaml:"updated_at"` // when something was decided last
}

// goalRow is how far a goal is, as lists show it.
type goalRow struct {
	Iteration int    `yaml:"iteration"`                            // the newest, from 1, over all runs; 0: none yet
	Most      int    `yaml:"most"`                                 // iterations that this run may take
	Used      int    `yaml:"used"`                                 // of them
	Criteria  int    `yaml:"criteria"`                             // how many there are
	Met       int    `yaml:"met"`                                  // of them, as the last judgment says
	Status    string `schema:"LoopStatus" yaml:"status,omitempty"` // how it ended
}

func goalRowOf(g *forge.GoalSummary) *goalRow {
	if g == nil {
		return nil
	}
	return &goalRow{g.Iteration, g.Most, g.Used, g.Criteria, g.Met, string(g.Status)}
}

// taskRow is a task as lists show it.
type taskRow struct {
	ID       string       `schema:"task"             yaml:"id"`
	Title    string       `yaml:"title"`
	Status   string       `schema:"TaskStatus"       yaml:"status"`
	Step     string       `schema:"Step"             yaml:"step,omitempty"` // under way
	Attempt  int          `yaml:"attempt,omitempty"`                        // the implementation, from 1
	Detail   string       `yaml:"detail,omitempty"`                         // why it failed or waits
	Paused   bool         `yaml:"paused,omitempty"`                         // by a person
	Overlaps []overlapDoc `yaml:"overlaps,omitempty"`                       // tasks under way that it does not merge with
}

// overlapDoc is a task that another one does not merge with.
type overlapDoc struct {
	TaskID string   `schema:"task" yaml:"task_id"`
	Files  []string `yaml:"files"` // in conflict
}

func intentRowOf(s *forge.Summary, tasks []taskRow) intentRow {
	d := intentRow{
		ID: string(s.Key.Intent), Title: s.Title, Type: s.Type, Source: string(s.Source), Risk: string(s.Risk),
		Status: string(s.Status), Waiting: string(s.Waiting), Reason: s.Reason, Activity: s.Activity,
		Attributes: document.Attributes(s.Attributes), Run: s.Run, Parent: string(s.Parent), Requester: s.Requester, Approver: s.Approver,
		Goal: goalRowOf(s.Goal), Tasks: []taskRow{}, Usage: usageDocOf(s.Usage),
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	for _, child := range s.Children {
		d.Children = append(d.Children, string(child.ID))
	}
	rows := map[string]taskRow{}
	for _, t := range tasks {
		rows[t.ID] = t
	}
	for i := range s.Tasks { // knows better than the files
		t := taskRowOf(&s.Tasks[i])
		rows[t.ID] = t
	}
	for _, t := range rows {
		d.Tasks = append(d.Tasks, t)
	}
	slices.SortFunc(d.Tasks, func(a, b taskRow) int { return cmp.Or(len(a.ID)-len(b.ID), cmp.Compare(a.ID, b.ID)) })
	return d
}

func taskRowOf(t *forge.TaskSummary) taskRow {
	row := taskRow{
		ID: string(t.ID), Title: t.Title, Status: string(t.Status), Step: string(t.Step),
		Attempt: t.Attempt, Detail: t.Detail, Paused: t.Paused,
	}
	for _, o := range t.Overlaps {
		row.Overlaps = append(row.Overlaps, overlapDoc{string(o.TaskID), o.Files})
	}
	return row
}

// overview remembers each entry of state.yaml with its encoding, because few
// of many change at a time.
type overview map[forge.IntentID]overviewEntry

type overviewEntry struct {
	updated string
	summary *forge.Summary // nil: not known, since the last run wrote it
	tasks   []taskRow
	text    []byte
}

// shows reports whether the entry is of this summary and these tasks, which may be
// of a moment before.
func (e *overviewEntry) shows(s *forge.Summary, tasks []taskRow, known bool) bool {
	if e.summary == nil {
		return !known && e.updated == stamp(s.UpdatedAt)
	}
	return reflect.DeepEqual(e.summary, s) && slices.EqualFunc(e.tasks, tasks, func(a, b taskRow) bool { return reflect.DeepEqual(a, b) })
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// StateWritten reports whether state.yaml is as WriteState left it, as far as
// Edits saw.
func (w *Workspace) StateWritten() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled[stateFile] != (digest{})
}

// WriteState writes state.yaml: every intent and all its tasks, sorted by id,
// after the files of the intents were written. Of a project's summary only whether
// the project is paused counts.
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
	paused := false
	sorted := slices.DeleteFunc(slices.Clone(summaries), func(s forge.Summary) bool {
		paused = paused || s.Key.IsProject() && s.Waiting == forge.WaitingPaused
		return s.Key.IsProject()
	})
	slices.SortFunc(sorted, func(a, b forge.Summary) int { return cmp.Compare(a.Key.Intent, b.Key.Intent) })
	if w.overview == nil {
		w.overview = w.lastOverview()
	}
	next := make(overview, len(sorted))
	var b bytes.Buffer
	b.WriteString(stateHead(paused))
	if len(sorted) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, s := range sorted {
		e, ok := w.overview[s.Key.Intent]
		tasks, known := w.tasks[s.Key.Intent]
		if !ok || !e.shows(&s, tasks, known) {
			tasks = w.taskRows(s.Key.Intent)
			text, err := strictyaml.Encode([]intentRow{intentRowOf(&s, tasks)})
			if err != nil {
				return nil, err
			}
			e = overviewEntry{summary: &s, tasks: tasks, text: indent(text)}
		}
		next[s.Key.Intent] = e
		b.Write(e.text)
	}
	w.overview = next
	return b.Bytes(), nil
}

// lastOverview reads the entries that the last run wrote.
func (w *Workspace) lastOverview() overview {
	out := overview{}
	data, _, err := w.read(stateFile, maxNotesBytes)
	head, text, ok := strings.Cut(string(data), "\nintents:\n")
	head += "\nintents:"
	known := ok && (head == stateHead(false) || head == stateHead(true))
	if err != nil || !known || !w.index.ours(stateFile, digestOf(data)) {
		return out
	}
	const mark = "  - id: "
	for _, entry := range strings.Split("\n"+text, "\n"+mark)[1:] {
		entry = strings.TrimSuffix(entry, "\n")
		id, _, _ := strings.Cut(entry, "\n")
		_, updated, _ := strings.Cut(entry, "\n    updated_at: ")
		out[forge.IntentID(strings.Trim(id, `"`))] = overviewEntry{updated: updated, text: []byte(mark + entry + "\n")}
	}
	return out
}

// taskRows returns the tasks of an intent as its files show them.
func (w *Workspace) taskRows(id forge.IntentID) []taskRow {
	if rows, ok := w.tasks[id]; ok {
		return rows
	}
	var rows []taskRow
	for rel := range w.index.owned[id] {
		var d taskDoc
		data, _, err := w.read(rel, maxNotesBytes)
		if path.Dir(rel) != workDir || err != nil || !w.index.ours(rel, digestOf(data)) {
			continue
		}
		if _, err := strictyaml.Decode(data, &d, strictyaml.Options{MaxBytes: maxNotesBytes}); err == nil {
			rows = append(rows, taskRow{ID: d.ID, Title: d.Title, Status: d.Status})
		}
	}
	w.tasks[id] = rows
	return rows
}

// noteTasks remembers the tasks of an intent for state.yaml.
func (w *Workspace) noteTasks(v *forge.View) {
	rows := make([]taskRow, 0, len(v.Tasks))
	for i := range v.Tasks {
		t := &v.Tasks[i]
		rows = append(rows, taskRow{ID: string(t.ID), Title: t.Title, Status: string(t.Status)})
	}
	w.tasks[v.Intent.ID] = rows
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
