package access

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// User is an account with what proves it to the server.
type User struct {
	Account

	// Proof is in the form of the server's configuration: nkey: U..., or user: ada,
	// password: ...
	Proof string
	// Issuer is the public key by which the account auth signs whom it lets in; empty
	// for others.
	Issuer string
}

// NKey returns the proof by an nkey, of which the server knows the public part.
func NKey(public string) string { return "nkey: " + public }

// Conf returns the authorization block of a nats-server's configuration, to be
// included in it. all are the accounts of the installation, those of the users among
// them.
func Conf(users []User, all []Account) string {
	var b strings.Builder
	asks := slices.IndexFunc(users, func(u User) bool { return u.Issuer != "" })
	if asks >= 0 {
		b.WriteString(longTokens)
	}
	b.WriteString("authorization {\n  users: [\n")
	for i, u := range users {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "    # %s\n    { %s\n      permissions: {\n", u.title(), u.Proof)
		publish, deny, subscribe := u.subjects(all)
		fmt.Fprintf(&b, "        publish: {\n%s", lists("allow", publish))
		b.WriteString(lists("deny", deny))
		fmt.Fprintf(&b, "        }\n        subscribe: {\n%s        }\n      }\n    }\n", lists("allow", subscribe))
	}
	b.WriteString("  ]\n")
	if asks >= 0 {
		b.WriteString(callout(users[asks].Issuer, users))
	}
	b.WriteString("}\n")
	b.WriteString(noRequests())
	return b.String()
}

// noRequests returns the part of the configuration that has the server take none of its own
// answers for a request that destroys what lasts. The server sends an answer to any subject
// that the requester names, also to one of its own calls, and takes an empty answer there
// for a request without arguments: an empty answer of a consumer could delete a stream. The
// server serves calls in its system account, and a mapping there drops these for every
// caller: an administrator who has to make one takes its line out and reloads the server.
func noRequests() string {
	var b strings.Builder
	b.WriteString("accounts {\n  $SYS: {\n    mappings: {\n")
	for _, call := range Withheld() {
		fmt.Fprintf(&b, "      %q: %q\n", call, nowhere)
	}
	b.WriteString("    }\n  }\n}\n")
	return b.String()
}

// nowhere is a subject of the system account that has no listener.
const nowhere = "forge.withheld"

// Withheld returns the calls of JetStream that have no effect on a server with a
// configuration of Conf, whoever makes them. Left are those on streams that are made
// anew, and the purge of what workers hand on, of which single objects are purged.
func Withheld() (calls []string) {
	for _, cfg := range streams.All(1) {
		name := cfg.Name
		renewed := name == streams.Commands || name == streams.Wakes
		if !renewed {
			calls = append(calls, api("STREAM.DELETE", name))
		}
		if !renewed && name != streams.BucketObjects.Stream() && name != streams.BucketSnapshots.Stream() {
			calls = append(calls, api("STREAM.PURGE", name))
		}
		if name != streams.Projects { // from which a restored backup removes what is later than the intents' journals
			calls = append(calls, api("STREAM.MSG.DELETE", name))
		}
	}
	for _, name := range []string{streams.Intents, streams.Wakes, streams.Commands} {
		calls = append(calls, api("CONSUMER.DELETE", name, "*"), api("CONSUMER.RESET", name, "*"))
	}
	return calls
}

// longTokens has the server take the token of an issuer, which is longer than what
// it takes otherwise.
const longTokens = "max_control_line: 16KB\n"

