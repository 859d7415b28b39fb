package process

import (
	"context"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// Executor runs the commands of a service elsewhere than beside the service. It is safe
// for concurrent use. All executors hold to the suite of package executortest.
type Executor interface {
	// Name returns the word for it in the record of an attempt, and for people.
	Name() forge.Executor
	// Needs names, for a person, the thing that must be allowed where Probe fails.
	Needs() string
	// Probe returns nil if a command with that network can run; otherwise the error says
	// why not, and wraps ErrSandbox.
	Probe(ctx context.Context, network sandbox.Network) error
	// Run runs a command that has a sandbox, with the report and errors of the function
	// Run. It keeps what the sandbox says: the command sees the mounts below the service's
	// state, and of the service nothing else.
	Run(ctx context.Context, c Command) (Report, error)
}

// RunIn returns the same owner, whose commands with a sandbox are run by the executor. All
// others, which ask a program for its version, run on this machine.
func (o Owner) RunIn(e Executor) Owner {
	o.executor = e
	return o
}

// Executor returns that of RunIn, or this machine's namespaces.
func (o Owner) Executor() Executor {
	if o.executor == nil {
		return namespaces{}
	}
	return o.executor
}

// namespaces is the executor of this machine: each command gets namespaces of its own.
type namespaces struct{}

// Name returns "namespaces".
func (namespaces) Name() forge.Executor { return forge.ExecutorNamespaces }

// Needs names user namespaces.
func (namespaces) Needs() string { return "user namespaces" }

// Probe makes a sandbox with that network and runs a command in it.
func (namespaces) Probe(ctx context.Context, network sandbox.Network) error {
	return Probe(ctx, network)
}

// Run runs the command here.
func (namespaces) Run(ctx context.Context, c Command) (Report, error) {
	c.Owner.executor = nil
	return Run(ctx, c)
}
