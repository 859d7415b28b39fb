package pods

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nuid"
	"gopkg.in/yaml.v3"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/process"
	"github.com/pfl-forge/pfl-forge/agent/remote"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
	"github.com/pfl-forge/pfl-forge/internal/telemetry"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// container is the name of the container that runs the command.
const container = "command"

// volume is the name of the volume that holds the command's files.
const volume = "forge-state"

// The labels of pods: which replica made one, and the network that its command may have, by
// which NetworkPolicies choose.
const (
	LabelReplica = "pfl-forge.io/replica"
	LabelNetwork = "pfl-forge.io/network"
)

// The times of a pod.
const (
	startTimeout = 5 * time.Minute
	pollInterval = 250 * time.Millisecond
	// overtime is added to a command's limit of time, after which Kubernetes ends the pod by
	// itself.
	overtime = 30 * time.Minute
)

// Executor runs each command in a pod of its own. It is safe for concurrent use.
type Executor struct {
	// Metrics may be nil: then nothing is measured. It is set before the first Run.
	Metrics *telemetry.Recorder

	api      *API
	client   *http.Client
	template object
	// namespace is that of the template.
	namespace string
	replica   forge.ReplicaID
	// start bounds the time until a pod's container runs: startTimeout.
	start time.Duration
	// state is the service's state directory.
	state string
	log   *slog.Logger
}

// object is a Kubernetes object as JSON.
type object = map[string]any

// New returns the executor of a replica, whose state is in a directory, with the template
// of its pods in a file; an image, unless empty, takes the place of the one that the
// template gives the command. Errors name the file and the field.
func New(api *API, template, image string, replica forge.ReplicaID, state string, log *slog.Logger) (*Executor, error) {
	text, err := os.ReadFile(template)
	if err != nil {
		return nil, err
	}
	e := &Executor{api: api, client: api.client(), replica: replica, start: startTimeout, state: state, log: log}
	if err := yaml.Unmarshal(text, &e.template); err != nil {
		return nil, fmt.Errorf("%s: %w", template, err)
	}
	if e.namespace, err = checkTemplate(e.template, image); err != nil {
		return nil, fmt.Errorf("%s: %w", template, err)
	}
	return e, nil
}

// checkTemplate puts an image, unless empty, into a template and returns its namespace, or
// an error for what pods could not be made of.
func checkTemplate(pod object, image string) (namespace string, err error) {
	if pod["kind"] != "Pod" || pod["apiVersion"] != "v1" {
		return "", errors.New("kind: is not that of a pod; write apiVersion: v1, kind: Pod")
	}
	metadata, _ := pod["metadata"].(object)
	if namespace, _ = metadata["namespace"].(string); namespace == "" {
		return "", errors.New("metadata.namespace: is missing; pods of agents need a namespace of their own")
	}
	spec, _ := pod["spec"].(object)
	list, _ := spec["containers"].([]any)
	for _, one := range list {
		c, _ := one.(object)
		if c["name"] != container {
			continue
		}
		if image != "" {
			c["image"] = image
		}
		if image, _ := c["image"].(string); image == "" {
			return "", fmt.Errorf("spec.containers: the one with the name %q has no image", container)
		}
		return namespace, nil
	}
	return "", fmt.Errorf("spec.containers: none has the name %q", container)
}

// Name returns "pods".
func (*Executor) Name() forge.Executor { return forge.ExecutorPods }

// Image returns that of the command, and the pods' runtime class, which is empty for the
// cluster's own.
func (e *Executor) Image() (image, runtimeClass string) {
	spec := child(e.template, "spec")
	runtimeClass, _ = spec["runtimeClassName"].(string)
	list, _ := spec["containers"].([]any)
	for _, one := range list {
		if c, _ := one.(object); c["name"] == container {
			image, _ = c["image"].(string)
		}
	}
	return image, runtimeClass
}

// Needs names the pods and their namespace.
func (e *Executor) Needs() string { return "pods of the template in namespace " + e.namespace }

// Probe runs a pod that does nothing.
func (e *Executor) Probe(ctx context.Context, network sandbox.Network) error {
	dir, err := os.MkdirTemp(e.state, "probe-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r, err := e.Run(ctx, process.Command{
		Path: "/bin/sh", Args: []string{"-c", ": > works"}, Dir: dir, Env: process.Environment(dir),
		Limits: process.Limits{Wall: time.Minute}, Sandbox: &sandbox.Spec{Network: network, Mounts: sandbox.Path(dir, sandbox.Writable)},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", process.ErrSandbox, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "works")); err != nil || r.ExitCode != 0 {
		return fmt.Errorf("%w: a command in a pod ended with status %d: %s", process.ErrSandbox, r.ExitCode, r.Output)
	}
	return nil
}

