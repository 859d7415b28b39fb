// Package outside tests the gateway as people and systems meet it: by HTTP, with a real runner
// on a real nats-server. Modules of services do not see each other, so it is here.
package outside
