// Package asked has the parts of documents that say what was asked for: what of a
// request a person approves, and whether it was edited since where it came from.
package asked

import "time"

// Part is a part of a request: its title, body, type, risk, recipe or agent; or its
// criteria, the values of its recipe or the options of its goal, which are several texts.
type Part struct {
	Name  string   `json:"name"  yaml:"name"`
	Texts []string `json:"texts" yaml:"texts"`
}

// Text says whether a request was edited where it came from. The names of texts are the first 12
// digits of the SHA-256 of title and body, each with its length in bytes and a colon before it.
type Text struct {
	// Taken is the text that was taken, which is worked on.
	Taken string `json:"taken" yaml:"taken"`
	// Later is the text that its publisher sent last, and At when that came;
	// both are left out while it is the one that was taken.
	Later string     `json:"later,omitempty" yaml:"later,omitempty"`
	At    *time.Time `json:"at,omitempty"    yaml:"at,omitempty"`
}
