// Package tokens says whose a bearer token is, and what its holder may do, by a file of the
// operator. The file has the SHA-256 of each token, and never a token.
//
// The API, the console and the chats ask a Book for every request; roles.go is the table of
// roles and verbs. The file is read again when it changes, and one with a mistake leaves
// the former entries in force. A removed entry counts for nothing from the next request on.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/identity"
	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
)

const (
	// maxFile bounds the file, in bytes.
	maxFile = 1 << 20
	// prefix begins each token, so that it is recognised where it does not belong.
	prefix = "pflt_"
	// secretBytes is how much of a token is random.
	secretBytes = 32
	// everyProject stands for all projects in the file.
	everyProject = "*"
	// maxName bounds the name of a person or system, in bytes, and maxLogin
	// what the issuer calls a person.
	maxName, maxLogin = 200, identity.MaxName
)

// Token is an entry of the file.
type Token struct {
	// Name is the entry's key. It is shown where its holder acted.
	Name string `yaml:"-"`
	// SHA256 is the hash of the token, in hexadecimal. A person who is known by
	// Login or Accounts has none, nor has a system that comes through hooks alone.
	SHA256 string `yaml:"sha256"`
	// Login is how the issuer names the person with whose account they sign in to the console.
	Login string `yaml:"login"`
	// Accounts has the person's account at each forge and chat, by the name
	// that this has in its own file: at a forge the account's number, at a chat
	// its id. Names of accounts change hands, these do not.
	Accounts map[string]string `yaml:"accounts"`
	// Person or System says whose it is; one of them is set.
	Person string `yaml:"person"`
	System string `yaml:"system"`
	// Projects has the roles in each project; "*" stands for all.
	Projects map[string][]Role `yaml:"projects"`
	// Expires is when it ends.
	Expires time.Time `yaml:"-"`
	// ExpiresText is Expires as the file has it; empty: it does not end.
	ExpiresText string `yaml:"expires"`

	// sum is SHA256 as bytes.
	sum [sha256.Size]byte
}

// Holder returns the person or system whose token it is.
func (t *Token) Holder() (name string, person bool) {
	if t.Person != "" {
		return t.Person, true
	}
	return t.System, false
}

// Sum returns the SHA-256 of the token.
func (t *Token) Sum() [sha256.Size]byte { return t.sum }

// Everywhere reports whether the holder has roles in every project.
func (t *Token) Everywhere() bool { return len(t.Projects[everyProject]) > 0 }

// Roles returns the roles in a project, those in every project among them, sorted.
func (t *Token) Roles(p forge.ProjectID) []Role {
	list := slices.Concat(t.Projects[string(p)], t.Projects[everyProject])
	slices.Sort(list)
	return slices.Compact(list)
}

// Named returns the projects that the entry names, sorted.
func (t *Token) Named() (list []forge.ProjectID) {
	for _, p := range slices.Sorted(maps.Keys(t.Projects)) {
		if p != everyProject {
			list = append(list, forge.ProjectID(p))
		}
	}
	return list
}

// May reports whether the holder may do something in a project.
func (t *Token) May(p forge.ProjectID, v Verb) bool {
	if t.System != "" && !slices.Contains(forSystems, v) {
		return false
	}
	may := func(r Role) bool { return r.May(v) }
	return slices.ContainsFunc(t.Projects[string(p)], may) || slices.ContainsFunc(t.Projects[everyProject], may)
}

// Parse reads the file's content. name stands for the file in errors.
func Parse(name string, data []byte) ([]Token, error) {
	var doc struct {
		Tokens map[string]Token `yaml:"tokens"`
	}
	pos, err := strictyaml.Decode(data, &doc, strictyaml.Options{File: name, MaxBytes: maxFile})
	if err != nil {
		return nil, err
	}
	var list []Token
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(doc.Tokens)) {
		t := doc.Tokens[key]
		t.Name = key
		for _, m := range t.check() {
			wrong = append(wrong, pos.Errorf("tokens."+key+"."+m.field, "%s", m.reason))
		}
		for i := range list {
			if t.SHA256 != "" && list[i].sum == t.sum {
				wrong = append(wrong, pos.Errorf("tokens."+key+".sha256", "is that of %s as well", list[i].Name))
			}
			if t.Login != "" && list[i].Login == t.Login {
				wrong = append(wrong, pos.Errorf("tokens."+key+".login", "is that of %s as well", list[i].Name))
			}
			for at, id := range t.Accounts {
				if list[i].Accounts[at] == id {
					wrong = append(wrong, pos.Errorf("tokens."+key+".accounts."+at, "is the account of %s as well", list[i].Name))
				}
			}
		}
		list = append(list, t)
	}
	return list, errors.Join(wrong...)
}

