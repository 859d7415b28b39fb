// Package implementer is the implementer service.
package implementer
