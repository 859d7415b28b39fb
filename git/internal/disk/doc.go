// Package disk writes files whole, makes them durable, and removes trees. It trusts the
// directories that it is given: they are the service's own.
//
// The packages of git use it below .git and in checkouts. WriteFile survives a
// crash of the process, WriteDurable also that of the machine: a ref or object
// that others may already rely on takes the second one.
package disk
