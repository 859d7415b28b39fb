package document

import (
	"errors"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// TranscriptRequest says of which attempt the transcript is wanted, and from where on. The zero
// values of all but the intent ask for the beginning of that of the newest attempt.
type TranscriptRequest struct {
	// Intent is the one whose attempt it is.
	Intent forge.IntentID `json:"intent"`
	// Task may be left out where only one has such attempts; steps of the whole intent have
	// none.
	Task forge.TaskID `json:"task,omitempty"`
	// Step and Attempt name the attempt. Without a number it is the newest, whether or not it
	// has ended.
	Step    forge.Step `json:"step,omitempty"`
	Attempt int        `json:"attempt,omitempty"`
	// After is next or later of an answer before.
	After string `json:"after,omitempty"`
}

// Transcript answers a request for what an agent or command did in an attempt, a page of it.
// Texts are without what would write to a terminal, and without what looks like a secret; they
// are still words of an agent or a stranger.
type Transcript struct {
	// Intent, Task, Step and Attempt name the attempt that was found. There is no task for a
	// step of the whole intent.
	Intent  forge.IntentID `json:"intent"         yaml:"intent"`
	Task    forge.TaskID   `json:"task,omitempty" yaml:"task,omitempty"`
	Step    forge.Step     `json:"step"           yaml:"step"`
	Attempt int            `json:"attempt"        yaml:"attempt"`
	// Running says that the attempt has not ended: more lines may come.
	Running bool `json:"running" yaml:"running"`
	// Note says what is missing, and why, if something is.
	Note string `json:"note,omitempty" yaml:"note,omitempty"`
	// Lines are those of the page, in their order.
	Lines []TranscriptLine `json:"lines" yaml:"lines"`
	// Next is the value of after that continues; empty if there are no more lines now. Then
	// Later is the value that will continue when there are, which is empty for an attempt that
	// has ended.
	Next  string `json:"next,omitempty"  yaml:"next,omitempty"`
	Later string `json:"later,omitempty" yaml:"later,omitempty"`

	// room is how many bytes the page may still take.
	room int
}

// TranscriptLine is a line of a transcript. Where it belongs is said by the transcript, and not
// by whoever wrote the line.
type TranscriptLine struct {
	At time.Time `json:"at" yaml:"at"`
	// Claim counts how often the attempt was given to a worker, and Replica is the worker.
	Claim   int    `json:"claim,omitempty"   yaml:"claim,omitempty"`
	Replica string `json:"replica,omitempty" yaml:"replica,omitempty"`
	// Kind says what the line is: started, text, tool and so on; unreadable for one that no
	// worker of ours writes.
	Kind  string `json:"kind"            yaml:"kind"`
	Agent string `json:"agent,omitempty" yaml:"agent,omitempty"`
	// Text is at most 16 KiB long; Size is its length in bytes if it was longer, and that of an
	// unreadable line.
	Text string `json:"text,omitempty" yaml:"text,omitempty"`
	Size int    `json:"size,omitempty" yaml:"size,omitempty"`
	// Usage is set in lines that report it.
	Usage *TranscriptUsage `json:"usage,omitempty" yaml:"usage,omitempty"`
}

// TranscriptUsage is the consumption of the attempt up to a line, all calls of its agent
// together. The last line that has one has the sum.
type TranscriptUsage struct {
	Used `yaml:",inline"`
	// Calls counts runs of the agent's program.
	Calls int64 `json:"calls" yaml:"calls"`
}

// Unreadable is the kind of a line that is not understood.
const Unreadable = "unreadable"

const (
	// transcriptBytes bounds a page, as JSON, about. transcriptText bounds a line in bytes, and
	// transcriptWord its short texts.
	transcriptBytes, transcriptText, transcriptWord = 256 << 10, 16 << 10, 200
	// transcriptLine is about what a line takes beside its texts.
	transcriptLine = 150
)

// Of returns the intent that it is about.
func (r *TranscriptRequest) Of() forge.IntentID { return r.Intent }

// Check returns every mistake in a request. Whether there is such an attempt, only the journal
// knows.
func (r *TranscriptRequest) Check() (errs []forge.FieldError) {
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
	if r.Step != "" {
		_, err = forge.ParseStep(string(r.Step))
		note("step", err)
	}
	if r.Attempt < 0 {
		note("attempt", errors.New("is below 0"))
	}
	_, err = ParsePlace(r.After)
	note("after", err)
	return errs
}

// Place is a place in a transcript, between two lines. The zero value is its beginning.
//
// Readers take it as a word that they hand back. It holds nothing that they could not know, and
// is no right to anything: a place that was made up leads to lines of the same attempt, or
// nowhere.
type Place struct {
	// Line counts the lines before it: of the stored whole if Seq is 0, or else of the batch of
	// the stream with this sequence.
	Line int
	Seq  uint64
	// Batch is a short hash of that batch's id: in a stream that was made again, another batch
	// has its sequence.
	Batch uint32
}

// String returns the place as readers get it; empty for the beginning.
func (p Place) String() string {
	switch {
	case p == Place{}:
		return ""
	case p.Seq == 0:
		return fmt.Sprintf("w%d", p.Line)
	}
	return fmt.Sprintf("s%d.%d.%08x", p.Seq, p.Line, p.Batch)
}

// ParsePlace is the reverse of String.
func ParsePlace(s string) (Place, error) {
	var whole, stream Place
	_, _ = fmt.Sscanf(s, "w%d", &whole.Line) // what is not understood is not written the same
	_, _ = fmt.Sscanf(s, "s%d.%d.%x", &stream.Seq, &stream.Line, &stream.Batch)
	for _, p := range []Place{whole, stream} {
		if p.Line >= 0 && p.String() == s {
			return p, nil
		}
	}
	return Place{}, fmt.Errorf("is %.60q, and no next or later of an answer", s)
}

// Add is the only way to fill a page: who fills it stops where it says false, and makes Next of
// the place of that line.
//
// It appends a line to the page, cut to its bounds; false if there is no room for it. There is
// always room for the first one, so that whoever follows Next comes to the end.
func (t *Transcript) Add(l TranscriptLine) bool {
	if len(t.Lines) == 0 {
		t.room = transcriptBytes
	}
	if len(l.Text) > transcriptText {
		l.Text, l.Size = beginning(l.Text, transcriptText), len(l.Text)
	}
	for _, s := range []*string{&l.Kind, &l.Replica, &l.Agent} {
		if len(*s) > transcriptWord {
			*s = beginning(*s, transcriptWord)
		}
		t.room -= written(*s)
	}
	if t.room -= transcriptLine + written(l.Text); t.room < 0 && len(t.Lines) > 0 {
		return false
	}
	t.Lines = append(t.Lines, l)
	return true
}
