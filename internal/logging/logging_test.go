package logging_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/logging"
)

// A line says once what it is about: what its logger or its writer says counts more than the
// context, and the newer context more than the older one.
func TestHandler(t *testing.T) {
	key := forge.Key{Project: "shop", Intent: "fix"}
	attempt := forge.Attempt{Task: "fix-001", Step: forge.StepReview, Number: 2, Claim: 1}
	analysis := forge.Attempt{Step: forge.StepAnalyze, Number: 1, Claim: 1}
	event := func(to forge.IntentID, by string, m forge.Message) context.Context {
		return logging.Event(t.Context(), &forge.Event{To: forge.Key{Project: "shop", Intent: to}, Actor: by, Message: m})
	}
	about := logging.Attempt(t.Context(), key, attempt)
	found := logging.Traces(t.Context(), func(k forge.Key) string {
		return map[forge.Key]string{key: "of-fix"}[k]
	})
	const all = ` intent=shop/fix task=fix-001 attempt=fix-001/review/2.1`
	for _, c := range []struct {
		name string
		ctx  context.Context //nolint:containedctx // what the line is about
		with []any
		args []any
		want string
	}{
		{"nothing is known", t.Context(), nil, []any{"a", 1}, " a=1"},
		{"an attempt", about, nil, []any{"a", 1}, " a=1" + all},
		{"its trace", logging.Trace(about, "abc"), nil, nil, all + " trace_id=abc"},
		{"no trace", logging.Trace(about, ""), nil, nil, all},
		{"the trace of an intent", logging.Machine(found, key), nil, nil, " intent=shop/fix trace_id=of-fix"},
		{"that of an attempt", logging.Attempt(found, key, attempt), nil, nil, all + " trace_id=of-fix"},
		{"that of another intent", logging.Machine(found, forge.Key{Project: "shop", Intent: "b"}), nil, nil, " intent=shop/b"},
		{"of a project there is none", logging.Machine(found, forge.Key{Project: "shop"}), nil, nil, " project=shop"},
		{"one that is said", logging.Trace(logging.Machine(found, key), "abc"), nil, nil, " intent=shop/fix trace_id=abc"},
		{"the logger knows", about, []any{"intent", "shop/fix", "b", 2}, nil, " intent=shop/fix b=2 task=fix-001 attempt=fix-001/review/2.1"},
		{"the writer knows", about, nil, []any{"attempt", "x"}, " attempt=x intent=shop/fix task=fix-001"},
		{"a project", logging.Machine(t.Context(), forge.Key{Project: "shop"}), nil, nil, " project=shop"},
		{"an intent", logging.Machine(t.Context(), key), nil, nil, " intent=shop/fix"},
		{"another attempt", logging.Attempt(about, key, analysis), nil, nil, ` intent=shop/fix task="" attempt=-/analyze/1.1`},
		{"an event", event("fix", "ada", &forge.Cancel{}), nil, nil, " intent=shop/fix"},
		{"an intent to its project", event("", "fix", &forge.AdmitRun{}), nil, nil, " intent=shop/fix"},
		{"a person to a project", event("", "ada", &forge.Reflect{}), nil, nil, " project=shop"},
		{"what nobody could read", logging.Event(t.Context(), &forge.Event{}), nil, nil, ""},
		{"a result", event("", "", &forge.Result{To: key, Attempt: attempt}), nil, nil, all},
	} {
		var out bytes.Buffer
		text := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})
		slog.New(logging.Handler(text)).With(c.with...).InfoContext(c.ctx, "m", c.args...)
		if got := out.String(); got != "msg=m"+c.want+"\n" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
