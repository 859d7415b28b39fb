// Package presence says which services run. Each replica announces itself as a NATS micro
// service, and a runner gathers the announcements when it is asked. Nothing is
// stored: who does not answer is not there.
package presence
