package telemetry

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pfl-forge/pfl-forge"
)

// Run is one run of an intent: it has a trace of its own.
type Run struct {
	Key    forge.Key
	Number int
}

// context returns the identity of the run's first span. It follows from the run alone, so
// that all replicas agree on it without telling each other.
func (r Run) context() trace.SpanContext {
	// A zero byte is in no name, so that no two runs are joined to the same text.
	sum := sha256.Sum256([]byte(strings.Join([]string{"run", string(r.Key.Project), string(r.Key.Intent), strconv.Itoa(r.Number)}, "\x00")))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// TraceID returns the id of the run's trace, in hexadecimal.
func (r Run) TraceID() string { return r.context().TraceID().String() }

// runKey is the context key of the run whose first span begins.
type runKey struct{}

// FirstSpan returns the identity that the span which begins with ctx has to have; false if it
// can have any.
func FirstSpan(ctx context.Context) (trace.TraceID, trace.SpanID, bool) {
	c, ok := ctx.Value(runKey{}).(trace.SpanContext)
	return c.TraceID(), c.SpanID(), ok
}

// Tracing reports whether spans are exported.
func (r *Recorder) Tracing() bool { return r != nil && r.tracer != nil }

// TraceTo has spans recorded by a provider. It is called before the Recorder is used.
func (r *Recorder) TraceTo(p trace.TracerProvider) { r.tracer = p.Tracer(scope) }

// RunEnded records the first span of a run's trace, which all others are below.
func (r *Recorder) RunEnded(run Run, h *forge.History) {
	if !r.Tracing() {
		return
	}
	ctx := context.WithValue(context.Background(), runKey{}, run.context())
	_, span := r.tracer.Start(ctx, "run", trace.WithNewRoot(), trace.WithTimestamp(h.StartedAt), trace.WithAttributes(
		attribute.String("forge.project", string(run.Key.Project)), attribute.String("forge.intent", string(run.Key.Intent)),
		attribute.Int("forge.run", run.Number), attribute.String("forge.outcome", string(h.Outcome))))
	if h.FailureReason != "" {
		span.SetStatus(codes.Error, h.FailureReason)
	}
	span.End(trace.WithTimestamp(h.CreatedAt))
}

// Attempt begins the span of an attempt in the trace of its run. finish ends it.
func (r *Recorder) Attempt(ctx context.Context, run Run, cmd *forge.Command) (_ context.Context, finish func(*forge.Result)) {
	if !r.Tracing() {
		return ctx, func(*forge.Result) {}
	}
	//nolint:spancheck // finish ends it
	ctx, span := r.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, run.context()), string(cmd.Attempt.Step),
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
			attribute.String("forge.project", string(cmd.To.Project)), attribute.String("forge.intent", string(cmd.To.Intent)),
			attribute.String("forge.task", string(cmd.Attempt.Task)), attribute.String("forge.step", string(cmd.Attempt.Step)),
			attribute.Int("forge.attempt", cmd.Attempt.Number), attribute.Int("forge.claim", cmd.Attempt.Claim)))
	//nolint:spancheck // this ends it
	return ctx, func(res *forge.Result) {
		if res.Agent != "" {
			span.SetAttributes(attribute.String("forge.agent", res.Agent), attribute.String("gen_ai.request.model", cleaned(res.Model)),
				attribute.Int64("gen_ai.usage.input_tokens", res.Usage.InputTokens), attribute.Int64("gen_ai.usage.output_tokens", res.Usage.OutputTokens))
		}
		if f := res.Failure(); f != nil {
			span.SetAttributes(attribute.String("error.type", string(f.Reason)))
			span.SetStatus(codes.Error, string(f.Reason)) // its message may quote what the agent said
		}
		span.End()
	}
}

// Span begins a part of what ctx belongs to, such as verify. Without a trace it does nothing.
// end is called with the error that ended it; nil: none did.
func Span(ctx context.Context, name string) (_ context.Context, end func(error)) {
	span := trace.SpanFromContext(ctx)
	if !span.SpanContext().IsValid() {
		return ctx, func(error) {}
	}
	began := time.Now()
	//nolint:spancheck // end ends it
	ctx, span = span.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithTimestamp(began))
	//nolint:spancheck // this ends it
	return ctx, func(err error) {
		if err != nil { // its text may quote an agent, or name a secret
			kind := fmt.Sprintf("%T", err)
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		span.End()
	}
}

// Environment returns the variable TRACEPARENT with the W3C trace context of ctx, by which
// programs join its trace; nil without one.
func Environment(ctx context.Context) []string {
	c := trace.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return nil
	}
	return []string{fmt.Sprintf("TRACEPARENT=00-%s-%s-%s", c.TraceID(), c.SpanID(), c.TraceFlags())}
}

// TraceIDOf returns the id of the trace of ctx; empty without one.
func TraceIDOf(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}
