package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/pfl-forge/pfl-forge"
)

// scope names the instrumentation in what is exported.
const scope = "github.com/pfl-forge/pfl-forge"

// Recorder records the events of a process. A nil Recorder records nothing. It is safe for
// concurrent use, and none of its methods blocks on I/O.
type Recorder struct {
	meter metric.Meter
	// Each map has the instruments of one kind, made once: looking one up costs no lock.
	counters   map[*Instrument]metric.Float64Counter
	histograms map[*Instrument]metric.Float64Histogram
	gauges     map[*Instrument]metric.Float64ObservableGauge
	// names bounds the projects and models that are told apart.
	names names
	// tracer is nil unless spans are exported.
	tracer trace.Tracer
	// pods counts those that commands have now.
	pods atomic.Int64
	// shown is the snapshot that is read; nil: none.
	shown atomic.Pointer[Snapshot]
	// failing returns the checks of readiness that fail; nil: there are none.
	failing atomic.Pointer[func(context.Context) []string]
}

// NewRecorder returns a Recorder that records with a provider's instruments.
func NewRecorder(p metric.MeterProvider) (*Recorder, error) {
	r := &Recorder{
		meter:      p.Meter(scope),
		counters:   map[*Instrument]metric.Float64Counter{},
		histograms: map[*Instrument]metric.Float64Histogram{},
		gauges:     map[*Instrument]metric.Float64ObservableGauge{},
	}
	// All errors are returned together: each is a mistake in the table of instruments.
	var errs []error
	for _, i := range Instruments() {
		unit, text := metric.WithUnit(i.Unit), metric.WithDescription(i.Text)
		var err error
		switch i.Kind {
		case Counter:
			r.counters[i], err = r.meter.Float64Counter(i.Name, unit, text)
		case Histogram:
			r.histograms[i], err = r.meter.Float64Histogram(i.Name, unit, text, metric.WithExplicitBucketBoundaries(i.Buckets...))
		case Gauge:
			r.gauges[i], err = r.meter.Float64ObservableGauge(i.Name, unit, text)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("metric %s: %w", i.Name, err))
		}
	}
	// A gauge is read when it is asked for: a value that is no longer shown is absent
	// instead of old.
	_, err := r.meter.RegisterCallback(r.observeBuild, r.gauges[build])
	errs = append(errs, err)
	_, err = r.meter.RegisterCallback(r.observeChecks, r.gauges[unready])
	errs = append(errs, err)
	_, err = r.meter.RegisterCallback(r.observePods, r.gauges[podsActive])
	errs = append(errs, err)
	_, err = r.meter.RegisterCallback(r.observeSnapshot, r.observables()...)
	return r, errors.Join(append(errs, err)...)
}

// Serves makes projects known: only those are told apart.
func (r *Recorder) Serves(projects ...forge.ProjectID) {
	if r != nil {
		r.names.addProjects(projects)
	}
}

// count adds to a counter, unless a worker made the number up.
func (r *Recorder) count(i *Instrument, n float64, attrs ...attribute.KeyValue) {
	// A comparison with NaN is false, too.
	if n > 0 && !math.IsInf(n, 0) {
		r.counters[i].Add(context.Background(), n, metric.WithAttributes(attrs...))
	}
}

// record adds a value to a histogram, unless a worker made it up.
func (r *Recorder) record(i *Instrument, value float64, attrs ...attribute.KeyValue) {
	if value >= 0 && !math.IsInf(value, 0) {
		r.histograms[i].Record(context.Background(), value, metric.WithAttributes(attrs...))
	}
}

// Decided records that an event was decided on, and what its result says, if it is one: a
// result is decided on once, however often and by whomever it is told.
func (r *Recorder) Decided(ev *forge.Event, d forge.Decision) {
	if r == nil {
		return
	}
	r.count(decisions, 1, of(attrDecision, d))
	res := forge.As[*forge.Result](ev.Message)
	if res == nil || d != forge.Applied {
		return
	}
	project, step := r.names.project(ev.To.Project), of(attrStep, res.Attempt.Step)
	// A merge that was decided on has an outcome even where it failed; one that could not be
	// tried is a failed attempt, which its worker counts.
	if m, ok := res.Output.(*forge.MergeResult); ok {
		r.count(merges, 1, project, of(attrMerge, m.Outcome))
	}
	// Steps without an agent, such as a merge, have no model to be counted under.
	if res.Usage == (forge.Usage{}) {
		return
	}
	agent, model := of(attrAgent, res.Agent), r.names.model(res.Agent, res.Model)
	r.count(cost, res.Usage.CostUSD, project, step, agent, model)
	for n, used := range []int64{res.Usage.InputTokens, res.Usage.OutputTokens, res.Usage.CacheReadTokens, res.Usage.CacheWriteTokens} {
		if used > 0 {
			r.record(tokenUsage, float64(used), project, step, agent, of(attrProvider, providers[res.Agent]), model,
				of(attrOperates, invokeAgent), of(attrTokens, tokenTypes[n]))
		}
	}
}

