package requests

import (
	"fmt"
	"maps"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
)

// Each reader lists the fields of its message. A field that the vocabulary gains later is refused
// until its reader has it, as with submissions: see undecided.

// wishReaders has, by its verb, what a person may ask for about an intent, as JSON.
var wishReaders = map[string]func(*jsonObject) forge.Message{
	"edit": func(o *jsonObject) forge.Message {
		m := &forge.Edit{}
		o.read("title", &m.Title, "a string")
		o.read("body", &m.Body, "a string")
		o.read("type", &m.Type, "a string")
		o.read("risk", &m.Risk, "a string")
		o.only("title", "body", "type", "risk")
		if len(o.values) == 0 {
			o.note("", "changes nothing; give title, body, type or risk")
		}
		return m
	},
	"approve": func(o *jsonObject) forge.Message {
		m := &forge.Approve{}
		o.text("plan", &m.Plan)
		o.only("plan")
		o.needs("plan", m.Plan, "the hash that the intent has as plan")
		return m
	},
	"reject": func(o *jsonObject) forge.Message {
		m := &forge.Reject{}
		o.text("reason", &m.Reason)
		o.only("reason")
		return m
	},
	"answer": func(o *jsonObject) forge.Message {
		m := &forge.Answer{Index: -1}
		o.whole("index", &m.Index)
		o.text("question", &m.Question)
		o.text("answer", &m.Answer)
		o.only("index", "question", "answer")
		if m.Index < 0 {
			o.note("index", "has to be the place of the question among questions, from 0")
		}
		o.needs("answer", m.Answer, "the answer")
		return m
	},
	"retry": func(o *jsonObject) forge.Message {
		m := &forge.Retry{}
		o.text("instructions", &m.Instructions)
		o.read("budget_usd", &m.BudgetUSD, "a number")
		o.only("instructions", "budget_usd")
		if m.BudgetUSD < 0 {
			o.note("budget_usd", "is negative")
		}
		return m
	},
	"cancel": func(o *jsonObject) forge.Message {
		m := &forge.Cancel{}
		o.text("reason", &m.Reason)
		o.task(&m.Task)
		o.only("reason", "task")
		return m
	},
	"pause": func(o *jsonObject) forge.Message {
		m := &forge.Pause{}
		o.text("reason", &m.Reason)
		o.task(&m.Task)
		o.only("reason", "task")
		return m
	},
	"resume": func(o *jsonObject) forge.Message {
		m := &forge.Resume{}
		o.task(&m.Task)
		o.only("task")
		return m
	},
}

// Wishes returns the verbs that ReadWish knows, sorted.
func Wishes() []string { return slices.Sorted(maps.Keys(wishReaders)) }

// maxWish bounds each text of a wish, in bytes.
const maxWish = 64 << 10

// ReadWish reads a person's wish about an intent from a JSON object, for which nothing stands
// as well. The error is a *RequestError with every mistake.
func ReadWish(verb string, data []byte) (forge.Message, error) {
	read := wishReaders[verb]
	if read == nil {
		return nil, fmt.Errorf("%q is nothing that can be asked for", verb)
	}
	if len(data) == 0 {
		data = []byte("{}")
	}
	var errs []forge.FieldError
	o, err := readObject(data, "", &errs)
	if err != nil {
		return nil, mistakes([]forge.FieldError{{Reason: err.Error()}})
	}
	m := read(&o)
	for field, value := range o.values {
		if len(value) > maxWish {
			o.note(field, fmt.Sprintf("has %d bytes; at most %d are allowed", len(value), maxWish))
		}
	}
	if edit := forge.As[*forge.Edit](m); edit != nil && edit.Title != nil {
		if reason := document.CheckTitle(*edit.Title); reason != "" {
			o.note("title", reason)
		}
	}
	return m, mistakes(errs)
}

// needs notes that a text is missing.
func (o *jsonObject) needs(field, value, what string) {
	if value == "" {
		o.note(field, "is missing: "+what)
	}
}

// task reads the id of a task.
func (o *jsonObject) task(into *forge.TaskID) {
	o.text("task", (*string)(into))
	if *into == "" {
		return
	}
	if _, err := forge.ParseTaskID(string(*into)); err != nil {
		o.note("task", err.Error())
	}
}
