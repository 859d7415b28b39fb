package telemetry

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pfl-forge/pfl-forge"
)

// Command says for what a command line of a repository is run. It is the name of its span: the
// line itself may hold what is secret, and is never part of a trace.
type Command string

// The commands that a repository defines.
const (
	CommandVerify Command = "verify command"
	CommandSetup  Command = "worktree_setup command"
	CommandRun    Command = "recipe run"
	CommandCheck  Command = "recipe check"
	CommandEach   Command = "recipe each"
)

// commands are all of them; a span of another one is named as other.
var commands = []Command{CommandVerify, CommandSetup, CommandRun, CommandCheck, CommandEach}

// BeginCommand begins the span of a command line below the span of ctx; without a trace it does
// nothing. index is its place in the list that it is from, beginning with 0. end is called
// with the exit code; or, where the command did not run to its end, with the reason and any code.
func BeginCommand(ctx context.Context, c Command, index int) (_ context.Context, end func(exitCode int, failed forge.FailureReason)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsValid() {
		return ctx, func(int, forge.FailureReason) {}
	}
	if !slices.Contains(commands, c) {
		c = Other
	}
	//nolint:spancheck // end ends it
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, string(c), trace.WithAttributes(attribute.Int("forge.command.index", index)))
	//nolint:spancheck // this ends it
	return ctx, func(exitCode int, failed forge.FailureReason) {
		switch {
		case failed != "":
			span.SetAttributes(of(attrReason, failed))
			span.SetStatus(codes.Error, string(failed))
		case exitCode != 0:
			span.SetStatus(codes.Error, "")
			fallthrough
		default:
			span.SetAttributes(attribute.Int("process.exit.code", exitCode))
		}
		span.End()
	}
}