// mistake is one reason why an entry is refused.
type mistake struct{ field, reason string }

// check returns the mistakes of an entry, and fills in the values of its texts.
func (t *Token) check() (wrong []mistake) {
	note := func(field, format string, args ...any) {
		wrong = append(wrong, mistake{field, fmt.Sprintf(format, args...)})
	}
	if _, err := forge.ParseReplicaID(t.Name); err != nil {
		note("", "use a-z, 0-9 and hyphens for the name of a token")
	}
	t.checkProof(note)
	switch holder, _ := t.Holder(); {
	case (t.Person == "") == (t.System == ""):
		note("person", "give either person or system")
	case !plain(holder, maxName):
		note("person", "has more than %d bytes, or a control character", maxName)
	}
	if len(t.Projects) == 0 {
		note("projects", "is empty: give roles by project, such as {shop: [viewer]}")
	}
	for _, p := range slices.Sorted(maps.Keys(t.Projects)) {
		if _, err := forge.ParseProjectID(p); err != nil && p != everyProject {
			note("projects", "%q: %v", p, err)
		}
		for _, r := range t.Projects[p] {
			_, known := grants[r]
			switch {
			case !known:
				note("projects", "%q: %q is no role; roles are viewer, requester, approver, operator, auditor", p, r)
			case t.System != "" && r != Viewer && r != Requester && r != Auditor:
				note("projects", "%q: a system cannot be %s: what people decide, no system does", p, r)
			}
		}
	}
	if t.ExpiresText != "" {
		var err error
		if t.Expires, err = time.Parse(time.RFC3339, t.ExpiresText); err != nil {
			note("expires", "is no time such as 2027-01-01T00:00:00Z")
		}
	}
	return wrong
}

// checkProof calls note with what is wrong with that by which the holder proves who they are.
func (t *Token) checkProof(note func(field, format string, args ...any)) {
	sum, err := hex.DecodeString(t.SHA256)
	known := t.Login != "" || len(t.Accounts) > 0 || t.System != ""
	if (t.SHA256 != "" || !known) && (err != nil || len(sum) != sha256.Size) {
		note("sha256", "is not the SHA-256 of a token, in 64 hexadecimal digits")
	}
	copy(t.sum[:], sum)
	if t.Login != "" && (t.System != "" || !plain(t.Login, maxLogin)) {
		note("login", "is for a person, and has at most %d bytes and no control character", maxLogin)
	}
	if len(t.Accounts) > 0 && t.System != "" {
		note("accounts", "is for a person: what people decide, no system does")
	}
	for _, at := range slices.Sorted(maps.Keys(t.Accounts)) {
		if _, err := forge.ParseProjectID(at); err != nil {
			note("accounts."+at, "is no name of a forge or chat: use a-z, 0-9 and hyphens")
		}
		if id := t.Accounts[at]; id == "" || !plain(id, maxName) {
			note("accounts."+at, "is empty, or has more than %d bytes or a control character", maxName)
		}
	}
}

// plain reports whether a name can be shown, and has at most so many bytes.
func plain(name string, most int) bool {
	return len(name) <= most && !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// load reads a file of tokens. It refuses one that others than its owner may write to, since
// it says who may do what.
func load(path string) ([]Token, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxFile)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("%s says who may do what, and others than its owner can write to it: chmod go-w %s", path, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(filepath.Base(path), data)
}

// find returns the entry of a token; nil if there is none. It compares with every entry,
// each in the same time. One without a token is that of nothing.
func find(list []Token, secret string) *Token {
	sum := sha256.Sum256([]byte(secret))
	found := -1
	for i := range list {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(list[i].sum[:], sum[:]), i, found)
	}
	if found < 0 || list[found].SHA256 == "" {
		return nil
	}
	return &list[found]
}

// Make returns a new token, and the SHA-256 of it for the file.
func Make() (secret, sum string) {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // it never fails
	secret = prefix + base64.RawURLEncoding.EncodeToString(raw)
	hash := sha256.Sum256([]byte(secret))
	return secret, hex.EncodeToString(hash[:])
}
