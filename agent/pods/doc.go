// Package pods is the process.Executor of Kubernetes: each command runs in a pod of its
// own, in a namespace for what models and other people's code do, and the pod is gone
// when the command is.
//
// The operator gives a template of the pod, which decides about image, resources,
// security context, runtime class and everything else; pods.go adds what makes it this
// command's. The command and its files reach the pod through its standard streams
// (package remote), so it mounts nothing, holds no credentials and needs no network: the
// model's gateway is reached through the same streams. api.go has the five requests to
// the API server, attach.go the connection to the streams.
//
// A pod that is refused, or can never start, is process.ErrSandbox: a person has to change
// something. One that cannot start now, or ends before it has reported, is a loss
// (process.ErrLost), with what Kubernetes says of it: no room, out of memory, evicted,
// deleted.
package pods