// Run makes a pod, runs the command in it, and deletes it.
func (e *Executor) Run(ctx context.Context, c process.Command) (process.Report, error) {
	none := process.Report{ExitCode: -1}
	name, began := podName(e.replica), time.Now()
	if err := e.request(ctx, http.MethodPost, podsPath(e.namespace), nil, e.pod(name, &c), nil); err != nil {
		return none, e.refuse(ctx, fmt.Errorf("make a pod in namespace %s: %w", e.namespace, err))
	}
	defer e.Metrics.Pod()()
	defer e.remove(context.WithoutCancel(ctx), name)
	if err := e.await(ctx, name); err != nil {
		return none, e.refuse(ctx, err)
	}
	conn, err := e.api.attach(ctx, e.client, e.namespace, name)
	if err != nil {
		return none, e.refuse(ctx, err)
	}
	conn.first = sync.OnceFunc(func() { e.Metrics.PodStarted(time.Since(began)) })
	report, err := remote.Run(ctx, conn, c, e.state)
	if errors.Is(err, process.ErrLost) {
		loss, fate := e.fate(context.WithoutCancel(ctx), name, conn.said())
		e.Metrics.PodLost(loss)
		err = errors.Join(err, fate)
	}
	return report, err
}

// errNever is wrapped by errors of a pod that will not start before a person has changed
// something.
var errNever = errors.New("the pod does not start")

// refuse returns refusal, and counts it.
func (e *Executor) refuse(ctx context.Context, err error) error {
	var answer *statusError
	switch said := errors.As(err, &answer); {
	case ctx.Err() != nil: // the command is not wanted any more
	case errors.Is(err, errNever):
		e.Metrics.PodRefused(telemetry.PodTemplate)
	case said && answer.final():
		e.Metrics.PodRefused(telemetry.PodDenied)
	case said && answer.overQuota():
		e.Metrics.PodRefused(telemetry.PodQuota)
	default:
		loss := telemetry.PodNotStarted
		if lost, ok := errors.AsType[*lostError](err); ok {
			loss = lost.loss
		}
		e.Metrics.PodLost(loss)
	}
	return refusal(ctx, err)
}

// refusal returns an error of a pod that did not start: one that wraps ErrSandbox if a
// person has to act, and ErrLost if it may work later, as with a full quota or node; the
// cause of ctx, if it has ended.
func refusal(ctx context.Context, err error) error {
	var answer *statusError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errNever), errors.As(err, &answer) && answer.final():
		return fmt.Errorf("%w: %w", process.ErrSandbox, err)
	}
	return fmt.Errorf("%w: %w", process.ErrLost, err)
}

// podName returns a name that no pod has had.
func podName(replica forge.ReplicaID) string {
	name := string(replica)
	return "forge-" + name[:min(len(name), 30)] + "-" + strings.ToLower(nuid.Next())
}

// podsPath returns the path of the requests for the pods of a namespace.
func podsPath(namespace string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/pods"
}

// podPath returns the path of the requests for one pod.
func podPath(namespace, pod string) string { return podsPath(namespace) + "/" + url.PathEscape(pod) }

// request makes one request with the executor's client; body and answer may be nil.
func (e *Executor) request(ctx context.Context, method, path string, query url.Values, body, answer any) error {
	return e.api.do(ctx, e.client, method, path, query, body, answer)
}

