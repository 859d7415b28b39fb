// Package jobs gives workers a project's repository: commits, the base branch,
// checkouts, pfl-forge.yaml, and the agents and commands that run in it.
//
// A [Set] holds the repositories of one process, shared by all workers in it. For
// each command a worker calls [Set.Do], which opens the repository if need be, reads
// the tip of the base branch and its configuration, and passes a [Job] to the
// worker's function:
//
//	set.Do(ctx, &cmd, progress, func(ctx context.Context, j *jobs.Job) error { ... })
//
// A Job runs the agent ([Job.Run], or [Job.CallInSession] in a session that outlives
// the process), makes checkouts for reading ([Job.View]), runs the verify commands
// ([Job.Verify]) and collects what is reported in Job.Result. An error becomes a
// [forge.Failure]; see [Failure].
//
// Rules that hold in the whole package: configuration is read from commits of the
// base branch only, never from files that an agent wrote; everything that a model
// runs has caches of its own; and two replicas never write the same state directory,
// which OpenSet locks.
//
// Begin with set.go and project.go, which open repositories; job.go, whose Job a worker
// gets; and call.go, which calls the agent. Package sessions hands sessions on to other replicas,
// package ledger counts usage across restarts of the process, and confine.go describes the
// sandbox.
package jobs
