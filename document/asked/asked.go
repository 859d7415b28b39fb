// Package asked has the parts of documents that say what was asked for: what of a
// request a person approves, whether it was edited since where it came from, and
// which comments on it were told.
package asked

import (
	"time"

	forge "github.com/pfl-forge/pfl-forge"
)

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

// Comments tells what others said about an intent after it was submitted, without their words.
type Comments struct {
	// Count is how many there are by now in the place of Ref; 10000 stands for all that are more.
	Count int `json:"count" yaml:"count"`
	// Account wrote the newest one, and Ref names it, such as acme/shop#3 comment 17.
	Account string `json:"account" yaml:"account"`
	Ref     string `json:"ref"     yaml:"ref"`
	// At is when it was written.
	At time.Time `json:"at" yaml:"at"`
}

// Heard has the comments on an intent that were told.
type Heard struct {
	// Newest were told last; left out before the first.
	Newest *Comments `json:"newest,omitempty" yaml:"newest,omitempty"`
	// Told has the names of all that were told, in their order.
	Told []string `json:"told" yaml:"told"`
}

// CommentsOf returns comments as documents have them; nil of none.
func CommentsOf(c *forge.Comments) *Comments {
	if c == nil {
		return nil
	}
	told := Comments(*c)
	told.At = c.At.UTC()
	return &told
}
