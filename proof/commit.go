package proof

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// maxSignature bounds the signature of a commit, in bytes.
const maxSignature = 4 << 10

// SignCommit returns the signature of a commit object that has none, in the form of
// ssh-keygen -Y sign -n git.
func (k *Key) SignCommit(object []byte) (string, error) {
	sig, err := sshsig.Sign(bytes.NewReader(object), k.signer, sshsig.HashSHA512, NamespaceGit)
	if err != nil {
		return "", err
	}
	return string(sshsig.Armor(sig)), nil
}

// Commit is a commit object that was read, with the parts that a check needs.
type Commit struct {
	Tree    string
	Parents []string
	// At is the date of the committer.
	At time.Time

	// signed is the object without its signature.
	signed    []byte
	signature string
}

// ParseCommit reads the content of a commit object. It takes just the headers that a
// commit of pfl-forge has, each once, so that git and this package cannot read it in
// two ways.
func ParseCommit(object []byte) (Commit, error) {
	var c Commit
	head, message, ok := bytes.Cut(object, []byte("\n\n"))
	if !ok || bytes.IndexByte(object, 0) >= 0 {
		return Commit{}, errors.New("the commit cannot be read")
	}
	var signed bytes.Buffer
	seen := map[string]bool{}
	in := "" // the header that a line beginning with a space continues
	for line := range strings.SplitSeq(string(head), "\n") {
		name, value, _ := strings.Cut(line, " ")
		if name == "" && in != "gpgsig" {
			return Commit{}, errors.New("the commit has a header of several lines that is no signature")
		}
		if name == "" {
			c.signature += value + "\n"
			continue
		}
		// Of two trees, committers or signatures git takes one, and it is not written
		// anywhere which: so there may be no second one.
		in = name
		if seen[name] && name != "parent" {
			return Commit{}, fmt.Errorf("the commit has the header %q twice", clip(name))
		}
		seen[name] = true
		switch name {
		case "tree":
			c.Tree = value
		case "parent":
			c.Parents = append(c.Parents, value)
		case "committer":
			c.At = date(value)
		case "author", "encoding":
		case "gpgsig":
			// Its lines are no part of the content that is signed: git takes them out,
			// too, before it asks ssh-keygen.
			c.signature = value + "\n"
			continue
		default:
			return Commit{}, fmt.Errorf("the commit has the header %q, which pfl-forge does not write", clip(name))
		}
		signed.WriteString(line + "\n")
	}
	signed.WriteByte('\n')
	signed.Write(message)
	c.signed = signed.Bytes()
	return c, nil
}

// date returns the date of an identity line; the beginning of time if it has none.
func date(identity string) time.Time {
	_, when, _ := strings.Cut(identity, "> ")
	seconds, _, _ := strings.Cut(when, " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// Signed returns who signed the commit, if that is a trusted key for commits.
func (c *Commit) Signed(by Signers) (Signer, error) {
	switch {
	case c.signature == "":
		return Signer{}, errors.New("is not signed")
	case len(c.signature) > maxSignature:
		return Signer{}, fmt.Errorf("has a signature of %d bytes, more than %d", len(c.signature), maxSignature)
	}
	// The key in the signature only says which of the trusted ones to take. It is
	// never believed by itself.
	sig, err := sshsig.Unarmor([]byte(c.signature))
	if err != nil {
		return Signer{}, fmt.Errorf("has a signature that is not one of ssh: %w", err)
	}
	signer, err := by.find(ssh.FingerprintSHA256(sig.PublicKey), NamespaceGit, c.At)
	if err != nil {
		return Signer{}, fmt.Errorf("is signed, but %w", err)
	}
	if err := sshsig.Verify(bytes.NewReader(c.signed), sig, signer.Key, sig.HashAlgorithm, NamespaceGit); err != nil {
		return Signer{}, fmt.Errorf("has a wrong signature: it was changed after %s signed it", signer.Principal)
	}
	return signer, nil
}