// Journaled records a write of a decision. With lost, another replica had decided before.
func (r *Recorder) Journaled(took time.Duration, err error, lost bool) {
	if r == nil {
		return
	}
	outcome := outcomeOK
	switch {
	case lost:
		outcome = outcomeFailed
	case err != nil:
		outcome = outcomeError
	}
	r.record(journalWrite, took.Seconds(), of(attrOutcome, outcome))
}

// AttemptBegan records how long the command of an attempt waited for a worker.
func (r *Recorder) AttemptBegan(cmd *forge.Command, waited time.Duration) {
	if r != nil {
		r.record(stepWait, max(0, waited.Seconds()), of(attrStep, cmd.Attempt.Step))
	}
}

// AttemptEnded records the end of an attempt. With stopped, its result is not needed here.
func (r *Recorder) AttemptEnded(res *forge.Result, stopped bool) {
	if r == nil {
		return
	}
	outcome, reason := outcomeOK, forge.FailureReason("")
	if f := res.Failure(); f != nil {
		outcome, reason = outcomeFailed, f.Reason
	}
	if stopped {
		outcome, reason = outcomeStopped, ""
	}
	step, how := of(attrStep, res.Attempt.Step), of(attrOutcome, outcome)
	r.count(attempts, 1, r.names.project(res.To.Project), step, how, of(attrReason, reason))
	r.record(attemptDuration, res.Duration.Seconds(), step, how)
}

// LeaseLost records that an attempt ended because its replica may not go on.
func (r *Recorder) LeaseLost(step forge.Step) {
	if r != nil {
		r.count(leasesLost, 1, of(attrStep, step))
	}
}

// Redelivered records that a message came again.
func (r *Recorder) Redelivered(kind Kind) {
	if r != nil {
		r.count(redeliveries, 1, of(attrKind, kind))
	}
}

// ReadRefused counts a read of a person that was refused: busy or request.
func (r *Recorder) ReadRefused(reason string) {
	if r != nil {
		r.count(readsRefused, 1, of(attrReadRefusal, reason))
	}
}

// Answered records an answer of the gateway, at the address that a pattern of net/http names.
func (r *Recorder) Answered(method, pattern string, status int, took time.Duration) {
	if r == nil {
		return
	}
	// The method stands before the address in most patterns.
	route := pattern[strings.LastIndexByte(pattern, ' ')+1:]
	r.record(requests, took.Seconds(), of(attrMethod, method), of(attrRoute, route), of(attrHTTP, strconv.Itoa(status)))
}

// OverQuota counts a submission that a quota, named by its field, had no room for.
func (r *Recorder) OverQuota(project forge.ProjectID, field string) {
	if r != nil {
		r.count(overQuota, 1, r.names.project(project), of(attrQuota, field))
	}
}

// Verified records a run of a project's verify commands. err says why they could not be
// tried.
func (r *Recorder) Verified(project forge.ProjectID, took time.Duration, report *forge.VerifyReport, err error) {
	if r == nil {
		return
	}
	outcome := outcomeOK
	switch {
	case err != nil:
		outcome = outcomeError
	case report == nil:
		return // there are no commands
	case !report.Passed:
		outcome = outcomeFailed
	}
	r.record(verifyDuration, took.Seconds(), r.names.project(project), of(attrOutcome, outcome))
}

// Watch has the metrics show which checks of readiness fail.
func (r *Recorder) Watch(failing func(context.Context) []string) {
	if r != nil {
		r.failing.Store(&failing)
	}
}

// observeChecks observes each check of readiness: 1 if it fails.
func (r *Recorder) observeChecks(ctx context.Context, o metric.Observer) error {
	failing := r.failing.Load()
	if failing == nil {
		return nil
	}
	found := (*failing)(ctx)
	for _, check := range attrCheck.Values {
		value := 0.0
		if slices.Contains(found, check) {
			value = 1
		}
		o.ObserveFloat64(r.gauges[unready], value, metric.WithAttributes(of(attrCheck, check)))
	}
	return nil
}

// observeBuild observes the version of the process.
func (r *Recorder) observeBuild(_ context.Context, o metric.Observer) error {
	version, revision, runtime := "unknown", "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version, runtime = info.Main.Version, info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	o.ObserveFloat64(r.gauges[build], 1, metric.WithAttributes(
		attribute.String(attrVersion.Key, version), attribute.String(attrRevision.Key, revision), attribute.String(attrRuntime.Key, runtime)))
	return nil
}
