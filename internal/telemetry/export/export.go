// Package export lets what package telemetry records out of a process: as /metrics in the
// format of Prometheus, and by OTLP over HTTP if the OTEL_ variables of OpenTelemetry ask for it.
//
// Package service opens it once in a process; without any way out nothing is recorded at all. Close
// exports the rest for a moment, and then gives up: telemetry never keeps a process from ending.
package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"

	"github.com/pfl-forge/pfl-forge/internal/telemetry"
)

const (
	// maxSeries bounds the attribute sets of one metric, should package telemetry fail to.
	maxSeries = 10_000
	// An overflow is counted under one attribute set, and no value is lost from the sum.
	// maxScrapes bounds the readers of /metrics at the same time.
	maxScrapes = 4
	// flushTimeout bounds the last export, when the process ends.
	flushTimeout = 3 * time.Second
)

// Config says whose metrics are exported, and where to.
type Config struct {
	// Service, Replica and Version name the process.
	Service, Replica, Version string
	// Scrape says that Metrics is wanted.
	Scrape bool
	// Getenv returns the variables that ask for OTLP. The exporters themselves read those of
	// the process.
	Getenv func(string) string
	Log    *slog.Logger
	// Spans takes the spans; nil: the exporter that the variables ask for, if any.
	Spans sdktrace.SpanExporter
}

// Export is an open way out of the process.
type Export struct {
	// Recorder is nil if nothing is exported.
	Recorder *telemetry.Recorder
	// Metrics answers a scrape; nil unless that was asked for.
	Metrics http.Handler
	stop    func(context.Context) error
}

// Open returns the ways out that cfg asks for. Without any, nothing is recorded.
func Open(ctx context.Context, cfg Config) (*Export, error) {
	push, tracing := asked(cfg.Getenv, "METRICS"), cfg.Spans != nil || asked(cfg.Getenv, "TRACES")
	if !cfg.Scrape && !push && !tracing {
		return &Export{}, nil
	}
	// The SDK has one handler for the process. Its own writes to standard error, past the log.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		cfg.Log.WarnContext(ctx, "telemetry is not exported", "error", err)
	}))
	who, err := identity(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	e := &Export{}
	opts := []metric.Option{metric.WithResource(who), metric.WithCardinalityLimit(maxSeries)}
	if cfg.Scrape {
		reader, handler, err := scrape(cfg.Log)
		if err != nil {
			return nil, err
		}
		e.Metrics = handler
		opts = append(opts, metric.WithReader(reader))
	}
	if push {
		exporter, err := sendMetrics(ctx, cfg.Getenv)
		if err != nil {
			return nil, err
		}
		opts = append(opts, metric.WithReader(metric.NewPeriodicReader(exporter)))
	}
	// It is not the global provider: two services in one process must not be mixed up.
	provider := metric.NewMeterProvider(opts...)
	e.stop = provider.Shutdown
	if e.Recorder, err = telemetry.NewRecorder(provider); err != nil || !tracing {
		return e, err
	}
	spans, err := traces(ctx, &cfg, who)
	if err != nil {
		return nil, err
	}
	e.stop = func(ctx context.Context) error { return errors.Join(provider.Shutdown(ctx), spans.Shutdown(ctx)) }
	e.Recorder.TraceTo(spans)
	return e, nil
}

// Close exports the rest, as far as that can be done in a moment.
func (e *Export) Close() error {
	// Nothing was opened.
	if e.stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	return e.stop(ctx)
}

// identity returns the names of the process in everything that it exports. Those of
// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before.
func identity(ctx context.Context, cfg *Config) (*resource.Resource, error) {
	who, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceNamespace("pfl-forge"), semconv.ServiceName(cfg.Service),
		semconv.ServiceInstanceID(cfg.Replica), semconv.ServiceVersion(cfg.Version),
	), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return who, nil
}

// scrape returns a reader of metrics, and what shows them to Prometheus together with those
// of the process and of Go's runtime.
func scrape(log *slog.Logger) (metric.Reader, http.Handler, error) {
	registry := prometheus.NewRegistry()
	reader, err := otelprom.New(
		otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err == nil {
		err = errors.Join(
			registry.Register(collectors.NewGoCollector()),
			registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("metrics for Prometheus: %w", err)
	}
	return reader, promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
	}), nil
}