// callout returns the part of the block that has the server ask the account auth
// about everybody who is not among its users.
func callout(issuer string, users []User) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  timeout: %d\n  auth_callout {\n    issuer: %s\n    auth_users: [", calloutSeconds, issuer)
	for _, u := range users {
		fmt.Fprintf(&b, "\n      %s", u.id())
	}
	b.WriteString("\n    ]\n  }\n")
	return b.String()
}

// calloutSeconds bounds how long a connection waits for the account auth. That one
// asks others in its turn.
const calloutSeconds = 5

// id returns the name by which the server knows the user.
func (u User) id() string {
	first, _, _ := strings.Cut(u.Proof, ",")
	_, id, _ := strings.Cut(first, ": ")
	return id
}

// subjects returns the subjects of all rights of an account.
func (a Account) subjects(all []Account) (publish, deny, subscribe []string) {
	return Subjects(a.Rights(all))
}

// Subjects returns the subjects of all rights.
func Subjects(rights []Right) (publish, deny, subscribe []string) {
	for _, r := range rights {
		publish, deny, subscribe = append(publish, r.Publish...), append(deny, r.Deny...), append(subscribe, r.Subscribe...)
	}
	return publish, deny, subscribe
}

// width bounds the lines of a list of subjects.
const width = 150

// lists returns a list of subjects as lines of the configuration; nothing if it is
// empty. No account has an empty list of what is allowed, which the server takes for
// everything.
func lists(name string, subjects []string) string {
	if len(subjects) == 0 {
		return ""
	}
	const indent = "          "
	var text strings.Builder
	text.WriteString(indent + name + ": [")
	line := ""
	for i, s := range subjects {
		part := fmt.Sprintf("%q", s)
		if i < len(subjects)-1 {
			part += ","
		}
		if line != "" && len(indent)+len(line)+len(part) > width {
			text.WriteString("\n" + indent + " " + line)
			line = ""
		}
		line += " " + part
	}
	return text.String() + "\n" + indent + " " + line + "\n" + indent + "]\n"
}

// title returns the comment that tells an account apart, which ParseConf reads.
func (a Account) title() string {
	s := "account " + a.Name + ", role " + string(a.Role)
	if len(a.Projects) > 0 {
		s += ", projects " + strings.Join(a.projects(), " ")
	}
	if a.NoClean {
		s += noClean
	}
	return s
}

// noClean ends the title of the account of a person who may not clean.
const noClean = ", no clean"

// titled matches an account in a file of Conf: name, role, projects, whether it may
// clean, and public nkey.
var titled = pattern.New(
	`(?m)^    # account (\S+), role ([a-z]+)(?:, projects ([a-z0-9 -]+))?(` + noClean + `)?\n    \{ nkey: (U[A-Z2-7]{55})$`)

// issuers matches the key that Conf writes for the account auth.
var issuers = pattern.New(`(?m)^    issuer: (A[A-Z2-7]{55})$`)

// ErrNotOurs says that a configuration is not one that Conf has written.
var ErrNotOurs = errors.New("it was not written by pfl-forge auth init")

// ParseConf returns the users of a configuration that Conf has written for users
// with nkeys. Permissions are not read: they follow from the accounts. It refuses a
// configuration with other users, which would be lost. Error: ErrNotOurs.
func ParseConf(text string) ([]User, error) {
	var users []User
	for _, m := range titled.FindAllStringSubmatch(text, -1) {
		var projects []forge.ProjectID
		for p := range strings.FieldsSeq(m[3]) {
			projects = append(projects, forge.ProjectID(p))
		}
		a, err := NewAccount(Role(m[2]), m[1], projects...)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotOurs, err)
		}
		a.NoClean = m[4] != ""
		users = append(users, User{Account: a, Proof: NKey(m[5])})
	}
	if m := issuers.FindStringSubmatch(text); m != nil {
		i := slices.IndexFunc(users, func(u User) bool { return u.Role == Auth })
		if i < 0 {
			return nil, ErrNotOurs
		}
		users[i].Issuer = m[1]
	}
	if len(users) == 0 || strings.Count(text, "nkey:") != len(users) || strings.Contains(text, "password") {
		return nil, ErrNotOurs
	}
	return users, nil
}

// Accounts returns the accounts of users.
func Accounts(users []User) []Account {
	list := make([]Account, len(users))
	for i, u := range users {
		list[i] = u.Account
	}
	return list
}

// Public returns the public nkey of a user; empty if it proves itself otherwise.
func (u User) Public() string {
	public, _ := strings.CutPrefix(u.Proof, "nkey: ")
	if strings.Contains(public, " ") {
		return ""
	}
	return public
}

// Find returns the index of the user whose account has a name, -1 if there is none.
func Find(users []User, name string) int {
	return slices.IndexFunc(users, func(u User) bool { return u.Name == name })
}

// Issuer returns the key by which the account auth signs whom it lets in, as the
// server knows it: it follows from the seed of the account's nkey, and is another
// key than that.
func Issuer(seed []byte) (nkeys.KeyPair, error) {
	raw, err := hkdf.Key(sha256.New, seed, nil, "pfl-forge callout issuer v1", 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key of the issuer: %w", err)
	}
	defer clear(raw)
	encoded, err := nkeys.EncodeSeed(nkeys.PrefixByteAccount, raw)
	if err != nil {
		return nil, fmt.Errorf("derive the key of the issuer: %w", err)
	}
	return nkeys.FromSeed(encoded)
}

// NewKey returns a new nkey of a user: the public part, which the server knows, and
// the seed, which is secret.
func NewKey() (public string, seed []byte, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", nil, err
	}
	defer pair.Wipe()
	if public, err = pair.PublicKey(); err != nil {
		return "", nil, err
	}
	if seed, err = pair.Seed(); err != nil {
		return "", nil, err
	}
	return public, bytes.Clone(seed), nil
}
