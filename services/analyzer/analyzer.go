// Package analyzer is the analyzer service.
package analyzer
