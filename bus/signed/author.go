package signed

import (
	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
	"github.com/pfl-forge/pfl-forge/proof"
)

// Author identifies the account that has to have signed a message. Its subject
// says that, and the server has checked only who may publish there.
type Author struct {
	// Namespace is one that the key has to have, such as proof.NamespaceAsk.
	Namespace string
	// Account is that of the key.
	Account string
}

// relay is the account of runners, which store what systems have answered at once.
const relay = "runner"

// AuthorOf returns who has to have signed what comes from a sender: the gateway through
// which it came, or the account that the subject names, or, where it names none, a
// runner that stored what a system sent to it.
func AuthorOf(from subjects.Sender) Author {
	switch {
	case from.Via != "":
		return Author{proof.NamespaceVia, from.Via}
	case from.Person:
		return Author{proof.NamespaceAsk, from.Name}
	case from.Named:
		return Author{proof.NamespaceSubmit, from.Name}
	}
	return Author{proof.NamespaceRelay, relay}
}

// WorkerOf returns who has to have signed the result of a step: the account of
// its service, in the namespace of all that it sends: a gateway hands on what a
// forge shows, and has one key for all that it hands on.
func WorkerOf(step forge.Step) Author {
	if step.Service() == "gateway" {
		return Author{proof.NamespaceVia, step.Service()}
	}
	return Author{proof.NamespaceResult, step.Service()}
}
