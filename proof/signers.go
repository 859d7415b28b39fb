package proof

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// The namespaces, which say what a key may sign.
const (
	// NamespaceGit is of commits; ssh-keygen and git know it by this name.
	NamespaceGit = "git"
	// NamespaceVerify is of statements about verify commands.
	NamespaceVerify = "verify@pfl-forge"
	// NamespaceReview is of statements about reviews and judgments.
	NamespaceReview = "review@pfl-forge"
	// NamespacePlan is of statements about plans.
	NamespacePlan = "plan@pfl-forge"
	// NamespaceApproval is of statements about the approvals of people.
	NamespaceApproval = "approval@pfl-forge"

	// NamespaceResult is of what workers report.
	NamespaceResult = "result@pfl-forge"
	// NamespaceAsk is of what people ask for and decide.
	NamespaceAsk = "ask@pfl-forge"
	// NamespaceSubmit is of what other systems submit.
	NamespaceSubmit = "submit@pfl-forge"
	// NamespaceRelay is of what a runner stores for a system that it answers at once.
	NamespaceRelay = "relay@pfl-forge"
	// NamespaceVia is of what a gateway hands on for people and systems.
	NamespaceVia = "via@pfl-forge"
	// NamespaceCertify is of certificates, which say whose key of a login another one
	// is.
	NamespaceCertify = "certify@pfl-forge"
)

// sends has the namespace of what accounts of a role send; see package bus/signed.
var sends = map[string]string{
	"runner": NamespaceRelay, "analyzer": NamespaceResult, "implementer": NamespaceResult, "reviewer": NamespaceResult, "reflector": NamespaceResult,
	"operator": NamespaceAsk, "submitter": NamespaceSubmit, "auth": NamespaceCertify,
	"gateway": NamespaceVia,
}

// Sends reports whether accounts of a role sign what they send.
func Sends(role string) bool { return sends[role] != "" }

// byRole has the namespaces of the roles that sign anything.
var byRole = []struct {
	role       string
	namespaces []string
}{
	{"implementer", []string{NamespaceGit, NamespaceVerify}},
	{"reviewer", []string{NamespaceReview}},
	{"runner", []string{NamespacePlan, NamespaceApproval}},
}

// Roles returns the roles that sign anything.
func Roles() []string {
	var list []string
	for _, r := range byRole {
		list = append(list, r.role)
	}
	return list
}

// Namespaces returns the namespaces of a role's key; none for a role that signs
// nothing.
func Namespaces(role string) []string {
	for _, r := range byRole {
		if r.role == role {
			return r.namespaces
		}
	}
	return nil
}

// Signer is a key that is trusted, a line of the file.
type Signer struct {
	// Principal names whose key it is, such as implementer.
	Principal string
	// Namespaces limit the key to some kinds of content.
	Namespaces []string
	// Until is when the key stopped being used, by the date of a commit; zero: it has
	// not.
	Until time.Time
	// Key is an ed25519 key.
	Key ssh.PublicKey
}

// Signers are the keys that are trusted.
type Signers []Signer

const (
	// maxSignersFile bounds a file of trusted keys, in bytes.
	maxSignersFile = 1 << 20
	// timeFormat is the one of OpenSSH for times in UTC.
	timeFormat = "20060102150405Z"
)

// principals matches names of accounts.
var principals = pattern.New(`^[a-z0-9][a-z0-9-]{0,79}$`)

// ReadSigners reads a file of trusted keys.
func ReadSigners(path string) (Signers, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(f, maxSignersFile+1))
	if err == nil && n > maxSignersFile {
		err = fmt.Errorf("%s: is larger than %d bytes", path, maxSignersFile)
	}
	if err != nil {
		return nil, err
	}
	list, err := ParseSigners(b.String())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// ParseSigners reads the text of a file of trusted keys. It takes a part of what
