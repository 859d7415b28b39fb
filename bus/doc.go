// Package bus is how the services talk to each other: subjects, streams,
// journal, commands, results, timers and live progress over NATS JetStream. It
// is the only package that knows NATS and the wire format; it takes and gives
// values of package forge.
//
// Deliveries are at least once. What makes a repetition harmless is the state
// machine that an event goes to, not the bus.
package bus
