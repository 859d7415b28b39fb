package document

import (
	"errors"
	"fmt"

	"github.com/pfl-forge/pfl-forge"
)

// DiffRequest says of which attempt the change is wanted, and which page of it. The zero values
// of all but the intent ask for the first page of the newest change.
type DiffRequest struct {
	// Intent is the one whose change it is.
	Intent forge.IntentID `json:"intent"`
	// Task may be left out of an intent that has one only.
	Task forge.TaskID `json:"task,omitempty"`
	// Step and Attempt name the attempt. Without a number it is the newest that changed
	// something.
	Step    forge.Step `json:"step,omitempty"`
	Attempt int        `json:"attempt,omitempty"`
	// Since is the number of a former attempt of the same task and step: asked for is then what
	// the two changes do not have in common. 0 asks for the change itself.
	Since int `json:"since,omitempty"`
	// Whitespace is off to leave out lines that the change alters in white
	// space alone; empty shows them.
	Whitespace string `json:"whitespace,omitempty"`
	// Stat leaves out the lines.
	Stat bool `json:"stat,omitempty"`
	// After is next of the page before.
	After string `json:"after,omitempty"`
}

// Diff answers a request for the change of an attempt, a page of it. Everything in it that
// comes from files is text that an agent or a stranger wrote: whoever shows it makes it
// harmless first.
type Diff struct {
	// Intent, Task, Step and Attempt name the attempt that was found.
	Intent  forge.IntentID `json:"intent"  yaml:"intent"`
	Task    forge.TaskID   `json:"task"    yaml:"task"`
	Step    forge.Step     `json:"step"    yaml:"step"`
	Attempt int            `json:"attempt" yaml:"attempt"`
	// Base and Head are the commits between which the change is, and PatchID identifies it, all
	// of them as the journal has them.
	Base    string `json:"base"     yaml:"base"`
	Head    string `json:"head"     yaml:"head"`
	PatchID string `json:"patch_id" yaml:"patch_id"`
	// Proven says that what is shown is the whole change with this id, but for
	// Hidden lines. Without it, Note says why not.
	Proven bool   `json:"proven"         yaml:"proven"`
	Note   string `json:"note,omitempty" yaml:"note,omitempty"`
	// FileCount, Added and Deleted count all of the change, whatever the page has; LeftOut
	// counts files that are not known by name.
	FileCount int `json:"file_count"         yaml:"file_count"`
	Added     int `json:"added"              yaml:"added"`
	Deleted   int `json:"deleted"            yaml:"deleted"`
	LeftOut   int `json:"left_out,omitempty" yaml:"left_out,omitempty"`
	// Hidden counts the lines of all of the change that are left out because it
	// alters white space alone in them.
	Hidden int `json:"hidden,omitempty" yaml:"hidden,omitempty"`
	// Since is set where the change is compared with a former one. Then Files are those in
	// which they differ, and Added and Deleted count the lines that one of them has alone.
	Since *DiffSince `json:"since,omitempty" yaml:"since,omitempty"`
	// Files are those of the page. Next is the value of after that continues; empty at the end.
	Files []DiffFile `json:"files"          yaml:"files"`
	Next  string     `json:"next,omitempty" yaml:"next,omitempty"`
}

// DiffSince says which former change another one is compared with.
type DiffSince struct {
	// Attempt is of the same task and step.
	Attempt int `json:"attempt" yaml:"attempt"`
	// Base, Head and PatchID are those of the former change, as the journal has them.
	Base    string `json:"base"     yaml:"base"`
	Head    string `json:"head"     yaml:"head"`
	PatchID string `json:"patch_id" yaml:"patch_id"`
	// Rebased says that the two are on other bases. Then lines beside a change that are others
	// count, too: the base may have changed there, or the change may have moved. A line that moved
	// to where the lines beside it and the section are the same is not told.
	Rebased bool `json:"rebased" yaml:"rebased"`
	// Same counts the files that are in both changes, and the same in both.
	Same int `json:"same" yaml:"same"`
}

// DiffWas tells how the former change handles a file, where that is not the same.
type DiffWas struct {
	Status  string `json:"status"             yaml:"status"`
	OldMode string `json:"old_mode,omitempty" yaml:"old_mode,omitempty"`
	NewMode string `json:"new_mode,omitempty" yaml:"new_mode,omitempty"`
	Binary  bool   `json:"binary,omitempty"   yaml:"binary,omitempty"`
}

