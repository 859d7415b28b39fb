// Package service is the frame of every pfl-forge service.
//
// A main program is one call of [Main]: it reads the configuration from flags and
// environment, connects to NATS, serves /livez, /readyz and /metrics, and turns the first
// SIGTERM into the end of a context, the second one into an exit.
//
// A service that carries out commands makes a [Worker] with one [Handler] for each
// step ([Env.Worker]). The worker takes commands from the bus, runs the handler, and
// publishes exactly one result for each attempt that is still wanted; it decides
// nothing. These things can go wrong, and are handled here, so that no handler need know
// of them:
//
//   - A command that comes twice runs once.
//   - Another replica with the same commands is kept off by a lease ([Held]), which is
//     lost if this process was stopped or cut off for long.
//   - An attempt whose result is not wanted any more is cancelled.
//   - A result is kept in an [Outbox] until it is journaled, so that a worker that was
//     killed publishes it when it starts again.
//   - Secrets are redacted from everything that leaves the worker.
//   - While the service drains, running attempts have the drain timeout before they are
//     handed back.
//
// Begin with worker.go (the loop) and attempt.go (the life of one attempt).
package service