// ssh-keygen takes, and no more: one principal without wildcards, namespaces,
// valid-before, and an ed25519 key.
func ParseSigners(text string) (Signers, error) {
	var list Signers
	n := 0
	for line := range strings.Lines(text) {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		s, err := parseSigner(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		list = append(list, s)
	}
	if len(list) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return list, nil
}

// parseSigner reads one line: principal, options, type and key, and a comment that
// is not read.
func parseSigner(line string) (Signer, error) {
	f := strings.Fields(line)
	if len(f) < 4 {
		return Signer{}, errors.New(`want: principal namespaces="..." ssh-ed25519 key`)
	}
	s := Signer{Principal: f[0]}
	if !principals.MatchString(s.Principal) {
		return Signer{}, fmt.Errorf("principal %q: want one name of a-z, 0-9 and hyphens", clip(f[0]))
	}
	for option := range strings.SplitSeq(f[1], `",`) {
		name, value, quoted := strings.Cut(strings.TrimSuffix(option, `"`), `="`)
		var err error
		switch {
		case quoted && name == "namespaces" && s.Namespaces == nil && value != "":
			s.Namespaces = strings.Split(value, ",")
		case quoted && name == "valid-before" && s.Until.IsZero():
			s.Until, err = time.Parse(timeFormat, value)
		default:
			err = errors.New("is not known, or given twice")
		}
		if err != nil {
			return Signer{}, fmt.Errorf(`option %q: %w; want namespaces="..." and perhaps valid-before="YYYYMMDDhhmmssZ", with a comma between them`,
				clip(option), err)
		}
	}
	if s.Namespaces == nil || slices.ContainsFunc(s.Namespaces, func(n string) bool { return n == "" || strings.ContainsAny(n, "*?!") }) {
		return Signer{}, errors.New("namespaces: say which, without wildcards")
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(f[3])
	if err != nil || f[2] != ssh.KeyAlgoED25519 {
		return Signer{}, fmt.Errorf("want a key of type %s, in base64", ssh.KeyAlgoED25519)
	}
	s.Key, err = ssh.ParsePublicKey(raw)
	if err != nil || s.Key.Type() != ssh.KeyAlgoED25519 {
		return Signer{}, fmt.Errorf("want a key of type %s", ssh.KeyAlgoED25519)
	}
	return s, nil
}

// String returns the text of a file, which ssh-keygen -Y verify and git
// verify-commit take.
func (l Signers) String() string {
	var b strings.Builder
	b.WriteString("# Keys that pfl-forge signs with, as ssh-keygen -Y verify reads them. Whoever may write here decides what is trusted.\n")
	for _, s := range l {
		fmt.Fprintf(&b, `%s namespaces="%s"`, s.Principal, strings.Join(s.Namespaces, ","))
		if !s.Until.IsZero() {
			fmt.Fprintf(&b, `,valid-before="%s"`, s.Until.UTC().Format(timeFormat))
		}
		fmt.Fprintf(&b, " %s %s\n", s.Key.Type(), base64.StdEncoding.EncodeToString(s.Key.Marshal()))
	}
	return b.String()
}

// Renew returns the list with a new key. Other keys of its principal are no longer
// good for what is made from now on.
func (l Signers) Renew(next Signer, now time.Time) Signers {
	list := slices.Clone(l)
	for i := range list {
		if list[i].Principal == next.Principal && list[i].Until.IsZero() && !equal(list[i].Key, next.Key) {
			list[i].Until = now
		}
	}
	if slices.ContainsFunc(list, func(s Signer) bool { return equal(s.Key, next.Key) }) {
		return list
	}
	return append(list, next)
}

// find returns the signer that a fingerprint names and that may sign in a namespace,
// for what was made at a time.
func (l Signers) find(id, namespace string, at time.Time) (Signer, error) {
	why := fmt.Errorf("the key %s is not among the trusted keys", clip(id))
	// A key may be in the file twice, for two namespaces. The reason that is returned
	// is of the last line with it.
	for _, s := range l {
		if ssh.FingerprintSHA256(s.Key) != id {
			continue
		}
		switch {
		case !slices.Contains(s.Namespaces, namespace):
			why = fmt.Errorf("the key of %s may not sign %s, only %s", s.Principal, namespace, strings.Join(s.Namespaces, ", "))
		case !s.Until.IsZero() && at.After(s.Until):
			why = fmt.Errorf("the key of %s was replaced on %s, before this was made", s.Principal, s.Until.Format(time.RFC3339))
		default:
			return s, nil
		}
	}
	return Signer{}, why
}

// equal reports whether two public keys are the same.
func equal(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// clip returns the beginning of a text that stands in an error, quoted by its user.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
