// Package outside tests the gateway as people and systems meet it: by HTTP, with a real runner
// on a real nats-server. Modules of services do not see each other, so it is here.
//
// Its tests ask what a client of ours would ask, and what only an attacker would: tokens that
// are made up, have ended, or are for something else; paths that lead elsewhere; contents that
// are too large, of another type, or say something twice; connections that are slow or never
// read; the same request at the same moment; a gateway that ends before it answers.
package outside
