package export

import (
	"cmp"
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// protocol is the only form of OTLP that is spoken. Collectors that take another one take
// this one, too.
const protocol = "http/protobuf"

// asked reports whether variables ask for a signal, METRICS or TRACES, to be sent.
func asked(getenv func(string) string, signal string) bool {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return false
	}
	// The specification has otlp as the default of an exporter that is not named. Here an
	// endpoint has to be named: else every service would look for a collector on its own
	// machine.
	switch getenv("OTEL_" + signal + "_EXPORTER") {
	case "none":
		return false
	case "":
		return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	}
	return true
}

// spoken returns an error that names the variable by which a signal is asked for in a form
// that it cannot have.
func spoken(getenv func(string) string, signal string) error {
	// What is not sent must not look as if it were: a wrong value ends the start.
	name := "OTEL_" + signal + "_EXPORTER"
	if value := getenv(name); value != "" && value != "otlp" {
		return fmt.Errorf("%s: %q is not known here; use otlp or none. Prometheus reads /metrics of --listen", name, value)
	}
	// The variable of the signal goes before that of all.
	name = "OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL"
	if getenv(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	if value := cmp.Or(getenv(name), protocol); value != protocol {
		return fmt.Errorf("%s: %q is not spoken here; use %s, and the collector's port for it, by default 4318", name, value, protocol)
	}
	return nil
}

// sendMetrics returns the exporter of metrics that the variables ask for.
func sendMetrics(ctx context.Context, getenv func(string) string) (metric.Exporter, error) {
	if err := spoken(getenv, "METRICS"); err != nil {
		return nil, err
	}
	// It does not connect yet: a collector that is away does not hold the start up.
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export of metrics, as the OTEL_ variables say: %w", err)
	}
	return exporter, nil
}

// sendTraces returns the exporter of spans that the variables ask for.
func sendTraces(ctx context.Context, getenv func(string) string) (sdktrace.SpanExporter, error) {
	if err := spoken(getenv, "TRACES"); err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("export of traces, as the OTEL_ variables say: %w", err)
	}
	return exporter, nil
}
