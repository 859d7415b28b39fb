// Package setup has the documents about how a project is set up, as programs
// read them: its schedules, and the settings in force.
//
// A runner answers with them from the project's summary; bus/requests, the gateway's API
// and the CLI pass them on as they are. They are for everyone who may look at the project,
// so texts of intents and the ends of command lines are left out here, not by the reader.
package setup

import (
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Request asks by which settings a project is worked on. It has no fields.
type Request struct{}

// Check returns no mistake.
func (*Request) Check() []forge.FieldError { return nil }

// Of returns no intent: a request is about a project.
func (*Request) Of() forge.IntentID { return "" }

// InForce answers by which settings a project is worked on, and where each comes from. A
// command line is told up to the first word that may hold a secret, by package cmdline; one
// that stands in it as a plain word is told with it. Of webhooks the whole address is left out.
type InForce struct {
	Project forge.ProjectID `json:"project" yaml:"project"`
	// Rules is the version of the rules by which new decisions are taken; 0: it is not known.
	Rules int `json:"rules" yaml:"rules"`
	// Read says where the file of the repository was read last; nil: by no worker yet.
	Read *Read `json:"read,omitempty" yaml:"read,omitempty"`
	// Settings has every setting, by name.
	Settings []Setting `json:"settings" yaml:"settings"`
	// Schedules are those in force, in the order in which they were set.
	Schedules []Schedule `json:"schedules" yaml:"schedules"`
	// Notifications are the targets of the operator's file that are told of this project.
	Notifications []Target `json:"notifications" yaml:"notifications"`
	// People are those of the gateway's file of tokens who have roles in the project.
	// Only those who may audit are told, by the gateway; nil for all others.
	People []Holder `json:"people,omitempty" yaml:"people,omitempty"`
}

// Read says where settings were read. The settings of an intent are those that
// its newest analysis read, so an older one may be worked on by others.
type Read struct {
	// Commit is the one of the base branch whose pfl-forge.yaml was read.
	Commit string `json:"commit" yaml:"commit"`
	// Intent is the one whose analysis read it.
	Intent forge.IntentID `json:"intent" yaml:"intent"`
	// At is when that was decided on.
	At time.Time `json:"at" yaml:"at"`
}

// Setting is one setting.
type Setting struct {
	// Name is its path in pfl-forge.yaml, such as policy.sandbox.
	Name string `json:"name" yaml:"name"`
	// Value is as the file has it, of a list an entry a line; empty: it is not
	// set. Of recipes, checks and agents it has the names.
	Value string `json:"value" yaml:"value"`
	// From is default, repository (its pfl-forge.yaml), or operator (whoever runs the services).
	From string `json:"from" yaml:"from"`
}

// Target is a recipient of notifications.
type Target struct {
	// Name is that of the entry in the operator's file.
	Name string `json:"name" yaml:"name"`
	// By is command or webhook.
	By string `json:"by" yaml:"by"`
	// On has the kinds of changes that it is told of: waiting, budget, failed, done.
	On []string `json:"on" yaml:"on"`
}

// Holder is an entry of the gateway's file of tokens.
type Holder struct {
	// Name is that of the person or system, Kind says which of the two.
	Name string `json:"name" yaml:"name"`
	Kind string `json:"kind" yaml:"kind"`
	// Token is the name of the entry, which is no secret.
	Token string `json:"token" yaml:"token"`
	// Roles are those in the project, sorted. Everywhere says that some of them
	// are those in every project.
	Roles      []string `json:"roles"                yaml:"roles"`
	Everywhere bool     `json:"everywhere,omitempty" yaml:"everywhere,omitempty"`
	// Expires is when the token ends; zero: it does not.
	Expires time.Time `json:"expires,omitzero" yaml:"expires,omitempty"`
}