// pod returns the template as the pod of a command. What the template says of anything
// else than name, labels, arguments and streams stays; the volume of the files is added
// if it has none.
func (e *Executor) pod(name string, c *process.Command) object {
	pod := clone(e.template)
	metadata := child(pod, "metadata")
	metadata["name"] = name
	labels := child(metadata, "labels")
	labels[LabelReplica], labels[LabelNetwork] = string(e.replica), string(sandbox.NetworkFull)
	if c.Sandbox != nil {
		labels[LabelNetwork] = string(c.Sandbox.Network)
	}
	wall := c.Limits.Wall
	if wall <= 0 {
		wall = process.DefaultWall
	}
	spec := child(pod, "spec")
	spec["restartPolicy"], spec["automountServiceAccountToken"], spec["enableServiceLinks"] = "Never", false, false
	spec["activeDeadlineSeconds"] = int64((wall + overtime).Seconds())
	volumes, _ := spec["volumes"].([]any)
	if !named(volumes, volume) {
		spec["volumes"] = append(volumes, object{"name": volume, "emptyDir": object{}})
	}
	for _, one := range spec["containers"].([]any) { //nolint:forcetypeassert // checkTemplate has seen it
		if main, _ := one.(object); main["name"] == container {
			main["args"] = []any{remote.Argument}
			main["stdin"], main["stdinOnce"], main["tty"] = true, true, false
			mounts, _ := main["volumeMounts"].([]any)
			main["volumeMounts"] = append(mounts, object{"name": volume, "mountPath": e.state})
		}
	}
	return pod
}

// clone returns a deep copy of an object.
func clone(o object) object {
	var copied func(any) any
	copied = func(v any) any {
		switch v := v.(type) {
		case object:
			out := make(object, len(v))
			for key, value := range v {
				out[key] = copied(value)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i, value := range v {
				out[i] = copied(value)
			}
			return out
		}
		return v
	}
	return copied(o).(object) //nolint:forcetypeassert // a copy has the same type
}

// child returns the object below a key, which it makes if there is none.
func child(o object, key string) object {
	below, ok := o[key].(object)
	if !ok {
		below = object{}
		o[key] = below
	}
	return below
}

// named reports whether one of the objects has a name.
func named(list []any, name string) bool {
	for _, one := range list {
		if o, _ := one.(object); o["name"] == name {
			return true
		}
	}
	return false
}

// await returns when the command's container runs, or why it does not.
func (e *Executor) await(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, e.start, fmt.Errorf("the pod has not started within %s", e.start))
	defer cancel()
	last := "nothing is known of it"
	for {
		var pod podStatus
		switch err := e.request(ctx, http.MethodGet, podPath(e.namespace, name), nil, nil, &pod); {
		case isGone(err):
			return &lostError{errors.New("the pod was deleted before it had started"), telemetry.PodDeleted}
		case err != nil && ctx.Err() == nil:
			last = err.Error() // the API server may be away for a moment
		case err == nil:
			running, fatal, why := pod.progress()
			switch {
			case running:
				return nil
			case fatal:
				return fmt.Errorf("%w: %s", errNever, why)
			case pod.end() != "":
				return &lostError{fmt.Errorf("the pod ended at once: %s", why), pod.loss()}
			}
			last = why
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), last)
		case <-time.After(pollInterval):
		}
	}
}

// fate says what became of a pod whose connection ended; nil if it ended as it should.
// Kubernetes needs a moment to notice.
func (e *Executor) fate(ctx context.Context, name, said string) (telemetry.PodLoss, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		var pod podStatus
		err := e.request(ctx, http.MethodGet, podPath(e.namespace, name), nil, nil, &pod)
		switch {
		case isGone(err):
			return telemetry.PodDeleted, errors.New("the pod was deleted")
		case err == nil && pod.Status.Phase == "Succeeded":
			return telemetry.PodConnection, nil
		case err == nil && pod.end() != "":
			return pod.loss(), errors.New(strings.TrimSpace("the pod ended: " + pod.end() + " " + term.Short(said, 500)))
		}
		select {
		case <-ctx.Done():
			return telemetry.PodConnection, errors.New("the pod still runs; the connection to it was lost")
		case <-time.After(pollInterval):
		}
	}
}

// remove deletes a pod at once.
func (e *Executor) remove(ctx context.Context, name string) {
	err := e.request(ctx, http.MethodDelete, podPath(e.namespace, name), nil, object{"gracePeriodSeconds": 0}, nil)
	if err != nil && !isGone(err) {
		e.log.WarnContext(ctx, "a pod is left until the next start of this replica", "pod", name, "error", err)
	}
}

// Sweep deletes the pods that an earlier life of this replica left.
func (e *Executor) Sweep(ctx context.Context) error {
	var list struct{ Items []podStatus }
	query := url.Values{"labelSelector": {LabelReplica + "=" + string(e.replica)}}
	if err := e.request(ctx, http.MethodGet, podsPath(e.namespace), query, nil, &list); err != nil {
		return fmt.Errorf("list pods in namespace %s: %w", e.namespace, err)
	}
	for _, pod := range list.Items {
		e.remove(ctx, pod.Metadata.Name)
	}
	return nil
}
