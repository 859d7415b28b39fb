package access

import (
	"fmt"
	"slices"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Role is a kind of account. What an account may do follows from its role, and for
// people and systems also from its name and projects.
type Role string

// The roles: the services, and those outside of them.
const (
	Runner      Role = "runner"
	Analyzer    Role = "analyzer"
	Implementer Role = "implementer"
	Reviewer    Role = "reviewer"
	Reflector   Role = "reflector"
	// Operator is a person with the command line.
	Operator Role = "operator"
	// Submitter is another system that asks for changes, and reads nothing but its
	// answers.
	Submitter Role = "submitter"
	// Follower is another system that follows changes, by a consumer that an
	// administrator has made under its name.
	Follower Role = "follower"
	// Auth is the service that lets in people who log in elsewhere, and services with
	// a token.
	Auth Role = "auth"
	// Gateway is the service that speaks HTTP to the outside. Its requests are those of
	// the person or system that it names.
	Gateway Role = "gateway"
	// Backup copies all streams, and restores them. It can read everything, and put anything in
	// its place.
	Backup Role = "backup"
)

// Roles returns every role, services first.
func Roles() []Role {
	return append(Services(), Auth, Gateway, Backup, Operator, Submitter, Follower)
}

// Services returns the roles that services have.
func Services() []Role {
	return []Role{Runner, Analyzer, Implementer, Reviewer, Reflector}
}

// Account is one user of the server, with credentials of its own.
type Account struct {
	// Name is unique in an installation: of a service, auth, gateway and backup
	// their role, of a person or a system the token that names them in subjects.
	Name string
	Role Role
	// Projects limits which projects a person or a system may speak about and a
	// person may read; none means all.
	Projects []forge.ProjectID
	// NoClean says that the person may not have removed what intents left.
	NoClean bool
	// Login says that the person comes by a login, and is in no configuration of the
	// server.
	Login bool
}

// NewAccount returns an account, or an error that says what is wrong with the name,
// which is that of the person or system; a service has none.
func NewAccount(role Role, name string, projects ...forge.ProjectID) (Account, error) {
	if !slices.Contains(Roles(), role) {
		return Account{}, fmt.Errorf("there is no role %q", role)
	}
	if single(role) {
		if name != "" && name != string(role) || len(projects) > 0 {
			return Account{}, fmt.Errorf("the service %s has no name and no projects of its own", role)
		}
		return Account{Name: string(role), Role: role}, nil
	}
	if _, err := forge.ParseReplicaID(name); err != nil {
		return Account{}, fmt.Errorf("name of the account %q: use a-z, 0-9 and hyphens", name)
	}
	if subjects.Own(name) {
		return Account{}, fmt.Errorf("name of the account %q: it is taken by pfl-forge itself", name)
	}
	for _, p := range projects {
		if _, err := forge.ParseProjectID(string(p)); err != nil {
			return Account{}, err
		}
	}
	return Account{Name: name, Role: role, Projects: projects}, nil
}

// single reports whether there is one account of a role at most, by the name of that.
func single(role Role) bool {
	return role == Auth || role == Gateway || role == Backup || slices.Contains(Services(), role)
}

// Inbox returns the prefix of the subjects on which an account gets its answers. No
// other account may listen there.
func Inbox(account string) string { return "_INBOX_" + account }

// logins names the inboxes of people who come by a login: those who answer them have
// a right to all of these, since it is not known beforehand who comes.
const logins = "login"

// LoginInbox returns the prefix of the subjects on which a person who comes by a
// login gets answers, or the key of one whose name is not known yet. No other
// person, and no other key, may listen there: names are in lower case, and keys in
// upper case.
func LoginInbox(name string) string { return Inbox(logins) + "." + name }

// Inbox returns the prefix of the subjects on which the account gets its answers.
func (a Account) Inbox() string {
	if a.Login {
		return LoginInbox(a.Name)
	}
	return Inbox(a.Name)
}

// presence names the inbox in which services say that they are there.
const presence = "services"

// PresenceInbox returns the prefix of the subjects on which a runner hears which
// services run. It is apart from the runner's own inbox, so that a worker that
// answers cannot make up an answer to another request.
func PresenceInbox() string { return Inbox(presence) }
