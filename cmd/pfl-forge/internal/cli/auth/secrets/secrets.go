// Package secrets keeps the secrets of an installation: as plain files in a
// folder, or as Secrets of Kubernetes, which kubectl moves. Both are a Store,
// and know the secrets by the names of this file.
//
// Nothing is printed here but Secrets that were asked for. The order of writing
// is part of the contract (see inOrder).
package secrets

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Set has the credentials of an installation, by the name of the secret that
// holds them: an account's, or one of those below. Each has entries.
type Set map[string]map[string][]byte

// The names of secrets that are of no account.
const (
	// Server has the files that the nats-server reads.
	Server = "server"
	// Authority has the authority that we made, to renew the server's
	// certificate.
	Authority = "ca"
	// Signers has the file of keys by which runners trust messages, and
	// everybody commits and statements. It is no secret, but whoever may change it
	// decides what is trusted.
	Signers = "signers"
	// Console has the key of the gateway's console. No account has a name like it.
	Console = "gateway/console"
)

// The entries of secrets.
const (
	Conf        = "auth.conf"
	Cert        = "tls.crt"
	Key         = "tls.key"
	CA          = "ca.crt"
	CAKey       = "ca.key"
	Seed        = "nkey"
	TrustedKeys = "allowed_signers"
	ConsoleKey  = "console.key"
)

// Store reads and writes secrets. There are two, Folder and Cluster.
type Store interface {
	// Read returns the secrets that exist, which may be none.
	Read() (Set, error)
	// Write writes the secrets that have changed; whole are all of them, as far as
	// they are known. It returns the names of what it has written, also with an error.
	Write(changed, whole Set) ([]string, error)
}

// inOrder returns the names of secrets or files as they are written: first has
// the trusted keys, so that no key is in use that is not trusted; then the
// seeds; last has the permissions, by which the server knows them.
func inOrder(names iter.Seq[string], first, last string) []string {
	rank := map[string]int{first: -1, last: 1}
	return slices.SortedFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), strings.Compare(a, b)) })
}
