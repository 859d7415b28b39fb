package records

import (
	"bytes"
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
	"github.com/pfl-forge/pfl-forge/forgedir/projection"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

// Overview keeps state.yaml.
type Overview struct {
	Disk  *disk.Disk
	Files *projection.Files

	entries map[forge.IntentID]entry     // nil until first needed
	tasks   map[forge.IntentID][]taskRow // as the files of the tasks show them
}

// entry is an intent in state.yaml with its encoding.
type entry struct {
	updated string         // when the intent changed last
	summary *forge.Summary // nil: unknown, since the last run wrote the entry
	tasks   []taskRow
	text    []byte
}

// shows reports whether the entry is of this summary and these tasks, which may be of a
// moment before.
func (e *entry) shows(s *forge.Summary, tasks []taskRow, known bool) bool {
	if e.summary == nil {
		return !known && e.updated == s.UpdatedAt.UTC().Format(time.RFC3339Nano)
	}
	return reflect.DeepEqual(e.summary, s) && slices.EqualFunc(e.tasks, tasks, func(a, b taskRow) bool { return reflect.DeepEqual(a, b) })
}

// RememberTasks remembers the tasks of an intent, whose files are about to be written.
func (o *Overview) RememberTasks(v *forge.View) {
	rows := make([]taskRow, 0, len(v.Tasks))
	for i := range v.Tasks {
		t := &v.Tasks[i]
		rows = append(rows, taskRow{ID: string(t.ID), Title: t.Title, Status: string(t.Status)})
	}
	o.remember(v.Intent.ID, rows)
}

func (o *Overview) remember(id forge.IntentID, rows []taskRow) {
	if o.tasks == nil {
		o.tasks = map[forge.IntentID][]taskRow{}
	}
	o.tasks[id] = rows
}

// Target returns state.yaml with every intent and all its tasks, sorted by id. Of a
// project's summary only whether the project is paused counts.
func (o *Overview) Target(summaries []forge.Summary) (projection.Target, error) {
	paused := false
	sorted := slices.DeleteFunc(slices.Clone(summaries), func(s forge.Summary) bool {
		paused = paused || s.Key.IsProject() && s.Waiting == forge.WaitingPaused
		return s.Key.IsProject()
	})
	slices.SortFunc(sorted, func(a, b forge.Summary) int { return cmp.Compare(a.Key.Intent, b.Key.Intent) })
	if o.entries == nil {
		o.entries = o.load()
	}
	next := make(map[forge.IntentID]entry, len(sorted))
	var b bytes.Buffer
	b.WriteString(stateHead(paused))
	if len(sorted) == 0 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for _, s := range sorted {
		e, ok := o.entries[s.Key.Intent]
		tasks, known := o.tasks[s.Key.Intent]
		if !ok || !e.shows(&s, tasks, known) {
			tasks = o.taskRows(s.Key.Intent)
			text, err := strictyaml.Encode([]intentRow{intentRowOf(&s, tasks)})
			if err != nil {
				return projection.Target{}, err
			}
			e = entry{summary: &s, tasks: tasks, text: indent(text)}
		}
		next[s.Key.Intent] = e
		b.Write(e.text)
	}
	o.entries = next
	return projection.Target{Path: layout.State, Content: b.Bytes()}, nil
}

// load reads the entries that the last run wrote, without decoding them: they count
// for intents that did not change since. A file of another format has none.
func (o *Overview) load() map[forge.IntentID]entry {
	out := map[forge.IntentID]entry{}
	data, _, err := o.Disk.Read(layout.State, disk.MaxOther)
	head, text, ok := strings.Cut(string(data), "\nintents:\n")
	head += "\nintents:"
	known := ok && (head == stateHead(false) || head == stateHead(true))
	if err != nil || !known || !o.Files.Wrote(layout.State, disk.DigestOf(data)) {
		return out
	}
	const mark = "  - id: "
	for _, text := range strings.Split("\n"+text, "\n"+mark)[1:] {
		text = strings.TrimSuffix(text, "\n")
		id, _, _ := strings.Cut(text, "\n")
		_, updated, _ := strings.Cut(text, "\n    updated_at: ")
		out[forge.IntentID(strings.Trim(id, `"`))] = entry{updated: updated, text: []byte(mark + text + "\n")}
	}
	return out
}

// taskRows returns the tasks of an intent as its files show them: also those that are
// done, which a summary leaves out.
func (o *Overview) taskRows(id forge.IntentID) []taskRow {
	if rows, ok := o.tasks[id]; ok {
		return rows
	}
	var rows []taskRow
	for _, rel := range o.Files.Paths(id) {
		if path.Dir(rel) != layout.Work {
			continue
		}
		var d TaskDoc
		data, _, err := o.Disk.Read(rel, disk.MaxOther)
		if err != nil || !o.Files.Wrote(rel, disk.DigestOf(data)) {
			continue
		}
		if _, err := strictyaml.Decode(data, &d, strictyaml.Options{MaxBytes: disk.MaxOther}); err == nil {
			rows = append(rows, taskRow{ID: d.ID, Title: d.Title, Status: d.Status})
		}
	}
	o.remember(id, rows)
	return rows
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
