// Package access says what each account of an installation may publish and hear, and writes
// that as the authorization block of a nats-server.
//
// [Account.Rights] is the one table of permissions: `pfl-forge auth init` writes it for a
// server, docs/permissions.md shows it to people, and the tests run the whole product on it.
// Code that needs another subject adds it here, beside the reason.
//
// Static permissions are about subjects only. What they cannot tell apart is written down in
// docs/guide-security.md.
package access
