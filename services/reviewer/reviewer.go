// Package reviewer is the reviewer service.
package reviewer