// DiffFile is a file of a change.
type DiffFile struct {
	// Path is where the file is after the change, or was before it if it was deleted.
	Path string `json:"path" yaml:"path"`
	// OldPath is where a renamed file was.
	OldPath string `json:"old_path,omitempty" yaml:"old_path,omitempty"`
	// Status is added, modified, deleted, renamed or mode, for another mode with the same
	// content.
	Status string `json:"status" yaml:"status"`
	// OldMode and NewMode are git's, such as 100755; empty where git does not print them.
	OldMode string `json:"old_mode,omitempty" yaml:"old_mode,omitempty"`
	NewMode string `json:"new_mode,omitempty" yaml:"new_mode,omitempty"`
	// Binary says that there are no lines to show.
	Binary bool `json:"binary,omitempty" yaml:"binary,omitempty"`
	// Planned says whether the task's plan names the file. It is left out where the plan names
	// none, as that of a recipe: then it says nothing about any file.
	Planned *bool `json:"planned,omitempty" yaml:"planned,omitempty"`
	// Added and Deleted count the lines of all of the file, whatever the page
	// has; of these Hidden are left out.
	Added   int `json:"added"            yaml:"added"`
	Deleted int `json:"deleted"          yaml:"deleted"`
	Hidden  int `json:"hidden,omitempty" yaml:"hidden,omitempty"`
	// Since says, where changes are compared, which of them has the file: added is the newer
	// one alone, dropped the former one alone, changed both. It is unknown where the lines of
	// one are not stored. Was is set if more than lines is different.
	Since string   `json:"since,omitempty" yaml:"since,omitempty"`
	Was   *DiffWas `json:"was,omitempty"   yaml:"was,omitempty"`
	// Cut says why there are no lines; From that the page goes on in the file after so many.
	Cut   string     `json:"cut,omitempty"   yaml:"cut,omitempty"`
	From  int        `json:"from,omitempty"  yaml:"from,omitempty"`
	Hunks []DiffHunk `json:"hunks,omitempty" yaml:"hunks,omitempty"`
}

// DiffHunk is a run of lines of a file, or the part of it that a page has.
type DiffHunk struct {
	// OldStart and OldLines say which lines of the file before the change it is about, NewStart
	// and NewLines which after it. They are those of the whole run also where the page has a
	// part.
	OldStart int `json:"old_start" yaml:"old_start"`
	OldLines int `json:"old_lines" yaml:"old_lines"`
	NewStart int `json:"new_start" yaml:"new_start"`
	NewLines int `json:"new_lines" yaml:"new_lines"`
	// Section has the head of the function, or the like, that git finds before the lines.
	Section string `json:"section,omitempty" yaml:"section,omitempty"`
	// Lines are those of the page, in their order.
	Lines []DiffLine `json:"lines" yaml:"lines"`
}

// DiffLine is a line of a hunk.
type DiffLine struct {
	// Op is " " for a line that stays, "+" for one that is added, "-" for one that is deleted.
	Op string `json:"op" yaml:"op"`
	// Since says, where changes are compared, which of them has the line: added is the newer
	// one alone, dropped the former one alone; empty for both, and for lines around a change on
	// the same base.
	Since string `json:"since,omitempty" yaml:"since,omitempty"`
	// Old and New are its numbers on either side; 0 where it is not.
	Old int `json:"old,omitempty" yaml:"old,omitempty"`
	New int `json:"new,omitempty" yaml:"new,omitempty"`
	// Text is the line without its end, and Size its length in bytes if it is too long to be
	// shown whole.
	Text string `json:"text"           yaml:"text"`
	Size int    `json:"size,omitempty" yaml:"size,omitempty"`
	// NoEnd says that the file ends here without a line end.
	NoEnd bool `json:"no_end,omitempty" yaml:"no_end,omitempty"`
}

const (
	// diffBytes bounds a page, as JSON, about; diffFiles bounds its files, diffText a line in
	// bytes.
	diffBytes, diffFiles, diffText = 256 << 10, 200, 2000
	// lineBytes and fileBytes bound the rest of a line and of a file, beside their texts.
	lineBytes, fileBytes = 60, 250
)

// WhitespaceOff is the one value of DiffRequest.Whitespace.
const WhitespaceOff = "off"

// Of returns the intent that it is about.
func (r *DiffRequest) Of() forge.IntentID { return r.Intent }

