package service

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/pfl-forge/pfl-forge"
)

const (
	// maxWorkers bounds --workers.
	maxWorkers = 256
	// maxSecretFile bounds files with credentials, in bytes.
	maxSecretFile = 64 << 10
)

// setServer accepts a comma-separated list of NATS URLs, and insists on a scheme, so
// that a connection is never without TLS by mistake.
func setServer(c *Config, s string) error {
	for one := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil {
			return errors.New("not a URL, such as nats://host:4222") // the text may hold a password
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return fmt.Errorf("%q does not begin with nats://, tls://, ws:// or wss://", u.Redacted())
		}
		if u.Host == "" {
			return fmt.Errorf("%q names no host", u.Redacted())
		}
	}
	c.Server = s
	return nil
}

// hidePasswords returns a list of URLs with the passwords masked, for logs.
func hidePasswords(servers string) string {
	list := strings.Split(servers, ",")
	for i, s := range list {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil {
			return "(unreadable)"
		}
		if u.User != nil {
			u.User = url.User("xxxxx") // a lone user part is a token
		}
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}

// parseProject reads NAME=URL. The URL becomes an argument of git, so nothing that
// git would take for an option or for a command to run is let in.
func parseProject(s string) (Project, error) {
	name, addr, ok := strings.Cut(s, "=")
	if !ok {
		return Project{}, errors.New("want NAME=URL, such as shop=https://git.example.com/shop.git")
	}
	id, err := forge.ParseProjectID(name)
	if err != nil {
		return Project{}, err
	}
	switch {
	case addr == "":
		return Project{}, fmt.Errorf("project %q has an empty URL", id)
	case strings.HasPrefix(addr, "-"):
		return Project{}, fmt.Errorf("the URL of project %q begins with a hyphen", id)
	case strings.Contains(addr, "::"):
		return Project{}, fmt.Errorf("the URL of project %q names a remote helper: use https, ssh, git, file or a path", id)
	case strings.ContainsFunc(addr, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return Project{}, fmt.Errorf("the URL of project %q holds white space or a control character", id)
	}
	return Project{ID: id, URL: addr}, nil
}

// checkSecretFile returns an error unless the path is a regular file of a reasonable
// size.
func checkSecretFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSecretFile {
		return fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxSecretFile)
	}
	return nil
}

// readToken returns the one line of a token file, without white space around it.
func readToken(path string) (string, error) {
	if err := checkSecretFile(path); err != nil {
		return "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile))
	if err != nil {
		return "", err
	}
	b = bytes.TrimSpace(b)
	if len(b) == 0 || bytes.ContainsAny(b, "\x00\r\n") {
		return "", fmt.Errorf("%s does not hold one line with a token", path)
	}
	return string(b), nil
}
