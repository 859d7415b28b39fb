// Package identity says whose account a token is for: one that an OpenID
// Connect issuer has signed about a person who logged in there, or that a
// Kubernetes cluster has signed about a service account.
//
// One file, which an operator writes, names the issuers and says which claim makes which account:
//
//	rules.go    the file: issuers, people, services, and who was removed
//	issuer.go   one issuer: its keys, and what of its tokens has to hold
//	book.go     Book: the file as it is now, with its issuers
//
// Nothing here knows NATS. What an account may do is said by package bus/access.
package identity
