// Package git is the only place that runs git.
package git
