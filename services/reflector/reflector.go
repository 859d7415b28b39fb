// Package reflector is the reflector service.
package reflector