// Check returns every mistake in a request. Whether there is such an attempt, only the journal
// knows.
func (r *DiffRequest) Check() (errs []forge.FieldError) {
	note := func(field string, err error) {
		if err != nil {
			errs = append(errs, forge.FieldError{Field: field, Reason: err.Error()})
		}
	}
	_, err := forge.ParseIntentID(string(r.Intent))
	note("intent", err)
	if r.Task != "" {
		_, err = forge.ParseTaskID(string(r.Task))
		note("task", err)
	}
	switch r.Step {
	case "", forge.StepImplement, forge.StepExecute, forge.StepRebase:
	default:
		note("step", fmt.Errorf("is %.40q; it can be implement, execute or rebase", string(r.Step)))
	}
	if r.Attempt < 0 {
		note("attempt", errors.New("is below 0"))
	}
	if r.Since < 0 {
		note("since", errors.New("is below 0"))
	}
	switch {
	case r.Whitespace != "" && r.Whitespace != WhitespaceOff:
		note("whitespace", fmt.Errorf("is %.40q; it can be %s", r.Whitespace, WhitespaceOff))
	case r.Whitespace != "" && r.Since != 0:
		note("whitespace", errors.New("goes with no since: what is compared is every byte"))
	}
	if _, _, err := r.place(); err != nil {
		note("after", err)
	}
	return errs
}

// DiffAt returns the value of after for a page that begins with a file, by its place among all
// files of the change.
func DiffAt(file int) string { return fmt.Sprintf("%d.0", file) }

// place returns where a page begins: after how many files, and after how many lines of the next
// one.
func (r *DiffRequest) place() (file, line int, err error) {
	if r.After == "" {
		return 0, 0, nil
	}
	_, err = fmt.Sscanf(r.After, "%d.%d", &file, &line)
	if err != nil || file < 0 || line < 0 || fmt.Sprintf("%d.%d", file, line) != r.After {
		return 0, 0, fmt.Errorf("is %.40q, and no next of an answer", r.After)
	}
	return file, line, nil
}

// Page reduces a diff of all files to what was asked for, and bounds it: to 200 files, and to
// about 256 KiB as JSON. A file that is too large for one page goes on with the next; each page
// has one line at least, so that whoever follows Next comes to the end.
func (d *Diff) Page(r DiffRequest) {
	from, skip, _ := r.place()
	all := d.Files
	d.Files = []DiffFile{}
	room := diffBytes
	for i := min(from, len(all)); i < len(all); i++ {
		f := all[i]
		if room -= fileBytes + written(f.Path) + written(f.OldPath); len(d.Files) == diffFiles || room < 0 && len(d.Files) > 0 {
			d.Next = DiffAt(i)
			return
		}
		at := 0
		if i == from {
			at = skip
		}
		f.From = at
		if r.Stat {
			f.Hunks = nil
		}
		done := f.page(at, &room)
		d.Files = append(d.Files, f)
		if done >= 0 {
			d.Next = fmt.Sprintf("%d.%d", i, done)
			return
		}
	}
}

// page keeps the lines of a file after so many as there is room for. It returns how many lines
// come before the rest; -1 without one.
func (f *DiffFile) page(skip int, room *int) int {
	hunks, seen, shown := f.Hunks, 0, 0
	f.Hunks = nil
	for _, h := range hunks {
		if seen+len(h.Lines) <= skip {
			seen += len(h.Lines)
			continue
		}
		lines := h.Lines[max(skip-seen, 0):]
		seen = max(seen, skip)
		h.Lines = nil
		for _, l := range lines {
			if len(l.Text) > diffText {
				l.Text, l.Size = beginning(l.Text, diffText), len(l.Text)
			}
			if *room -= lineBytes + written(l.Text); *room < 0 && shown > 0 {
				if len(h.Lines) > 0 {
					f.Hunks = append(f.Hunks, h)
				}
				return seen
			}
			h.Lines = append(h.Lines, l)
			seen++
			shown++
		}
		f.Hunks = append(f.Hunks, h)
	}
	return -1
}

// written returns about how many bytes a text takes as JSON, where one byte may become six. It
// need not be exact: it keeps a page of nothing but such bytes from being six times as large as
// others.
func written(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c == '<', c == '>', c == '&', c == 0xe2: // the last one begins the separators of lines
			n += 5
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}
