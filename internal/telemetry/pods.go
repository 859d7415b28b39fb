package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// PodLoss says why a pod did not live as long as its command.
type PodLoss string

// The losses. Others, which only a later Kubernetes knows, are counted as [Other].
const (
	PodNotStarted  PodLoss = "not_started"   // it did not run in time, or the API server was away
	PodEvicted     PodLoss = "evicted"       // by a drain, or because its node ran short
	PodOutOfMemory PodLoss = "out_of_memory" // above the limit of its container
	PodPreempted   PodLoss = "preempted"     // another pod was more important
	PodDeadline    PodLoss = "deadline"      // it outlived its command's limit by far
	PodNode        PodLoss = "node"          // its node was shut down, or is gone
	PodDeleted     PodLoss = "deleted"       // by a person or another program
	PodConnection  PodLoss = "connection"    // it goes on, or went well; only the connection ended
)

// PodRefusal says why there could be no pod.
type PodRefusal string

// The refusals.
const (
	PodDenied   PodRefusal = "denied"   // the account, an admission policy or the object itself
	PodQuota    PodRefusal = "quota"    // the namespace is full; it is tried again
	PodTemplate PodRefusal = "template" // such as an image that is not there
)

// Pod records that a command gets a pod of its own. end is called when that is gone.
func (r *Recorder) Pod() (end func()) {
	if r == nil {
		return func() {}
	}
	r.pods.Add(1)
	return func() { r.pods.Add(-1) }
}

// PodStarted records how long it took from the request for a pod to the first byte that it sent.
func (r *Recorder) PodStarted(took time.Duration) {
	if r != nil {
		r.record(podStart, took.Seconds())
	}
}

// PodLost records that a pod did not live as long as its command.
func (r *Recorder) PodLost(why PodLoss) {
	if r != nil {
		r.count(podsLost, 1, of(attrLoss, why))
	}
}

// PodRefused records that there could be no pod.
func (r *Recorder) PodRefused(why PodRefusal) {
	if r != nil {
		r.count(podsRefused, 1, of(attrRefusal, why))
	}
}

// observePods observes the pods of this replica.
func (r *Recorder) observePods(_ context.Context, o metric.Observer) error {
	o.ObserveFloat64(r.gauges[podsActive], float64(r.pods.Load()))
	return nil
}
