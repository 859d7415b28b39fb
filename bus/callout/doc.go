// Package callout lets in whom the configuration of a nats-server does not have: people
// who have logged in at an OpenID Connect issuer, and services with a token of their
// Kubernetes cluster.
//
// The server asks about each connection that none of its users makes. The answer is a
// credential that ends by itself, with the rights of package access and no others:
//
//	admit.go     who is let in, and as whom
//	certify.go   the certificate that a person gets for the key of a login; with it they connect and sign for some hours
//	serve.go     both, on a connection of the account auth; as many replicas as wanted share the requests
//
// What a token is worth is said by package internal/identity.
package callout
