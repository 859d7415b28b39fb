package export

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

// traces returns a provider of spans that are exported as the OTEL_ variables say.
func traces(ctx context.Context, cfg *Config, who *resource.Resource) (*sdktrace.TracerProvider, error) {
	exporter := cfg.Spans
	if exporter == nil {
		var err error
		if exporter, err = sendTraces(ctx, cfg.Getenv); err != nil {
			return nil, err
		}
	}
	sampler, err := sampler(cfg.Getenv)
	if err != nil {
		return nil, err
	}
	// Spans are sent in batches by a goroutine, and dropped when a collector does not keep up:
	// work does not wait for its trace.
	return sdktrace.NewTracerProvider(
		sdktrace.WithResource(who), sdktrace.WithBatcher(exporter), sdktrace.WithIDGenerator(ids{}), sdktrace.WithSampler(sampler)), nil
}

// sampler returns the sampler of OTEL_TRACES_SAMPLER. The id of a trace decides alone, not
// its parent, whose identity follows from the run: no sampler was asked about it.
func sampler(getenv func(string) string) (sdktrace.Sampler, error) {
	name, arg := strings.TrimPrefix(getenv("OTEL_TRACES_SAMPLER"), "parentbased_"), getenv("OTEL_TRACES_SAMPLER_ARG")
	switch name {
	case "always_off":
		return sdktrace.NeverSample(), nil
	case "traceidratio":
		if arg == "" {
			return sdktrace.AlwaysSample(), nil
		}
		ratio, err := strconv.ParseFloat(arg, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is no number from 0 to 1", arg)
		}
		return sdktrace.TraceIDRatioBased(ratio), nil
	case "", "always_on":
		return sdktrace.AlwaysSample(), nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is not known here; use always_on, always_off or traceidratio", name)
}

// ids gives spans their ids: the first one of a run those that follow from the run, others
// random ones.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (traceID trace.TraceID, spanID trace.SpanID) {
	if t, s, ok := telemetry.FirstSpan(ctx); ok {
		return t, s
	}
	_, _ = rand.Read(traceID[:]) // it never fails
	_, _ = rand.Read(spanID[:])
	return traceID, spanID
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}
