package requests

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/jsonobject"
	"github.com/pfl-forge/pfl-forge/document"
)

// Each reader lists the fields of its message. A field that the vocabulary gains later is refused
// until its reader has it, as with submissions: see undecided.

// actReaders has, by its verb, what a person may ask for about an intent, as JSON.
var actReaders = map[string]func(*jsonobject.Object) forge.Message{
	"edit": func(o *jsonobject.Object) forge.Message {
		m := &forge.Edit{}
		o.Read("title", &m.Title, "a string")
		o.Read("body", &m.Body, "a string")
		o.Read("type", &m.Type, "a string")
		o.Read("risk", &m.Risk, "a string")
		if m.Risk != nil { // its words are the only ones that an event can hold
			if wrong := document.CheckRisk(string(*m.Risk)); wrong != "" {
				o.AddError("risk", wrong)
			}
		}
		o.Only("title", "body", "type", "risk")
		if !o.HasAny("title", "body", "type", "risk") {
			o.AddError("", "changes nothing; give title, body, type or risk")
		}
		return m
	},
	"approve": func(o *jsonobject.Object) forge.Message {
		m := &forge.Approve{}
		o.Text("plan", &m.Plan)
		o.Only("plan")
		needs(o, "plan", m.Plan, "the hash that the intent has as plan")
		return m
	},
	"request_changes": func(o *jsonobject.Object) forge.Message {
		m := &forge.RequestChanges{}
		o.Text("hash", &m.Hash)
		o.Text("words", &m.Words)
		readTask(o, &m.Task)
		o.Only("hash", "words", "task")
		needs(o, "hash", m.Hash, "the one that the intent has as plan")
		needs(o, "words", strings.TrimSpace(m.Words), "what has to be different")
		return m
	},
	"reject": func(o *jsonobject.Object) forge.Message {
		m := &forge.Reject{}
		o.Text("reason", &m.Reason)
		o.Only("reason")
		return m
	},
	"answer": func(o *jsonobject.Object) forge.Message {
		m := &forge.Answer{Index: -1}
		o.Whole("index", &m.Index)
		o.Text("question", &m.Question)
		o.Text("answer", &m.Answer)
		o.Only("index", "question", "answer")
		if m.Index < 0 {
			o.AddError("index", "has to be the place of the question among questions, from 0")
		}
		needs(o, "answer", m.Answer, "the answer")
		return m
	},
	"retry": func(o *jsonobject.Object) forge.Message {
		m := &forge.Retry{}
		o.Text("instructions", &m.Instructions)
		o.Read("budget_usd", &m.BudgetUSD, "a number")
		o.Text("adopt", &m.Adopt)
		o.Only("instructions", "budget_usd", "adopt")
		if strings.Trim(m.Adopt, "0123456789abcdef") != "" {
			o.AddError("adopt", "is no commit: give its name, or 12 digits of it at least")
		}
		if m.BudgetUSD < 0 {
			o.AddError("budget_usd", "is negative")
		}
		return m
	},
	"cancel": func(o *jsonobject.Object) forge.Message {
		m := &forge.Cancel{}
		o.Text("reason", &m.Reason)
		readTask(o, &m.Task)
		o.Only("reason", "task")
		return m
	},
	"pause": func(o *jsonobject.Object) forge.Message {
		m := &forge.Pause{}
		o.Text("reason", &m.Reason)
		readTask(o, &m.Task)
		o.Only("reason", "task")
		return m
	},
	"resume": func(o *jsonobject.Object) forge.Message {
		m := &forge.Resume{}
		readTask(o, &m.Task)
		o.Only("task")
		return m
	},
}

// Acts returns the verbs that ReadAct knows, sorted.
func Acts() []string { return slices.Sorted(maps.Keys(actReaders)) }

// maxActText bounds each text of an act, in bytes.
const maxActText = 64 << 10

// ReadAct reads a person's act about an intent from a JSON object, for which nothing stands
// as well. The error is a *RequestError with every mistake.
func ReadAct(verb string, data []byte) (forge.Message, error) {
	read := actReaders[verb]
	if read == nil {
		return nil, fmt.Errorf("%q is nothing that can be asked for", verb)
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	var errs []forge.FieldError
	o, err := jsonobject.Parse(data, "", &errs)
	if err != nil {
		return nil, mistakes([]forge.FieldError{{Reason: err.Error()}})
	}
	m := read(&o)
	o.Bound(maxActText)
	if edit := forge.As[*forge.Edit](m); edit != nil && edit.Title != nil {
		if reason := document.CheckTitle(*edit.Title); reason != "" {
			o.AddError("title", reason)
		}
	}
	return m, mistakes(errs)
}

// needs notes that a text is missing.
func needs(o *jsonobject.Object, field, value, what string) {
	if value == "" {
		o.AddError(field, "is missing: "+what)
	}
}

// readTask reads the id of a task.
func readTask(o *jsonobject.Object, into *forge.TaskID) {
	o.Text("task", (*string)(into))
	if *into == "" {
		return
	}
	if _, err := forge.ParseTaskID(string(*into)); err != nil {
		o.AddError("task", err.Error())
	}
}
