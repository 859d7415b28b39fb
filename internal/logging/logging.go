// Package logging has lines of a log say what they are about, whoever writes them.
//
// Whoever takes a command or an event on notes in the context which one it is: [Attempt],
// [Machine], [Trace]. Everything below logs with that context, as the linter wants it, and
// [Handler] adds what the context knows. So package git logs a line about a checkout that has the
// intent, though it knows no intents. A runner, which takes on events of many runs, says once with
// [Traces] how the trace of an intent is found.
package logging

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// The keys, which are the same in every line of every service: people and alerts filter by
// them.
const (
	keyProject = "project"
	keyIntent  = "intent"
	keyTask    = "task"
	keyAttempt = "attempt"
	keyTrace   = "trace_id"
)

// attrsKey is the context key of the attributes.
type attrsKey struct{}

// with returns a context that knows more attributes. A newer value of a key replaces the older one.
func with(ctx context.Context, more ...slog.Attr) context.Context {
	known, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	list := make([]slog.Attr, 0, len(known)+len(more))
	for _, a := range known {
		if !slices.ContainsFunc(more, func(m slog.Attr) bool { return m.Key == a.Key }) {
			list = append(list, a)
		}
	}
	return context.WithValue(ctx, attrsKey{}, append(list, more...))
}

// tracesKey is the context key of the function that finds the trace of an intent.
type tracesKey struct{}

// Traces returns a context whose lines about an intent have the trace that find returns for it,
// unless [Trace] says one. find is asked when a line is written, so that a run that begins between
// two lines is in the second; it returns "" for an intent whose trace is not known, and is safe for
// concurrent use.
func Traces(ctx context.Context, find func(forge.Key) string) context.Context {
	return context.WithValue(ctx, tracesKey{}, find)
}

// found is the trace of an intent, looked up when a line is written.
type found struct {
	find   func(forge.Key) string
	intent forge.Key
}

// LogValue implements slog.LogValuer.
func (f found) LogValue() slog.Value { return slog.StringValue(f.find(f.intent)) }

// intent returns a context whose lines are about an intent, and more.
func intent(ctx context.Context, key forge.Key, more ...slog.Attr) context.Context {
	list := append([]slog.Attr{slog.String(keyIntent, key.String())}, more...)
	if find, ok := ctx.Value(tracesKey{}).(func(forge.Key) string); ok {
		list = append(list, slog.Any(keyTrace, found{find, key}))
	}
	return with(ctx, list...)
}

// Attempt returns a context whose lines are about an attempt of a command. For a step of a whole
// intent the task is empty. It returns ctx for a command that could not be read.
func Attempt(ctx context.Context, to forge.Key, a forge.Attempt) context.Context {
	if to.Project == "" {
		return ctx
	}
	return intent(ctx, to, slog.String(keyTask, string(a.Task)), slog.String(keyAttempt, a.String()))
}

// Event returns a context whose lines are about an event: about the attempt if it is its result,
// and about the intent where that tells its project something.
func Event(ctx context.Context, ev *forge.Event) context.Context {
	if r := forge.As[*forge.Result](ev.Message); r != nil {
		return Attempt(ctx, r.To, r.Attempt) // also where it is told to the project
	}
	if ev.To.IsProject() && byIntents()[reflect.TypeOf(ev.Message)] {
		return Machine(ctx, forge.Key{Project: ev.To.Project, Intent: forge.IntentID(ev.Actor)})
	}
	return Machine(ctx, ev.To)
}

// byIntents returns the types of messages that intents send, as the registry has them.
var byIntents = sync.OnceValue(func() map[reflect.Type]bool {
	types := map[reflect.Type]bool{}
	for _, m := range messages.All() {
		if m.From == messages.PartyIntent {
			types[reflect.TypeOf(m.Message)] = true
		}
	}
	return types
})

// Machine returns a context whose lines are about an intent, or about a project as a whole.
func Machine(ctx context.Context, key forge.Key) context.Context {
	if key.Project == "" { // of a message that nobody could read
		return ctx
	}
	if key.IsProject() {
		return with(ctx, slog.String(keyProject, string(key.Project)))
	}
	return intent(ctx, key)
}

// Trace returns a context whose lines are about a trace; ctx itself if id is empty.
func Trace(ctx context.Context, id string) context.Context {
	if id == "" {
		return ctx
	}
	return with(ctx, slog.String(keyTrace, id))
}

// Handler returns a handler that adds to each record what its context knows and neither the
// record nor its logger says. The logger has no groups: with one, the keys would be others.
func Handler(inner slog.Handler) slog.Handler { return &handler{Handler: inner} }

// handler implements [Handler].
type handler struct {
	slog.Handler

	// said are the keys that the logger has.
	said map[string]bool
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	known, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	if len(known) == 0 {
		return h.Handler.Handle(ctx, r)
	}
	said := h.said
	r.Attrs(func(a slog.Attr) bool {
		if slices.ContainsFunc(known, func(k slog.Attr) bool { return k.Key == a.Key }) {
			said = maps.Clone(said)
			said = addKey(said, a.Key)
		}
		return true
	})
	r = r.Clone() // the caller may use its record again
	for _, a := range known {
		if a.Value = a.Value.Resolve(); !said[a.Key] && (a.Key != keyTrace || a.Value.String() != "") {
			r.AddAttrs(a)
		}
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	said := maps.Clone(h.said)
	for _, a := range attrs {
		said = addKey(said, a.Key)
	}
	return &handler{h.Handler.WithAttrs(attrs), said}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.said}
}

// addKey adds a key to a set, which is made if it is nil.
func addKey(set map[string]bool, key string) map[string]bool {
	if set == nil {
		set = map[string]bool{}
	}
	set[key] = true
	return set
}
