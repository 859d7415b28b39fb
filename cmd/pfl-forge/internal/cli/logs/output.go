package logs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/logs/entries"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/transcript"
)

// output prints entries in a format.
// It is used by one goroutine at a time, as a Reader calls show.
type output struct {
	app    *kit.App
	style  render.Style
	format string
	all    []transcript.Line // of a format that is one document
}

// newOutput returns an output to the standard output, in one of the formats of the command. End
// has to be called after the last entry.
func newOutput(a *kit.App, format string) *output {
	return &output{app: a, style: a.Style(a.Out), format: format}
}

// show prints an entry, or keeps it for the end if all of them are one document.
// An error of writing is dropped: the reader of a pipe has gone, and nothing else is to be done.
func (o *output) show(e entries.Entry) {
	switch o.format {
	case formatNDJSON:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(e.Line); err == nil {
			_, _ = o.app.Out.Write(b.Bytes())
		}
	case formatJSON, formatYAML:
		o.all = append(o.all, e.Line)
	default:
		if text := o.text(&e); text != "" {
			fmt.Fprintln(o.app.Out, text)
		}
	}
}

// end prints the document of a format that is one.
// Without an entry it is an empty list, and not null.
func (o *output) end() error {
	if o.format != formatJSON && o.format != formatYAML {
		return nil
	}
	if o.all == nil {
		o.all = []transcript.Line{}
	}
	format := render.Format(o.format)
	return format.Write(o.app.Out, o.all)
}

// text returns an entry as a line for a person, empty if there is nothing to say: the time here,
// the task or intent, the step of a transcript, and the words. Colours only repeat what the words
// say.
func (o *output) text(e *entries.Entry) string {
	who := string(e.Task)
	if who == "" {
		who = string(e.Intent)
	}
	at := o.style.Faint(e.At.Local().Format(time.DateTime))
	if e.Kind == entries.Decided {
		return fmt.Sprintf("%s  %s  %s", at, o.style.Bold(fmt.Sprintf("%-24s", who)), o.style.Tone(e.Tone, term.Line(e.Text)))
	}
	what := o.what(e)
	if what == "" {
		return ""
	}
	step := render.StepName(forge.Attempt{Step: e.Step, Number: e.Attempt})
	return fmt.Sprintf("%s  %-24s  %-11s %s %s", at, who, step, o.style.Faint("|"), what)
}

// what returns a line of a transcript in words, empty if it has nothing for a person: usage is
// summed up at the end, and a thought may have no text.
func (o *output) what(e *entries.Entry) string {
	text := term.Line(e.Text)
	switch e.Kind {
	case forge.ProgressStarted:
		return o.style.Faint("started")
	case forge.ProgressEnded:
		used := ""
		if e.Usage != nil {
			u := forge.Usage(*e.Usage)
			used = render.ConsumedOf(&u)
		}
		if used != "" {
			used = " (" + used + ")"
		}
		if text == transcript.OutcomeOK {
			return o.style.Good("ended") + used
		}
		return o.style.Bad("ended: "+text) + used
	case forge.ProgressThinking:
		if text == "" {
			return ""
		}
		return o.style.Faint("thinks: " + text)
	case forge.ProgressTool:
		return o.style.Bold("tool") + " " + text
	case forge.ProgressLimit:
		return o.style.Attention("waits: " + text)
	case forge.ProgressUsage: // the end says it; programs get each
		return ""
	default:
		return text
	}
}
