// Package disk writes files whole, makes them durable, and removes trees. It trusts the
// directories that it is given: they are the service's own.
package disk
